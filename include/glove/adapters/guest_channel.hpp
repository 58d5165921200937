// What a harness brings along when its guests may leave intents for the controller: one schema, who
// judges a body of it, and how much of it there may be. The queue itself knows no schema.
//
// Pure data and a pure function; nothing here reads or keeps anything.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace glove::adapters {

// What a guest says. The value itself never passes: only its digest and its size.
struct guest_body {
    std::string schema;
    std::string intent_id;
    std::string observation;
    std::string value_digest; // 64 lower hexadecimal digits
    std::uint64_t item_count = 0;
    auto operator==(const guest_body&) const -> bool = default;
};

struct channel_bounds {
    std::uint64_t max_items = 0;      // 1..4096
    std::uint64_t max_body_bytes = 0; // of the body as JSON, 1..16384
    std::uint64_t max_ttl_ms = 0;     // 1..600000
    std::uint64_t max_skew_ms = 0;    // of the guest's host clock; at most max_ttl_ms
    auto operator==(const channel_bounds&) const -> bool = default;
};

struct channel_descriptor {
    std::string schema_id;
    // Empty: the body is one of this schema. Else why it is not, in words without its values. Only
    // called with a body whose members obey their grammars.
    auto (*body_validator)(const guest_body&) noexcept -> std::string_view = nullptr;
    channel_bounds bounds;
};

} // namespace glove::adapters
