// The field tables of refinement receipts and of the pages that hold both kinds.
#pragma once
#include "control/receipt_fields.hpp"
#include <array>
#include <glove/control/receipt_journal.hpp>
#include <glove/control/refinement_receipt.hpp>
#include <map>

namespace glove::control {

inline constexpr std::size_t most_metrics = 256;
inline constexpr std::uint32_t most_literals = 128; // of one list

inline constexpr wire::word<evidence_status> evidence_words[] = {
    {"valid_outcome", evidence_status::valid_outcome},
    {"invalid_outcome", evidence_status::invalid_outcome},
};
inline constexpr std::string_view outcome_schema = "sage.refinement-eval-outcome-v1";
inline constexpr std::string_view outcome_encoding = "canonical-json-utf8";
// What the evaluator of this product measures.
inline constexpr std::array<std::string_view, 5> evaluation_metrics{
    "failed_assertions", "forbidden_literals", "latency_us", "passed", "required_literals"};
inline constexpr std::string_view transcript_schema = "glove.raw-pty-transcript-v1";
inline constexpr std::string_view evaluator_schema = "glove.declarative-refinement-evaluator-v1";

// A text that has one value.
template<const auto& Text>
inline constexpr wire::word<std::string_view> only_word[] = {{Text, Text}};
template<const auto& Text> inline constexpr wire::choice<only_word<Text>> only{};

// An object of integers by name; it is written in the order of the names' bytes.
struct metrics_rule {
    using metrics = std::map<std::string, std::int64_t>;

