// A directory, or a file, that paths are allowed beneath.
//
// Guarantees: what is held was found by the kernel beneath the inode that the root was when it was
// pinned, and the root's name still leads to that inode. Components are compared whole and byte for
// byte; nothing is decoded, expanded or folded. A path that another reader could take for a
// different one (control, invisible and look-alike characters, backslashes, percent escapes,
// trailing dots and spaces) is not held, nor is one that leaves the root on the way, by a link or
// by "..", whether ".." is walked or folded.
//
// Never opens what a path leads to: it is only looked up. What happens to the path afterwards is
// beyond a look.
#pragma once
#include <glove/sys/files.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace glove::policy {

inline constexpr std::size_t longest_path = 4095; // the kernel's, without the NUL

using path_parts = std::vector<std::string_view>;

class path_root {
public:
    // `spelled` is absolute; links in it are followed, now.
    [[nodiscard]] static auto pin(const std::string& spelled) -> result<path_root>;
    // Of an absolute path.
    [[nodiscard]] auto holds(std::string_view path) const -> bool;
    // Of a path that begins at this root.
    [[nodiscard]] auto holds_relative(std::string_view path) const -> bool;
    [[nodiscard]] auto spelled() const noexcept -> const std::string& { return spelled_; }
    [[nodiscard]] auto canonical() const noexcept -> const std::string& { return canonical_; }
    [[nodiscard]] auto is_directory() const noexcept -> bool;

private:
    [[nodiscard]] auto begins_with_name(const path_parts& parts) const -> std::size_t;
    [[nodiscard]] auto holds_folded(const path_parts& parts) const -> bool;
    [[nodiscard]] auto holds_walked(const path_parts& parts) const -> bool;
    [[nodiscard]] auto holds_beneath(const path_parts& rest) const -> bool;
    [[nodiscard]] auto may_appear(const path_parts& rest) const -> bool;

    std::string spelled_, canonical_; // without empty components and "."
    sys::file_identity identity_;
    sys::unique_fd pin_;
};

} // namespace glove::policy
