// The environment starts empty: a server gets credentials because the operator named them, never
// because they were there.
#include "mcp/upstream_start.hpp"
#include <algorithm>
#include <array>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/sys/files.hpp>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::mcp {

namespace {

// Who and where the user is, and how text is written.
constexpr std::array<std::string_view, 9> always_passed{
    "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"};
constexpr std::string_view language_prefix = "LC_";
// Where the sandbox of a contained server keeps its records. The server does not get them.
constexpr std::array<std::string_view, 2> passed_to_glove{"XDG_CONFIG_HOME", "XDG_STATE_HOME"};

// After the directories of its program; as `glove exec` has it.
constexpr std::string_view inner_search_path =
    "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

struct variable {
    std::string_view name, value;
};

[[nodiscard]] auto split(std::string_view entry) noexcept -> std::optional<variable> {
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) return std::nullopt;
    return variable{entry.substr(0, equals), entry.substr(equals + 1)};
}

[[nodiscard]] auto value_of(std::string_view name, const char* const* outer) noexcept
    -> std::optional<std::string_view> {
    for (; *outer != nullptr; ++outer)
        if (const auto each = split(*outer); each && each->name == name) return each->value;
    return std::nullopt;
}

// A shell would take the value for a function.
[[nodiscard]] auto is_always_passed(const variable& of) noexcept -> bool {
    return (std::ranges::count(always_passed, of.name) != 0 ||
            of.name.starts_with(language_prefix)) &&
           !of.value.starts_with("()");
}

enum class found : std::uint8_t { nothing, no_program, program };

[[nodiscard]] auto look_at(const std::string& path) noexcept -> found {
    struct ::stat facts{};
    if (::stat(path.c_str(), &facts) != 0) return found::nothing;
    const bool is_program =
        S_ISREG(facts.st_mode) && ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0;
    return is_program ? found::program : found::no_program;
}

} // namespace

auto find_upstream_program(const upstream_wish& what, const char* const* outer)
    -> result<std::string> {
    const auto& name = what.argv.front();
    if (name.contains('/')) return sys::absolute(name);
    std::string not_one; // has the name, and cannot be executed
    auto path = value_of("PATH", outer).value_or("");
    while (!path.empty()) {
        const auto end = std::min(path.find(':'), path.size());
        const auto directory = path.substr(0, end);
        path.remove_prefix(std::min(end + 1, path.size()));
        if (!directory.starts_with('/')) continue;
        auto candidate = std::string{directory} + "/" + name;
        const auto is = look_at(candidate);
        if (is == found::program) return candidate;
        if (is == found::no_program && not_one.empty()) not_one = std::move(candidate);
    }
    const auto server = "the server " + in_quotes(what.name) + ": ";
    if (!not_one.empty())
        return fail(errc::not_permitted, "mcp.program",
                    server + in_quotes(not_one) + " is no program that can be executed",
                    "make it executable, or name another with its whole path");
    return fail(errc::not_found, "mcp.program",
                server + in_quotes(name) + " is in no directory of PATH",
                "install it, or name it with its whole path");
}

auto contained_arguments(const upstream_wish& what) -> std::vector<std::string> {
    const auto& with = *what.perimeter;
    std::vector<std::string> out{with.glove, "exec", "--no-pty"};
    const auto give = [&](std::string_view option, const std::string& value) {
        out.push_back(std::string{option}.append("=").append(value));
    };
    if (with.audit_log) give("--audit-log", *with.audit_log);
    if (with.workspace) give("--workspace", *with.workspace);
    for (const auto& path : with.needs) give("--read", path);
    for (const auto& path : what.grants.read) give("--read", path);
    for (const auto& path : what.grants.write)
        if (path != with.workspace) give("--write", path);
    for (const auto& rule : what.grants.egress) give("--egress-allow", rule);
    for (const auto& [name, value] : what.environment) give("--env", name);
    for (const auto& name : what.passed) give("--env", name);
    out.emplace_back("--");
    if (!with.directories.empty()) {
        std::string path{"PATH="};
        for (const auto& directory : with.directories) path.append(directory).append(":");
        out.emplace_back("/usr/bin/env");
        out.push_back(path.append(inner_search_path));
    }
    out.push_back(with.program);
    out.insert(out.end(), what.argv.begin() + 1, what.argv.end());
    return out;
}

auto upstream_environment(const upstream_wish& what, const char* const* outer)
    -> std::vector<std::string> {
    std::vector<std::string> out;
    std::vector<std::string_view> names;
    const auto is_new = [&](std::string_view name) {
        if (std::ranges::count(names, name) != 0) return false;
        names.push_back(name);
        return true;
    };
    if (what.perimeter && is_new(contained_server_variable))
        out.push_back(std::string{contained_server_variable} + "=1");
    for (const auto& [name, value] : what.environment)
        if (is_new(name)) out.push_back(name + "=" + value);
    for (; *outer != nullptr; ++outer) {
        const auto each = split(*outer);
        if (!each) continue;
        const bool wanted =
            std::ranges::count(what.passed, each->name) != 0 || is_always_passed(*each) ||
            (what.perimeter && std::ranges::count(passed_to_glove, each->name) != 0);
        if (wanted && is_new(each->name)) out.emplace_back(*outer);
    }
    return out;
}

} // namespace glove::mcp
