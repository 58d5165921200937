// An upstream in words. A message names the upstream, never an argument or a value: some are
// secrets.
#include "mcp/upstream_names.hpp"
#include <algorithm>
#include <array>
#include <glove/base/ascii.hpp>
#include <glove/base/text.hpp>
#include <glove/mcp/upstream_process.hpp>
#include <set>

namespace glove::mcp {

namespace {

constexpr std::size_t longest_name = 32;
constexpr std::size_t most_upstreams = 64;
constexpr std::string_view separator = "__"; // of an upstream and its tool, in an agent's eyes
constexpr std::array<std::string_view, 1> reserved{"glove"};

[[nodiscard]] auto is_letter_or_digit(char c) noexcept -> bool {
    return is_lower(c) || is_upper(c) || is_digit(c);
}

[[nodiscard]] auto has_nul(std::string_view text) noexcept -> bool { return text.contains('\0'); }

[[nodiscard]] auto refuse(std::string_view name, std::string_view what, std::string remedy)
    -> std::unexpected<error> {
    return fail(errc::invalid_input, "mcp.upstream",
                "the server " + in_quotes(name) + " " + std::string{what}, std::move(remedy));
}

[[nodiscard]] auto check_name(std::string_view name) -> result<> {
    if (const auto complaint = name_complaint(name); !complaint.empty())
        return refuse(name, complaint,
                      "call it by 1 to 32 letters, digits, '-' and '_', as in files");
    if (std::ranges::count(reserved, name) != 0)
        return refuse(name, "has Glove's own name", "call it something else");
    return {};
}

[[nodiscard]] auto check_perimeter(const upstream_wish& wish) -> result<> {
    const auto& [read, write, egress] = wish.grants;
    for (const auto* list : {&read, &write, &egress})
        if (std::ranges::any_of(*list, has_nul))
            return refuse(wish.name, "has a NUL in a grant", "leave it out");
    if (!wish.perimeter) return {};
    const auto is_whole = [](const std::string& path) {
        return path.starts_with('/') && !has_nul(path);
    };
    const auto& with = *wish.perimeter;
    const bool whole = is_whole(with.glove) && is_whole(with.program) &&
                       std::ranges::all_of(with.needs, is_whole) &&
                       std::ranges::all_of(with.directories, is_whole);
    if (!whole) return refuse(wish.name, "has a perimeter without whole paths", {});
    return {};
}

[[nodiscard]] auto check_wish(const upstream_wish& wish) -> result<> {
    GLOVE_CHECK(check_name(wish.name));
    if (wish.argv.empty() || wish.argv.front().empty())
        return refuse(wish.name, "names no program", "say what to start, as in files=npx,-y,NAME");
    if (wish.directory == "")
        return refuse(wish.name, "is to start in a directory without a name", "leave it out");
    const bool values_are_sound = std::ranges::none_of(
        wish.environment, [](const auto& each) { return has_nul(each.second); });
    if (std::ranges::any_of(wish.argv, has_nul) || !values_are_sound ||
        has_nul(wish.directory.value_or("")))
        return refuse(wish.name, "has a NUL in what it is started with", "leave it out");
    const auto check_variable = [&](const std::string& variable) -> result<> {
        if (is_variable_name(variable)) return {};
        return refuse(wish.name, "has a variable with the name " + in_quotes(variable),
                      "a name holds letters, digits and '_', and begins with no digit");
    };
    GLOVE_CHECK(check_perimeter(wish));
    for (const auto& each : wish.environment) GLOVE_CHECK(check_variable(each.first));
    for (const auto& each : wish.passed) GLOVE_CHECK(check_variable(each));
    return {};
}

} // namespace

auto name_complaint(std::string_view name) noexcept -> std::string_view {
    if (name.empty()) return "has no name";
    if (name.size() > longest_name) return "has a name of more than 32 characters";
    const auto may_stand = [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_'; };
    if (!std::ranges::all_of(name, may_stand))
        return "has a name with something else than letters, digits, '-' and '_'";
    if (name.contains(separator))
        return "has a name with \"__\", which separates it from its tools";
    if (!is_letter_or_digit(name.front())) return "has a name that begins with no letter or digit";
    if (name.back() == '_') return "has a name that ends with '_'";
    return {};
}

auto is_variable_name(std::string_view name) noexcept -> bool {
    if (name.empty() || is_digit(name.front())) return false;
    return std::ranges::all_of(name, [](char c) { return is_letter_or_digit(c) || c == '_'; });
}

auto parse_upstream(std::string_view word) -> result<upstream_wish> {
    const auto equals = word.find('=');
    const auto program = word.substr(0, word.find(','));
    if (equals == std::string_view::npos)
        return fail(errc::invalid_input, "mcp.upstream",
                    in_quotes(program) + " is not NAME=COMMAND[,ARGUMENT...]",
                    "put a name of your choice before the command, as in files=" +
                        printable(program));
    upstream_wish out;
    out.name = word.substr(0, equals);
    for (auto rest = word.substr(equals + 1);; rest.remove_prefix(1)) {
        const auto comma = std::min(rest.find(','), rest.size());
        out.argv.emplace_back(rest.substr(0, comma));
        rest.remove_prefix(comma);
        if (rest.empty()) break;
    }
    GLOVE_CHECK(check_wish(out));
    return out;
}

auto check_upstreams(const std::vector<upstream_wish>& all) -> result<> {
    if (all.size() > most_upstreams)
        return fail(errc::limit_exceeded, "mcp.upstreams",
                    std::to_string(all.size()) + " servers; 64 are allowed", "name fewer of them");
    std::set<std::string_view> names;
    for (const auto& each : all) {
        GLOVE_CHECK(check_wish(each));
        if (!names.insert(each.name).second)
            return fail(errc::conflict, "mcp.upstreams",
                        "two servers have the name " + in_quotes(each.name),
                        "give each a name of its own");
    }
    return {};
}

} // namespace glove::mcp
