// glove-image: one program of e2fsprogs on one image, in a perimeter. Started by the service, never
// by people.
//
// Guarantees: it enters the control group that it was given before it does anything else. What the
// program has is the image and, if it serves it, the kernel's questions, both as descriptors: no
// other file but the system's programs and libraries, no network, no privilege, no way to make the
// image larger or to give back what it takes on the disk. It ends with the program, and the program
// with it; what ends all processes of a service at once ends neither, for the image is still in
// use.
#include "container/image/image_protocol.hpp"
#include "container/linux/cgroup.hpp"
#include "sys/confine.hpp"
#include "sys/seccomp.hpp"
#include "sys/syscalls.hpp"
#include <csignal>
#include <fcntl.h>
#include <glove/container/launch.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/files.hpp>
#include <iterator>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

namespace {

using namespace glove;
using namespace glove::container;

struct channels {
    sys::unique_fd image, life, fuse, entry;
};

// Empty when there is none.
[[nodiscard]] auto inherited(int number) -> sys::unique_fd {
    if (::fcntl(number, F_SETFD, FD_CLOEXEC) != 0) return {};
    return sys::unique_fd{number};
}

void say(const error& problem) {
    std::string text{problem.step};
    text += ": " + problem.detail;
    if (problem.os != 0) text += " (errno " + std::to_string(problem.os) + ")";
    (void)sys::write_all(sys::fd_ref::standard_error(), text + "\n");
}

[[nodiscard]] auto enter_group(sys::unique_fd entry) -> result<> {
    if (!entry) return {};
    if (auto entered = sys::write_all(entry, "0\n"); !entered)
        return fail_os("image.group", entered.error().os, "the session's control group");
    return cgroup::let_be_killed(::getpid());
}

[[nodiscard]] auto hold(decltype(RLIMIT_CORE) what, ::rlim_t most) -> bool {
    const ::rlimit limit{most, most};
    return ::setrlimit(what, &limit) == 0;
}

// A program that was taken over cannot take room that nobody gave it.
[[nodiscard]] auto hold_size(sys::fd_ref image) -> result<> {
    GLOVE_TRY(const auto facts, sys::inspect(image));
    bool held = hold(RLIMIT_FSIZE, facts.size) && sys::forbid_core_files();
#ifndef GLOVE_SANITIZED
    // The sanitizers' own memory is larger than any of this.
    held = held && hold(RLIMIT_AS, (512UL << 20U) + facts.size / 32);
#endif
    if (!held) return fail_os("image.limits");
    return {};
}

// A hole would be room that was reserved and is not any more: whoever is in a session can ask
// fuse2fs for it (FITRIM). Both programs do without the call.
[[nodiscard]] auto forbid_holes() -> result<> {
    constexpr std::uint32_t refused = SECCOMP_RET_ERRNO | EOPNOTSUPP;
    ::sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(::seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, sys::seccomp::machine, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(::seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, refused),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const ::sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return fail_os("image.filter");
    return {};
}

struct job {
    std::string_view name;
    std::vector<std::string> arguments;
    std::array<int, 3> streams;
};

// Nothing that a program says can reach the image: as an output it is open for reading only.
[[nodiscard]] auto job_of(std::string_view name, const std::string& program, const channels& with)
    -> std::optional<job> {
    const int image = with.image.get(), fuse = with.fuse.get();
    if (name == image_check)
        return job{.name = name,
                   .arguments = {program, "-f", "-p", "/proc/self/fd/0"},
                   .streams = {image, image_words, image_words}};
    if (name != image_serve && name != image_show) return std::nullopt;
    if (!with.fuse || (::fcntl(image, F_GETFL) & O_ACCMODE) != O_RDONLY) return std::nullopt;
    return job{.name = name,
               .arguments = {program, "-f", "-s", "-o", name == image_show ? "ro" : "rw",
                             "/dev/fd/1", "/dev/fd/0"},
               .streams = {fuse, image, image_words}};
}

char nothing_to_hide[1]; // this program's arguments are no secret

[[nodiscard]] auto start(const job& what, plan& perimeter) -> result<running> {
    profile wish;
    wish.argv = what.arguments;
    wish.network = network_tier::sealed;
    wish.limits.scratch_bytes = 1UL << 20U;
    GLOVE_TRY(perimeter, make_plan(wish));
    GLOVE_TRY(const auto open_files, raise_open_files());
    GLOVE_TRY(auto out, launch({.plan = &perimeter,
                                .streams = what.streams,
                                .arguments = {.begin = nothing_to_hide, .size = 1},
                                .open_files = open_files,
                                .deaf = true}));
    GLOVE_CHECK(out.release());
    return out;
}

// Whether there is news before the deadline on the monotonic clock; the service's end of the life
// line is looked at only when it is asked for.
enum class heard : std::uint8_t { news, service_gone, nothing };
[[nodiscard]] auto listen(const running& program, const sys::unique_fd* life, int patience_ms)
    -> result<heard> {
    ::pollfd sources[] = {{program.news().get(), POLLIN, 0},
                          {life == nullptr ? -1 : life->get(), POLLIN, 0}};
    int ready = 0;
    do ready = ::poll(sources, 2, patience_ms);
    while (ready < 0 && errno == EINTR);
    if (ready < 0) return fail_os("image.wait");
    if (sources[0].revents != 0) return heard::news;
    return ready > 0 ? heard::service_gone : heard::nothing;
}

[[nodiscard]] auto attend(running& program, const sys::unique_fd& life, bool farewell)
    -> result<int> {
    const auto* watched = &life;
    int patience_ms = -1;
    for (;;) {
        GLOVE_TRY(const auto what, listen(program, watched, patience_ms));
        if (what == heard::service_gone && farewell) {
            watched = nullptr;
            patience_ms = image_farewell_seconds * 1000;
            continue;
        }
        if (what != heard::news) GLOVE_CHECK(program.kill());
        GLOVE_TRY(const auto end, program.read_news());
        if (!end) continue;
        if (WIFEXITED(end->wait_status)) return WEXITSTATUS(end->wait_status);
        // Which only somebody else can have sent.
        return WTERMSIG(end->wait_status) == SIGKILL ? image_failed : image_killed;
    }
}

[[nodiscard]] auto work(std::string_view name, const std::string& with) -> result<int> {
    channels given{.image = inherited(image_file),
                   .life = inherited(image_life),
                   .fuse = inherited(image_fuse),
                   .entry = inherited(image_entry)};
    (void)sys::close_range(image_entry + 1, ~0U, 0);
    GLOVE_CHECK(enter_group(std::move(given.entry)));
    GLOVE_CHECK(sys::block_farewells("image.signals"));
    if (!given.image || !given.life) return fail(errc::invalid_input, "image.descriptors");
    const auto what = job_of(name, with, given);
    if (!what) return fail(errc::invalid_input, "image.job", std::string{name});
    GLOVE_CHECK(hold_size(given.image));
    GLOVE_CHECK(forbid_holes());
    plan perimeter;
    GLOVE_TRY(auto program, start(*what, perimeter));
    given.fuse = {}; // or the kernel waits for answers when the program has ended
    return attend(program, given.life, name != image_check);
}

} // namespace

auto main(int argc, char** argv) -> int {
    try {
        if (argc != 3) return image_failed;
        const auto done = work(argv[1], argv[2]);
        if (done) return *done;
        say(done.error());
    } catch (...) {
        (void)sys::write_all(sys::fd_ref::standard_error(), "image.unexpected\n");
    }
    return image_failed;
}
