// Paths as an operator writes them in a rule.
#pragma once
#include "policy/path_root.hpp"
#include "policy/words.hpp"
#include <memory>
#include <optional>

namespace glove::policy {

// The absolute path that `text` stands for: "/x" itself, "~/x" below HOME, "./x" and "../x" from
// `directory`. Nothing when it has none of these forms.
[[nodiscard]] auto written_path(std::string_view text, const std::string& directory,
                                const origin& from) -> result<std::optional<std::string>>;
// Pinned; it must be there.
[[nodiscard]] auto pin_place(const std::string& path, const origin& from)
    -> result<std::shared_ptr<const path_root>>;

} // namespace glove::policy
