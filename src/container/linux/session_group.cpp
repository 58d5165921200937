// Everything by descriptor: a group that takes the place of this one is never read, killed or
// removed for it. What was removed answers ENODEV or ENOENT, and has no process.
#include "container/linux/session_group.hpp"
#include "container/linux/cgroup.hpp"
#include <algorithm>
#include <array>
#include <ctime>
#include <fcntl.h>
#include <glove/base/numbers.hpp>
#include <glove/sys/files.hpp>
#include <poll.h>
#include <unistd.h>

namespace glove::container {

namespace {

using std::chrono::nanoseconds;
// Killed again then: somebody may have come by the entry meanwhile.
constexpr std::chrono::milliseconds longest_look{50};
constexpr std::chrono::milliseconds between_removals{2};
constexpr std::chrono::seconds patience_of_destructor{2};

// The same error, of this step.
[[nodiscard]] auto as(step_name step, error problem) {
    problem.step = step.text;
    return std::unexpected(std::move(problem));
}

[[nodiscard]] auto is_gone(const error& problem) -> bool {
    return problem.os == ENODEV || problem.os == ENOENT;
}

[[nodiscard]] auto table(sys::fd_ref group, const char* file) -> result<std::string> {
    auto out = cgroup::read(group, file);
    if (!out) return as("group.usage", out.error());
    return out;
}

[[nodiscard]] auto count(std::string_view of, const char* file, const char* name)
    -> result<std::uint64_t> {
    if (const auto out = cgroup::entry(of, name)) return *out;
    return fail(errc::unsupported, "group.usage", std::string{file} + " has no " + name);
}

struct most {
    std::uint64_t value = 0;
    bool told = false; // by the kernel; else it is the most that was seen
};

[[nodiscard]] auto most_of(sys::fd_ref group, const char* peak, const char* now,
                           std::uint64_t& seen) -> result<most> {
    auto text = cgroup::read(group, peak);
    const bool told = text || text.error().os != ENOENT;
    if (!told) text = cgroup::read(group, now);
    if (!text) return as("group.usage", text.error());
    const auto number = parse_decimal(*text, UINT64_MAX);
    if (!number)
        return fail(errc::unsupported, "group.usage",
                    std::string{told ? peak : now} + " is no number: " + *text);
    seen = std::max(seen, *number);
    return most{seen, told};
}

[[nodiscard]] auto cpu_of(sys::fd_ref group) -> result<std::uint64_t> {
    GLOVE_TRY(const auto processor, table(group, "cpu.stat"));
    return count(processor, "cpu.stat", "usage_usec");
}

void pause(nanoseconds time) {
    const ::timespec asked{0, static_cast<long>(time.count())};
    (void)::nanosleep(&asked, nullptr);
}

} // namespace

auto usage_of(sys::fd_ref group, std::optional<std::uint32_t> processes, seen_peaks& seen)
    -> result<session_group_usage> {
    session_group_usage out;
    GLOVE_TRY(out.cpu_us, cpu_of(group));
    GLOVE_TRY(const auto memory, table(group, "memory.events"));
    GLOVE_TRY(out.out_of_memory, count(memory, "memory.events", "oom_kill"));
    // Not `max`, which counts pages that were merely given back.
    GLOVE_TRY(out.memory_limit_met, count(memory, "memory.events", "oom"));
    GLOVE_TRY(const auto refusals, table(group, "pids.events"));
    GLOVE_TRY(out.processes_refused, count(refusals, "pids.events", "max"));
    GLOVE_TRY(const auto bytes, most_of(group, "memory.peak", "memory.current", seen.memory));
    out.memory_peak = bytes.value;
    GLOVE_TRY(const auto peak, most_of(group, "pids.peak", "pids.current", seen.processes));
    out.processes_peak =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(peak.value, UINT32_MAX));
    // Older kernels count what a group around this one refused, too. Its own limit refuses nothing
    // before it was reached.
    if (peak.told && processes && peak.value < *processes) out.processes_refused = 0;
    return out;
}

auto session_group::state::open_files() -> result<> {
    struct row {
        sys::unique_fd state::* to;
        const char* file;
        int flags;
    };
    constexpr std::array rows{row{&state::entry, "cgroup.procs", O_WRONLY},
                              row{&state::killing, "cgroup.kill", O_WRONLY},
                              row{&state::events, "cgroup.events", O_RDONLY}};
    for (const auto& one : rows) {
        auto& file = this->*one.to;
        file = sys::unique_fd{::openat(group.get(), one.file, one.flags | O_NOFOLLOW | O_CLOEXEC)};
        if (!file) return fail_os("group.name", errno, name + "/" + one.file);
    }
    return {};
}

