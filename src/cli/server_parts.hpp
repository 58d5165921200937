// What a tool server is made of: whoever can change one of these decides what the server is when it
// is started again.
//
// Looks at files; starts nothing, and finds no more than a server's words and its grants tell.
#pragma once
#include <glove/mcp/upstream_process.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glove::cli {

// Links followed, as far as it is there.
[[nodiscard]] auto real_of(const std::string& path) -> std::string;

// What it executes, what that needs, the files that its words name, and the directories that these
// load from: of a server with a perimeter, only what it is shown.
// `writable` is what the agent may change: a program that has no path is not looked for there.
[[nodiscard]] auto parts_of(const mcp::upstream_wish& server, std::span<const std::string> writable)
    -> std::vector<std::string>;

// By how it begins, or by what it is called.
[[nodiscard]] auto is_script(const std::string& path) -> bool;

} // namespace glove::cli
