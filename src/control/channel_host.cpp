// The table of admitted schemas.
#include <algorithm>
#include <array>
#include <glove/control/channel_host.hpp>
#include <glove/wire/rules.hpp>

namespace glove::control {

namespace {

struct bound {
    std::string_view name;
    std::uint64_t adapters::channel_bounds::* of;
    wire::integer rule;
};
constexpr std::array bounds{
    bound{"max_items", &adapters::channel_bounds::max_items, {1, 4096}},
    bound{"max_body_bytes", &adapters::channel_bounds::max_body_bytes, {1, 16'384}},
    bound{"max_ttl_ms", &adapters::channel_bounds::max_ttl_ms, {1, 600'000}},
    bound{"max_skew_ms", &adapters::channel_bounds::max_skew_ms, {0, 600'000}},
};

[[nodiscard]] auto check_bounds(const adapters::channel_descriptor& what) -> result<> {
    const auto refuse = [](std::string text) {
        return fail(errc::invalid_input, "channel.bounds", std::move(text));
    };
    for (const auto& one : bounds)
        if (!one.rule.check(what.bounds.*one.of, {}))
            return refuse(std::string{one.name} + " of " + what.schema_id + " is " +
                          std::to_string(what.bounds.*one.of) + ", not " +
                          std::to_string(one.rule.min) + " to " + std::to_string(one.rule.max));
    if (what.bounds.max_skew_ms > what.bounds.max_ttl_ms)
        return refuse("max_skew_ms of " + what.schema_id + " is longer than max_ttl_ms");
    return {};
}

} // namespace

auto channel_host::add(adapters::channel_descriptor what) -> result<> {
    if (frozen_)
        return fail(errc::wrong_state, "channel.frozen",
                    "no schema is admitted any more once the registry may exist");
    if (!wire::ident.check(what.schema_id, {}))
        return fail(errc::invalid_input, "channel.schema", "a schema's name is no identifier");
    if (what.body_validator == nullptr)
        return fail(errc::invalid_input, "channel.validator",
                    what.schema_id + " has nobody to judge its bodies");
    GLOVE_CHECK(check_bounds(what));
    const auto at = std::ranges::lower_bound(channels_, what.schema_id, {},
                                             &adapters::channel_descriptor::schema_id);
    if (at != channels_.end() && at->schema_id == what.schema_id)
        return fail(errc::conflict, "channel.repeated", what.schema_id + " is admitted twice");
    channels_.insert(at, std::move(what));
    return {};
}

auto channel_host::freeze() -> result<> {
    if (channels_.empty())
        return fail(errc::wrong_state, "channel.empty",
                    "a host without a schema would admit nothing");
    frozen_ = true;
    return {};
}

auto channel_host::find(std::string_view schema_id) const -> const adapters::channel_descriptor* {
    if (!frozen_) return nullptr;
    const auto at = std::ranges::lower_bound(channels_, schema_id, {},
                                             &adapters::channel_descriptor::schema_id);
    return at != channels_.end() && at->schema_id == schema_id ? &*at : nullptr;
}

} // namespace glove::control