// Whoever is outside and owns the group can take a limit away: not without being found.
auto session_group::state::check_held() const -> result<> {
    for (const auto& [file, wanted] : held) {
        const auto now = cgroup::read(group, file);
        if (!now) return as("group.limit", now.error());
        if (*now != wanted)
            return fail(errc::unsupported, "group.limit",
                        name + ": the kernel holds " + file + " at " + *now + ", not at " + wanted);
    }
    return {};
}

auto session_group::state::populated() const -> result<bool> {
    std::array<char, 256> text{};
    const auto size = ::pread(events.get(), text.data(), text.size(), 0);
    if (size < 0 && errno == ENODEV) return false;
    if (size < 0) return fail_os("group.usage", errno, name + "/cgroup.events");
    GLOVE_TRY(const auto answer,
              count({text.data(), static_cast<std::size_t>(size)}, "cgroup.events", "populated"));
    return answer != 0;
}

auto session_group::state::kill() const -> result<> {
    if (::write(killing.get(), "1", 1) == 1 || errno == ENODEV) return {};
    return fail_os("group.kill", errno, name);
}

auto session_group::state::await_empty(const sys::clock& time, nanoseconds deadline) const
    -> result<> {
    for (;;) {
        GLOVE_CHECK(kill());
        GLOVE_TRY(const bool alive, populated());
        if (!alive) return {};
        const auto left = deadline - time.monotonic();
        if (left <= nanoseconds::zero())
            return fail(errc::timed_out, "group.busy",
                        name + " still has processes after they were killed");
        const auto look =
            std::chrono::ceil<std::chrono::milliseconds>(std::min(left, nanoseconds{longest_look}));
        ::pollfd change{events.get(), POLLPRI, 0};
        (void)::poll(&change, 1, static_cast<int>(look.count()));
    }
}

// Groups cannot be renamed: when another one has the name, this one is gone.
auto session_group::state::is_still_named() const -> result<bool> {
    const auto named = sys::open_beneath(*parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
    if (!named && is_gone(named.error())) return false;
    if (!named) return as("group.remove", named.error());
    GLOVE_TRY(const auto facts, sys::inspect(*named));
    return facts.identity.device == identity.device && facts.identity.inode == identity.inode;
}

auto session_group::state::remove(const sys::clock& time, nanoseconds deadline) const -> result<> {
    for (;;) {
        GLOVE_TRY(const bool named, is_still_named());
        if (!named) return {};
        const auto removed = cgroup::remove(*parent, name);
        if (removed) return {};
        // For a moment after the last process, or because one came by the entry.
        if (removed.error().os != EBUSY || time.monotonic() >= deadline)
            return as("group.remove", removed.error());
        GLOVE_CHECK(kill());
        pause(between_removals);
    }
}

auto session_group::state::end(const sys::clock& time, nanoseconds deadline) -> result<> {
    if (gone) return {};
    GLOVE_CHECK(await_empty(time, deadline));
    GLOVE_CHECK(remove(time, deadline));
    gone = true;
    return {};
}

session_group::session_group(std::unique_ptr<state> own) : state_{std::move(own)} {}
session_group::session_group(session_group&&) noexcept = default;
session_group::~session_group() {
    if (!state_ || !state_->made) return;
    const sys::system_clock time;
    (void)state_->end(time, time.monotonic() + patience_of_destructor);
}

auto session_group::identity() const -> const group_identity& { return state_->identity; }
auto session_group::entry() const -> sys::fd_ref { return state_->entry; }

auto session_group::cpu_us() const -> result<std::uint64_t> { return cpu_of(state_->group); }

auto session_group::usage() const -> result<session_group_usage> {
    GLOVE_CHECK(state_->check_held());
    return usage_of(state_->group, state_->processes, state_->seen);
}

auto session_group::holds(::pid_t process) const -> result<bool> {
    const auto path = cgroup::path_of(process);
    if (!path && (path.error().os == ENOENT || path.error().os == ESRCH)) return false;
    if (!path) return as("group.usage", path.error());
    if (*path != state_->path) return false;
    // The path may be that of a group which came after this one.
    std::array<char, 1> text{};
    if (::pread(state_->events.get(), text.data(), text.size(), 0) >= 0) return true;
    if (errno == ENODEV) return false;
    return fail_os("group.usage", errno, state_->name + "/cgroup.events");
}

auto session_group::is_empty() const -> result<bool> {
    GLOVE_TRY(const bool alive, state_->populated());
    return !alive;
}

auto session_group::kill() const -> result<> { return state_->kill(); }

auto session_group::end(const sys::clock& time, nanoseconds deadline) -> result<> {
    return state_->end(time, deadline);
}

} // namespace glove::container
