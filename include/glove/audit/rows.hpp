// Intents and outcomes joined: one row for each thing that was done, or meant to be done.
#pragma once
#include <glove/audit/reader.hpp>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace glove::audit {

enum class row_state : std::uint8_t {
    open,  // the outcome may still come
    lost,  // it will not: the run has ended, or the machine was started again
    ended, // `status` is the outcome
};

struct row {
    std::string run, call;
    audit::action action{};
    bool has_intent = false;
    row_state state = row_state::open;
    audit::status status = audit::status::pending; // of one that ended
    std::int64_t began_ns = 0;
    std::optional<std::int64_t> duration_ns;
    std::string what;   // the command, the destination, the tool and its arguments
    std::string detail; // how a command ended, when not with 0
    std::optional<std::uint64_t> sent, received;
    std::string error;
    std::vector<std::size_t> numbers; // of its records
};

// The word that a row is shown and looked for with: `open`, `lost` or the outcome's.
[[nodiscard]] auto state_word(const row& of) noexcept -> std::string_view;

// The words of a command, each quoted as a shell needs it.
[[nodiscard]] auto command_text(std::span<const std::string> argv) -> std::string;

class row_joiner {
public:
    // The row that the record begins or completes. `number` is the caller's name for the record.
    auto add(const record& what, std::size_t number) -> const row&;
    // Tells what is open from what is lost. `started_ns` is when the machine was started.
    void settle(std::int64_t started_ns);
    [[nodiscard]] auto rows() const noexcept -> const std::vector<row>& { return rows_; }
    // Keeps the rows that wait for their outcome, and no other.
    void forget_ended();

private:
    using key = std::pair<std::string, std::string>; // run and call
    std::vector<row> rows_;
    std::map<key, std::size_t> open_;
    std::set<std::string> ended_runs_;
};

struct row_filter {
    std::vector<std::string> states, actions; // empty: any
    std::optional<std::int64_t> since_ns, until_ns;
    std::string run; // how its id begins
    [[nodiscard]] auto matches(const row& candidate) const -> bool;
};

} // namespace glove::audit
