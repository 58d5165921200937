// Makes the group, writes the limits and reads them back. A group of ours that a killed glove left
// is removed by the next; whoever is alive holds a lock on its own.
#include "container/linux/cgroup.hpp"
#include "container/linux/user_scope.hpp"
#include <algorithm>
#include <ctime>
#include <fcntl.h>
#include <glove/base/numbers.hpp>
#include <glove/container/control_group.hpp>
#include <glove/sys/files.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::container {

namespace {

constexpr std::uint64_t period_us = 100'000;
constexpr const char* group_name = "run";
constexpr std::string_view own_prefix = "glove-run-";

struct option {
    std::string_view flag;
    bool (*asked)(const limits&);
};
constexpr option options[] = {
    {"--memory", [](const limits& wish) { return wish.memory_bytes.has_value(); }},
    {"--pids", [](const limits& wish) { return wish.processes.has_value(); }},
    {"--cpus", [](const limits& wish) { return wish.cpu_hundredths.has_value(); }},
    {"--cpu-time", [](const limits& wish) { return wish.cpu_time.has_value(); }},
};

// An error that says whose it is, and what can be done.
[[nodiscard]] auto named(error problem, const limits& asked) -> std::unexpected<error> {
    std::string flags;
    for (const auto& one : options)
        if (one.asked(asked)) flags.append(flags.empty() ? "" : ", ").append(one.flag);
    if (!problem.detail.starts_with("--")) problem.detail = flags + ": " + problem.detail;
    if (problem.remedy.empty())
        problem.remedy = "ask glove doctor what is missing, or leave the option out";
    return std::unexpected(std::move(problem));
}

// What is written, and what the kernel must say afterwards.
struct setting {
    std::string_view flag; // that asked for it
    std::string_view controller;
    const char* file;
    std::string value;
    std::string enforced_limits::* said;
};

[[nodiscard]] auto settings_of(const limits& asked, unsigned own) -> std::vector<setting> {
    std::vector<setting> out;
    if (asked.memory_bytes) {
        out.push_back(
            {"--memory", "memory", "memory.swap.max", "0", &enforced_limits::memory_swap_max});
        out.push_back(
            {"--memory", "memory", "memory.oom.group", "1", &enforced_limits::memory_oom_group});
        out.push_back({"--memory", "memory", "memory.max",
                       std::to_string(cgroup::page_floor(*asked.memory_bytes)),
                       &enforced_limits::memory_max});
    }
    if (asked.processes)
        out.push_back({"--pids", "pids", "pids.max", std::to_string(*asked.processes + own),
                       &enforced_limits::pids_max});
    if (asked.cpu_hundredths)
        out.push_back({"--cpus", "cpu", "cpu.max",
                       std::to_string(*asked.cpu_hundredths * period_us / 100) + " " +
                           std::to_string(period_us),
                       &enforced_limits::cpu_max});
    return out;
}

// "+cpu +memory", and the first flag that needs a controller that is not there.
[[nodiscard]] auto enable(sys::fd_ref parent, const std::vector<setting>& settings) -> result<> {
    GLOVE_TRY(const auto there, cgroup::read(parent, "cgroup.controllers"));
    std::string wanted;
    for (const auto& one : settings) {
        if (!cgroup::lists(there, one.controller))
            return fail(errc::unsupported, "limits.controller",
                        std::string{one.flag} + ": there is no controller " +
                            std::string{one.controller} + " for the groups of this user",
                        "ask glove doctor, which tells how to get it");
        const auto word = "+" + std::string{one.controller};
        if (!cgroup::lists(wanted, word)) wanted.append(wanted.empty() ? "" : " ").append(word);
    }
    if (wanted.empty()) return {};
    return cgroup::write(parent, "cgroup.subtree_control", wanted);
}

[[nodiscard]] auto check_held(const setting& one, const std::string& now) -> result<> {
    if (now == one.value) return {};
    return fail(errc::unsupported, "limits.read_back",
                std::string{one.flag} + ": the kernel holds " + one.file + " at " + now +
                    ", not at " + one.value);
}

[[nodiscard]] auto set(sys::fd_ref group, const setting& one, enforced_limits& said) -> result<> {
    if (auto written = cgroup::write(group, one.file, one.value); !written) {
        written.error().detail = std::string{one.flag} + ": " + written.error().detail;
        return written;
    }
    GLOVE_TRY(said.*one.said, cgroup::read(group, one.file));
    return check_held(one, said.*one.said);
}

constexpr std::string_view no_place_advice =
    "log in so that systemd starts your service manager (glove doctor tells whether it runs), or "
    "start glove in a service with Delegate=cpu memory pids and DelegateSubgroup=main";

// Beside the own group, so that its parent holds no process: the kernel limits no group that does.
[[nodiscard]] auto find_delegation() -> result<sys::unique_fd> {
    GLOVE_TRY(const auto own, cgroup::path_of(::getpid()));
    const auto parent = own == "/" ? own : sys::parent_of(own);
    auto group = cgroup::open_own(parent);
    const bool usable = group && (own == "/" || cgroup::is_delegated(*group, own));
    if (usable) return group;
    const auto why = group ? parent + " was not delegated" : group.error().detail;
    return fail(
        errc::unsupported, "limits.place",
        "no control group can be made for limits: you have no service manager to ask, and " + why,
        std::string{no_place_advice});
}

[[nodiscard]] auto hold(sys::fd_ref group) -> bool {
    return ::flock(group.get(), LOCK_EX | LOCK_NB) == 0;
}

// What a glove that was killed left. A group with a process in it the kernel does not remove.
void remove_left_groups(sys::fd_ref parent) {
    const auto names = sys::list_names(parent, "");
    if (!names) return;
    for (const auto& [name, type] : *names) {
        if (type != S_IFDIR || !name.starts_with(own_prefix)) continue;
        const auto group = sys::open_beneath(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (group && hold(*group)) (void)cgroup::remove(parent, name);
    }
}

// A new group whose maker holds it. Another glove may take it for one that was left, until then.
[[nodiscard]] auto make_held(sys::fd_ref parent, std::string& name) -> result<sys::unique_fd> {
    const auto wanted = name;
    for (int attempt = 0; attempt < 3; ++attempt) {
        auto group = cgroup::make(parent, name);
        if (!group && group.error().os != ENOENT) return group;
        if (group && hold(*group) && cgroup::read(*group, "cgroup.procs")) return group;
        name = wanted + "." + std::to_string(attempt);
    }
    return fail(errc::conflict, "limits.group", wanted + " was taken away three times");
}

} // namespace

struct control_group::state {
    limits asked;
    std::string run;
    unsigned own = 0;
    std::optional<sys::child_process> keeping;
    sys::unique_fd parent, group;
    std::string name;
    std::vector<setting> settings;
    enforced_limits said;

