// Which guest schemas are admitted. A host registers every contract, then freezes; a registry of
// sessions is made with a frozen host, so its catalog never changes while the registry lives.
//
// Guarantees: no schema twice, none after the freeze, no freeze of an empty host, nothing is
// admitted before it.
#pragma once
#include <glove/adapters/guest_channel.hpp>
#include <glove/base/error.hpp>
#include <span>
#include <string_view>
#include <vector>

namespace glove::control {

class channel_host {
public:
    // Steps: channel.schema, channel.bounds, channel.validator, channel.repeated, channel.frozen.
    [[nodiscard]] auto add(adapters::channel_descriptor what) -> result<>;
    // Again is fine. Step: channel.empty.
    [[nodiscard]] auto freeze() -> result<>;
    [[nodiscard]] auto frozen() const noexcept -> bool { return frozen_; }
    // Null before the freeze, and for a schema that is not admitted.
    [[nodiscard]] auto find(std::string_view schema_id) const
        -> const adapters::channel_descriptor*;
    [[nodiscard]] auto catalog() const noexcept -> std::span<const adapters::channel_descriptor> {
        return channels_;
    }

private:
    std::vector<adapters::channel_descriptor> channels_; // by schema
    bool frozen_ = false;
};

} // namespace glove::control
