// The schema of Sage's observations and its bounds.
#include <glove/adapters/sage.hpp>

namespace glove::adapters::sage {

namespace {

constexpr std::string_view schema = "sage.glove-observation.v1";
constexpr channel_bounds limits{
    .max_items = 4096, .max_body_bytes = 8192, .max_ttl_ms = 600'000, .max_skew_ms = 30'000};

// Which observations there are is for Sage to say: it learns new ones without a new Glove. What is
// admitted is a name, a digest and a count, all of which are bounded.
[[nodiscard]] auto judge(const guest_body& body) noexcept -> std::string_view {
    return body.schema == schema ? std::string_view{} : "it is of another schema";
}

} // namespace

auto observation_channel() -> channel_descriptor {
    return {.schema_id = std::string{schema}, .body_validator = judge, .bounds = limits};
}

} // namespace glove::adapters::sage
