// What the mediation puts on record. The texts of one event are reused for the next.
//
// Guarantees: after the first failure nothing more is staged, and `problem` says so.
#pragma once
#include <chrono>
#include <glove/base/audit.hpp>
#include <glove/sys/clock.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace glove::kernel {

// Arguments longer than this are recorded as their size and digest.
inline constexpr std::size_t most_recorded_arguments = 64UL << 10;

class recorder {
public:
    recorder(audit::batching_sink& sink, std::string run, std::uint64_t call_prefix);

    struct entry {
        audit::action action{};
        std::string_view subject;               // empty: none
        const std::string* arguments = nullptr; // JSON text; null: none
        audit::status status{};
        std::string_view why = {};
        std::chrono::nanoseconds latency{};
        std::uint64_t number = 0; // joins intent and outcome
    };
    void begin_turn(std::chrono::nanoseconds wall) { wall_ = wall; }
    [[nodiscard]] auto next_number() -> std::uint64_t { return ++last_number_; }
    // False when it cannot be: then nothing may be done.
    auto stage(const entry& what) -> bool;
    [[nodiscard]] auto has_staged() const -> bool { return staged_; }
    [[nodiscard]] auto commit() -> result<>;
    [[nodiscard]] auto problem() const -> const std::optional<error>& { return problem_; }

private:
    void put_arguments(std::optional<std::string>& to, const std::string& text);

    audit::batching_sink& sink_;
    audit::event intent_, outcome_; // apart, so that each keeps its room
    std::uint64_t last_number_ = 0;
    std::chrono::nanoseconds wall_{};
    bool staged_ = false; // since the last commit
    std::optional<error> problem_;
};

} // namespace glove::kernel
