// Makes the group, writes the limits and reads them back.
#include "container/linux/cgroup.hpp"
#include "container/linux/user_scope.hpp"
#include <algorithm>
#include <array>
#include <ctime>
#include <fcntl.h>
#include <glove/base/numbers.hpp>
#include <glove/container/control_group.hpp>
#include <glove/sys/files.hpp>
#include <sys/xattr.h>
#include <unistd.h>

namespace glove::container {

namespace {

constexpr std::uint64_t period_us = 100'000;
constexpr const char* group_name = "run";

// What is written, and what the kernel must say afterwards.
struct setting {
    std::string_view flag; // that asked for it
    std::string_view controller;
    const char* file;
    std::string value;
    std::string enforced_limits::* said;
};

[[nodiscard]] auto page_floor(std::uint64_t bytes) -> std::uint64_t {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return bytes / page * page;
}

[[nodiscard]] auto settings_of(const limits& asked, unsigned own) -> std::vector<setting> {
    std::vector<setting> out;
    if (asked.memory_bytes) {
        out.push_back(
            {"--memory", "memory", "memory.swap.max", "0", &enforced_limits::memory_swap_max});
        out.push_back(
            {"--memory", "memory", "memory.oom.group", "1", &enforced_limits::memory_oom_group});
        out.push_back({"--memory", "memory", "memory.max",
                       std::to_string(page_floor(*asked.memory_bytes)),
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

[[nodiscard]] auto set(sys::fd_ref group, const setting& one, enforced_limits& said) -> result<> {
    if (auto written = cgroup::write(group, one.file, one.value); !written) {
        written.error().detail = std::string{one.flag} + ": " + written.error().detail;
        return written;
    }
    GLOVE_TRY(said.*one.said, cgroup::read(group, one.file));
    if (said.*one.said == one.value) return {};
    return fail(errc::unsupported, "limits.read_back",
                std::string{one.flag} + ": the kernel holds " + one.file + " at " + said.*one.said +
                    ", not at " + one.value);
}

// What systemd has given away it does not touch, and says so at the group.
[[nodiscard]] auto is_delegated(sys::fd_ref group) -> bool {
    if (!sys::exists("/run/systemd/system")) return true; // nobody else makes groups here
    std::array<char, 2> value{};
    return ::fgetxattr(group.get(), "user.delegate", value.data(), value.size()) == 1 &&
           value[0] == '1';
}

constexpr std::string_view no_place_advice =
    "log in so that systemd starts your service manager (glove doctor tells whether it runs), or "
    "start glove in a service with Delegate=cpu memory pids and DelegateSubgroup=main";

// Beside the own group, so that its parent holds no process: the kernel limits no group that does.
[[nodiscard]] auto find_delegation() -> result<sys::unique_fd> {
    GLOVE_TRY(const auto own, cgroup::path_of(::getpid()));
    const auto parent = own == "/" ? own : sys::parent_of(own);
    auto group = cgroup::open_own(parent);
    const bool usable = group && (own == "/" || is_delegated(*group));
    if (usable) return group;
    const auto why = group ? parent + " was not delegated" : group.error().detail;
    return fail(
        errc::unsupported, "limits.place",
        "no control group can be made for limits: you have no service manager to ask, and " + why,
        std::string{no_place_advice});
}

} // namespace

struct control_group::state {
    limits asked;
    std::string run;
    unsigned own = 0;
    group_keeper keeper{};
    std::optional<sys::child_process> keeping;
    sys::unique_fd parent, group;
    std::string name;
    enforced_limits said;

    state() = default;
    state(const state&) = delete;
    auto operator=(const state&) -> state& = delete;
    // A scope is taken away by its manager when the keeper is gone; a group of ours by us.
    ~state() {
        if (!group) return;
        (void)cgroup::write(group, "cgroup.kill", "1");
        group = {};
        if (keeper == group_keeper::user_manager) return;
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

auto control_group::prepare(const limits& asked, const std::string& run, unsigned own)
    -> result<control_group> {
    auto out = std::make_unique<state>();
    out->asked = asked;
    out->run = run;
    out->own = own;
    out->keeper = has_user_manager() ? group_keeper::user_manager : group_keeper::delegation;
    if (out->keeper == group_keeper::delegation) {
        GLOVE_TRY(out->parent, find_delegation());
    }
    return control_group{std::move(out)};
}

auto control_group::admit(::pid_t init) -> result<> {
    auto& own = *state_;
    const auto settings = settings_of(own.asked, own.own);
    if (own.keeper == group_keeper::user_manager) {
        own.name = group_name;
        GLOVE_TRY(auto scope, make_user_scope(own.run, init, own.name));
        own.parent = std::move(scope.group);
        own.keeping.emplace(std::move(scope.keeper));
        GLOVE_TRY(own.group,
                  sys::open_beneath(own.parent, own.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        GLOVE_CHECK(enable(own.parent, settings));
    } else {
        GLOVE_CHECK(enable(own.parent, settings));
        own.name = "glove-" + own.run;
        GLOVE_TRY(own.group, cgroup::make(own.parent, own.name));
        GLOVE_CHECK(cgroup::write(own.group, "cgroup.procs", std::to_string(init)));
    }
    own.said.keeper = own.keeper;
    for (const auto& one : settings) GLOVE_CHECK(set(own.group, one, own.said));
    GLOVE_TRY(const auto members, cgroup::read(own.group, "cgroup.procs"));
    if (members != std::to_string(init))
        return fail(errc::conflict, "limits.members", "the group does not hold the run alone");
    GLOVE_CHECK(usage()); // what cannot be read cannot be held
    return {};
}

auto control_group::enforced() const -> const enforced_limits& { return state_->said; }

auto control_group::usage() const -> result<group_usage> {
    const auto& group = state_->group;
    group_usage out;
    GLOVE_TRY(const auto processor, cgroup::read(group, "cpu.stat"));
    const auto used = cgroup::entry(processor, "usage_usec");
    if (!used) return fail(errc::unsupported, "limits.usage", "cpu.stat has no usage_usec");
    out.cpu_us = *used;
    if (state_->asked.memory_bytes) {
        GLOVE_TRY(const auto events, cgroup::read(group, "memory.events"));
        out.out_of_memory = cgroup::entry(events, "oom_kill").value_or(0);
        if (const auto peak = cgroup::read(group, "memory.peak"))
            out.memory_peak = parse_decimal(*peak, UINT64_MAX);
    }
    if (state_->asked.processes) {
        GLOVE_TRY(const auto events, cgroup::read(group, "pids.events"));
        out.processes_refused = cgroup::entry(events, "max").value_or(0);
    }
    return out;
}

auto control_group::kill() const -> result<> {
    return cgroup::write(state_->group, "cgroup.kill", "1");
}

} // namespace glove::container
