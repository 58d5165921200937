// A case that changes its own process (limits, streams, signals, root directory) spends a child.
//
// Guarantees: the child runs the body and nothing after it; how it ended and what it said come back
// as a value. The body must not use assertions of the test framework: it says what it saw.
#pragma once
#include <exception>
#include <fcntl.h>
#include <glove/sys/fd.hpp>
#include <sched.h>
#include <string>
#include <string_view>
#include <support/folder.hpp>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace glove::test {

struct finished {
    int wait_status = 0;
    std::string said;
};

inline void say(sys::fd_ref out, std::string_view text) {
    while (!text.empty()) {
        const auto put = ::write(out.get(), text.data(), text.size());
        if (put <= 0) ::_exit(121);
        text.remove_prefix(static_cast<std::size_t>(put));
    }
}

inline auto hear(sys::fd_ref in) -> std::string {
    std::string out;
    char part[4096];
    for (;;) {
        const auto got = ::read(in.get(), part, sizeof part);
        if (got <= 0) return out;
        out.append(part, static_cast<std::size_t>(got));
    }
}

struct pipe_ends {
    sys::unique_fd read, write;
    pipe_ends() {
        int ends[2];
        prepared(::pipe2(ends, O_CLOEXEC) == 0, "pipe");
        read = sys::unique_fd{ends[0]};
        write = sys::unique_fd{ends[1]};
    }
};

// `body` returns the text to say.
template<class Body> auto forked(Body body) -> finished {
    pipe_ends channel;
    const auto child = ::fork();
    prepared(child >= 0, "fork");
    if (child == 0) {
        // Out of the way of the standard streams and of the lowest numbers.
        const sys::unique_fd out{::fcntl(channel.write.get(), F_DUPFD_CLOEXEC, 200)};
        channel.read = {};
        channel.write = {};
        try {
            say(out, body());
        } catch (const std::exception& problem) {
            say(out, problem.what());
            ::_exit(122);
        }
        ::_exit(0);
    }
    channel.write = {};
    finished result{.wait_status = 0, .said = hear(channel.read)};
    while (::waitpid(child, &result.wait_status, 0) < 0 && errno == EINTR) {
    }
    return result;
}

// What the body said; how it ended instead, when it did not end well.
template<class Body> auto said_by(Body body) -> std::string {
    const auto done = forked(std::move(body));
    if (WIFSIGNALED(done.wait_status))
        return done.said + "[signal " + std::to_string(WTERMSIG(done.wait_status)) + "]";
    if (WEXITSTATUS(done.wait_status) != 0)
        return done.said + "[exit " + std::to_string(WEXITSTATUS(done.wait_status)) + "]";
    return done.said;
}

// In the child only: no file may grow beyond `bytes`, and trying is an error instead of a signal.
inline void forbid_growth(::rlim_t bytes) {
    const ::rlimit limit{bytes, bytes};
    prepared(::signal(SIGXFSZ, SIG_IGN) != SIG_ERR, "signal");
    prepared(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
}

// A user namespace of its own, in which its user and group have these numbers, and the other
// namespaces of `which`. Before there is a second thread.
inline void enter_user_namespace(int which, ::uid_t inside_uid, ::gid_t inside_gid) {
    const auto set = [](const char* path, const std::string& value) {
        const sys::unique_fd file{::open(path, O_WRONLY | O_CLOEXEC)};
        prepared(::write(file.get(), value.data(), value.size()) ==
                     static_cast<ssize_t>(value.size()),
                 path);
    };
    const auto uid = std::to_string(::geteuid()), gid = std::to_string(::getegid());
    prepared(::unshare(CLONE_NEWUSER | which) == 0, "unshare");
    set("/proc/self/setgroups", "deny");
    set("/proc/self/uid_map", std::to_string(inside_uid) + " " + uid + " 1");
    set("/proc/self/gid_map", std::to_string(inside_gid) + " " + gid + " 1");
}

// May mount, and nobody else sees it: root as it is, anybody else as the root of a user namespace,
// as a service of one's user is.
inline void become_mounter() {
    if (::geteuid() == 0) prepared(::unshare(CLONE_NEWNS) == 0, "unshare");
    else enter_user_namespace(CLONE_NEWNS, 0, 0);
    prepared(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "private mounts");
}

// In the child only: `root` becomes "/". An ordinary user takes a user namespace for it.
inline void enter_root(const std::string& root) {
    if (::geteuid() != 0) enter_user_namespace(0, ::geteuid(), ::getegid());
    prepared(::chroot(root.c_str()) == 0 && ::chdir("/") == 0, root);
}

} // namespace glove::test
