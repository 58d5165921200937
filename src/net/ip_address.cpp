// Address texts by hand, not by the C library, whose readers differ in what they let through; and
// the table of what is not public: the IANA special-purpose registries, and what clouds add.
#include <algorithm>
#include <glove/base/numbers.hpp>
#include <glove/net/ip_address.hpp>

namespace glove::net {

namespace {

[[nodiscard]] constexpr auto read_v4(std::string_view text) noexcept -> std::optional<ip_address> {
    ip_address::v4_bytes out{};
    for (std::size_t i = 0; i < out.size(); ++i) {
        const bool last = i + 1 == out.size();
        const auto end = last ? text.size() : text.find('.');
        if (end == std::string_view::npos) return std::nullopt;
        const auto part = parse_decimal(text.substr(0, end), 255);
        if (!part) return std::nullopt;
        out[i] = static_cast<std::uint8_t>(*part);
        text.remove_prefix(last ? end : end + 1);
    }
    return ip_address{out};
}

// One to four digits off the front.
[[nodiscard]] constexpr auto take_group(std::string_view& text) noexcept
    -> std::optional<unsigned> {
    unsigned out = 0;
    std::size_t size = 0;
    for (; size < text.size() && hex_value(text[size]) >= 0; ++size) {
        if (size == 4) return std::nullopt;
        out = out * 16 + static_cast<unsigned>(hex_value(text[size]));
    }
    if (size == 0) return std::nullopt;
    text.remove_prefix(size);
    return out;
}

struct v6_reader {
    ip_address::v6_bytes bytes{};
    std::size_t filled = 0;
    std::optional<std::size_t> gap = {}; // where "::" stands

