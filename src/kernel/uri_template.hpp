// Whether a URI may have come from a template of RFC 6570.
//
// Only for choosing the server that is asked: an expression stands for any text, and without '+'
// or '#' for none that holds a slash, so more URIs fit than the template could make.
// `steps` is what may still be spent, and with none left nothing fits.
#pragma once
#include <cstddef>
#include <string_view>

namespace glove::kernel {

[[nodiscard]] auto fits_template(std::string_view uri, std::string_view pattern,
                                 std::size_t& steps) noexcept -> bool;

} // namespace glove::kernel
