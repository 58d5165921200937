// What a comparison of two skills is made of, and what its transcript shows.
//
// Guarantees: a fixture is data; decoding is strict, and encoding it again gives the bytes that it
// came in. The evaluator sees raw bytes and nothing else: what they say about themselves is text.
// It judges nothing before the end, and evidence is valid only when every byte was seen and all of
// them are UTF-8. Nothing here opens, writes or starts anything.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/control/receipt.hpp>
#include <glove/control/refinement_receipt.hpp>
#include <glove/supervisor/plan.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glove::control {

struct fixture_model {
    std::optional<std::string> provider;
    std::string model_id;
    std::optional<std::string> model_family;
    std::optional<std::string> model_revision;
    std::string tier;
    std::uint32_t normalizer_version = 0;
    auto operator==(const fixture_model&) const -> bool = default;
};
struct fixture_module {
    std::string repository_id;
    std::string repository_tree;
    std::string module_id;
    std::string label;
    std::vector<std::string> include_paths, exclude_paths, languages, frameworks, package_managers;
    std::uint32_t detector_version = 0;
    auto operator==(const fixture_module&) const -> bool = default;
};
struct fixture_assertions {
    termination_cause expected_termination{};
    std::optional<std::uint32_t> expected_exit_code; // with `exited` only
    std::vector<std::string> required_transcript_literals;
    std::vector<std::string> forbidden_transcript_literals;
    std::optional<std::uint64_t> max_latency_ms;
    auto operator==(const fixture_assertions&) const -> bool = default;
};
struct refinement_fixture {
    std::string schema;
    std::string evaluation_run_id;
    std::string pair_id;
    std::string session_id;
    supervisor::refinement_variant variant{};
    std::string proposal_digest;
    std::string base_projection_digest;
    std::string candidate_projection_digest;
    std::string fixture_id;
    std::string fixture_digest;
    std::string dataset_ref;
    std::string dataset_fingerprint;
    std::uint64_t seed = 0;
    fixture_model model;
    std::string harness;
    std::optional<fixture_module> module;
    std::string skill_projection_id;
    std::string skill_projection_digest;
    std::string matched_context_digest;
    fixture_assertions assertions;
    auto operator==(const refinement_fixture&) const -> bool = default;
};

inline constexpr std::size_t most_fixture_bytes = 256UL << 10;

[[nodiscard]] auto encode(const refinement_fixture& what) -> result<std::string>;
// Steps: wire.*, fixture.order, fixture.exit, fixture.literals, fixture.form.
[[nodiscard]] auto decode_refinement_fixture(std::string_view text) -> result<refinement_fixture>;

// Session, variant and skill are no part of it: it is the same for both halves of a pair.
[[nodiscard]] auto matched_context_digest(const refinement_fixture& of,
                                          std::string_view plan_context_digest)
    -> result<std::string>;
// That `bytes` are the fixture of this plan and this session, before anything is launched. Step:
// fixture.match, the member is named.
[[nodiscard]] auto fixture_for(std::string_view bytes, std::string_view session_id,
                               const supervisor::session_plan& plan) -> result<refinement_fixture>;

// How a session ended, by the host's own account.
struct evaluated_end {
    termination_cause cause{};
    std::optional<std::uint32_t> exit_code;
    std::uint64_t wall_time_ms = 0;
    bool drained = false; // every byte of the transcript was fed
};
// The members of a refinement receipt that the evaluator fills.
struct refinement_evidence {
    evidence_status status{};
    outcome_reference outcome;
    std::optional<refinement_outcome> evaluated_outcome;
    transcript_evidence transcript;
    evaluator_evidence evaluator;
    auto operator==(const refinement_evidence&) const -> bool = default;
};

class transcript_evaluator {
public:
    [[nodiscard]] static auto start(fixture_assertions expected) -> result<transcript_evaluator>;
    transcript_evaluator(transcript_evaluator&&) noexcept;
    auto operator=(transcript_evaluator&&) noexcept -> transcript_evaluator&;
    ~transcript_evaluator();
    // The next bytes, however the stream is cut. After an error the evidence is invalid.
    [[nodiscard]] auto feed(std::string_view bytes) -> result<>;
    [[nodiscard]] auto finish(const evaluated_end& end) && -> result<refinement_evidence>;

private:
    struct state;
    explicit transcript_evaluator(std::unique_ptr<state> owned);
    std::unique_ptr<state> state_;
};

} // namespace glove::control