    constexpr void put(unsigned byte) noexcept {
        bytes[filled++] = static_cast<std::uint8_t>(byte);
    }
    constexpr auto take_double_colon(std::string_view& text) noexcept -> bool {
        if (!text.starts_with("::") || gap) return false;
        text.remove_prefix(2);
        gap = filled;
        return true;
    }
    // What ends an address may be an IPv4 address.
    constexpr auto take_tail(std::string_view text) noexcept -> bool {
        const auto inner = read_v4(text);
        if (!inner || filled + 4 > bytes.size()) return false;
        for (const auto byte : inner->bytes()) put(byte);
        return true;
    }
    [[nodiscard]] constexpr auto finish() noexcept -> std::optional<ip_address> {
        if (!gap) return filled == bytes.size() ? std::optional{ip_address{bytes}} : std::nullopt;
        if (filled > bytes.size() - 2) return std::nullopt; // "::" stands for a group or more
        ip_address::v6_bytes out{};
        for (std::size_t i = 0; i < *gap; ++i) out[i] = bytes[i];
        for (std::size_t i = *gap; i < filled; ++i) out[out.size() - filled + i] = bytes[i];
        return ip_address{out};
    }
};

[[nodiscard]] constexpr auto read_v6(std::string_view text) noexcept -> std::optional<ip_address> {
    v6_reader in;
    (void)in.take_double_colon(text);
    while (!text.empty()) {
        if (text.find('.') < text.find(':')) return in.take_tail(text) ? in.finish() : std::nullopt;
        const auto group = take_group(text);
        if (!group || in.filled == in.bytes.size()) return std::nullopt;
        in.put(*group >> 8U);
        in.put(*group & 0xffU);
        if (in.take_double_colon(text) || text.empty()) continue;
        if (text.front() != ':') return std::nullopt;
        text.remove_prefix(1);
        if (text.empty()) return std::nullopt;
    }
    return in.finish();
}

[[nodiscard]] constexpr auto read_address(std::string_view text) noexcept
    -> std::optional<ip_address> {
    return text.find(':') == std::string_view::npos ? read_v4(text) : read_v6(text);
}

[[nodiscard]] constexpr auto same_bits(std::span<const std::uint8_t> a,
                                       std::span<const std::uint8_t> b, unsigned bits) noexcept
    -> bool {
    for (std::size_t i = 0; bits > 0; ++i, bits -= std::min(bits, 8U)) {
        const auto mask = 0xffU << (8U - std::min(bits, 8U)) & 0xffU;
        if (((a[i] ^ b[i]) & mask) != 0) return false;
    }
    return true;
}

[[nodiscard]] constexpr auto cut(const ip_address& address, unsigned bits) noexcept -> ip_address {
    ip_address::v6_bytes out{};
    const auto in = address.bytes();
    for (std::size_t i = 0; i < in.size(); ++i) {
        const auto kept = bits > i * 8 ? std::min(bits - static_cast<unsigned>(i) * 8, 8U) : 0U;
        out[i] = static_cast<std::uint8_t>(in[i] & 0xffU << (8U - kept));
    }
    return address.is_v4() ? ip_address{ip_address::v4_bytes{out[0], out[1], out[2], out[3]}}
                           : ip_address{out};
}

[[nodiscard]] constexpr auto read_network(std::string_view text) noexcept
    -> std::optional<ip_network> {
    const auto slash = text.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    const auto base = read_address(text.substr(0, slash));
    if (!base) return std::nullopt;
    const auto bits = parse_decimal(text.substr(slash + 1), base->bytes().size() * 8);
    if (!bits) return std::nullopt;
    const ip_network out{*base, static_cast<unsigned>(*bits)};
    return cut(*base, out.prefix) == *base ? std::optional{out} : std::nullopt;
}

struct reserved_row {
    ip_network network;
    std::string_view use;
    bool dialled = true; // by a rule that allows it
};

// A mistake in the table does not compile.
[[nodiscard]] consteval auto row(const char* network, const char* use, bool dialled = true)
    -> reserved_row {
    const auto read = read_network(network);
    return read ? reserved_row{*read, use, dialled} : throw "no network";
}
constexpr bool never_dialled = false;

// The first row that contains an address tells its use.
constexpr std::array reserved_rows{
    row("169.254.169.254/32", "metadata"),
    row("169.254.170.2/32", "metadata"), // AWS, of containers
    row("100.100.100.200/32", "metadata"),
    row("168.63.129.16/32", "metadata"), // Azure's, inside public space
    row("0.0.0.0/8", "unspecified", never_dialled),
    row("10.0.0.0/8", "private"),
    row("100.64.0.0/10", "shared"),
    row("127.0.0.0/8", "loopback"),
    row("169.254.0.0/16", "link-local"),
    row("172.16.0.0/12", "private"),
    row("192.0.0.0/24", "protocol assignments"),
    row("192.0.2.0/24", "documentation"),
    row("192.88.99.0/24", "6to4 relay"),
    row("192.168.0.0/16", "private"),
    row("198.18.0.0/15", "benchmarking"),
    row("198.51.100.0/24", "documentation"),
    row("203.0.113.0/24", "documentation"),
    row("224.0.0.0/4", "multicast", never_dialled),
    row("255.255.255.255/32", "broadcast", never_dialled),
    row("240.0.0.0/4", "reserved", never_dialled),

    row("fd00:ec2::254/128", "metadata"),
    row("fd20:ce::254/128", "metadata"),
    row("::/128", "unspecified", never_dialled),
    row("::1/128", "loopback"),
    row("::/96", "IPv4-compatible"),
    row("::ffff:0:0/96", "IPv4-mapped", never_dialled),
    row("64:ff9b::/96", "NAT64"),
    row("64:ff9b:1::/48", "NAT64"),
    row("100::/64", "discard"),
    row("2001::/32", "Teredo"),
    row("2001::/23", "protocol assignments"),
    row("2001:db8::/32", "documentation"),
    row("2002::/16", "6to4"),
    row("3fff::/20", "documentation"),
    row("5f00::/16", "segment routing"),
    row("fc00::/7", "private"),
    row("fe80::/10", "link-local"),
    row("fec0::/10", "site-local"),
    row("ff00::/8", "multicast", never_dialled),
    // What is left outside of 2000::/3, the only part of which addresses are given out.
    row("::/3", "reserved"),
    row("4000::/2", "reserved"),
    row("8000::/1", "reserved"),
};

[[nodiscard]] auto find_row(const ip_network& network) noexcept -> const reserved_row* {
    const auto* const found = std::ranges::find_if(
        reserved_rows, [&](const auto& row) { return row.network.contains(network); });
    return found == reserved_rows.end() ? nullptr : found;
}

[[nodiscard]] auto whole(const ip_address& address) noexcept -> ip_network {
    return ip_network::around(address, 128);
}

[[nodiscard]] auto upper_half(const ip_network& network) noexcept -> ip_network {
    ip_address::v6_bytes out{};
    std::ranges::copy(network.base.bytes(), out.begin());
    out[network.prefix / 8] |= static_cast<std::uint8_t>(0x80U >> network.prefix % 8);
    const auto base = network.base.is_v4()
                          ? ip_address{ip_address::v4_bytes{out[0], out[1], out[2], out[3]}}
                          : ip_address{out};
    return {base, network.prefix + 1};
}

// Whether rows that `count` cover the whole network. It is halved only while a row lies inside.
template<class Count> [[nodiscard]] auto is_covered(const ip_network& network, Count count) noexcept
    -> bool {
    bool smaller = false;
    for (const auto& row : reserved_rows) {
        if (!count(row)) continue;
        if (row.network.contains(network)) return true;
        smaller = smaller || network.contains(row.network);
    }
    return smaller && is_covered(ip_network::around(network.base, network.prefix + 1), count) &&
           is_covered(upper_half(network), count);
}

} // namespace

auto ip_address::parse(std::string_view text) noexcept -> std::optional<ip_address> {
    return read_address(text);
}

auto ip_address::to_string() const -> std::string {
    std::string out;
    const auto dotted = [&](std::span<const std::uint8_t> four) {
        for (const auto byte : four) out.append(std::to_string(byte)).append(".");
        out.pop_back();
    };
    if (is_v4()) {
        dotted(bytes());
        return out;
    }
    static constexpr v6_bytes mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (same_bits(bytes_, mapped, 96)) {
        out = "::ffff:";
        dotted(bytes().subspan(12));
        return out;
    }
    const auto group = [&](std::size_t i) { return bytes_[2 * i] << 8U | bytes_[2 * i + 1]; };
    std::size_t gap = 8; // the first of the longest runs of zeros, of two or more
    std::size_t gap_size = 1;
    for (std::size_t i = 0; i < 8; ++i) {
        std::size_t run = 0;
        while (i + run < 8 && group(i + run) == 0) ++run;
        if (run <= gap_size) continue;
        gap = i;
        gap_size = run;
    }
    const auto put = [&](int number) {
        constexpr std::string_view digits = "0123456789abcdef";
        for (unsigned shift = 16, seen = 0; shift > 0;) {
            shift -= 4;
            const auto digit = static_cast<unsigned>(number) >> shift & 15U;
            seen |= digit;
            if (seen != 0 || shift == 0) out += digits[digit];
        }
    };
    for (std::size_t i = 0; i < 8;) {
        if (i == gap) {
            out += "::";
            i += gap_size;
            continue;
        }
        if (!out.empty() && !out.ends_with(':')) out += ':';
        put(group(i++));
    }
    return out;
}

auto ip_network::parse(std::string_view text) noexcept -> std::optional<ip_network> {
    return read_network(text);
}

auto ip_network::around(const ip_address& address, unsigned bits) noexcept -> ip_network {
    const auto size = static_cast<unsigned>(address.bytes().size()) * 8;
    return {cut(address, std::min(bits, size)), std::min(bits, size)};
}

auto ip_network::contains(const ip_address& address) const noexcept -> bool {
    return base.is_v4() == address.is_v4() && same_bits(base.bytes(), address.bytes(), prefix);
}

auto ip_network::contains(const ip_network& other) const noexcept -> bool {
    return prefix <= other.prefix && contains(other.base);
}

auto ip_network::to_string() const -> std::string {
    return base.to_string().append("/").append(std::to_string(prefix));
}

auto reserved_use(const ip_address& address) noexcept -> std::string_view {
    const auto* const row = find_row(whole(address));
    return row == nullptr ? std::string_view{} : row->use;
}

auto reserved_use(const ip_network& network) noexcept -> std::string_view {
    if (!is_covered(network, [](const reserved_row&) { return true; })) return {};
    const auto* const row = find_row(network);
    return row == nullptr ? "reserved" : row->use;
}

auto can_be_dialled(const ip_address& address) noexcept -> bool {
    return can_be_dialled(whole(address));
}

auto can_be_dialled(const ip_network& network) noexcept -> bool {
    return !is_covered(network, [](const reserved_row& row) { return !row.dialled; });
}

} // namespace glove::net
