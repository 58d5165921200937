// The receipt of a session that was one half of a comparison of two skills: the session's own
// receipt, what was compared, and what the transcript showed.
//
// Guarantees: valid evidence needs a whole transcript that is UTF-8; invalid evidence holds no
// outcome. Its digest and its HMAC have domains of their own, so neither kind passes as the other.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/control/receipt.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace glove::control {

enum class evidence_status : std::uint8_t { valid_outcome, invalid_outcome };

struct outcome_reference {
    std::string schema;
    std::string encoding;
    std::string digest;
    std::uint64_t byte_length = 0;
    auto operator==(const outcome_reference&) const -> bool = default;
};
struct refinement_outcome {
    std::string schema;
    std::string encoding;
    std::map<std::string, std::int64_t> metrics; // at most 256
    auto operator==(const refinement_outcome&) const -> bool = default;
};
// The canonical bytes that the reference's digest is of.
[[nodiscard]] auto encode(const refinement_outcome& what) -> result<std::string>;

struct transcript_evidence {
    std::string schema;
    std::string digest;
    std::uint64_t byte_count = 0;
    bool complete = false;
    auto operator==(const transcript_evidence&) const -> bool = default;
};
struct evaluator_evidence {
    std::string schema;
    bool fixture_complete = false;
    bool transcript_utf8 = false;
    std::uint32_t required_literals = 0;
    std::uint32_t forbidden_literals = 0;
    auto operator==(const evaluator_evidence&) const -> bool = default;
};

struct refinement_receipt {
    std::uint8_t schema_version = 1;
    std::string runtime_template_id;
    resource_receipt resource;
    evidence_status status{};
    supervisor::refinement_variant variant{};
    supervisor::library_projection fixture;
    supervisor::library_projection base;
    supervisor::library_projection candidate;
    std::string matched_context_digest;
    outcome_reference outcome;
    std::optional<refinement_outcome> evaluated_outcome;
    transcript_evidence transcript;
    evaluator_evidence evaluator;
    auto operator==(const refinement_receipt&) const -> bool = default;
};
[[nodiscard]] auto encode(const refinement_receipt& what) -> result<std::string>;
[[nodiscard]] auto decode_refinement_receipt(std::string_view text) -> result<refinement_receipt>;
[[nodiscard]] auto receipt_digest(const refinement_receipt& of) -> result<std::string>;

using refinement_envelope = envelope_of<refinement_receipt>;

// Members in the order of the wire. Decoding checks the form and the receipt's digest; the HMAC
// needs the key.
[[nodiscard]] auto encode(const resource_envelope& what) -> result<std::string>;
[[nodiscard]] auto encode(const refinement_envelope& what) -> result<std::string>;
[[nodiscard]] auto decode_resource_envelope(std::string_view text) -> result<resource_envelope>;
[[nodiscard]] auto decode_refinement_envelope(std::string_view text) -> result<refinement_envelope>;

[[nodiscard]] auto envelope_hmac(const resource_envelope& of, const audit_key& key)
    -> result<std::string>;
[[nodiscard]] auto envelope_hmac(const refinement_envelope& of, const audit_key& key)
    -> result<std::string>;
// For whoever holds a key and an anchor: that the envelope is the next one after it. Gives the
// anchor after it.
[[nodiscard]] auto verify(const resource_envelope& next, const audit_key& key,
                          const receipt_anchor& after) -> result<receipt_anchor>;
[[nodiscard]] auto verify(const refinement_envelope& next, const audit_key& key,
                          const receipt_anchor& after) -> result<receipt_anchor>;

} // namespace glove::control