    state() = default;
    [[nodiscard]] auto prepare() -> result<>;
    [[nodiscard]] auto admit(::pid_t init) -> result<>;
    state(const state&) = delete;
    auto operator=(const state&) -> state& = delete;
    // A scope is taken away by its manager when the keeper is gone; a group of ours by us.
    ~state() {
        if (!group) return;
        (void)cgroup::write(group, "cgroup.kill", "1");
        group = {};
        if (said.keeper == group_keeper::user_manager) return;
        for (int attempt = 0; attempt < 200; ++attempt) {
            if (cgroup::remove(parent, name)) return;
            const ::timespec pause{0, 5'000'000};
            (void)::nanosleep(&pause, nullptr);
        }
    }
};

control_group::control_group(std::unique_ptr<state> own) : state_{std::move(own)} {}
control_group::control_group(control_group&&) noexcept = default;
control_group::~control_group() = default;

auto needs_control_group(const limits& asked) noexcept -> bool {
    return asked.memory_bytes || asked.processes || asked.cpu_hundredths || asked.cpu_time;
}

auto to_string(group_keeper keeper) noexcept -> std::string_view {
    return keeper == group_keeper::user_manager ? "user_manager" : "delegation";
}

auto control_group::state::prepare() -> result<> {
    if (asked.memory_bytes)
        if (auto none = cgroup::check_huge_pages(); !none) {
            none.error().detail.insert(0, "--memory: ");
            return none;
        }
    said.keeper = has_user_manager() ? group_keeper::user_manager : group_keeper::delegation;
    if (said.keeper == group_keeper::user_manager) return {};
    GLOVE_TRY(parent, find_delegation());
    return {};
}

auto control_group::state::admit(::pid_t init) -> result<> {
    settings = settings_of(asked, own);
    if (said.keeper == group_keeper::user_manager) {
        name = group_name;
        GLOVE_TRY(auto scope, make_user_scope(run, init, name));
        parent = std::move(scope.group);
        keeping.emplace(std::move(scope.keeper));
        GLOVE_TRY(group, sys::open_beneath(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        GLOVE_CHECK(enable(parent, settings));
    } else {
        remove_left_groups(parent);
        GLOVE_CHECK(enable(parent, settings));
        name = std::string{own_prefix} + run;
        GLOVE_TRY(group, make_held(parent, name));
        GLOVE_CHECK(cgroup::write(group, "cgroup.procs", std::to_string(init)));
    }
    if (asked.memory_bytes) GLOVE_CHECK(cgroup::let_be_killed(init));
    for (const auto& one : settings) GLOVE_CHECK(set(group, one, said));
    GLOVE_TRY(const auto members, cgroup::read(group, "cgroup.procs"));
    if (members == std::to_string(init)) return {};
    return fail(errc::conflict, "limits.members", "the group does not hold the run alone");
}

auto control_group::prepare(const limits& asked, const std::string& run, unsigned own)
    -> result<control_group> {
    auto out = std::make_unique<state>();
    out->asked = asked;
    out->run = run;
    out->own = own;
    if (auto prepared = out->prepare(); !prepared) return named(prepared.error(), asked);
    return control_group{std::move(out)};
}

auto control_group::admit(::pid_t init) -> result<> {
    if (auto admitted = state_->admit(init); !admitted)
        return named(admitted.error(), state_->asked);
    // What cannot be read cannot be held.
    if (const auto used = usage(); !used) return named(used.error(), state_->asked);
    return {};
}

auto control_group::enforced() const -> const enforced_limits& { return state_->said; }

auto control_group::usage() const -> result<group_usage> {
    const auto& group = state_->group;
    group_usage out;
    // Whoever is outside and owns the group can take a limit away: not without being found.
    for (const auto& one : state_->settings) {
        GLOVE_TRY(const auto now, cgroup::read(group, one.file));
        GLOVE_CHECK(check_held(one, now));
    }
    GLOVE_TRY(const auto processor, cgroup::read(group, "cpu.stat"));
    const auto used = cgroup::entry(processor, "usage_usec");
    if (!used) return fail(errc::unsupported, "limits.usage", "cpu.stat has no usage_usec");
    out.cpu_us = *used;
    if (state_->asked.memory_bytes) {
        GLOVE_TRY(const auto events, cgroup::read(group, "memory.events"));
        const auto killed = cgroup::entry(events, "oom_kill"), met = cgroup::entry(events, "oom");
        if (!killed || !met)
            return fail(errc::unsupported, "limits.usage", "memory.events tells of no kills");
        out.out_of_memory = *killed;
        out.memory_limit_met = *met;
        if (const auto peak = cgroup::read(group, "memory.peak"))
            out.memory_peak = parse_decimal(*peak, UINT64_MAX);
    }
    if (state_->asked.processes) {
        GLOVE_TRY(const auto events, cgroup::read(group, "pids.events"));
        const auto refused = cgroup::entry(events, "max");
        if (!refused) return fail(errc::unsupported, "limits.usage", "pids.events tells no max");
        out.processes_refused = *refused;
    }
    return out;
}

} // namespace glove::container
