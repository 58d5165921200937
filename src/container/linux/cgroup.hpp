// Directories of the unified hierarchy, by descriptor.
//
// Guarantees: every directory is one of the kernel's own hierarchy, and is named by a path only
// once; values are read and written whole.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/sys/fd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace glove::container::cgroup {

// The path of a process's group as the kernel tells it ("/user.slice/..."), below what is mounted.
[[nodiscard]] auto path_of(::pid_t process) -> result<std::string>;

// Opens the group of that path. It must be the caller's own: whoever owns it can take limits away.
[[nodiscard]] auto open_own(const std::string& path) -> result<sys::unique_fd>;

// The group `name` in `parent`: a new one.
[[nodiscard]] auto make(sys::fd_ref parent, const std::string& name) -> result<sys::unique_fd>;
// ENOENT is no error: it is gone.
[[nodiscard]] auto remove(sys::fd_ref parent, const std::string& name) -> result<>;

// The value of a file of the group, without its last newline.
[[nodiscard]] auto read(sys::fd_ref group, const char* file) -> result<std::string>;
[[nodiscard]] auto write(sys::fd_ref group, const char* file, std::string_view value) -> result<>;

// The number after `name` in a table such as cpu.stat; empty when it has no such line.
[[nodiscard]] auto entry(std::string_view table, std::string_view name)
    -> std::optional<std::uint64_t>;

// Whether a word is in a list of words, which spaces or newlines divide.
[[nodiscard]] auto lists(std::string_view words, std::string_view word) -> bool;

// Whether systemd gave the group away, and so leaves alone what is below it: `group` is the parent
// of the caller's own group, whose path is `own`. Without systemd nobody else makes groups.
[[nodiscard]] auto is_delegated(sys::fd_ref group, std::string_view own) -> bool;

// As much memory as the kernel can hold a group to, at most `bytes`.
[[nodiscard]] auto page_floor(std::uint64_t bytes) -> std::uint64_t;
// Pages of these pools count to no group, and the kernel gives them to whoever asks. Step:
// limits.huge_pages.
[[nodiscard]] auto check_huge_pages() -> result<>;
// There are processes that the kernel does not kill, whatever they take; their children inherit
// it. `process` is a child of the caller's, or itself, and none of these afterwards.
[[nodiscard]] auto let_be_killed(::pid_t process) -> result<>;

} // namespace glove::container::cgroup
