// How large the receipt of a plan may become: the longest legal one is made, and its bytes counted.
#include "control/receipt_record.hpp"
#include "control/refinement_fields.hpp"
#include <algorithm>
#include <glove/control/receipt_journal.hpp>
#include <glove/journal/format.hpp>
#include <glove/wire/crypto.hpp>
#include <limits>

namespace glove::control {

namespace {

constexpr auto most = std::numeric_limits<std::uint64_t>::max();

[[nodiscard]] auto any_digest() -> std::string { return std::string(64, 'f'); }
[[nodiscard]] auto longest_ident() -> std::string { return std::string(128, 'x'); }

[[nodiscard]] auto projections_of(const supervisor::session_plan& plan,
                                  const supervisor::session_rules& rules)
    -> result<std::vector<projection_receipt>> {
    std::vector<projection_receipt> out;
    for (const auto& p : plan.library_projections) {
        const auto* to = rules.find_destination(p.destination_alias);
        if (to == nullptr)
            return fail(errc::invalid_input, "receipt.target",
                        "a library projection has a destination that the policy does not have");
        out.push_back({p.projection_id, p.destination_alias,
                       to->target_path + "/" + p.content_digest + ".json", p.content_digest});
    }
    return out;
}

// Four counts of five digits are longer than one of six and three of one.
[[nodiscard]] auto changes_of(const supervisor::session_plan& plan)
    -> std::vector<retained_change_receipt> {
    std::vector<retained_change_receipt> out;
    const auto* grants = std::get_if<std::vector<supervisor::exposure_grant>>(&plan.grants);
    if (grants == nullptr) return out;
    for (const auto& g : *grants)
        if (g.access == supervisor::access_kind::retained_write)
            out.push_back({.exposure_id = g.exposure_id,
                           .generation = g.generation,
                           .scope_digest = g.scope_digest,
                           .source_identity_digest = any_digest(),
                           .baseline_tree_digest = any_digest(),
                           .staged_tree_digest = any_digest(),
                           .manifest_digest = any_digest(),
                           .created = most_changes / 4,
                           .modified = most_changes / 4,
                           .renamed = most_changes / 4,
                           .removed = most_changes / 4,
                           .before_bytes = plan.limits.disk_bytes,
                           .after_bytes = plan.limits.disk_bytes});
    return out;
}

[[nodiscard]] auto longest_resource(const supervisor::session_plan& plan,
                                    const supervisor::session_rules& rules)
    -> result<resource_receipt> {
    using enum mechanism;
    const bool remote = plan.sandbox_backend == supervisor::backend_kind::remote_linux_container;
    resource_receipt out;
    out.profile_digest = any_digest();
    out.backend = plan.sandbox_backend;
    out.backend_id = longest_ident();
    out.authority = remote ? observation_authority::trusted_remote_claim
                           : observation_authority::local_enforcement;
    out.independently_verified = !remote;
    out.configured_limits = plan.limits;
    out.mechanisms = {filesystem_quota,
                      filesystem_quota,
                      filesystem_quota,
                      filesystem_quota,
                      filesystem_quota,
                      filesystem_quota,
                      1};
    out.observed = {most, most, UINT32_MAX, most, most, most};
    // With its code this one is longer than the name of any other cause.
    out.cause = termination_cause::exited;
    out.exit_code = 255;
    out.started_at_ms = out.finished_at_ms = most;
    GLOVE_TRY(out.library_projections, projections_of(plan, rules));
    if (!remote) out.retained_changes = changes_of(plan);
    return out;
}

// The longer one of two: valid evidence has the metrics of this product's evaluator.
[[nodiscard]] auto longest_refinement(resource_receipt resource,
                                      const supervisor::refinement_request& wanted)
    -> result<refinement_receipt> {
    refinement_receipt out;
    out.runtime_template_id = supervisor::refinement_template_id;
    out.resource = std::move(resource);
    out.status = evidence_status::valid_outcome;
    out.variant = wanted.variant;
    out.fixture = wanted.fixture;
    out.base = wanted.base;
    out.candidate = wanted.candidate;
    out.matched_context_digest = wanted.matched_context_digest;
    refinement_outcome outcome{std::string{outcome_schema}, std::string{outcome_encoding}, {}};
    for (const auto name : evaluation_metrics)
        outcome.metrics.emplace(name, std::numeric_limits<std::int64_t>::min());
    GLOVE_TRY(const auto bytes, encode(outcome));
    GLOVE_TRY(const auto digest, wire::sha256(bytes));
    out.outcome = {outcome.schema, outcome.encoding, wire::to_hex(digest), bytes.size()};
    out.evaluated_outcome = std::move(outcome);
    out.transcript = {std::string{transcript_schema}, any_digest(),
                      out.resource.observed.terminal_output_bytes, true};
    out.evaluator = {std::string{evaluator_schema}, true, true, most_literals, most_literals};
    return out;
}

template<class Receipt> [[nodiscard]] auto in_envelope(Receipt receipt) -> result<std::size_t> {
    envelope_of<Receipt> out;
    out.sequence = most;
    out.key_id = out.controller_plan_digest = out.previous_hmac = out.this_hmac = any_digest();
    out.session_id = longest_ident();
    out.receipt = std::move(receipt);
    GLOVE_TRY(out.receipt_digest, receipt_digest(out.receipt));
    GLOVE_TRY(const auto text, encode(chained_receipt{std::move(out)}));
    return text.size();
}

} // namespace

auto longest_receipt(const supervisor::session_plan& plan, const supervisor::session_rules& rules)
    -> result<std::size_t> {
    GLOVE_TRY(auto resource, longest_resource(plan, rules));
    std::size_t bytes = 0;
    if (plan.refinement) {
        GLOVE_TRY(auto receipt, longest_refinement(std::move(resource), *plan.refinement));
        GLOVE_TRY(bytes, in_envelope(std::move(receipt)));
    } else {
        GLOVE_TRY(bytes, in_envelope(std::move(resource)));
    }
    if (bytes > journal::receipts.most.record_bytes)
        return fail(errc::limit_exceeded, "receipt.size",
                    "the receipt of this plan may take " + std::to_string(bytes) + " bytes, and " +
                        std::to_string(journal::receipts.most.record_bytes) + " are allowed",
                    "ask for fewer projections or exposures");
    return bytes;
}

} // namespace glove::control
