// The one place that knows the TOML library.
#include "host/configuration.hpp"
#include "host/trusted.hpp"
#include <algorithm>
#include <cstdlib>
#include <glove/base/text.hpp>
#include <glove/base/toml_guard.hpp>
#include <glove/host/homes.hpp>
#include <glove/sys/user_directories.hpp>
#include <sys/stat.h>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace glove::host {

namespace {

constexpr std::size_t most_bytes = 64UL * 1024;
constexpr std::size_t most_profiles = 256;
constexpr std::size_t longest_name = 64;

// Where in the file something stands.
struct place {
    const std::string& file;
    std::size_t line;
    std::string of; // "[profile.NAME] KEY", or a part of it

    [[nodiscard]] auto text() const -> std::string {
        auto out = file + ":" + std::to_string(line) + ": ";
        if (!of.empty()) out += of + ": ";
        return out;
    }
};

[[nodiscard]] auto refuse(const place& at, const std::string& what, std::string remedy) {
    return fail(errc::invalid_input, "profile.file", at.text() + what, std::move(remedy));
}

[[nodiscard]] auto line_of(const toml::node& node) -> std::size_t {
    return node.source().begin.line;
}

[[nodiscard]] auto scalar_of(const toml::node& node) -> toml_value {
    toml_value out{.line = line_of(node), .type = toml_type::other, .text = {}, .items = {}};
    if (const auto* const text = node.as_string()) {
        out.type = toml_type::text;
        out.text = text->get();
    } else if (const auto* const integer = node.as_integer()) {
        out.type = toml_type::integer;
        out.text = std::to_string(integer->get());
    } else if (const auto* const truth = node.as_boolean()) {
        out.type = toml_type::truth;
        out.text = truth->get() ? "true" : "false";
    } else if (node.is_array()) {
        out.type = toml_type::list;
    }
    return out;
}

// An array within an array stays empty: no row takes one.
[[nodiscard]] auto value_of(const toml::node& node) -> toml_value {
    auto out = scalar_of(node);
    if (const auto* const list = node.as_array())
        for (const auto& item : *list) out.items.push_back(scalar_of(item));
    return out;
}

[[nodiscard]] auto known_keys() -> std::string {
    std::string out{"extends"};
    for (const auto& row : setting_rows()) out.append(", ").append(row.key);
    return out;
}

[[nodiscard]] auto read_extends(const place& at, const toml::node& node) -> result<std::string> {
    const auto* const text = node.as_string();
    if (text == nullptr || !is_profile_name(text->get()))
        return refuse(at, "is not the name of a profile",
                      "give a name, as in: extends = \"claude\"");
    return text->get();
}

[[nodiscard]] auto read_key(const place& at, std::string_view key, const toml::node& node,
                            const std::string& home, settings& into) -> result<> {
    const auto* const row = find_setting(key);
    if (row == nullptr) return refuse(at, "there is no such key", "the keys are " + known_keys());
    auto values = decode(*row, value_of(node), home);
    if (!values) return refuse(at, values.error().detail, values.error().remedy);
    into.set(*row, *std::move(values));
    return {};
}

[[nodiscard]] auto read_profile(const std::string& file, std::string_view name,
                                const toml::node& node, const std::string& home)
    -> result<configured_profile> {
    const auto title = "[profile." + printable(name.substr(0, longest_name)) + "]";
    const place at{file, line_of(node), title};
    if (!is_profile_name(name))
        return refuse(at, "is not a name of a-z, 0-9, - and _",
                      "name it otherwise, with at most 64 of them");
    const auto* const table = node.as_table();
    if (table == nullptr) return refuse(at, "is not a table", "begin a profile by " + title);
    configured_profile out{.name = std::string{name}, .line = at.line, .extends = {}, .values = {}};
    for (const auto& [key, value] : *table) {
        const place there{file, line_of(value),
                          title + " " + printable(key.str().substr(0, longest_name))};
        if (key == "extends") {
            GLOVE_TRY(out.extends, read_extends(there, value));
        } else GLOVE_CHECK(read_key(there, key.str(), value, home, out.values));
    }
    return out;
}

[[nodiscard]] auto check_text(std::string_view text, const std::string& file) -> result<> {
    if (const auto line = line_of_many_dots(text); line != 0)
        return refuse({file, line, {}},
                      "more than " + std::to_string(most_toml_dots) + " dots in one line",
                      "write it in several lines");
    if (const auto line = line_of_stray_byte(text); line != 0)
        return refuse({file, line, {}}, "a character beyond ASCII outside of quotes",
                      "put it in \" or ', not in \"\"\"");
    return {};
}

[[nodiscard]] auto home_directory() -> std::string {
    const char* const home = std::getenv("HOME");
    return home != nullptr && sys::is_normal_absolute(home) ? home : std::string{};
}

} // namespace

auto is_profile_name(std::string_view name) noexcept -> bool {
    return is_home_name(name) && name.find('.') == std::string_view::npos;
}

auto parse_configuration(std::string_view text, const std::string& file, const std::string& home)
    -> result<configuration> {
    if (text.size() > most_bytes)
        return fail(errc::limit_exceeded, "profile.file", file + " is larger than 64 KiB",
                    "make it smaller");
    GLOVE_CHECK(check_text(text, file));
    const auto parsed = toml::parse(text);
    if (!parsed)
        return refuse({file, parsed.error().source().begin.line, {}},
                      std::string{parsed.error().description()},
                      "write it as TOML; a key may be given once");
    configuration out{.file = file, .profiles = {}};
    for (const auto& [key, node] : parsed.table()) {
        const place at{file, line_of(node), printable(key.str().substr(0, longest_name))};
        if (key != "profile")
            return refuse(at, "there is no such key", "the file holds tables [profile.NAME] only");
        const auto* const profiles = node.as_table();
        if (profiles == nullptr)
            return refuse(at, "is not a table", "begin a profile by [profile.NAME]");
        if (profiles->size() > most_profiles)
            return refuse(at, "more than " + std::to_string(most_profiles) + " profiles", {});
        for (const auto& [name, profile] : *profiles) {
            GLOVE_TRY(auto one, read_profile(file, name.str(), profile, home));
            out.profiles.push_back(std::move(one));
        }
    }
    return out;
}

auto read_configuration() -> result<configuration> {
    GLOVE_TRY(const auto directory, sys::configuration_directory());
    const auto path = directory + "/config.toml";
    auto file = find_trusted(path, own_group::refused, "profile.file");
    if (!file && file.error().code == errc::not_found && !sys::exists(path))
        return configuration{.file = path, .profiles = {}};
    if (!file) return std::unexpected(std::move(file).error());
    if (file->facts.identity.type != S_IFREG)
        return fail(errc::invalid_input, "profile.file", path + " is not a regular file");
    // By another name, a run could have been given it to write.
    if (file->facts.links != 1)
        return fail(errc::not_permitted, "profile.file",
                    path + " has " + std::to_string(file->facts.links) + " names (hard links)",
                    "make it a file of its own, or a symbolic link");
    auto text = read_pinned(*file, most_bytes);
    if (!text && text.error().code == errc::limit_exceeded)
        return fail(errc::limit_exceeded, "profile.file", path + " is larger than 64 KiB",
                    "make it smaller");
    if (!text) return fail_os("profile.file", text.error().os, path);
    return parse_configuration(*text, path, home_directory());
}

} // namespace glove::host
