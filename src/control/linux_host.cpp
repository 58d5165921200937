// The order of a preparation: what costs nothing and may be refused comes first, then what is read,
// then what is made.
#include <glove/control/linux_host.hpp>

#include "control/host_binding.hpp"
#include "control/host_own_files.hpp"
#include "control/host_session.hpp"
#include "control/session_rules.hpp"
#include "supervisor/host_source.hpp"
#include <algorithm>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/container/session_plan.hpp>
#include <glove/control/retained_changes.hpp>
#include <glove/supervisor/bundle_store.hpp>
#include <glove/supervisor/secret_leases.hpp>

namespace glove::control {

namespace {

constexpr std::string_view backend_name = "linux-production:cgroup-v2-v1";
constexpr std::uint64_t trial_bytes = 1U << 20U;

using std::chrono::nanoseconds;

// Those of a comparison without its fixture, which only the service reads.
[[nodiscard]] auto mounted_projections(const supervisor::session_plan& plan)
    -> std::vector<supervisor::library_projection> {
    auto out = plan.library_projections;
    if (plan.refinement) std::erase(out, plan.refinement->fixture);
    return out;
}

struct pinned_path {
    std::string path;
    supervisor::host_source source;
};

// What was looked at, opened and lent, before anything is made.
struct gathered {
    judged_plan judged;
    std::uint64_t scratch_bytes = 0;
    std::optional<online_plan> online;
    std::vector<pinned_path> read_only;
    session_program program;
    std::vector<supervisor::resolved_bundle> bundles;
    std::optional<transcript_evaluator> evaluator;
    std::vector<session_secret> secrets;
    std::string profile_digest;
};

// What of the host a session gets besides its grants, by the policy alone.
[[nodiscard]] auto pin_read_only(const supervisor::launch_template& launch)
    -> result<std::vector<pinned_path>> {
    std::vector<pinned_path> out;
    for (std::size_t i = 0; i < launch.read_only_paths.size(); ++i) {
        const auto& path = launch.read_only_paths[i];
        auto source = supervisor::open_host_source(path);
        if (!source) {
            auto why = std::move(source).error();
            why.step = "prepare.read_only";
            why.detail = printable(path) + ": " + why.detail;
            return std::unexpected(std::move(why));
        }
        out.push_back({path, *std::move(source)});
    }
    return out;
}

[[nodiscard]] auto name_of(sys::fd_ref pin) -> result<std::string> {
    return sys::read_link("/proc/self/fd/" + std::to_string(pin.get()));
}

} // namespace

struct linux_host::state {
    linux_host_parts has;
    linux_host_places places;
    sys::unique_fd root;
    supervisor::lease_store leases;
    std::optional<supervisor::bundle_store> bundles;
    shared_images images;
    host_means means;

    [[nodiscard]] auto now_ms() const -> std::uint64_t { return sys::wall_ms(*has.clock); }
    [[nodiscard]] auto check_apart(const gathered& of) const -> result<>;
    [[nodiscard]] auto resolve(const supervisor::session_plan& plan) const
        -> result<std::vector<supervisor::resolved_bundle>>;
    [[nodiscard]] auto evaluator(const std::string& session_id,
                                 const supervisor::session_plan& plan) const
        -> result<std::optional<transcript_evaluator>>;
    // Cheap refusals first, then what is read, then what is lent, and the hash of it all.
    [[nodiscard]] auto gather(const session_record& of, const supervisor::sealed_plan& sealed) const
        -> result<gathered>;
    [[nodiscard]] auto prepare(const session_record& of, const supervisor::sealed_plan& plan)
        -> result<std::unique_ptr<hosted_session>>;
    void tell(std::string_view event, const error& why) const {
        has.log->write({.name = event, .why = &why});
    }
    void tell(std::string_view event, const std::string& text) const {
        has.log->write({.name = event, .text = text});
    }
    void sweep_image(const container::session_images::kept_image& kept,
                     const session_registry& sessions);
};

namespace {

// Everything that stands in the session, besides its private places.
struct mount_list {
    std::vector<container::session_mount> mounts;

