// Reads each map once: it is written before a program starts in the namespace, and then stays.
#include <algorithm>
#include <charconv>
#include <glove/sys/files.hpp>
#include <glove/sys/user_namespace.hpp>
#include <string>

namespace glove::sys {

namespace {

constexpr std::size_t most_map_bytes = 64UL << 10;

// The next number of a line.
[[nodiscard]] auto take(std::string_view& line, std::uint32_t& out) noexcept -> bool {
    while (line.starts_with(' ')) line.remove_prefix(1);
    const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), out);
    if (problem != std::errc{}) return false;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    return true;
}

[[nodiscard]] auto map_at(const char* path) -> std::string {
    auto text = read_file(path, most_map_bytes);
    return text ? *std::move(text) : std::string{};
}

} // namespace

auto outer_id(std::string_view map, std::uint32_t id) noexcept -> std::uint32_t {
    while (!map.empty()) {
        auto line = map.substr(0, map.find('\n'));
        map.remove_prefix(std::min(line.size() + 1, map.size()));
        std::uint32_t inside = 0;
        std::uint32_t outside = 0;
        std::uint32_t count = 0;
        if (!take(line, inside) || !take(line, outside) || !take(line, count)) continue;
        if (id >= inside && id - inside < count) return outside + (id - inside);
    }
    return id;
}

auto outer_user(::uid_t inside) -> ::uid_t {
    static const auto map = map_at("/proc/self/uid_map");
    return outer_id(map, inside);
}
auto outer_group(::gid_t inside) -> ::gid_t {
    static const auto map = map_at("/proc/self/gid_map");
    return outer_id(map, inside);
}

} // namespace glove::sys
