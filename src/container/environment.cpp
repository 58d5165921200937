// The agent's environment starts empty. It gets the managed names below, the terminal and language
// settings of the caller, and what the operator named; nothing else of the caller's environment.
// A managed session's has nothing of the service's.
#include "container/listeners.hpp"
#include "container/plan_parts.hpp"
#include <algorithm>
#include <array>
#include <glove/base/ascii.hpp>
#include <glove/base/text.hpp>
#include <glove/container/session_plan.hpp>

namespace glove::container {

namespace {

// Decided together with the mounts, so no flag may set them apart.
constexpr std::array<std::string_view, 6> managed_names{"PATH", "HOME",    "TMPDIR",
                                                        "USER", "LOGNAME", "SHELL"};
constexpr std::string_view managed_prefix = "GLOVE_";

// How programs learn of the proxy. Each name stands in both cases, because programs differ in which
// they read; none may be set apart, or the program would look for a way that is not there.
constexpr std::array<std::string_view, 8> proxy_names{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
                                                      "NO_PROXY",   "http_proxy",  "https_proxy",
                                                      "all_proxy",  "no_proxy"};
// The loopback inside is the agent's own, so no proxy stands before it.
constexpr std::string_view no_proxy = "localhost,127.0.0.1,::1";

// What makes a run time look at the proxy that does not by itself. The operator may set another.
struct hint {
    std::string_view name;
    std::string value;
};
[[nodiscard]] auto java_options() -> std::string {
    const auto port = std::to_string(proxy_port);
    return "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=" + port +
           " -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=" + port +
           " -Dhttp.nonProxyHosts=localhost|127.*|[::1]";
}
[[nodiscard]] auto proxy_hints() -> std::array<hint, 2> {
    return {hint{"NODE_USE_ENV_PROXY", "1"}, hint{"JAVA_TOOL_OPTIONS", java_options()}};
}
[[nodiscard]] auto proxy_url() -> std::string {
    return "http://127.0.0.1:" + std::to_string(proxy_port);
}

[[nodiscard]] auto set(std::string_view name, std::string_view value) -> std::string {
    return std::string{name}.append("=").append(value);
}

// What programs learn of the proxy by, where nothing was `named`.
void add_proxy(std::vector<std::string>& out, const std::vector<std::string_view>& named) {
    const auto url = proxy_url();
    for (const auto name : proxy_names)
        if (std::ranges::count(named, name) == 0)
            out.push_back(set(name, name == "NO_PROXY" || name == "no_proxy" ? no_proxy : url));
    for (const auto& row : proxy_hints())
        if (std::ranges::count(named, row.name) == 0) out.push_back(set(row.name, row.value));
}

// How the caller's terminal and language look; harmless, and wrong output without them.
constexpr std::array<std::string_view, 18> inherited_names{
    "TERM",        "LANG",       "TZ",         "COLORTERM",         "NO_COLOR",       "LC_ALL",
    "LC_ADDRESS",  "LC_COLLATE", "LC_CTYPE",   "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_MESSAGES",
    "LC_MONETARY", "LC_NAME",    "LC_NUMERIC", "LC_PAPER",          "LC_TELEPHONE",   "LC_TIME"};

[[nodiscard]] auto is_managed(std::string_view name) -> bool {
    return name.starts_with(managed_prefix) || std::ranges::count(managed_names, name) != 0;
}

[[nodiscard]] auto is_proxy_name(std::string_view name) -> bool {
    return std::ranges::count(proxy_names, name) != 0;
}

[[nodiscard]] auto is_inherited(std::string_view name) -> bool {
    return std::ranges::count(inherited_names, name) != 0;
}

[[nodiscard]] auto check_name(std::string_view name, const profile& wish) -> result<> {
    const bool egress = !wish.egress.allow.empty();
    if (name.empty() || name.find('\0') != std::string_view::npos)
        return fail(errc::invalid_input, "environment.name", "--env needs a name before '='");
    if (is_managed(name))
        return fail(errc::invalid_input, "environment.name",
                    "--env " + std::string{name} + ": this name is set by Glove",
                    "leave it out; " + std::string{name} +
                        " follows from the private home and mounts");
    if (egress && is_proxy_name(name))
        return fail(errc::invalid_input, "environment.name",
                    "--env " + std::string{name} + ": this name is set by Glove",
                    "leave it out; the proxy of --egress-allow is the only way to the network");
    for (const auto& listener : wish.listeners)
        if (!name.empty() && name == listener.variable)
            return fail(errc::invalid_input, "environment.name",
                        "--env " + std::string{name} + ": this name is set by Glove",
                        "leave it out; with " + std::string{listener.flag} + " it is " +
                            path_inside(listener));
    return {};
}

// What was asked for comes first, so that it is what the operator would get.
[[nodiscard]] auto path_of(const profile& wish) -> std::string {
    std::string out;
    for (const auto& directory : wish.path_directories) out.append(directory).append(":");
    return out.append(search_path);
}

// Which no policy sets for a session, in either case of letters.
constexpr std::array<std::string_view, 6> session_names{
    "HOME", "TMPDIR", "GLOVE_SANDBOXED", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"};

[[nodiscard]] auto same_letters(std::string_view a, std::string_view b) -> bool {
    return std::ranges::equal(a, b, {}, to_lower, to_lower);
}

[[nodiscard]] auto check_entry(std::string_view entry, std::string_view name) -> result<> {
    if (name.empty() || name.size() == entry.size() || entry.contains('\0'))
        return fail(errc::invalid_input, "session.environment",
                    printable(entry.substr(0, 64)) + " is no NAME=VALUE");
    if (std::ranges::any_of(session_names,
                            [&](std::string_view own) { return same_letters(own, name); }))
        return fail(errc::invalid_input, "session.environment",
                    printable(name) + ": this name is set by Glove",
                    "take it out of the policy's environment");
    if (entry.size() >= longest_argument)
        return fail(errc::limit_exceeded, "session.environment",
                    printable(name) + " has more than " + std::to_string(longest_argument - 1) +
                        " bytes with its name",
                    "put the value into a file that is granted");
    return {};
}

} // namespace

auto make_environment(const char* const* outer, const profile& wish, const user_identity& user,
                      std::string_view shell) -> result<std::vector<std::string>> {
    std::vector<std::string> out{
        set("PATH", path_of(wish)),  set("HOME", home_directory), set("TMPDIR", "/tmp"),
        set("USER", user.name()),    set("LOGNAME", user.name()), set("SHELL", shell),
        set("GLOVE_SANDBOXED", "1"),
    };
    for (const auto& listener : wish.listeners)
        if (!listener.variable.empty())
            out.push_back(set(listener.variable, path_inside(listener)));
    for (const auto& file : wish.companions)
        if (!file.variable.empty()) out.push_back(set(file.variable, path_inside(file)));
    const bool egress = !wish.egress.allow.empty();
    std::vector<std::string_view> named;
    for (const auto& [name, value] : wish.environment) {
        GLOVE_CHECK(check_name(name, wish));
        if (std::ranges::count(named, name) != 0)
            return fail(errc::invalid_input, "environment.name",
                        "--env " + name + " is given more than once");
        named.push_back(name);
        out.push_back(set(name, value));
    }
    bool has_terminal = std::ranges::count(named, "TERM") != 0;
    for (; *outer != nullptr; ++outer) {
        const std::string_view variable{*outer};
        const auto name = variable.substr(0, variable.find('='));
        if (!is_inherited(name) || std::ranges::count(named, name) != 0) continue;
        has_terminal = has_terminal || name == "TERM";
        out.emplace_back(variable);
    }
    if (!has_terminal) out.push_back(set("TERM", "xterm-256color"));
    if (egress) add_proxy(out, named);
    return out;
}

auto session_environment(const std::vector<std::string>& wished, bool online)
    -> result<std::vector<std::string>> {
    std::vector<std::string> out{set("HOME", home_directory), set("TMPDIR", "/tmp"),
                                 set("GLOVE_SANDBOXED", "1")};
    std::vector<std::string_view> named;
    for (const auto& entry : wished) {
        const auto name = std::string_view{entry}.substr(0, entry.find('='));
        GLOVE_CHECK(check_entry(entry, name));
        if (std::ranges::count(named, name) != 0)
            return fail(errc::invalid_input, "session.environment",
                        printable(name) + " is given more than once");
        named.push_back(name);
        out.push_back(entry);
    }
    const std::string_view agent = user_identity{.uid = session_user}.name();
    const std::pair<std::string_view, std::string_view> defaults[] = {
        {"PATH", search_path}, {"TERM", "xterm-256color"}, {"USER", agent},
        {"LOGNAME", agent},    {"SHELL", login_shell()},
    };
    for (const auto& [name, value] : defaults)
        if (std::ranges::count(named, name) == 0) out.push_back(set(name, value));
    if (online) add_proxy(out, named);
    return out;
}

} // namespace glove::container
