// What Glove speaks: the revisions, and one row for every method and notification of them.
//
// A method that is not in the table is unknown: a request is answered -32601, a notification is
// dropped and counted. Nothing is ever left unanswered.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace glove::mcp {

inline constexpr std::array<std::string_view, 4> revisions{"2024-11-05", "2025-03-26", "2025-06-18",
                                                           "2025-11-25"};
inline constexpr std::string_view latest_revision = revisions.back();
// The revision to answer an agent with that asked for `wanted`.
[[nodiscard]] auto negotiated(std::string_view wanted) noexcept -> std::string_view;
[[nodiscard]] auto speaks(std::string_view revision) noexcept -> bool;

// What the operator may have relayed, with the words of --relay.
enum class feature : std::uint8_t {
    base, // always there
    tools,
    resources,
    prompts,
    completion,
    logging,
    sampling,
    elicitation,
    roots,
    tasks, // never relayed
};
[[nodiscard]] auto to_string(feature which) noexcept -> std::string_view;
// The features that --relay takes; empty for a word that names none.
[[nodiscard]] auto relayable(std::string_view word) noexcept -> std::optional<feature>;

class feature_set {
public:
    constexpr void add(feature f) noexcept { bits_ |= bit(f); }
    [[nodiscard]] constexpr auto has(feature f) const noexcept -> bool {
        return (bits_ & bit(f)) != 0;
    }

private:
    [[nodiscard]] static constexpr auto bit(feature f) noexcept -> unsigned {
        return 1U << static_cast<unsigned>(f);
    }
    unsigned bits_ = 0;
};

enum class sender : std::uint8_t { agent, upstream };
enum class shape : std::uint8_t { request, notification };
enum class treatment : std::uint8_t {
    own,    // Glove's own business: initialize, ping, tools/list, progress, cancelled ...
    call,   // tools/call: policy, record, forward
    relay,  // forwarded when the feature is relayed, else refused (requests) or dropped
    refuse, // -32601 or dropped, always
};
[[nodiscard]] auto to_string(sender from) noexcept -> std::string_view;
[[nodiscard]] auto to_string(shape of) noexcept -> std::string_view;
[[nodiscard]] auto to_string(treatment how) noexcept -> std::string_view;

struct method_row {
    std::string_view name;
    sender from;
    mcp::shape shape;
    mcp::feature feature;
    mcp::treatment treatment;
};
[[nodiscard]] auto methods() noexcept -> std::span<const method_row>;
// Null when there is no such row.
[[nodiscard]] auto find_method(std::string_view name, sender from, shape of) noexcept
    -> const method_row*;

} // namespace glove::mcp
