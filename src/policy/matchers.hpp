// What a value of an argument may be: one class for each kind of rule.
//
// Guarantees: a value of a type that the rule is not for is refused, never converted. A complaint
// holds no text of a rule and nothing of the host.
#pragma once
#include "policy/path_root.hpp"
#include "policy/url_host.hpp"
#include <cstdint>
#include <glove/wire/json.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace glove::policy {

using pattern = std::shared_ptr<const re2::RE2>;
// A regular expression with bounded memory. `why` tells what is wrong with it.
[[nodiscard]] auto compile(const std::string& text, std::string& why) -> pattern;

class matcher {
public:
    virtual ~matcher() = default;
    // Empty when the value is right; else what is wrong, to go after "argument /x ".
    [[nodiscard]] virtual auto complaint(const wire::json::value& of) const -> std::string_view = 0;
    [[nodiscard]] virtual auto describe() const -> std::string = 0;
};
using matcher_ptr = std::shared_ptr<const matcher>;

using root_ptr = std::shared_ptr<const path_root>;
enum class relative : bool { refused, below_the_root };
[[nodiscard]] auto below_path(std::vector<root_ptr> roots, relative paths) -> matcher_ptr;
// Byte for byte. What could lead back out of a prefix with a '/' is refused, too, and for one
// without what would be a link, or lead through one, in one of the directories, which are absolute.
[[nodiscard]] auto begins_with(std::string prefix, std::vector<std::string> directories)
    -> matcher_ptr;
// Whether a text has a component "..", also one that is escaped as in a URL.
[[nodiscard]] auto climbs(std::string_view text) -> bool;
[[nodiscard]] auto one_of(std::vector<wire::json::value> values) -> matcher_ptr; // scalars
[[nodiscard]] auto matches(pattern whole) -> matcher_ptr;
struct number_bounds {
    long double least = 0, most = 0;
};
[[nodiscard]] auto in_range(number_bounds bounds) -> matcher_ptr;
struct length_bounds {
    std::uint64_t least = 0, most = 0;
};
[[nodiscard]] auto of_length(length_bounds bounds) -> matcher_ptr; // characters, or items
[[nodiscard]] auto url_of(host_list hosts, std::vector<std::string> schemes,
                          std::vector<std::string> written) -> matcher_ptr;
[[nodiscard]] auto no_leading_dash() -> matcher_ptr;
[[nodiscard]] auto any_value() -> matcher_ptr;

} // namespace glove::policy
