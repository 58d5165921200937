#include <glove/base/wipe.hpp>
#include <glove/control/methods.hpp>
#include <glove/wire/crypto.hpp>

namespace glove::control {

bootstrap_secret::bootstrap_secret(bootstrap_secret&& other) noexcept : text_{other.text_} {
    wipe(other.text_);
}
bootstrap_secret::~bootstrap_secret() { wipe(text_); }

auto bootstrap_secret::is(std::string_view shown) const noexcept -> bool {
    return wire::equal_in_constant_time(text_, shown);
}

} // namespace glove::control
