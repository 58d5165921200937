// Texts and nothing else. What goes into them was judged here, not by whoever asks.
#include <algorithm>
#include <climits>
#include <glove/base/ascii.hpp>
#include <glove/base/text.hpp>
#include <glove/host/service_unit.hpp>
#include <glove/sys/files.hpp>
#include <glove/wire/utf8.hpp>

namespace glove::host {

namespace {

// systemd ends a quote at ", takes \ for an escape, and expands $ and %.
constexpr std::string_view meant_otherwise = "\"\\$%";

constexpr std::string_view before_gloved =
    R"("/usr/bin/unshare" --user --map-root-user --mount --propagation private -- ")";
constexpr std::string_view before_config = R"(" --config ")";
constexpr std::string_view command_member = "\nExecStart=";

[[nodiscard]] auto is_control(char c) -> bool {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
}

[[nodiscard]] auto within_bound(std::string text) -> result<std::string> {
    if (text.size() <= most_unit_bytes) return text;
    return fail(errc::limit_exceeded, "service.text",
                "the service definition would have " + std::to_string(text.size()) +
                    " bytes, and at most 65536 are possible");
}

[[nodiscard]] auto check_programs(const service_programs& of) -> result<> {
    GLOVE_CHECK(check_unit_path(of.gloved));
    return check_unit_path(of.config);
}

[[nodiscard]] auto command_line(const service_programs& of) -> std::string {
    std::string out;
    if (!of.into_subgroup.empty())
        out.append("\"").append(of.into_subgroup).append("\" enter-subgroup -- ");
    out.append(before_gloved).append(of.gloved).append(before_config).append(of.config);
    return out += '"';
}

// Takes `what` off the front.
[[nodiscard]] auto take(std::string_view& text, std::string_view what) -> bool {
    if (!text.starts_with(what)) return false;
    text.remove_prefix(what.size());
    return true;
}
[[nodiscard]] auto take_until(std::string_view& text, char end) -> std::string {
    const auto size = std::min(text.find(end), text.size());
    std::string out{text.substr(0, size)};
    text.remove_prefix(size);
    return out;
}

[[nodiscard]] auto programs_of(std::string_view command) -> service_programs {
    service_programs out;
    if (!command.starts_with(before_gloved) && take(command, "\"")) {
        out.into_subgroup = take_until(command, '"');
        if (!take(command, "\" enter-subgroup -- ")) return {};
    }
    if (!take(command, before_gloved)) return {};
    out.gloved = take_until(command, '"');
    if (!take(command, before_config)) return {};
    out.config = take_until(command, '"');
    return out;
}

[[nodiscard]] auto for_xml(std::string_view text) -> std::string {
    std::string out;
    for (const char c : text) {
        if (c == '&') out += "&amp;";
        else if (c == '<') out += "&lt;";
        else if (c == '>') out += "&gt;";
        else out += c;
    }
    return out;
}

} // namespace

auto check_unit_path(std::string_view path) -> result<> {
    const auto refuse = [&](std::string_view why) {
        return fail(errc::invalid_input, "service.path",
                    in_quotes(path) + " " + std::string{why} +
                        ", and cannot stand in a service definition",
                    "use a path without control characters and without \" \\ $ %");
    };
    if (path.size() >= PATH_MAX) return refuse("is too long");
    if (std::ranges::any_of(path, is_control)) return refuse("has a control character");
    if (!wire::is_utf8(path)) return refuse("is not UTF-8");
    if (const auto at = path.find_first_of(meant_otherwise); at != std::string_view::npos)
        return refuse("has a " + std::string{path.substr(at, 1)});
    if (!sys::is_normal_absolute(path) || path == "/")
        return refuse("is not an absolute path in its shortest form");
    return {};
}

auto systemd_unit_text(const service_programs& of) -> result<std::string> {
    GLOVE_CHECK(check_programs(of));
    if (!of.into_subgroup.empty()) GLOVE_CHECK(check_unit_path(of.into_subgroup));
    std::string out = "# Made by glove daemon install, which writes over what is changed here.\n"
                      "[Unit]\n"
                      "Description=Glove control service\n"
                      "\n"
                      "[Service]\n"
                      "Type=simple";
    out.append(command_member).append(command_line(of)).append("\n");
    out += "Delegate=cpu memory pids\n";
    // Older ones would only warn about a word that they do not know.
    if (of.into_subgroup.empty())
        out.append("DelegateSubgroup=").append(service_subgroup).append("\n");
    out += "Restart=on-failure\n"
           "RestartSec=2s\n"
           "TimeoutStopSec=15s\n"
           "UMask=0077\n"
           "\n"
           "[Install]\n"
           "WantedBy=default.target\n";
    return within_bound(std::move(out));
}

auto config_of_unit(std::string_view text) -> std::optional<std::string> {
    const auto at = text.find(command_member);
    if (at == std::string_view::npos) return std::nullopt;
    auto line = text.substr(at + command_member.size());
    line = line.substr(0, line.find('\n'));
    auto found = programs_of(line);
    const auto again = systemd_unit_text(found);
    if (!again || *again != text) return std::nullopt;
    return std::move(found.config);
}

auto launchd_text(const service_programs& of) -> result<std::string> {
    GLOVE_CHECK(check_programs(of));
    std::string out = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
    <key>Label</key>
    <string>)";
    out.append(service_label);
    out += R"(</string>
    <key>ProgramArguments</key>
    <array>
        <string>)";
    out += for_xml(of.gloved);
    out += R"(</string>
        <string>--config</string>
        <string>)";
    out += for_xml(of.config);
    out += R"(</string>
    </array>
    <key>RunAtLoad</key>
    <false/>
    <key>KeepAlive</key>
    <dict>
        <key>SuccessfulExit</key>
        <false/>
    </dict>
    <key>ProcessType</key>
    <string>Interactive</string>
    <key>ThrottleInterval</key>
    <integer>2</integer>
</dict>
</plist>
)";
    return within_bound(std::move(out));
}

auto systemd_version_of(std::string_view said) -> result<std::uint64_t> {
    constexpr std::size_t most_digits = 6;
    auto digits = said;
    if (digits.starts_with('v')) digits.remove_prefix(1);
    const auto size =
        static_cast<std::size_t>(std::ranges::find_if_not(digits, is_digit) - digits.begin());
    const bool ends = size == digits.size() ||
                      std::string_view{".-~+ ("}.find(digits[size]) != std::string_view::npos;
    if (size == 0 || size > most_digits || !ends || digits.front() == '0')
        return fail(errc::corrupt, "service.version",
                    "the service manager calls its version " + in_quotes(said),
                    "this needs systemd: systemctl --user show --property=Version");
    std::uint64_t out = 0;
    for (const char c : digits.substr(0, size)) out = out * 10 + static_cast<unsigned>(c - '0');
    return out;
}

} // namespace glove::host
