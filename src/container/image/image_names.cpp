// A name is read by the lengths in it, made again, and compared.
#include "container/image/image_names.hpp"
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace glove::container {

namespace {

constexpr std::size_t most_name_bytes = 255;

struct form {
    std::string_view before, after;
};
constexpr form forms[] = {
    {"glove-mat-", ""}, {"glove-quarantine-", ""}, {"glove-retained-meta-", ".json"}};
static_assert(std::size(forms) == static_cast<std::size_t>(image_name::record) + 1);

[[nodiscard]] auto form_of(image_name kind) noexcept -> const form& {
    return forms[static_cast<std::size_t>(kind)];
}

[[nodiscard]] constexpr auto may_be_in_a_name(char c) noexcept -> bool {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == ':' || c == '.';
}

[[nodiscard]] auto is_word(std::string_view text) noexcept -> bool {
    return !text.empty() && std::ranges::all_of(text, may_be_in_a_name);
}

// "MARK<len>-<text>", and what follows.
[[nodiscard]] auto take(std::string_view& rest, std::string_view mark)
    -> std::optional<std::string> {
    if (!rest.starts_with(mark)) return std::nullopt;
    rest.remove_prefix(mark.size());
    std::size_t size = 0, digits = 0;
    for (; digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9'; ++digits) {
        size = size * 10 + static_cast<std::size_t>(rest[digits] - '0');
        if (size > most_name_bytes) return std::nullopt;
    }
    rest.remove_prefix(digits);
    if (!rest.starts_with('-') || rest.size() - 1 < size) return std::nullopt;
    std::string out{rest.substr(1, size)};
    rest.remove_prefix(size + 1);
    return out;
}

} // namespace

auto is_good(std::string_view session_id, std::string_view alias) noexcept -> bool {
    // The longest of the three, so that none of them is refused later.
    constexpr std::size_t around = std::string_view{"glove-retained-meta-s000--a000-.json"}.size();
    return is_word(session_id) && is_word(alias) &&
           session_id.size() + alias.size() + around <= most_name_bytes;
}

auto name_of(image_name kind, std::string_view session_id, std::string_view alias) -> std::string {
    const auto& [before, after] = form_of(kind);
    std::string out{before};
    out.append("s").append(std::to_string(session_id.size())).append("-").append(session_id);
    out.append("-a").append(std::to_string(alias.size())).append("-").append(alias);
    return out.append(after);
}

auto subject_of(image_name kind, std::string_view name) -> std::optional<image_subject> {
    auto rest = name;
    const auto& [before, after] = form_of(kind);
    if (!rest.starts_with(before)) return std::nullopt;
    rest.remove_prefix(before.size());
    auto session_id = take(rest, "s");
    if (!session_id) return std::nullopt;
    auto alias = take(rest, "-a");
    if (!alias || rest != after || !is_good(*session_id, *alias)) return std::nullopt;
    if (name_of(kind, *session_id, *alias) != name) return std::nullopt;
    return image_subject{.session_id = *std::move(session_id), .alias = *std::move(alias)};
}

} // namespace glove::container
