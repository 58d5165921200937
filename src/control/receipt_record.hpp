// One record of the receipt journal: an envelope of either kind, as it stands in a frame, and the
// codec that gives it its place in the chain.
#pragma once
#include <glove/control/receipt.hpp>
#include <glove/control/refinement_receipt.hpp>
#include <glove/journal/typed_log.hpp>
#include <string>
#include <string_view>
#include <variant>

namespace glove::control {

struct chained_receipt {
    std::variant<resource_envelope, refinement_envelope> envelope;
    bool bare = false; // as old files have it: an envelope without its kind; never written
    auto operator==(const chained_receipt&) const -> bool = default;
};

[[nodiscard]] auto encode(const chained_receipt& what) -> result<std::string>;
// Only what `encode` gives, to the byte. The digest is checked, the HMAC is not.
[[nodiscard]] auto decode_chained_receipt(std::string_view payload) -> result<chained_receipt>;

class receipt_codec {
public:
    using record = chained_receipt;
    // `key` must outlive it.
    explicit receipt_codec(const audit_key& key) : key_{&key} {}
    // With its HMAC.
    [[nodiscard]] auto decode(std::string_view payload) const -> result<chained_receipt>;
    [[nodiscard]] static auto facts_of(const chained_receipt& of) -> journal::facts;
    [[nodiscard]] auto seal(chained_receipt& what, const journal::mark& last) const
        -> result<std::string>;
    [[nodiscard]] auto authenticate(std::string_view bytes) const -> result<std::string> {
        return key_->authenticate(bytes);
    }

private:
    const audit_key* key_;
};
static_assert(journal::record_codec<receipt_codec>);

} // namespace glove::control
