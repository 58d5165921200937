// The evaluator: literals, UTF-8 and the digest of the raw bytes, and the outcome at the end.
#include "control/fixture_fields.hpp"
#include "control/literal_matcher.hpp"
#include <glove/control/refinement_fixture.hpp>
#include <glove/wire/crypto.hpp>
#include <glove/wire/utf8.hpp>
#include <limits>

namespace glove::control {

namespace {

// UTF-8 that arrives in pieces. What may be the beginning of a character waits for the rest of it.
class utf8_stream {
public:
    void feed(std::string_view bytes) {
        while (good_ && !waiting_.empty() && !bytes.empty()) {
            waiting_ += bytes.front();
            bytes.remove_prefix(1);
            take(waiting_);
        }
        if (!good_) return;
        while (!bytes.empty()) {
            const auto step = wire::next_utf8(bytes);
            if (!step.well_formed) {
                waiting_ = bytes;
                take(waiting_);
                return;
            }
            bytes.remove_prefix(step.size);
        }
    }
    [[nodiscard]] auto good() const -> bool { return good_ && waiting_.empty(); }

private:
    // A character that is whole is taken; one that cannot become whole ends it all.
    void take(std::string& text) {
        const auto step = wire::next_utf8(text);
        const auto first = static_cast<unsigned char>(text.front());
        if (step.well_formed) text.clear();
        else if (step.size < text.size() || first < 0xc2 || first > 0xf4) good_ = false;
        if (!good_) text.clear();
    }
    std::string waiting_; // at most three bytes
    bool good_ = true;
};

constexpr std::uint64_t most_latency = std::numeric_limits<std::int64_t>::max();

[[nodiscard]] auto latency_us(std::uint64_t wall_time_ms) -> std::int64_t {
    return static_cast<std::int64_t>(wall_time_ms > most_latency / 1000 ? most_latency
                                                                        : wall_time_ms * 1000);
}

} // namespace

struct transcript_evaluator::state {
    state(fixture_assertions of, wire::sha256_stream stream)
        : expected{std::move(of)}, required{expected.required_transcript_literals},
          forbidden{expected.forbidden_transcript_literals}, hash{std::move(stream)} {}

    [[nodiscard]] auto failures(const evaluated_end& end) const -> std::int64_t {
        auto out = expected.required_transcript_literals.size() - required.found();
        out += forbidden.found();
        if (end.cause != expected.expected_termination) ++out;
        if (end.exit_code != expected.expected_exit_code) ++out;
        if (expected.max_latency_ms && end.wall_time_ms > *expected.max_latency_ms) ++out;
        return static_cast<std::int64_t>(out);
    }
    [[nodiscard]] auto outcome(const evaluated_end& end) const -> refinement_outcome {
        const auto failed = failures(end);
        const auto count = [](const auto& list) { return static_cast<std::int64_t>(list.size()); };
        return {std::string{outcome_schema},
                std::string{outcome_encoding},
                {{"failed_assertions", failed},
                 {"forbidden_literals", count(expected.forbidden_transcript_literals)},
                 {"latency_us", latency_us(end.wall_time_ms)},
                 {"passed", failed == 0 ? 1 : 0},
                 {"required_literals", count(expected.required_transcript_literals)}}};
    }

    fixture_assertions expected;
    literal_matcher required, forbidden;
    utf8_stream text;
    wire::sha256_stream hash;
    std::uint64_t bytes = 0;
    bool missed = false; // a piece
};

transcript_evaluator::transcript_evaluator(std::unique_ptr<state> owned)
    : state_{std::move(owned)} {}
transcript_evaluator::transcript_evaluator(transcript_evaluator&&) noexcept = default;
auto transcript_evaluator::operator=(transcript_evaluator&&) noexcept
    -> transcript_evaluator& = default;
transcript_evaluator::~transcript_evaluator() = default;

auto transcript_evaluator::start(fixture_assertions expected) -> result<transcript_evaluator> {
    GLOVE_CHECK(wire::check_object(expected, assertions_fields, wire::place{}));
    GLOVE_CHECK(check_rules(expected, wire::place{}));
    GLOVE_TRY(auto hash, wire::sha256_stream::start());
    return transcript_evaluator{std::make_unique<state>(std::move(expected), std::move(hash))};
}

auto transcript_evaluator::feed(std::string_view bytes) -> result<> {
    state_->bytes += bytes.size();
    if (auto hashed = state_->hash.update(bytes); !hashed) {
        state_->missed = true;
        return hashed;
    }
    state_->required.feed(bytes);
    state_->forbidden.feed(bytes);
    state_->text.feed(bytes);
    return {};
}

auto transcript_evaluator::finish(const evaluated_end& end) && -> result<refinement_evidence> {
    const auto my = std::move(state_);
    GLOVE_TRY(const auto digest, std::move(my->hash).finish());
    refinement_evidence out;
    out.transcript = {std::string{transcript_schema}, wire::to_hex(digest), my->bytes,
                      end.drained && !my->missed};
    const auto count = [](const auto& list) { return static_cast<std::uint32_t>(list.size()); };
    out.evaluator = {std::string{evaluator_schema}, true, my->text.good(),
                     count(my->expected.required_transcript_literals),
                     count(my->expected.forbidden_transcript_literals)};
    const bool valid = out.transcript.complete && out.evaluator.transcript_utf8;
    out.status = valid ? evidence_status::valid_outcome : evidence_status::invalid_outcome;
    std::string bytes;
    if (valid) {
        out.evaluated_outcome = my->outcome(end);
        GLOVE_TRY(bytes, encode(*out.evaluated_outcome));
    }
    GLOVE_TRY(const auto of_outcome, wire::sha256(bytes));
    out.outcome = {std::string{outcome_schema}, std::string{outcome_encoding},
                   wire::to_hex(of_outcome), bytes.size()};
    return out;
}

} // namespace glove::control
