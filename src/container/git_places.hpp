// What leads git from one of its directories to another, read by descriptor.
#pragma once
#include <glove/base/error.hpp>
#include <glove/sys/files.hpp>
#include <string>
#include <string_view>

namespace glove::container {

// The path that a ".git" file or "commondir" holds after `prefix`, as it stands there; empty when
// there is no such file or it holds something else. Nothing but a regular file is read, and no more
// than a path can be.
[[nodiscard]] auto read_pointer(sys::fd_ref root, const std::string& path, std::string_view prefix)
    -> result<std::string>;

} // namespace glove::container