    [[nodiscard]] auto add(std::string target, sys::fd_ref pin, bool directory) -> result<> {
        GLOVE_TRY(auto source, name_of(pin));
        GLOVE_TRY(auto mount, container::detached_mount(pin, container::access::read));
        mounts.push_back({.target = std::move(target),
                          .mount = std::move(mount),
                          .mode = container::access::read,
                          .directory = directory,
                          .source = std::move(source)});
        return {};
    }
    void add_copy(const granted_path& grant, sys::unique_fd mount) {
        mounts.push_back({.target = grant.target,
                          .mount = std::move(mount),
                          .mode = container::access::write,
                          .directory = grant.is_directory()});
    }
};

[[nodiscard]] auto mounts_of(const gathered& of, session_filesystems& files)
    -> result<std::vector<container::session_mount>> {
    mount_list out;
    for (const auto& one : of.read_only)
        if (one.path != of.program.path) // which stands there anyway
            GLOVE_CHECK(
                out.add(one.path, one.source.pin, one.source.facts.identity.type == S_IFDIR));
    for (const auto& grant : of.judged.grants) {
        if (!grant.is_written()) {
            GLOVE_CHECK(out.add(grant.target, grant.pin, grant.is_directory()));
            continue;
        }
        GLOVE_TRY(auto mount, files.take_mount(grant));
        out.add_copy(grant, std::move(mount));
    }
    for (const auto& bundle : of.bundles) {
        GLOVE_CHECK(supervisor::check_unchanged(bundle.object));
        GLOVE_CHECK(out.add(bundle.target_path, bundle.object.file, false));
    }
    GLOVE_CHECK(check_unchanged(of.program));
    GLOVE_CHECK(out.add(of.program.path, of.program.pin, false));
    return std::move(out.mounts);
}

[[nodiscard]] auto plan_of(const gathered& of, session_filesystems& files)
    -> result<container::plan> {
    const auto& launch = *of.judged.chosen->launch;
    GLOVE_TRY(auto mounts, mounts_of(of, files));
    GLOVE_TRY(auto scratch, files.take_scratch());
    container::session_wish wish{.program = of.program.path,
                                 .arguments = arguments_of(of.program, launch),
                                 .environment = launch.environment,
                                 .work_directory = work_directory(of.judged.grants),
                                 .mounts = std::move(mounts),
                                 .scratch = std::move(scratch),
                                 .bridge = {}};
    if (of.online) wish.bridge = of.online->bridge;
    return container::make_session_plan(std::move(wish));
}

[[nodiscard]] auto receipts_of(const std::vector<supervisor::resolved_bundle>& bundles)
    -> std::vector<projection_receipt> {
    std::vector<projection_receipt> out;
    for (const auto& bundle : bundles)
        out.push_back({bundle.projection.projection_id, bundle.projection.destination_alias,
                       bundle.target_path, bundle.projection.content_digest});
    std::ranges::sort(out, {}, &projection_receipt::projection_id);
    return out;
}

[[nodiscard]] auto partitions_of(std::uint64_t disk_bytes, const std::vector<granted_path>& grants)
    -> filesystem_identity {
    filesystem_identity out{.disk_limit_bytes = disk_bytes, .partitions = {}};
    for (const auto& grant : grants)
        if (grant.is_written()) out.partitions.push_back({grant.alias, grant.max_bytes});
    std::ranges::sort(out.partitions, {}, &filesystem_partition::alias);
    return out;
}

} // namespace

auto linux_host::state::check_apart(const gathered& of) const -> result<> {
    auto paths = places.own_files;
    paths.push_back(places.egress_log);
    paths.push_back(places.materialization_root);
    if (places.library_bundle_root) paths.push_back(*places.library_bundle_root);
    for (const auto& secret : has.policy->rules().secret_mounts)
        paths.push_back(secret.source_path);
    GLOVE_TRY(const auto own, own_files::locate(paths));
    for (const auto& grant : of.judged.grants)
        GLOVE_CHECK(own.check_apart(
            grant.pin, grant.is_written() ? container::access::write : container::access::read,
            "the grant " + grant.alias));
    for (const auto& one : of.read_only)
        GLOVE_CHECK(own.check_apart(one.source.pin, container::access::read,
                                    "the read-only path " + printable(one.path)));
    return own.check_apart(of.program.pin, container::access::read, "the program");
}

auto linux_host::state::resolve(const supervisor::session_plan& plan) const
    -> result<std::vector<supervisor::resolved_bundle>> {
    const auto wanted = mounted_projections(plan);
    if (plan.library_projections.empty()) return std::vector<supervisor::resolved_bundle>{};
    if (!bundles)
        return fail(errc::unsupported, "prepare.library",
                    "the plan has library projections, and there is no library",
                    "set library_bundle_root");
    return supervisor::resolve_bundles(*bundles, has.policy->rules(), wanted);
}

auto linux_host::state::evaluator(const std::string& session_id,
                                  const supervisor::session_plan& plan) const
    -> result<std::optional<transcript_evaluator>> {
    if (!plan.refinement) return std::nullopt;
    GLOVE_TRY(const auto object,
              bundles->fetch(plan.refinement->fixture.content_digest, most_fixture_bytes));
    GLOVE_TRY(auto fixture, fixture_for(object.content, session_id, plan));
    GLOVE_TRY(auto out, transcript_evaluator::start(std::move(fixture.assertions)));
    return out;
}

auto linux_host::state::gather(const session_record& of,
                               const supervisor::sealed_plan& sealed) const -> result<gathered> {
    const auto& plan = sealed.plan;
    gathered out;
    GLOVE_TRY(out.judged, judge_plan(plan, *has.policy, has.exposures, of.created_at_ms, now_ms()));
    const auto& launch = *out.judged.chosen->launch;
    GLOVE_TRY(out.scratch_bytes, scratch_bytes(plan, out.judged.grants));
    GLOVE_CHECK(check_means(images, out.judged.grants));
    GLOVE_TRY(out.online, plan_egress(plan, has.policy->rules()));
    GLOVE_TRY(out.read_only, pin_read_only(launch));
    GLOVE_TRY(out.program, find_program(launch));
    GLOVE_CHECK(check_apart(out));
    GLOVE_TRY(out.bundles, resolve(plan));
    GLOVE_TRY(out.evaluator, evaluator(of.session_id, plan));
    GLOVE_TRY(out.secrets, lend_secrets(plan, has.policy->rules(), leases));
    GLOVE_TRY(const auto executable, measure(out.program));
    GLOVE_TRY(out.profile_digest,
              control::profile_digest(bind({.plan = sealed,
                                            .launch = launch,
                                            .program = out.program,
                                            .executable = executable,
                                            .grants = out.judged.grants,
                                            .bundles = out.bundles,
                                            .secrets = out.secrets,
                                            .online = out.online ? &*out.online : nullptr,
                                            .scratch_bytes = out.scratch_bytes})));
    return out;
}

auto linux_host::state::prepare(const session_record& of, const supervisor::sealed_plan& sealed)
    -> result<std::unique_ptr<hosted_session>> {
    const auto& limits = sealed.plan.limits;
    // A start that is not authorized any more need not be made ready.
    const auto deadline = has.clock->monotonic() + authorization_left(of, now_ms());
    GLOVE_TRY(auto with, gather(of, sealed));
    const auto& grants = with.judged.grants;
    session_filesystems files{of, images, *has.clock};
    GLOVE_TRY(auto group, has.groups->make(of.session_id, {limits.memory_bytes, limits.pids}));
    GLOVE_CHECK(files.make(with.scratch_bytes, grants, group.entry(), deadline));
    GLOVE_TRY(auto plan, plan_of(with, files));
    if (!plan.guard_search_complete) tell("session.guard_incomplete", of.session_id);
    const auto& place = group.identity();
    start_binding binding{.launch_profile_digest = with.profile_digest,
                          .cgroup = cgroup_identity{.device = place.device, .inode = place.inode},
                          .filesystem = partitions_of(limits.disk_bytes, grants),
                          .managed_runtime = {}};
    receipt_facts facts{.profile_digest = with.profile_digest,
                        .backend_id = std::string{backend_name},
                        .limits = limits,
                        .library_projections = receipts_of(with.bundles),
                        .retained_changes = {}};
    return std::make_unique<host_session>(
        means, prepared_session{.session_id = of.session_id,
                                .binding = std::move(binding),
                                .facts = std::move(facts),
                                .evaluator = std::move(with.evaluator),
                                .program = std::move(with.program),
                                .online = std::move(with.online),
                                .secrets = std::move(with.secrets),
                                .group = std::move(group),
                                .files = std::move(files),
                                .is_still_granted = [this, plan = sealed.plan]() -> result<> {
                                    return check_still_granted(plan, has.exposures, now_ms());
                                },
                                .plan = std::make_unique<container::plan>(std::move(plan))});
}

linux_host::linux_host(std::unique_ptr<state> own) : state_{std::move(own)} {}
linux_host::~linux_host() = default;

auto linux_host::open(const linux_host_parts& parts, linux_host_places places)
    -> result<std::unique_ptr<linux_host>> {
    auto root = sys::make_private_directory(places.materialization_root);
    if (!root) return fail_os("host.root", root.error().os, printable(places.materialization_root));
    GLOVE_TRY(auto leases, supervisor::lease_store::open(*root, *parts.clock));
    std::optional<supervisor::bundle_store> bundles;
    if (places.library_bundle_root) {
        GLOVE_TRY(auto opened, supervisor::bundle_store::open(*places.library_bundle_root));
        bundles.emplace(std::move(opened));
    }
    if (auto trial = container::make_scratch(trial_bytes, 16); !trial) {
        auto why = std::move(trial).error();
        why.step = "host.scratch";
        return std::unexpected(std::move(why));
    }
    auto images = container::session_images::open(places.materialization_root,
                                                  {.program = places.image_program});
    host_means means{.time = *parts.clock,
                     .launcher = *parts.launcher,
                     .egress_log = places.egress_log,
                     .egress_program = places.egress_program,
                     .processors = parts.groups->processors()};
    return std::unique_ptr<linux_host>{
        new linux_host{std::unique_ptr<state>{new state{parts,
                                                        std::move(places),
                                                        *std::move(root),
                                                        std::move(leases),
                                                        std::move(bundles),
                                                        {std::move(images), {}},
                                                        std::move(means)}}}};
}

auto linux_host::operational() const noexcept -> bool { return state_->has.launcher->is_alive(); }

auto linux_host::evaluates_refinements() const noexcept -> bool {
    return operational() && state_->bundles.has_value();
}

auto linux_host::prepare(const session_record& of, const supervisor::sealed_plan& plan)
    -> result<std::unique_ptr<hosted_session>> {
    return state_->prepare(of, plan);
}

auto linux_host::retained(const session_registry& sessions) -> std::unique_ptr<retained_store> {
    if (!state_->images.store) return nullptr;
    return std::make_unique<retained_changes>(state_->images, sessions, *state_->has.clock);
}

// Never what a session may have written: one that is not known any more may have run, unless its
// copy never was whole.
void linux_host::state::sweep_image(const container::session_images::kept_image& kept,
                                    const session_registry& sessions) {
    const auto name = kept.session_id + ", " + kept.alias;
    if (kept.quarantined) return tell("session.image_quarantined", name);
    const auto record = sessions.record(kept.session_id);
    if (!record && record.error().code != error_code::session_not_found)
        return tell("session.image_kept", record.error().why);
    if (record && (!is_terminal(record->state) || record->running_at_ms != 0)) return;
    const auto copy = find_copy(*images.store, kept.session_id, kept.alias);
    if (!copy) return tell("session.image_kept", copy.error());
    if (!*copy || !is_of(**copy, record ? record->created_at_ms : UINT64_MAX))
        return tell("session.image_kept", name + ": an earlier session may have written to it");
    if (const auto removed = images.store->remove(kept.session_id, kept.alias); !removed)
        return tell("session.image_kept", removed.error());
    tell("session.image_removed", name + ": its session never ran");
}

void linux_host::sweep(const session_registry& sessions) {
    auto& my = *state_;
    if (const auto swept = my.leases.sweep(my.has.policy->rules().secret_mounts); !swept) {
        my.tell("session.leases_kept", swept.error());
    } else {
        for (const auto& name : swept->removed) my.tell("session.lease_removed", name);
    }
    if (!my.images.store) return;
    const auto kept = my.images.store->list();
    if (!kept) return my.tell("session.image_kept", kept.error());
    for (const auto& one : *kept) my.sweep_image(one, sessions);
}

} // namespace glove::control
