// Looks at the group first: who is in it was the session's, whatever became of its first process.
#include <glove/control/session_processes.hpp>
#include <glove/sys/process_facts.hpp>
#include <glove/wire/grammar.hpp>
#include <utility>

namespace glove::control {

namespace {

using std::chrono::nanoseconds;

class found_group final : public left_group {
public:
    explicit found_group(container::session_group group) : group_{std::move(group)} {}
    [[nodiscard]] auto identity() const -> container::group_identity override {
        return group_.identity();
    }
    [[nodiscard]] auto holds(::pid_t process) const -> result<bool> override {
        return group_.holds(process);
    }
    [[nodiscard]] auto is_empty() const -> result<bool> override { return group_.is_empty(); }
    [[nodiscard]] auto end(const sys::clock& time, nanoseconds deadline) -> result<> override {
        return group_.end(time, deadline);
    }

private:
    container::session_group group_;
};

[[nodiscard]] auto recorded_group(const process_identity& of) -> container::group_identity {
    return {of.cgroup_device, of.cgroup_inode, of.cgroup_path_digest};
}

[[nodiscard]] auto is_on_record(const container::group_identity& group, const session_record& of)
    -> bool {
    if (group != recorded_group(of.process)) return false;
    return !of.cgroup || (of.cgroup->device == group.device && of.cgroup->inode == group.inode);
}

} // namespace

auto process_identity_of(std::uint32_t pid, std::uint64_t start_time_ticks,
                         const container::group_identity& group, const std::string& proc)
    -> result<process_identity> {
    if (pid == 0 || !std::in_range<::pid_t>(pid) || start_time_ticks == 0 ||
        !wire::conforms(wire::grammar::hex64, group.path_digest))
        return fail(errc::invalid_input, "process.identity",
                    "no process is number " + std::to_string(pid) + ", began at " +
                        std::to_string(start_time_ticks) + " and is in the control group " +
                        group.path_digest);
    GLOVE_TRY(auto boot, sys::boot_id(proc));
    return process_identity{.pid = pid,
                            .boot_id = std::move(boot),
                            .start_time_ticks = start_time_ticks,
                            .cgroup_device = group.device,
                            .cgroup_inode = group.inode,
                            .cgroup_path_digest = group.path_digest};
}

auto session_group_finder::find(std::string_view session_id)
    -> result<std::unique_ptr<left_group>> {
    GLOVE_TRY(auto group, groups_->find(session_id));
    if (!group) return nullptr;
    return std::make_unique<found_group>(*std::move(group));
}

auto session_group_finder::list() -> result<std::vector<std::string>> { return groups_->list(); }

session_processes::session_processes(wish with)
    : with_{std::move(with)}, recorded_{with_.proc, with_.is_free} {}

auto session_processes::observe(const session_record& of) -> observed_process {
    const auto became = look(of);
    if (became) return *became;
    if (with_.tell) with_.tell(of.session_id, became.error());
    return observed_process::unknown;
}

auto session_processes::look(const session_record& of) -> result<observed_process> {
    if (of.process.pid == 0 || of.managed_runtime)
        return fail(errc::wrong_state, "process.identity",
                    "no process of this machine is on record");
    GLOVE_TRY(const auto boot, sys::boot_id(with_.proc));
    if (boot != of.process.boot_id) return observed_process::gone;
    GLOVE_TRY(const auto group, with_.groups->find(of.session_id));
    if (group) return end(of, *group);
    const auto became = recorded_.observe(of);
    if (became == observed_process::unknown)
        return fail(errc::conflict, "process.group",
                    "process " + std::to_string(of.process.pid) +
                        " may be the session's, and the session has no control group");
    return became;
}

auto session_processes::end(const session_record& of, left_group& group)
    -> result<observed_process> {
    if (!is_on_record(group.identity(), of))
        return fail(errc::conflict, "process.group",
                    "the control group of the session's name is another one than that on record");
    if (recorded_.observe(of) == observed_process::unknown) {
        GLOVE_TRY(const bool inside, group.holds(static_cast<::pid_t>(of.process.pid)));
        if (!inside)
            return fail(errc::conflict, "process.group",
                        "process " + std::to_string(of.process.pid) +
                            " may be the session's, and is not in its control group");
    }
    GLOVE_TRY(const bool empty, group.is_empty());
    GLOVE_CHECK(group.end(*with_.clock, with_.clock->monotonic() + with_.patience));
    return empty ? observed_process::gone : observed_process::ended;
}

auto sweep_groups(group_finder& groups, const std::function<bool(std::string_view)>& keep,
                  const sys::clock& time, nanoseconds deadline) -> result<group_sweep> {
    GLOVE_TRY(const auto sessions, groups.list());
    group_sweep out;
    for (const auto& id : sessions) {
        if (keep(id)) continue;
        const auto group = groups.find(id);
        if (group && *group == nullptr) continue; // gone by itself
        const auto ended = group ? (*group)->end(time, deadline) : std::unexpected(group.error());
        if (ended) out.removed.push_back(id);
        else out.troubles.push_back({id, ended.error()});
    }
    return out;
}

} // namespace glove::control
