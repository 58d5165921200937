// A path that has a form of its own is never taken for mere text.
#include "policy/places.hpp"
#include <cstdlib>
#include <cstring>
#include <glove/base/text.hpp>

namespace glove::policy {

namespace {

[[nodiscard]] auto is_or_begins(std::string_view text, std::string_view word) -> bool {
    return text.starts_with(word) && (text.size() == word.size() || text[word.size()] == '/');
}

} // namespace

auto written_path(std::string_view text, const std::string& directory, const origin& from)
    -> result<std::optional<std::string>> {
    using answer = std::optional<std::string>;
    if (text.find('\0') != std::string_view::npos)
        return from.refuse("the path " + in_quotes(text) + " holds a NUL", {});
    if (text.starts_with('/')) return answer{text};
    if (is_or_begins(text, ".") || is_or_begins(text, ".."))
        return answer{directory + "/" + std::string{text}};
    if (!text.starts_with('~')) return answer{};
    if (!is_or_begins(text, "~"))
        return from.refuse(in_quotes(text) + " names the home of another user",
                           "write it as an absolute path");
    const char* const home = std::getenv("HOME");
    if (home == nullptr || *home != '/')
        return from.refuse(in_quotes(text) + " needs a home, and HOME is no absolute path",
                           "write it as an absolute path");
    return answer{home + std::string{text.substr(1)}};
}

auto place_book::pin(const std::string& path, const origin& from)
    -> result<std::shared_ptr<const path_root>> {
    if (const auto known = places_.find(path); known != places_.end()) return known->second;
    auto root = path_root::pin(path);
    if (!root) {
        const auto why = root.error().os == 0 ? root.error().detail
                                              : std::string{std::strerror(root.error().os)};
        return from.refuse("the path " + in_quotes(path) + " cannot be used: " + why,
                           root.error().code == errc::not_found
                               ? "make it first: what is not there cannot be told from what is "
                                 "put in its place later"
                               : std::string{});
    }
    return places_[path] = std::make_shared<const path_root>(*std::move(root));
}

} // namespace glove::policy
