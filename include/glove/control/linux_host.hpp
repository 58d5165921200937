// The host of managed sessions on Linux: makes a plan's session ready on control groups, file
// systems with quotas and the launcher, and keeps what belongs to it until it is over.
//
// Guarantees: the plan is judged again at the moment of the launch; what a session gets of the host
// is pinned before it is looked at, and none of it holds or lies in a file of Glove's own; the
// program that was hashed is the one that runs; what cannot be done here is refused by name, and a
// refusal leaves nothing behind. What a session may have written is never deleted.
//
// Safe for use by several threads; each hosted session as session_host.hpp says.
#pragma once
#include <glove/container/launcher.hpp>
#include <glove/container/session_groups.hpp>
#include <glove/control/exposure_store.hpp>
#include <glove/control/managed_runtime.hpp>
#include <glove/control/service_log.hpp>
#include <glove/control/session_host.hpp>
#include <glove/supervisor/session_policy.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace glove::control {

// What it stands on; all of it outlives the host.
struct linux_host_parts {
    const supervisor::session_policy* policy = nullptr;
    const exposure_store* exposures = nullptr; // null: no plan has grants of version 2
    const sys::clock* clock = nullptr;
    service_log* log = nullptr;
    container::session_groups* groups = nullptr;
    container::launcher* launcher = nullptr;
};

struct linux_host_places {
    std::string materialization_root; // the service's alone
    std::optional<std::string> library_bundle_root;
    std::string egress_log; // made when the first online session starts
    // Glove's own files and directories beside those above: no session gets to see one of them.
    std::vector<std::string> own_files;
    // Programs of Glove's own, found beside this one when they are empty.
    std::string egress_program = {}, image_program = {};
};

class linux_host final : public session_host {
public:
    // Steps: host.root, host.scratch, bundle.root, lease.directory. That there are no means for
    // retained copies is no error: such grants are refused.
    [[nodiscard]] static auto open(const linux_host_parts& parts, linux_host_places places)
        -> result<std::unique_ptr<linux_host>>;
    ~linux_host() override;

    [[nodiscard]] auto operational() const noexcept -> bool override;
    [[nodiscard]] auto evaluates_refinements() const noexcept -> bool override;
    [[nodiscard]] auto prepare(const session_record& of, const supervisor::sealed_plan& plan)
        -> result<std::unique_ptr<hosted_session>> override;

    // What sessions left, as `sessions` knows them, which outlives it. None without the means for
    // retained copies. It does not outlive the host.
    [[nodiscard]] auto retained(const session_registry& sessions)
        -> std::unique_ptr<retained_store>;

    // At a start of the service, when no session of it runs: leases of no policy, and images of
    // sessions that never ran. What it did and could not do goes to the log.
    void sweep(const session_registry& sessions);

private:
    struct state;
    explicit linux_host(std::unique_ptr<state> own);
    std::unique_ptr<state> state_;
};

} // namespace glove::control
