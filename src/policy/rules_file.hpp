// The policy file, read whole.
//
// Guarantees: a table, key or value that is not understood is an error that names the file, the
// line and the key, never ignored. The directories that rules name are pinned while it is read.
#pragma once
#include "policy/argument_rules.hpp"
#include "policy/places.hpp"
#include "policy/words.hpp"
#include <glove/policy/engine.hpp>
#include <optional>

namespace glove::policy {

struct tool_table {
    tool_pattern tool;
    std::string where; // "FILE:3: [tool."fs.x"]"
    std::optional<bool> allow;
    std::optional<bool> additional;
    tool_limits limits;
    std::vector<pattern> redact;
    std::vector<argument_rule> arguments;
    std::vector<pointer> required, forbidden;
};

struct uri_prefix {
    std::string text;
    std::shared_ptr<const path_root> below; // of a file URI
};

struct rules_file {
    std::vector<tool_table> tools;
    std::map<std::string, std::vector<root>> roots;
    std::map<std::string, std::vector<uri_prefix>> resources;
    std::map<std::string, std::vector<std::string>> prompts;
};

struct file_context {
    std::string name; // for messages
    std::span<const std::string> upstreams;
    const std::string& directory;
    place_book& places;
};

inline constexpr std::size_t largest_policy = 1UL << 20;
[[nodiscard]] auto parse_rules(std::string_view text, const file_context& in) -> result<rules_file>;
// Of a file that belongs to the caller and that nobody else can read.
[[nodiscard]] auto read_rules(const std::string& path) -> result<std::string>;

} // namespace glove::policy
