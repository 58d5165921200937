// How the tables of a policy file are read: a row for each key, and errors that name the place.
//
// Only the sources that read the file include this: it brings the TOML library.
#pragma once
#include "policy/rules_file.hpp"
#include <algorithm>
#include <glove/base/text.hpp>
#include <utility>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace glove::policy {

inline constexpr std::size_t most_items = 1024; // of one array
inline constexpr std::size_t longest_shown = 256;

[[nodiscard]] inline auto shown(std::string_view text) -> std::string {
    return printable(text.substr(0, longest_shown));
}

// Where something stands: the file, the line, the table and the key.
class spot {
public:
    spot(const file_context& in, std::string title) : in_{in}, title_{std::move(title)} {}
    [[nodiscard]] auto at(const toml::node& node) const -> origin {
        return {"policy.file", in_.name + ":" + std::to_string(node.source().begin.line) +
                                   (title_.empty() ? "" : ": " + title_)};
    }
    [[nodiscard]] auto key(std::string_view name) const -> spot {
        return {in_, title_ + (title_.empty() ? "" : " ") + shown(name)};
    }
    [[nodiscard]] auto context() const -> const file_context& { return in_; }

private:
    const file_context& in_;
    std::string title_;
};

// How a key of a table is read into `T`.
template<class T> struct key_row {
    std::string_view key;
    auto (*read)(const toml::node& node, const spot& here, T& into) -> result<>;
};

template<class T> [[nodiscard]] auto read_table(const toml::table& table, const spot& here,
                                                std::span<const key_row<T>> rows, T& into)
    -> result<> {
    for (const auto& [key, node] : table) {
        const auto row = std::ranges::find(rows, key.str(), &key_row<T>::key);
        if (row == rows.end()) {
            std::string known;
            for (const auto& each : rows) known.append(known.empty() ? "" : ", ").append(each.key);
            return here.key(key.str()).at(node).refuse("there is no such key",
                                                       "the keys here are " + known);
        }
        GLOVE_CHECK(row->read(node, here.key(key.str()), into));
    }
    return {};
}

[[nodiscard]] inline auto table_of(const toml::node& node, const spot& here)
    -> result<const toml::table*> {
    if (const auto* const table = node.as_table()) return table;
    return here.at(node).refuse("is not a table", {});
}

[[nodiscard]] inline auto truth_of(const toml::node& node, const spot& here) -> result<bool> {
    if (const auto* const truth = node.as_boolean()) return truth->get();
    return here.at(node).refuse("is not true or false", {});
}

[[nodiscard]] inline auto text_of(const toml::node& node, const spot& here) -> result<std::string> {
    const auto* const text = node.as_string();
    if (text == nullptr) return here.at(node).refuse("is not a string", {});
    return text->get();
}

[[nodiscard]] inline auto array_of(const toml::node& node, const spot& here)
    -> result<const toml::array*> {
    const auto* const items = node.as_array();
    if (items == nullptr) return here.at(node).refuse("is not an array", "write it in [ ]");
    if (items->empty()) return here.at(node).refuse("is an empty array", "leave the key out");
    if (items->size() > most_items)
        return here.at(node).refuse("holds more than " + std::to_string(most_items) + " items", {});
    return items;
}

template<class Read>
[[nodiscard]] auto each_text(const toml::node& node, const spot& here, Read read) -> result<> {
    GLOVE_TRY(const auto* const items, array_of(node, here));
    for (const auto& item : *items) {
        GLOVE_TRY(const auto text, text_of(item, here));
        GLOVE_CHECK(read(text, here.at(item)));
    }
    return {};
}

[[nodiscard]] inline auto texts_of(const toml::node& node, const spot& here)
    -> result<std::vector<std::string>> {
    std::vector<std::string> out;
    GLOVE_CHECK(each_text(node, here, [&](const std::string& text, const origin&) -> result<> {
        out.push_back(text);
        return {};
    }));
    return out;
}

[[nodiscard]] inline auto count_of(const toml::node& node, const spot& here, std::uint64_t most)
    -> result<std::uint64_t> {
    const auto* const number = node.as_integer();
    if (number == nullptr || number->get() < 1 || std::cmp_greater(number->get(), most))
        return here.at(node).refuse("is not an integer from 1 to " + std::to_string(most), {});
    return static_cast<std::uint64_t>(number->get());
}

[[nodiscard]] inline auto pointer_of(const std::string& text, const origin& from)
    -> result<pointer> {
    if (auto out = parse_pointer(text)) return *std::move(out);
    return from.refuse(in_quotes(text) + " is not a place in the arguments",
                       "write a JSON Pointer such as /path, /files/* or /edits/*/path, of at most "
                       "16 parts");
}

[[nodiscard]] inline auto pattern_of(const std::string& text, const origin& from)
    -> result<pattern> {
    std::string why;
    if (auto out = compile(text, why)) return out;
    return from.refuse("the regular expression " + in_quotes(text) +
                           " cannot be used: " + printable(why),
                       "write it in the syntax of RE2");
}

[[nodiscard]] inline auto place_of(const std::string& text, const spot& here, const origin& from)
    -> result<root_ptr> {
    GLOVE_TRY(const auto path, written_path(text, here.context().directory, from));
    if (!path)
        return from.refuse(in_quotes(text) + " is not a path", "begin it by /, ~/, ./ or ../");
    return here.context().places.pin(*path, from);
}

// The rules of one tool: every [[tool."up.tool".argument]].
[[nodiscard]] auto read_arguments(const toml::node& node, const spot& here, tool_table& into)
    -> result<>;

} // namespace glove::policy
