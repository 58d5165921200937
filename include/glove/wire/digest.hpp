// The length-prefixed encoding that digests are taken over: integers are big endian, a string is
// its u32 length and its bytes, a list is a u32 count and its items. Two different sequences of
// calls with the same types never give the same bytes.
//
// Nothing is cut to fit: a length beyond 32 bits, or an integer wider than its atom, is remembered,
// and then every result is an error.
#pragma once
#include <cstddef>
#include <cstdint>
#include <glove/wire/crypto.hpp>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace glove::wire {

class digest_encoder {
public:
    auto u8(std::uint64_t value) -> digest_encoder& { return big_endian(value, 1); }
    auto u32(std::uint64_t value) -> digest_encoder& { return big_endian(value, 4); }
    auto u64(std::uint64_t value) -> digest_encoder& { return big_endian(value, 8); }
    auto boolean(bool truth) -> digest_encoder& { return u8(truth ? 1U : 0U); }
    auto str(std::string_view bytes) -> digest_encoder& {
        if (bytes.size() > std::numeric_limits<std::uint32_t>::max()) {
            too_long_ = true;
            return *this;
        }
        u32(bytes.size());
        bytes_ += bytes;
        return *this;
    }
    auto opt_str(const std::optional<std::string>& bytes) -> digest_encoder& {
        boolean(bytes.has_value());
        return bytes ? str(*bytes) : *this;
    }
    // The count before items that the caller encodes one by one.
    auto count(std::size_t items) -> digest_encoder& { return u32(items); }
    template<class Range> auto list(const Range& strings) -> digest_encoder& {
        count(strings.size());
        for (const auto& s : strings) str(s);
        return *this;
    }
    auto list(std::initializer_list<std::string_view> strings) -> digest_encoder& {
        return list<std::initializer_list<std::string_view>>(strings);
    }

    [[nodiscard]] auto bytes() const -> result<std::string_view>;
    // Lower case hex, the form in which digests travel.
    [[nodiscard]] auto sha256_hex() const -> result<std::string>;
    [[nodiscard]] auto hmac_hex(std::string_view key) const -> result<std::string>;

private:
    auto big_endian(std::uint64_t value, unsigned size) -> digest_encoder&;

    std::string bytes_;
    bool too_long_ = false;
};

} // namespace glove::wire