    [[nodiscard]] constexpr auto form() const -> wire::shape {
        return {wire::json::kind::object, 0, most_metrics, {}};
    }
    [[nodiscard]] auto check(const metrics& in, const wire::place& at) const -> result<> {
        GLOVE_CHECK(wire::detail::check_count(in.size(), 0, most_metrics, at));
        for (const auto& [name, number] : in) GLOVE_CHECK(check_name(name, at));
        return {};
    }
    [[nodiscard]] auto read(const wire::json::value& in, metrics& out, const wire::place& at) const
        -> result<> {
        const auto* members = in.as_object();
        if (members == nullptr) return wire::detail::refuse_type(in, wire::json::kind::object, at);
        GLOVE_CHECK(wire::detail::check_count(members->size(), 0, most_metrics, at));
        out.clear();
        for (const auto& [name, data] : *members) {
            GLOVE_CHECK(check_name(name, at));
            std::int64_t number = 0;
            GLOVE_CHECK(any_number.read(data, number, wire::place{&at, name}));
            out.emplace(name, number);
        }
        return {};
    }
    [[nodiscard]] auto take(wire::json::cursor& in, metrics& out) const -> bool {
        out.clear();
        if (!in.enter_object()) return false;
        for (std::string_view name; in.next_member(name);) {
            if (!out.empty() && out.rbegin()->first >= name) in.is_not_as_written();
            const auto [at, is_new] = out.try_emplace(std::string{name});
            if (!is_new || out.size() > most_metrics || !check_name(at->first, {}) ||
                !any_number.take(in, at->second))
                return false;
        }
        return !in.broken();
    }
    void write(wire::json::writer& out, const metrics& in) const {
        out.begin_object();
        for (const auto& [name, number] : in) out.member(name, number);
        out.end_object();
    }

private:
    static constexpr wire::integer any_number{INT64_MIN, INT64_MAX};
    // The name itself is not said: it may be anything.
    [[nodiscard]] static auto check_name(const std::string& name, const wire::place& at)
        -> result<> {
        return wire::metric.check(name, wire::place{&at, "name"});
    }
};

inline constexpr auto outcome_reference_fields =
    wire::table(wire::row<&outcome_reference::schema, only<outcome_schema>>("schema"),
                wire::row<&outcome_reference::encoding, only<outcome_encoding>>("encoding"),
                wire::row<&outcome_reference::digest, wire::hex64>("digest"),
                wire::row<&outcome_reference::byte_length, wire::integer{}>("byte_length"));
inline constexpr auto outcome_fields =
    wire::table(wire::row<&refinement_outcome::schema, only<outcome_schema>>("schema"),
                wire::row<&refinement_outcome::encoding, only<outcome_encoding>>("encoding"),
                wire::row<&refinement_outcome::metrics, metrics_rule{}>("metrics"));
inline constexpr auto transcript_fields =
    wire::table(wire::row<&transcript_evidence::schema, only<transcript_schema>>("schema"),
                wire::row<&transcript_evidence::digest, wire::hex64>("digest"),
                wire::row<&transcript_evidence::byte_count, wire::integer{}>("byte_count"),
                wire::row<&transcript_evidence::complete, wire::flag{}>("complete"));
inline constexpr wire::integer literal_count{0, most_literals};
inline constexpr auto evaluator_fields = wire::table(
    wire::row<&evaluator_evidence::schema, only<evaluator_schema>>("schema"),
    wire::row<&evaluator_evidence::fixture_complete, wire::flag{}>("fixture_complete"),
    wire::row<&evaluator_evidence::transcript_utf8, wire::flag{}>("transcript_utf8"),
    wire::row<&evaluator_evidence::required_literals, literal_count>("required_literals"),
    wire::row<&evaluator_evidence::forbidden_literals, literal_count>("forbidden_literals"));

inline constexpr wire::record<supervisor::projection_fields> some_projection{};
inline constexpr auto refinement_receipt_fields = wire::table(
    wire::row<&refinement_receipt::schema_version, supervisor::version_1>("schema_version"),
    wire::row<&refinement_receipt::runtime_template_id, only<supervisor::refinement_template_id>>(
        "runtime_template_id"),
    wire::row<&refinement_receipt::resource, wire::record<resource_receipt_fields>{}>(
        "resource_receipt"),
    wire::row<&refinement_receipt::status, wire::choice<evidence_words>{}>("evidence_status"),
    wire::row<&refinement_receipt::variant, wire::choice<supervisor::variant_words>{}>("variant"),
    wire::row<&refinement_receipt::fixture, some_projection>("fixture"),
    wire::row<&refinement_receipt::base, some_projection>("base"),
    wire::row<&refinement_receipt::candidate, some_projection>("candidate"),
    wire::row<&refinement_receipt::matched_context_digest, wire::hex64>("matched_context_digest"),
    wire::row<&refinement_receipt::outcome, wire::record<outcome_reference_fields>{}>("outcome"),
    wire::row<&refinement_receipt::evaluated_outcome, wire::record<outcome_fields>{}>(
        "evaluated_outcome"),
    wire::row<&refinement_receipt::transcript, wire::record<transcript_fields>{}>("transcript"),
    wire::row<&refinement_receipt::evaluator, wire::record<evaluator_fields>{}>("evaluator"));

inline constexpr auto refinement_envelope_fields =
    envelope_table<refinement_receipt, refinement_receipt_fields>();

inline constexpr auto page_fields = wire::table(
    wire::row<&receipt_page::schema_version, supervisor::version_1>("schema_version"),
    wire::row<&receipt_page::envelopes,
              wire::list<wire::record<resource_envelope_fields>{}>{0, most_receipts_of_a_page}>(
        "envelopes"),
    wire::row<&receipt_page::refinement_envelopes,
              wire::list<wire::record<refinement_envelope_fields>{}>{0, most_receipts_of_a_page}>(
        "refinement_envelopes"),
    wire::row<&receipt_page::has_more, wire::flag{}>("has_more"),
    wire::row<&receipt_page::local_anchor, wire::record<anchor_fields>{}>("local_anchor"));

[[nodiscard]] auto check_rules(const refinement_receipt& of, const wire::place& at) -> result<>;
// With the receipt's digest computed again.
[[nodiscard]] auto check_rules(const resource_envelope& of, const wire::place& at) -> result<>;
[[nodiscard]] auto check_rules(const refinement_envelope& of, const wire::place& at) -> result<>;
[[nodiscard]] auto check_rules(const receipt_page& of, const wire::place& at) -> result<>;

} // namespace glove::control
