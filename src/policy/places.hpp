// Paths as an operator writes them in a rule.
#pragma once
#include "policy/path_root.hpp"
#include "policy/words.hpp"
#include <map>
#include <memory>
#include <optional>

namespace glove::policy {

// The absolute path that `text` stands for: "/x" itself, "~/x" below HOME, "./x" and "../x" from
// `directory`. Nothing when it has none of these forms.
[[nodiscard]] auto written_path(std::string_view text, const std::string& directory,
                                const origin& from) -> result<std::optional<std::string>>;
// The places that rules name, each pinned once however often it is named.
class place_book {
public:
    // It must be there.
    [[nodiscard]] auto pin(const std::string& path, const origin& from)
        -> result<std::shared_ptr<const path_root>>;

private:
    std::map<std::string, std::shared_ptr<const path_root>> places_;
};

} // namespace glove::policy
