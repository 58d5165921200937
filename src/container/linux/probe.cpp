// Tries, in children that end at once, what a launch needs. What a child finds comes back through a
// pipe as one array; a child that is not done in time is killed and counts as refused.
#include "container/linux/mount_calls.hpp"
#include "container/linux/namespaces.hpp"
#include "container/linux/seccomp_bpf.hpp"
#include <glove/container/probe.hpp>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

namespace glove::container {

namespace {

using std::chrono::milliseconds;

struct probe_pipes {
    int go = -1;   // a byte when the maps are written
    int told = -1; // the answers
};

void note(abilities& out, ability which, bool worked) noexcept {
    out.answers[static_cast<std::size_t>(which)] = worked ? 0 : errno;
}
void note(abilities& out, ability which, int os) noexcept {
    out.answers[static_cast<std::size_t>(which)] = os;
}

// In its own mount namespace, whose mounts nobody else sees.
void try_mounts(abilities& out) noexcept {
    failure bad{};
    const option size{"size", "4096"};
    const scoped fs{new_filesystem("tmpfs", &size, 1, 0, bad)};
    note(out, ability::new_filesystem, bad.os);
    const scoped tree{clone_tree(AT_FDCWD, "/")};
    note(out, ability::open_tree, static_cast<bool>(tree));
    const int subject = fs ? fs.get() : tree.get();
    if (subject >= 0) {
        ::mount_attr wanted{};
        wanted.attr_set = MOUNT_ATTR_NOSUID;
        wanted.propagation = MS_PRIVATE;
        note(out, ability::mount_setattr,
             sys::mount_setattr(subject, "", AT_EMPTY_PATH | AT_RECURSIVE, wanted) == 0);
        note(out, ability::move_mount,
             sys::move_mount(subject, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) == 0);
    }
    failure refused{};
    const scoped proc{new_filesystem("proc", nullptr, 0, 0, refused)};
    note(out, ability::proc, refused.os);
}

void probe_inside(const void* given) noexcept {
    const auto& pipes = *static_cast<const probe_pipes*>(given);
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    char go = 0;
    if (::read(pipes.go, &go, 1) != 1) ::_exit(125);
    abilities found;
    found.answers.fill(not_tried);
    try_mounts(found);
    ::_exit(::write(pipes.told, &found, sizeof found) == sizeof found ? 0 : 125);
}

struct pipe_ends {
    sys::unique_fd read, write;
};
[[nodiscard]] auto open_pipe() -> pipe_ends {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return {};
    return {sys::unique_fd{ends[0]}, sys::unique_fd{ends[1]}};
}

template<class T> [[nodiscard]] auto hear(sys::fd_ref from, T& into, milliseconds patience)
    -> bool {
    ::pollfd source{from.get(), POLLIN, 0};
    return ::poll(&source, 1, static_cast<int>(patience.count())) == 1 &&
           ::read(from.get(), &into, sizeof into) == sizeof into;
}

void probe_namespaces(abilities& out, milliseconds patience) {
    auto go = open_pipe();
    auto told = open_pipe();
    if (!go.read || !told.read) return note(out, ability::namespaces, errno);
    const probe_pipes pipes{go.read.get(), told.write.get()};
    const auto child = clone_into_namespaces(probe_inside, &pipes);
    note(out, ability::namespaces, child.pid >= 0);
    if (child.pid < 0) return;
    const sys::child_process owned{sys::unique_fd{child.pidfd}}; // killed and reaped at the end
    told.write = {};
    go.read = {};
    const auto mapped = write_id_maps(child.pid, {.uid = ::geteuid(), .gid = ::getegid()});
    note(out, ability::id_maps, mapped ? 0 : mapped.error().os == 0 ? EPERM : mapped.error().os);
    if (!mapped || ::write(go.write.get(), "g", 1) != 1) return;
    abilities inside;
    if (!hear(told.read, inside, patience)) return note(out, ability::new_filesystem, ETIMEDOUT);
    for (std::size_t i = 0; i < ability_count; ++i)
        if (i > static_cast<std::size_t>(ability::id_maps)) out.answers[i] = inside.answers[i];
}

// A filter cannot be taken off again, so a child puts it on. It is the real one.
void probe_filter(abilities& out, milliseconds patience) {
    auto told = open_pipe();
    if (!told.read) return note(out, ability::filter, errno);
    const auto child = ::fork();
    if (child < 0) return note(out, ability::filter, errno);
    if (child == 0) {
        (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
        int os = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : errno;
        if (os == 0) os = seccomp::install(seccomp::program_for(network_tier::offline, 0));
        ::_exit(::write(told.write.get(), &os, sizeof os) == sizeof os ? 0 : 125);
    }
    told.write = {};
    int os = 0;
    note(out, ability::filter, hear(told.read, os, patience) ? os : ETIMEDOUT);
    (void)::kill(child, SIGKILL); // not reaped yet, so the number is its own
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
}

} // namespace

auto probe_abilities(milliseconds patience) -> abilities {
    abilities out;
    out.answers.fill(not_tried);
    probe_namespaces(out, patience);
    probe_filter(out, patience);
    return out;
}

auto landlock_version() noexcept -> int {
    const int version = sys::landlock_create_ruleset(nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return version > 0 ? version : 0;
}

auto try_perimeter(const profile& wish, argument_area arguments, milliseconds patience)
    -> result<trial> {
    using clock = std::chrono::steady_clock;
    const auto deadline = clock::now() + patience;
    GLOVE_CHECK(check_identity());
    GLOVE_TRY(const auto open_files, raise_open_files());
    GLOVE_TRY(const auto plan, make_plan(wish));
    const sys::unique_fd nothing{::open("/dev/null", O_RDWR | O_CLOEXEC)};
    if (!nothing) return fail_os("exec.streams", errno, "/dev/null");
    std::array<char, 16> no_arguments{};
    if (arguments.begin == nullptr) arguments = {no_arguments.data(), no_arguments.size()};
    GLOVE_TRY(auto agent, launch({.plan = &plan,
                                  .streams = {nothing.get(), nothing.get(), nothing.get()},
                                  .arguments = arguments,
                                  .open_files = open_files}));
    GLOVE_CHECK(agent.release());
    for (;;) {
        const auto left = std::chrono::duration_cast<milliseconds>(deadline - clock::now());
        ::pollfd source{agent.news().get(), POLLIN, 0};
        const int ready =
            left.count() <= 0 ? 0 : ::poll(&source, 1, static_cast<int>(left.count()));
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) {
            (void)agent.kill();
            return fail(errc::timed_out, "launch.trial",
                        "`true` did not end within " + std::to_string(patience.count()) + " ms");
        }
        const auto news = agent.read_news();
        if (!news && news.error().step == exec_step && news.error().code == errc::not_found)
            return trial{.has_true = false};
        if (!news) return std::unexpected(news.error());
        if (!*news) continue;
        if ((*news)->wait_status == 0) return trial{};
        return fail(errc::io, "launch.trial", "`true` did not end well");
    }
}

} // namespace glove::container
