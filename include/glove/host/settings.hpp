// What a profile can hold: one row for each key of the configuration file.
//
// A row says what the key takes and which option of `glove exec` it stands for. Decoding, `glove
// profile show`, the options of a run and the tables of the documentation come from these rows, so
// they cannot differ.
//
// Guarantees: a value that is stored here was checked by its row; nothing is looked up on the
// machine. A value is kept as the text that its option takes.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glove::host {

// How a value stands in the file.
enum class toml_type : std::uint8_t { text, integer, truth, list, other };

// A value as it stands in the file, before its row has judged it.
struct toml_value {
    std::size_t line = 0;
    toml_type type = toml_type::other;
    std::string text;              // of a text, and of an integer and a truth, as written
    std::vector<toml_value> items; // of a list
};

struct setting_kind;

struct setting {
    std::string_view key;
    const setting_kind* kind;
    std::string_view flag; // "--read"; empty when there is none
    std::string_view meaning;
};
[[nodiscard]] auto setting_rows() noexcept -> std::span<const setting>;
[[nodiscard]] auto find_setting(std::string_view key) noexcept -> const setting*;
// Whether a child's values go after its parent's; otherwise they replace them.
[[nodiscard]] auto is_list(const setting& row) noexcept -> bool;
// Whether true and false are values of it: the option without a value, and none.
[[nodiscard]] auto is_switch(const setting& row) noexcept -> bool;
// Whoever names a tier does not mean what is inherited of these.
inline constexpr std::string_view network_key = "net";
[[nodiscard]] auto needs_network(std::string_view key) noexcept -> bool;
// "an array of strings, each a path": what the row takes, for messages and documents.
[[nodiscard]] auto what_it_takes(const setting& row) noexcept -> std::string_view;

// Checked values, each the text that the option takes; "true" and "false" of a switch.
class settings {
public:
    [[nodiscard]] auto find(std::string_view key) const -> const std::vector<std::string>*;
    void set(const setting& row, std::vector<std::string> values);
    // Puts `nearer` over these: lists go after them, each value once, and all else is replaced. A
    // network tier also replaces what can be reached.
    void overlay(const settings& nearer);

private:
    std::map<std::string_view, std::vector<std::string>> values_; // by the rows' own keys
};

// Checks one value. The error says what is wrong with it and what the key takes, not where it
// stands. `home` stands for "~".
[[nodiscard]] auto decode(const setting& row, const toml_value& value, const std::string& home)
    -> result<std::vector<std::string>>;

// "key = value" as it would stand in the file.
[[nodiscard]] auto to_toml(const setting& row, const std::vector<std::string>& values)
    -> std::string;
// A string in the quotes of TOML.
[[nodiscard]] auto toml_text(std::string_view text) -> std::string;

} // namespace glove::host
