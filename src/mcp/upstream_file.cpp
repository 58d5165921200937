// The customary configuration file of MCP clients. It is read strictly: what would change which
// program runs, or how, is understood or refused by name; what only another client needs is listed.
// No message holds a value of the file.
#include "mcp/upstream_names.hpp"
#include <algorithm>
#include <array>
#include <glove/base/text.hpp>
#include <glove/mcp/upstream_process.hpp>
#include <glove/wire/json.hpp>

namespace glove::mcp {

namespace {

namespace json = wire::json;

constexpr std::size_t longest_file = 1UL << 20;

// A member of the file, for messages: "mcp.json: mcpServers.files.env.TOKEN".
struct place {
    const std::string& file;
    std::string_view server;
    std::string path;

    [[nodiscard]] auto inside(std::string_view name) const -> place {
        return {file, server, path + "." + json::readable_name(name)};
    }
    [[nodiscard]] auto refuse(std::string_view what, std::string remedy = {}) const
        -> std::unexpected<error> {
        return fail(errc::invalid_input, "mcp.config",
                    printable(file) + ": " + path + " " + std::string{what}, std::move(remedy));
    }
};

// A value that another client would have filled in must not reach the server as it stands.
[[nodiscard]] auto read_text(const json::value& from, const place& at) -> result<std::string> {
    const auto* text = from.as_string();
    if (text == nullptr) return at.refuse("is not a string");
    if (text->contains("${"))
        return at.refuse("holds \"${\", and variables are not filled in",
                         "write what it stands for, or pass a variable with --upstream-env " +
                             std::string{at.server} + ":NAME");
    return *text;
}

[[nodiscard]] auto read_command(const json::value& from, upstream_wish& to, const place& at)
    -> result<> {
    GLOVE_TRY(auto text, read_text(from, at));
    if (text.empty()) return at.refuse("is empty", "name the program");
    to.argv.insert(to.argv.begin(), std::move(text));
    return {};
}

[[nodiscard]] auto read_args(const json::value& from, upstream_wish& to, const place& at)
    -> result<> {
    const auto* elements = from.as_array();
    if (elements == nullptr) return at.refuse("is not an array");
    for (std::size_t i = 0; i < elements->size(); ++i) {
        GLOVE_TRY(auto text, read_text((*elements)[i], at.inside(std::to_string(i))));
        to.argv.push_back(std::move(text));
    }
    return {};
}

[[nodiscard]] auto read_env(const json::value& from, upstream_wish& to, const place& at)
    -> result<> {
    const auto* members = from.as_object();
    if (members == nullptr) return at.refuse("is not an object");
    for (const auto& each : *members) {
        const auto here = at.inside(each.name);
        if (!is_variable_name(each.name))
            return here.refuse("is no name of a variable",
                               "a name holds letters, digits and '_', and begins with no digit");
        GLOVE_TRY(auto text, read_text(each.data, here));
        to.environment.emplace_back(each.name, std::move(text));
    }
    return {};
}

[[nodiscard]] auto read_cwd(const json::value& from, upstream_wish& to, const place& at)
    -> result<> {
    GLOVE_TRY(auto text, read_text(from, at));
    if (text.empty()) return at.refuse("is empty", "name a directory, or leave it out");
    if (!text.starts_with('/'))
        return at.refuse("is no absolute path", "write it from / on, or leave it out: a server "
                                                "without it starts in a directory of Glove's own");
    to.directory = std::move(text);
    return {};
}

[[nodiscard]] auto read_texts(const json::value& from, std::vector<std::string>& to, bool are_paths,
                              const place& at) -> result<> {
    const auto* elements = from.as_array();
    if (elements == nullptr) return at.refuse("is not an array");
    for (std::size_t i = 0; i < elements->size(); ++i) {
        const auto here = at.inside(std::to_string(i));
        GLOVE_TRY(auto text, read_text((*elements)[i], here));
        if (text.empty()) return here.refuse("is empty", "leave it out");
        if (are_paths && !text.starts_with('/'))
            return here.refuse("is no absolute path", "write it from / on");
        to.push_back(std::move(text));
    }
    return {};
}

// What the server may do when it is contained.
[[nodiscard]] auto read_grants(const json::value& from, upstream_wish& to, const place& at)
    -> result<> {
    const auto* members = from.as_object();
    if (members == nullptr) return at.refuse("is not an object");
    for (const auto& each : *members) {
        const auto here = at.inside(each.name);
        auto* const list = each.name == "read"     ? &to.grants.read
                           : each.name == "write"  ? &to.grants.write
                           : each.name == "egress" ? &to.grants.egress
                                                   : nullptr;
        if (list == nullptr)
            return here.refuse("is no grant", "a contained server has read, write and egress");
        GLOVE_CHECK(read_texts(each.data, *list, each.name != "egress", here));
    }
    return {};
}

[[nodiscard]] auto refuse_remote(const json::value&, upstream_wish&, const place& at) -> result<> {
    return at.refuse("names a server that is reached by network: only stdio servers are mediated",
                     "leave the server out, or give the command of one that speaks on its streams");
}

[[nodiscard]] auto read_type(const json::value& from, upstream_wish& to, const place& at)
    -> result<> {
    const auto* text = from.as_string();
    return text != nullptr && *text == "stdio" ? result<>{} : refuse_remote(from, to, at);
}

[[nodiscard]] auto refuse_env_file(const json::value&, upstream_wish&, const place& at)
    -> result<> {
    return at.refuse("names a file of variables, which is not read", "write them into env");
}

// It was read before the others.
[[nodiscard]] auto pass_over(const json::value&, upstream_wish&, const place&) -> result<> {
    return {};
}

struct member_row {
    std::string_view name;
    auto (*read)(const json::value&, upstream_wish&, const place&) -> result<>;
};
constexpr std::array member_table{
    member_row{"command", read_command},
    member_row{"args", read_args},
    member_row{"env", read_env},
    member_row{"cwd", read_cwd},
    member_row{"glove", read_grants},
    member_row{"type", read_type},
    member_row{"transport", read_type},
    member_row{"url", refuse_remote},
    member_row{"httpUrl", refuse_remote},
    member_row{"serverUrl", refuse_remote},
    member_row{"envFile", refuse_env_file},
    member_row{"disabled", pass_over},
};

[[nodiscard]] auto is_disabled(const json::value& server, const place& at) -> result<bool> {
    const auto* disabled = server.find("disabled");
    if (disabled == nullptr) return false;
    const auto truth = disabled->as_bool();
    if (!truth) return at.inside("disabled").refuse("is neither true nor false");
    return *truth;
}

[[nodiscard]] auto read_server(const json::member& from, const place& at, upstream_file& to)
    -> result<> {
    if (const auto complaint = name_complaint(from.name); !complaint.empty())
        return at.refuse(complaint, "call it by 1 to 32 letters, digits, '-' and '_'");
    const auto* members = from.data.as_object();
    if (members == nullptr) return at.refuse("is not an object");
    GLOVE_TRY(const bool disabled, is_disabled(from.data, at));
    if (disabled) {
        to.ignored.push_back(from.name + " (disabled)");
        return {};
    }
    upstream_wish out;
    out.name = from.name;
    for (const auto& each : *members) {
        const auto* const row = std::ranges::find(member_table, each.name, &member_row::name);
        if (row == member_table.end())
            to.ignored.push_back(from.name + "." + json::readable_name(each.name));
        else GLOVE_CHECK(row->read(each.data, out, at.inside(each.name)));
    }
    if (from.data.find("command") == nullptr)
        return at.refuse("has no command", "say in \"command\" which program to start");
    to.upstreams.push_back(std::move(out));
    return {};
}

[[nodiscard]] auto of_file(error why, const std::string& file) -> std::unexpected<error> {
    why.detail.insert(0, printable(file) + ": ");
    return std::unexpected(std::move(why));
}

} // namespace

auto parse_upstream_file(std::string_view text, const std::string& file) -> result<upstream_file> {
    auto tree = json::read(
        text, {.bytes = longest_file, .form = json::numbers::any, .zero = json::nul::refused});
    if (!tree) return of_file(std::move(tree).error(), file);
    const auto* servers = tree->find("mcpServers");
    const place top{file, {}, "mcpServers"};
    if (servers == nullptr)
        return top.refuse(
            "is missing",
            R"(the form is {"mcpServers": {"NAME": {"command": "...", "args": []}}})");
    if (servers->as_object() == nullptr) return top.refuse("is not an object");
    upstream_file out;
    for (const auto& each : *tree->as_object())
        if (each.name != "mcpServers") out.ignored.push_back(json::readable_name(each.name));
    for (const auto& each : *servers->as_object()) {
        auto at = top.inside(each.name);
        at.server = each.name;
        GLOVE_CHECK(read_server(each, at, out));
    }
    if (auto sound = check_upstreams(out.upstreams); !sound)
        return of_file(std::move(sound).error(), file);
    return out;
}

} // namespace glove::mcp
