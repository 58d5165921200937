// Reads tables of /proc, each by one bounded read, and never asks for more than they say.
#include <algorithm>
#include <glove/base/ascii.hpp>
#include <glove/base/numbers.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/process_facts.hpp>
#include <limits>

namespace glove::sys {

namespace {

constexpr std::size_t most_bytes = 4096;
// After the name, from 0.
constexpr std::size_t parent_field = 1;
constexpr std::size_t threads_field = 17;
constexpr std::size_t start_field = 19;
constexpr std::size_t boot_id_size = 36;

[[nodiscard]] auto field(std::string_view rest, std::size_t index) -> std::optional<std::uint64_t> {
    for (; index > 0; --index) {
        const auto space = rest.find(' ');
        if (space == rest.npos) return std::nullopt;
        rest.remove_prefix(space + 1);
    }
    return parse_decimal(rest.substr(0, rest.find_first_of(" \n")), UINT64_MAX);
}

[[nodiscard]] auto is_boot_id(std::string_view text) -> bool {
    if (text.size() != boot_id_size) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        const bool hex = is_digit(text[i]) || (text[i] >= 'a' && text[i] <= 'f');
        if (dash ? text[i] != '-' : !hex) return false;
    }
    return true;
}

} // namespace

// The name stands in parentheses and may hold anything.
auto process_facts_in(std::string_view stat) noexcept -> std::optional<process_facts> {
    const auto name_end = stat.rfind(") ");
    if (name_end == stat.npos) return std::nullopt;
    stat.remove_prefix(name_end + 2);
    const auto parent = field(stat, parent_field), ticks = field(stat, start_field);
    if (!parent || *parent > std::numeric_limits<::pid_t>::max() || !ticks) return std::nullopt;
    // The first thread may have ended before the others.
    const bool is_zombie = stat.starts_with("Z ") || stat.starts_with("X ");
    const auto threads = is_zombie ? field(stat, threads_field) : 2;
    if (!threads) return std::nullopt;
    return process_facts{static_cast<::pid_t>(*parent), *ticks, is_zombie && *threads <= 1};
}

auto facts_of_process(::pid_t process, const std::string& proc) -> result<process_facts> {
    const auto path = proc + "/" + std::to_string(process) + "/stat";
    GLOVE_TRY(const auto stat, read_file(path, most_bytes));
    if (const auto facts = process_facts_in(stat)) return *facts;
    return fail(errc::corrupt, "process.facts", path + " is not what a kernel writes");
}

auto boot_id(const std::string& proc) -> result<std::string> {
    const auto path = proc + "/sys/kernel/random/boot_id";
    GLOVE_TRY(auto text, read_file(path, most_bytes));
    if (text.ends_with('\n')) text.pop_back();
    if (is_boot_id(text)) return text;
    return fail(errc::corrupt, "process.boot_id", path + " is not what a kernel writes");
}

auto unified_group_in(std::string_view memberships) noexcept -> std::optional<std::string_view> {
    while (!memberships.empty()) {
        const auto line = memberships.substr(0, memberships.find('\n'));
        memberships.remove_prefix(std::min(line.size() + 1, memberships.size()));
        if (line.starts_with("0::/")) return line.substr(3);
    }
    return std::nullopt;
}

} // namespace glove::sys
