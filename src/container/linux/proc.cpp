// The namespace's own /proc, and the guards over what of it reaches beyond the namespace.
//
// Guarantees: no setting of the kernel can be written, whoever starts Glove; views of its memory,
// keys and timers are covered; for root, whose files these are, everything that is not a process's
// is read-only. Files of processes stay as they are: programs name their threads and debuggers
// write memory there.
#include "container/linux/mount_calls.hpp"
#include <cstring>

namespace glove::container {

namespace {

enum class guard : std::uint8_t { read_only, masked };
enum class against : std::uint8_t { everybody, host_root };
struct proc_guard {
    const char* name;
    guard how;
    against whom = against::everybody;
};
// What of /proc reaches beyond the namespace: settings of the kernel, and views of its memory,
// keys, timers and hardware. A name that this kernel does not have is skipped; a row for root is
// about a file that nobody else can open.
constexpr proc_guard proc_guards[] = {
    {"acpi", guard::masked},
    {"asound", guard::masked},
    {"bus", guard::read_only},
    {"fs", guard::read_only},
    {"irq", guard::read_only},
    {"kcore", guard::masked},
    {"key-users", guard::masked},
    {"keys", guard::masked},
    {"kmsg", guard::masked},
    {"kpagecgroup", guard::masked, against::host_root},
    {"kpagecount", guard::masked, against::host_root},
    {"kpageflags", guard::masked, against::host_root},
    {"latency_stats", guard::masked},
    {"pagetypeinfo", guard::masked, against::host_root},
    {"pressure", guard::read_only},
    {"sched_debug", guard::masked},
    {"scsi", guard::masked},
    {"slabinfo", guard::masked, against::host_root},
    {"sys", guard::read_only},
    {"sysrq-trigger", guard::read_only},
    {"sysvipc", guard::read_only},
    {"timer_list", guard::masked},
    {"timer_stats", guard::masked},
    {"vmallocinfo", guard::masked, against::host_root},
};

[[nodiscard]] auto guard_entry(setup_state& state, const char* name, guard how) noexcept
    -> failure {
    const mount_place place{state.proc, name}; // names of procfs are the kernel's own
    if (how == guard::read_only) {
        const auto bad = clone_and_attach(place, place, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV);
        return bad.where == call::open_tree && bad.os == ENOENT ? failure{} : bad;
    }
    // Not by a clone: one that is dropped again costs a grace period of the kernel.
    struct ::statx found{};
    if (::statx(state.proc, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &found) != 0)
        return errno == ENOENT ? failure{} : broken(call::statx);
    return put_mask(state, place, type_of(found) == S_IFDIR);
}

[[nodiscard]] auto listed(const char* name) noexcept -> bool {
    for (const auto& row : proc_guards)
        if (std::strcmp(row.name, name) == 0) return true;
    return false;
}

// Root of the host owns every file of /proc that is not a process's and could chmod it for the
// whole machine, so for root whatever the table does not name is read-only as well.
[[nodiscard]] auto guard_unlisted(setup_state& state) noexcept -> failure {
    const scoped listing{::openat(state.proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!listing) return broken(call::openat);
    return each_name(listing.get(), [&](const char* name, unsigned char type) noexcept {
        const char first = name[0];
        const bool left_out =
            type == DT_LNK || first == '.' || (first >= '0' && first <= '9') || listed(name);
        return left_out ? failure{} : guard_entry(state, name, guard::read_only);
    });
}

[[nodiscard]] auto set_to_zero(setup_state& state, const char* name) noexcept -> failure {
    const scoped setting{::openat(state.proc, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW)};
    if (!setting) return broken(call::openat);
    if (::write(setting.get(), "0", 1) != 1) return broken(call::write);
    return {};
}

} // namespace

failure mount_proc(setup_state& state) noexcept {
    failure bad;
    state.proc = new_filesystem("proc", nullptr, 0, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, bad);
    if (state.proc < 0) return bad;
    if (sys::move_mount(state.proc, "", state.root, "proc", MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return broken(call::move_mount);
    return {};
}

failure forbid_user_namespaces(setup_state& state) noexcept {
    return set_to_zero(state, "sys/user/max_user_namespaces");
}

// Allowed names listen at their own ports, and the agent may serve at any, without a capability.
failure open_low_ports(setup_state& state) noexcept {
    if (state.plan->bridge.channel < 0) return {};
    return set_to_zero(state, "sys/net/ipv4/ip_unprivileged_port_start");
}

failure guard_proc(setup_state& state) noexcept {
    for (const auto& row : proc_guards) {
        if (row.whom == against::host_root && !state.plan->host_root) continue;
        if (const auto bad = guard_entry(state, row.name, row.how); bad.os != 0) return bad;
    }
    if (!state.plan->host_root) return {};
    return guard_unlisted(state);
}

} // namespace glove::container
