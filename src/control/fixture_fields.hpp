// The field tables of a fixture, in canonical order. The tests break each row of them.
#pragma once
#include "control/refinement_fields.hpp"
#include <glove/control/refinement_fixture.hpp>

namespace glove::control {

inline constexpr std::size_t most_literal_bytes = 4096;
inline constexpr std::size_t most_bytes_of_literals = 64UL << 10; // of both lists

inline constexpr std::string_view fixture_schema = "glove.refinement-eval-fixture-v1";
inline constexpr wire::text short_token{wire::grammar::token, 1, 128};
inline constexpr wire::list<wire::token> some_tokens{0, 256};
inline constexpr wire::list<wire::text{wire::grammar::utf8, 1, most_literal_bytes}> some_literals{
    0, most_literals};
inline constexpr wire::integer some_version{1, UINT32_MAX};

inline constexpr auto model_fields =
    wire::table(wire::row<&fixture_model::provider, wire::token>("provider"),
                wire::row<&fixture_model::model_id, wire::token>("model_id"),
                wire::row<&fixture_model::model_family, wire::token>("model_family"),
                wire::row<&fixture_model::model_revision, wire::token>("model_revision"),
                wire::row<&fixture_model::tier, wire::token>("tier"),
                wire::row<&fixture_model::normalizer_version, some_version>("normalizer_version"));

inline constexpr auto module_fields =
    wire::table(wire::row<&fixture_module::repository_id, wire::token>("repository_id"),
                wire::row<&fixture_module::repository_tree, wire::hex64>("repository_tree"),
                wire::row<&fixture_module::module_id, wire::hex64>("module_id"),
                wire::row<&fixture_module::label, wire::token>("label"),
                wire::row<&fixture_module::include_paths, some_tokens>("include_paths"),
                wire::row<&fixture_module::exclude_paths, some_tokens>("exclude_paths"),
                wire::row<&fixture_module::languages, some_tokens>("languages"),
                wire::row<&fixture_module::frameworks, some_tokens>("frameworks"),
                wire::row<&fixture_module::package_managers, some_tokens>("package_managers"),
                wire::row<&fixture_module::detector_version, some_version>("detector_version"));

inline constexpr auto assertions_fields = wire::table(
    wire::row<&fixture_assertions::expected_termination, wire::choice<cause_words>{}>(
        "expected_termination"),
    wire::row<&fixture_assertions::expected_exit_code, exit_status>("expected_exit_code"),
    wire::row<&fixture_assertions::required_transcript_literals, some_literals>(
        "required_transcript_literals"),
    wire::row<&fixture_assertions::forbidden_transcript_literals, some_literals>(
        "forbidden_transcript_literals"),
    wire::row<&fixture_assertions::max_latency_ms, supervisor::positive>("max_latency_ms"));

inline constexpr auto fixture_fields = wire::table(
    wire::row<&refinement_fixture::schema, only<fixture_schema>>("schema"),
    wire::row<&refinement_fixture::evaluation_run_id, wire::token>("evaluation_run_id"),
    wire::row<&refinement_fixture::pair_id, wire::token>("pair_id"),
    wire::row<&refinement_fixture::session_id, short_token>("session_id"),
    wire::row<&refinement_fixture::variant, wire::choice<supervisor::variant_words>{}>("variant"),
    wire::row<&refinement_fixture::proposal_digest, wire::hex64>("proposal_digest"),
    wire::row<&refinement_fixture::base_projection_digest, wire::hex64>("base_projection_digest"),
    wire::row<&refinement_fixture::candidate_projection_digest, wire::hex64>(
        "candidate_projection_digest"),
    wire::row<&refinement_fixture::fixture_id, wire::token>("fixture_id"),
    wire::row<&refinement_fixture::fixture_digest, wire::hex64>("fixture_digest"),
    wire::row<&refinement_fixture::dataset_ref, wire::token>("dataset_ref"),
    wire::row<&refinement_fixture::dataset_fingerprint, wire::token>("dataset_fingerprint"),
    wire::row<&refinement_fixture::seed, wire::integer{}>("seed"),
    wire::row<&refinement_fixture::model, wire::record<model_fields>{}>("model"),
    wire::row<&refinement_fixture::harness, wire::token>("harness"),
    wire::row<&refinement_fixture::module, wire::record<module_fields>{}>("module"),
    wire::row<&refinement_fixture::skill_projection_id, short_token>("skill_projection_id"),
    wire::row<&refinement_fixture::skill_projection_digest, wire::hex64>("skill_projection_digest"),
    wire::row<&refinement_fixture::matched_context_digest, wire::hex64>("matched_context_digest"),
    wire::row<&refinement_fixture::assertions, wire::record<assertions_fields>{}>("assertions"));

[[nodiscard]] auto check_rules(const fixture_assertions& of, const wire::place& at) -> result<>;
[[nodiscard]] auto check_rules(const refinement_fixture& of, const wire::place& at) -> result<>;

} // namespace glove::control
