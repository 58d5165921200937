// A small reader of Git settings: it never guesses, and what it does not know it leaves out.
#include "host/git_identity.hpp"
#include <algorithm>
#include <cstdlib>
#include <glove/base/ascii.hpp>
#include <glove/sys/files.hpp>
#include <optional>
#include <sys/stat.h>
#include <vector>

namespace glove::host {

namespace {

constexpr std::size_t most_bytes = 256UL * 1024;
constexpr std::size_t longest_value = 512;

[[nodiscard]] auto lower(std::string_view text) -> std::string {
    std::string out{text};
    std::ranges::transform(out, out.begin(), to_lower);
    return out;
}

[[nodiscard]] auto trimmed(std::string_view text) -> std::string_view {
    constexpr std::string_view blank = " \t\r";
    text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
    return text.substr(0, text.find_last_not_of(blank) + 1);
}

// The value as Git reads it: quotes, escapes and comments; nothing when it is odd, or goes on in
// the next line.
[[nodiscard]] auto value_of(std::string_view text) -> std::optional<std::string> {
    std::string out;
    std::size_t solid = 0; // what trailing blanks may be cut down to
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (c == '"') {
            quoted = !quoted;
            continue;
        }
        if (!quoted && (c == '#' || c == ';')) break;
        if (c == '\\') {
            if (++i == text.size()) return std::nullopt;
            if (text[i] == '"' || text[i] == '\\') c = text[i];
            else return std::nullopt; // \n, \t and \b have no place in a name
            out += c;
            solid = out.size();
            continue;
        }
        out += c;
        if (quoted || (c != ' ' && c != '\t')) solid = out.size();
    }
    if (quoted) return std::nullopt;
    out.resize(solid);
    const bool plain = std::ranges::none_of(out, [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7f;
    });
    if (!plain || out.empty() || out.size() > longest_value) return std::nullopt;
    return out;
}

void read_line(std::string_view line, bool& in_user, git_identity& into) {
    line = trimmed(line);
    if (line.starts_with('[')) {
        const auto end = line.find(']');
        if (end == std::string_view::npos) {
            in_user = false;
            return;
        }
        in_user = lower(trimmed(line.substr(1, end - 1))) == "user";
        line = trimmed(line.substr(end + 1)); // a key may follow in the same line
    }
    const auto equals = line.find('=');
    if (!in_user || equals == std::string_view::npos) return;
    const auto key = lower(trimmed(line.substr(0, equals)));
    if (key != "name" && key != "email") return;
    if (auto value = value_of(trimmed(line.substr(equals + 1))))
        (key == "name" ? into.name : into.email) = *std::move(value);
}

[[nodiscard]] auto read_settings(const std::string& path, git_identity& into) -> bool {
    struct ::stat found{};
    if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return false;
    const auto text = sys::read_file(path, most_bytes);
    if (text) read_git_identity(*text, into);
    return text.has_value();
}

[[nodiscard]] auto absolute(const char* name) -> std::string {
    const char* const value = std::getenv(name);
    return value != nullptr && *value == '/' ? value : std::string{};
}

} // namespace

void read_git_identity(std::string_view text, git_identity& into) {
    bool in_user = false;
    while (!text.empty()) {
        const auto line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        read_line(line, in_user, into);
    }
}

auto caller_git_identity() -> git_identity {
    git_identity out;
    if (std::getenv("GIT_CONFIG_GLOBAL") != nullptr) {
        (void)read_settings(absolute("GIT_CONFIG_GLOBAL"), out);
        return out;
    }
    const auto home = absolute("HOME");
    auto settings = absolute("XDG_CONFIG_HOME");
    if (settings.empty() && !home.empty()) settings = home + "/.config";
    if (!settings.empty()) (void)read_settings(settings + "/git/config", out);
    if (!home.empty()) (void)read_settings(home + "/.gitconfig", out);
    return out;
}

auto git_settings(const git_identity& who) -> std::string {
    const auto quoted = [](std::string_view text) {
        std::string out{"\""};
        for (const char c : text) {
            if (c == '"' || c == '\\') out += '\\';
            out += c;
        }
        return out + "\"\n";
    };
    if (who.name.empty() && who.email.empty()) return {};
    std::string out{"[user]\n"};
    if (!who.name.empty()) out += "\tname = " + quoted(who.name);
    if (!who.email.empty()) out += "\temail = " + quoted(who.email);
    return out;
}

} // namespace glove::host
