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

} // namespace glove::container::cgroup
