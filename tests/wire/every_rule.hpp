// A type with a row of every rule that takes its value from a text.
#pragma once
#include <glove/wire/fields.hpp>
#include <glove/wire/maybe.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glove::test {

enum class colour : std::uint8_t { none, red, blue };

struct leaf {
    std::string path = "/a";
    colour paint = colour::red;
    auto operator==(const leaf&) const -> bool = default;
};
struct root {
    std::int16_t deep = 0;
    auto operator==(const root&) const -> bool = default;
};
struct trunk {
    std::int64_t below = 0;
    std::optional<std::string> bark;
    auto operator==(const trunk&) const -> bool = default;
};
struct every_rule : trunk {
    root under;
    std::string name = "n";
    std::string any;
    std::string digest;
    std::uint8_t small = 1;
    std::uint64_t large = 0;
    bool on = false;
    std::optional<bool> maybe_on;
    std::optional<std::string> note;
    std::uint16_t port = 443;
    std::string word = "two";
    leaf one;
    std::optional<leaf> other;
    std::vector<leaf> leaves;
    std::vector<std::string> names;
    std::vector<std::vector<std::int32_t>> table;
    auto operator==(const every_rule&) const -> bool = default;
};

// The second word of a meaning is read and never written.
inline constexpr wire::word<colour> colour_words[] = {
    {"red", colour::red}, {"blue", colour::blue}, {"azure", colour::blue}};
inline constexpr wire::word<std::string_view> number_words[] = {
    {"", ""}, {"one", "one"}, {"two", "two"}};

inline constexpr auto leaf_fields =
    wire::table(wire::row<&leaf::path, wire::absolute_path>("path"),
                wire::row<&leaf::paint, wire::choice<colour_words>{}>("paint"));

[[nodiscard]] consteval auto every_table() {
    using e = every_rule;
    return wire::table(
        wire::row_at<e, wire::integer{INT64_MIN, 5}, &trunk::below>("below"),
        wire::row_at<e, wire::label, &trunk::bark>("bark"),
        wire::row_at<e, wire::integer{-7, 300}, &e::under, &root::deep>("deep"),
        wire::row<&e::name, wire::ident>("name"),
        wire::row<&e::any, wire::text{wire::grammar::utf8, 0, 40}>("any"),
        wire::row<&e::digest, wire::maybe<wire::hex64>{}>("digest"),
        wire::row<&e::small, wire::integer{1, 200}>("small"),
        wire::row<&e::large, wire::integer{}>("large"), wire::row<&e::on, wire::flag{}>("on"),
        wire::row<&e::maybe_on, wire::flag{}>("maybe_on"),
        wire::row<&e::note, wire::text{wire::grammar::no_nul, 0, 12}>("note"),
        wire::defaulted_row<&e::port, wire::integer{1, 65535}>("port"),
        wire::row<&e::word, wire::choice<number_words>{}>("word"),
        wire::row<&e::one, wire::record<leaf_fields>{}>("one"),
        wire::row<&e::other, wire::record<leaf_fields>{}>("other"),
        wire::row<&e::leaves, wire::list<wire::record<leaf_fields>{}>{0, 3}>("leaves"),
        wire::row<&e::names, wire::list<wire::alias>{1, 3}>("names"),
        wire::row<&e::table, wire::list<wire::list<wire::integer{-9, 9}>{0, 2}>{0, 3}>("table"));
}
inline constexpr auto every_fields = every_table();
static_assert(wire::is_taken_from_text(every_fields));

} // namespace glove::test
