// Reads no more than a path can be long, from nothing but a regular file.
#include "container/git_places.hpp"
#include <fcntl.h>
#include <sys/stat.h>

namespace glove::container {

namespace {

constexpr std::size_t longest_pointer = 8192;

[[nodiscard]] auto is_absent(const error& what) noexcept -> bool {
    return what.os == ENOENT || what.os == ENOTDIR || what.os == ELOOP;
}

} // namespace

auto read_pointer(sys::fd_ref root, const std::string& path, std::string_view prefix)
    -> result<std::string> {
    const auto file = sys::open_within(root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (!file) {
        if (is_absent(file.error())) return std::string{};
        return std::unexpected(file.error());
    }
    GLOVE_TRY(const auto facts, sys::inspect(*file));
    if (facts.identity.type != S_IFREG || facts.size > longest_pointer) return std::string{};
    auto text = sys::read_all(*file, longest_pointer);
    if (!text || !text->starts_with(prefix)) return std::string{};
    text->erase(0, prefix.size());
    text->erase(text->find_last_not_of("\r\n") + 1);
    if (text->find('\0') != std::string::npos) return std::string{};
    return text;
}

} // namespace glove::container
