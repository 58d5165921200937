// The names of what is kept of a session's alias. The lengths make each of them one session's and
// one alias', whatever is in the two.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace glove::container {

enum class image_name : std::uint8_t { image, quarantined, record };

struct image_subject {
    std::string session_id, alias;
    auto operator==(const image_subject&) const -> bool = default;
};

// Both are one or more letters, digits, dots, colons, underscores and hyphens, and their names are
// not too long for a file system.
[[nodiscard]] auto is_good(std::string_view session_id, std::string_view alias) noexcept -> bool;
[[nodiscard]] auto name_of(image_name kind, std::string_view session_id, std::string_view alias)
    -> std::string;
// Nothing of a name that `name_of` does not make.
[[nodiscard]] auto subject_of(image_name kind, std::string_view name)
    -> std::optional<image_subject>;

} // namespace glove::container
