// A record with every member as long as its row allows, in the same encoding as the real ones. It
// is no legal record: it has what no two ends have together.
//
// It is encoded once: from session to session it differs by what the creation says and by the
// partitions that the plan may have, and what these take is counted.
#include "control/session_room.hpp"
#include "control/session_fields.hpp"

namespace glove::control {

namespace {

constexpr auto most = std::numeric_limits<std::uint64_t>::max();

[[nodiscard]] auto ident() -> std::string { return std::string(wire::ident.max, 'a'); }
[[nodiscard]] auto digest() -> std::string { return std::string(64, 'a'); }

[[nodiscard]] auto longest_filesystem(std::size_t partitions) -> filesystem_identity {
    return {1, most, {partitions, {std::string(wire::alias.max, 'a'), most}}};
}

[[nodiscard]] auto size_of(const session_record& what) -> std::size_t {
    std::string out;
    wire::json::writer to{out};
    wire::write_object(to, what, session_fields);
    return out.size();
}

[[nodiscard]] auto decimal_digits(std::uint64_t number) noexcept -> std::size_t {
    std::size_t out = 1;
    for (; number >= 10; number /= 10) ++out;
    return out;
}

// Of what the creation said and no step changes. A member that is not counted here is taken for as
// long as it may be.
[[nodiscard]] auto settled_bytes(const session_record& of) -> std::size_t {
    return of.session_id.size() + decimal_digits(of.policy_revision) +
           decimal_digits(of.expires_at_ms) + decimal_digits(of.created_at_ms) +
           wire::json::quoted_bytes(of.canonical_plan_json);
}

// The sizes that all sessions have in common.
struct common_bytes {
    std::size_t others = 0;    // than what is settled, and than partitions
    std::size_t partition = 0; // with the comma behind the one before it
};
[[nodiscard]] auto measured() -> common_bytes {
    session_record longest;
    longest.session_id = ident();
    longest.controller_plan_digest = longest.plan_content_digest = digest();
    longest.policy_revision = longest.expires_at_ms = longest.created_at_ms = most;
    const auto with = [&](std::size_t partitions) {
        return size_of(longest_life(longest, {.runtime_id = {}, .most_partitions = partitions}));
    };
    return {with(0) - settled_bytes(longest), with(2) - with(1)};
}

} // namespace

// What is on record already stays; only what is still to come is as long as it may be.
auto longest_life(const session_record& of, const plan_facts& plan) -> session_record {
    session_record out = of;
    out.sequence = most;
    out.operation = "mark_refinement_exited";
    out.idempotency_key = ident();
    out.state = session_state::preparing; // the longest word
    if (of.state < session_state::preparing) {
        out.authorization_id = ident();
        out.authorized_at_ms = out.authorization_expires_at_ms = most;
    }
    if (of.state < session_state::starting) {
        out.launch_profile_digest = digest();
        out.starting_at_ms = most;
        out.cgroup = cgroup_identity{1, most, most};
        out.filesystem = longest_filesystem(plan.most_partitions);
        out.managed_runtime = managed_runtime_identity{1, "apple_container", ident(), digest()};
    }
    if (of.state < session_state::running) {
        out.running_at_ms = most;
        out.process = {1,
                       std::numeric_limits<std::uint32_t>::max(),
                       std::string(boot_id_bytes, 'a'),
                       most,
                       most,
                       most,
                       digest()};
    }
    out.failure_code = "recovered_without_process";
    out.stopping_at_ms = out.finished_at_ms = most;
    out.receipt_started_at_ms = out.receipt_sequence = most;
    out.receipt_key_id = out.receipt_digest = digest();
    out.receipt_previous_hmac = out.receipt_hmac = digest();
    out.termination_cause = "terminal_output_limit";
    out.exit_code = 255;
    out.previous_hash = out.this_hash = out.request_digest = digest();
    return out;
}

// The same in every state, so that what was reserved for a session still is enough for it when the
// journal is opened again.
auto longest_record(const session_record& of, const plan_facts& plan) -> std::size_t {
    static const auto common = measured();
    const auto there = of.filesystem ? of.filesystem->partitions.size() : 0;
    const auto partitions = std::max(plan.most_partitions, there);
    return common.others + settled_bytes(of) + partitions * common.partition -
           (partitions > 0 ? 1 : 0); // no comma before the first
}

auto longest_decision(const session_record& of, const plan_facts& plan) -> std::size_t {
    auto out = longest_life(of, plan);
    out.operation = disposition_operation;
    out.intent = observation_intent{.schema = ident(),
                                    .intent_id = ident(),
                                    .observation = ident(),
                                    .value_digest = digest(),
                                    .item_count = most,
                                    .intent_digest = digest(),
                                    .profile_digest = digest(),
                                    .runtime_id = ident(),
                                    .projection_digest = digest(),
                                    .channel_id = ident(),
                                    .channel_generation = most,
                                    .issued_at_ms = most,
                                    .expires_at_ms = most,
                                    .disposition = intent_disposition::accepted,
                                    .decided_at_ms = most};
    return size_of(out);
}

} // namespace glove::control
