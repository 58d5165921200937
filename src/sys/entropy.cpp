#include <array>
#include <glove/sys/entropy.hpp>
#include <sys/random.h>

namespace glove::sys {

auto system_entropy::fill(std::span<std::byte> out) -> result<> {
    while (!out.empty()) {
        const auto got = ::getrandom(out.data(), out.size(), 0);
        if (got < 0) {
            if (errno == EINTR) continue;
            return fail_os("entropy.fill");
        }
        out = out.subspan(static_cast<std::size_t>(got));
    }
    return {};
}

auto random_id(entropy& source) -> result<std::string> {
    std::array<std::byte, 16> bytes{};
    GLOVE_CHECK(source.fill(bytes));
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    out.reserve(bytes.size() * 2);
    for (const auto b : bytes) {
        out += digits[std::to_integer<unsigned>(b >> 4)];
        out += digits[std::to_integer<unsigned>(b & std::byte{15})];
    }
    return out;
}

} // namespace glove::sys
