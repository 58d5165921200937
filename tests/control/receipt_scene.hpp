// Receipts, fixtures and a key that are good, for tests to break.
#pragma once
#include "supervisor/plan_scene.hpp"
#include <glove/control/refinement_fixture.hpp>
#include <glove/control/refinement_receipt.hpp>
#include <glove/wire/crypto.hpp>
#include <optional>
#include <string>

namespace glove::test {

// 000102...1f, as a key file has it.
inline auto key_text() -> std::string {
    std::string out;
    for (unsigned i = 0; i < 32; ++i) {
        out += "0123456789abcdef"[i >> 4U];
        out += "0123456789abcdef"[i & 15U];
    }
    return out + "\n";
}
inline auto usual_key() -> control::audit_key {
    return control::audit_key::parse(key_text()).value();
}
inline auto other_key() -> control::audit_key {
    return control::audit_key::parse(std::string(64, '7')).value();
}

// The receipt of the known digest.
inline auto usual_receipt() -> control::resource_receipt {
    using namespace control;
    resource_receipt out;
    out.profile_digest = digits('c');
    out.backend_id = "linux-production:cgroup-v2-v1";
    out.independently_verified = true;
    out.configured_limits = {60'000, 512 * mib, 128, 120'000, 1024 * mib, 16 * mib};
    out.mechanisms = linux_mechanisms();
    out.observed = {500, 16 * mib, 2, 750, 4096, 1024};
    out.cause = termination_cause::exited;
    out.exit_code = 0;
    out.started_at_ms = 1000;
    out.finished_at_ms = 1750;
    return out;
}
inline auto projection_at(std::string id, char digest) -> control::projection_receipt {
    return {std::move(id), "libraries", "/opt/libraries/" + digits(digest) + ".json",
            digits(digest)};
}
inline auto some_changes(std::string id) -> control::retained_change_receipt {
    return {std::move(id),
            3,
            digits('1'),
            digits('2'),
            digits('3'),
            digits('4'),
            digits('5'),
            1,
            2,
            3,
            4,
            100,
            200};
}
// With everything that a receipt may have.
inline auto full_receipt() -> control::resource_receipt {
    auto out = usual_receipt();
    out.library_projections = {projection_at("sage-base", '8'), projection_at("sage-core", 'b')};
    out.retained_changes = {some_changes("proj"), some_changes("site")};
    return out;
}
inline auto remote_receipt() -> control::resource_receipt {
    auto out = usual_receipt();
    out.backend = supervisor::backend_kind::remote_linux_container;
    out.authority = control::observation_authority::trusted_remote_claim;
    out.independently_verified = false;
    out.cause = control::termination_cause::memory_limit;
    out.exit_code.reset();
    return out;
}

inline auto usual_fixture() -> control::refinement_fixture {
    using namespace control;
    refinement_fixture out;
    out.schema = "glove.refinement-eval-fixture-v1";
    out.evaluation_run_id = "run 1";
    out.pair_id = "pair-1";
    out.session_id = "session-1";
    out.variant = supervisor::refinement_variant::candidate;
    out.proposal_digest = digits('5');
    out.base_projection_digest = digits('2');
    out.candidate_projection_digest = digits('3');
    out.fixture_id = "fixture-1";
    out.fixture_digest = digits('6');
    out.dataset_ref = "bafy-data";
    out.dataset_fingerprint = "fingerprint-1";
    out.seed = 42;
    out.model = {"a provider", "model-1", "family", "2026-01", "small", 1};
    out.harness = "codex";
    out.module = fixture_module{"repo",    digits('a'),       digits('b'), "a label", {"src"},
                                {"build"}, {"c++", "python"}, {"none"},    {"apt"},   2};
    out.skill_projection_id = "skill-candidate";
    out.skill_projection_digest = digits('3');
    out.matched_context_digest = digits('4');
    out.assertions = {termination_cause::exited, 0, {"all good", "done\n"}, {"panic"}, 1000};
    return out;
}

inline auto usual_evidence() -> control::refinement_evidence {
    using namespace control;
    auto eye = transcript_evaluator::start(usual_fixture().assertions).value();
    if (!eye.feed("all good, and done\n")) std::abort();
    return std::move(eye).finish({termination_cause::exited, 0, 750, true}).value();
}
inline auto refinement_with(const control::refinement_evidence& evidence)
    -> control::refinement_receipt {
    using namespace control;
    const auto plan = refinement_plan();
    refinement_receipt out;
    out.runtime_template_id = plan.runtime_template_id;
    out.resource = usual_receipt();
    out.resource.observed.terminal_output_bytes = evidence.transcript.byte_count;
    out.resource.library_projections = {projection_at("skill-candidate", '3')};
    out.status = evidence.status;
    out.variant = plan.refinement->variant;
    out.fixture = plan.refinement->fixture;
    out.base = plan.refinement->base;
    out.candidate = plan.refinement->candidate;
    out.matched_context_digest = plan.refinement->matched_context_digest;
    out.outcome = evidence.outcome;
    out.evaluated_outcome = evidence.evaluated_outcome;
    out.transcript = evidence.transcript;
    out.evaluator = evidence.evaluator;
    return out;
}
inline auto usual_refinement() -> control::refinement_receipt {
    return refinement_with(usual_evidence());
}
// Of a session whose output was cut off.
inline auto invalid_refinement() -> control::refinement_receipt {
    using namespace control;
    auto eye = transcript_evaluator::start(usual_fixture().assertions).value();
    if (!eye.feed("all g")) std::abort();
    return refinement_with(
        std::move(eye).finish({termination_cause::supervisor_error, {}, 750, false}).value());
}

// Sealed as the next one after the anchor.
template<class Receipt>
auto sealed(Receipt receipt, const control::audit_key& key, const control::receipt_anchor& after,
            std::string session = "session-1") -> control::envelope_of<Receipt> {
    control::envelope_of<Receipt> out;
    out.sequence = after.sequence + 1;
    out.key_id = key.id();
    out.session_id = std::move(session);
    out.controller_plan_digest = digits('a');
    out.receipt = std::move(receipt);
    out.receipt_digest = receipt_digest(out.receipt).value();
    out.previous_hmac = after.head_hmac;
    out.this_hmac = envelope_hmac(out, key).value();
    return out;
}
inline auto beginning(const control::audit_key& key) -> control::receipt_anchor {
    return {.key_id = key.id()};
}

} // namespace glove::test
