// The refinement receipt: what evidence may say, its text and its digest.
#include "control/refinement_fields.hpp"
#include "supervisor/refusal.hpp"
#include <glove/wire/digest.hpp>

namespace glove::control {

using supervisor::member_of;
using supervisor::refuse;

namespace {

// The bytes that the outcome's reference is of: none when there is no outcome.
[[nodiscard]] auto outcome_bytes(const refinement_receipt& of) -> result<std::string> {
    return of.evaluated_outcome ? encode(*of.evaluated_outcome) : std::string{};
}

[[nodiscard]] auto check_evidence(const refinement_receipt& of, const wire::place& at) -> result<> {
    const bool valid = of.status == evidence_status::valid_outcome;
    const bool whole = of.transcript.complete && of.evaluator.transcript_utf8;
    if (valid != of.evaluated_outcome.has_value())
        return refuse(errc::invalid_input, "refinement.evidence",
                      member_of(at, "evaluated_outcome"),
                      "goes with valid evidence, and only with it");
    if (valid != whole)
        return refuse(errc::invalid_input, "refinement.evidence", member_of(at, "evidence_status"),
                      "is not what the transcript allows");
    if (valid && !of.evaluator.fixture_complete)
        return refuse(errc::invalid_input, "refinement.evidence", member_of(at, "evaluator"),
                      "had no whole fixture");
    GLOVE_TRY(const auto bytes, outcome_bytes(of));
    GLOVE_TRY(const auto digest, wire::sha256_hex(bytes));
    if (of.outcome.byte_length != bytes.size() || of.outcome.digest != digest)
        return refuse(errc::invalid_input, "refinement.outcome", member_of(at, "outcome"),
                      "is not of the outcome's bytes");
    return {};
}

void put(wire::digest_encoder& out, const supervisor::library_projection& what) {
    out.str(what.projection_id).str(what.content_digest).str(what.destination_alias);
}

} // namespace

auto encode(const refinement_outcome& what) -> result<std::string> {
    return wire::encode(what, outcome_fields);
}

auto check_rules(const refinement_receipt& of, const wire::place& at) -> result<> {
    const auto resource = member_of(at, "resource_receipt");
    GLOVE_CHECK(check_rules(of.resource, resource));
    if (of.resource.backend != supervisor::backend_kind::linux_production)
        return refuse(errc::invalid_input, "refinement.backend", member_of(resource, "backend"),
                      "is not linux_production");
    const auto& fixture = of.fixture.projection_id;
    const auto& base = of.base.projection_id;
    const auto& candidate = of.candidate.projection_id;
    if (fixture == base || fixture == candidate || base == candidate)
        return refuse(errc::invalid_input, "refinement.projections", at,
                      "has one projection in two roles");
    if (of.transcript.byte_count != of.resource.observed.terminal_output_bytes)
        return refuse(errc::invalid_input, "refinement.transcript", member_of(at, "transcript"),
                      "has another length than the output that was counted");
    return check_evidence(of, at);
}

auto encode(const refinement_receipt& what) -> result<std::string> {
    return checked_text(what, refinement_receipt_fields);
}
auto decode_refinement_receipt(std::string_view text) -> result<refinement_receipt> {
    return checked_value(text, refinement_receipt_fields);
}

auto receipt_digest(const refinement_receipt& of) -> result<std::string> {
    GLOVE_TRY(const auto resource, receipt_digest(of.resource));
    GLOVE_TRY(const auto bytes, outcome_bytes(of));
    wire::digest_encoder out;
    out.str("glove.refinement-evaluation-receipt").u8(2).u8(of.schema_version);
    out.str(of.runtime_template_id).str(resource);
    out.str(of.status == evidence_status::valid_outcome ? "valid_outcome" : "invalid_outcome");
    out.str(of.variant == supervisor::refinement_variant::base ? "base" : "candidate");
    put(out, of.fixture);
    put(out, of.base);
    put(out, of.candidate);
    out.str(of.matched_context_digest).str(of.outcome.schema).str(of.outcome.encoding);
    out.str(of.outcome.digest).u64(of.outcome.byte_length);
    out.boolean(of.evaluated_outcome.has_value());
    if (of.evaluated_outcome) out.str(bytes);
    out.str(of.transcript.schema).str(of.transcript.digest).u64(of.transcript.byte_count);
    out.boolean(of.transcript.complete).str(of.evaluator.schema);
    out.boolean(of.evaluator.fixture_complete).boolean(of.evaluator.transcript_utf8);
    out.u32(of.evaluator.required_literals).u32(of.evaluator.forbidden_literals);
    return out.sha256_hex();
}

} // namespace glove::control
