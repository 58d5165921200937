// Whatever a policy file and the arguments of a call hold: nothing breaks; a mistake is told with
// its step; a decision is the same for every order of the members; a denial of the operator is
// never undone; a text that is held as a path lies below its root, and one that is held as a URL
// begins by its host. A redacted result is JSON still.
//
// An input is a policy file, a line of three dashes, and arguments.
#include "policy/path_root.hpp"
#include "policy/url_host.hpp"
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <glove/policy/engine.hpp>

namespace {

using namespace glove;
using wire::json::value;

void require(bool holds) {
    if (!holds) std::abort();
}

const std::vector<std::string> upstreams{"fs", "up"};
const std::string directory = "/usr";

[[nodiscard]] auto reversed(const value& of) -> value {
    if (const auto* const items = of.as_array()) {
        wire::json::array out;
        for (const auto& item : *items) out.push_back(reversed(item));
        return value{std::move(out)};
    }
    const auto* const members = of.as_object();
    if (members == nullptr) return of;
    wire::json::object out;
    for (const auto& each : *members) out.push_back({each.name, reversed(each.data)});
    std::ranges::reverse(out);
    return value{std::move(out)};
}

void check_call(const policy::engine& rules, const policy::engine& denied,
                const policy::tool_name& tool, const value& arguments) {
    const auto said = rules.decides(tool, &arguments);
    const auto other = reversed(arguments);
    const auto again = rules.decides(tool, &other);
    require(said.allowed == again.allowed && said.rule == again.rule);
    require(said.allowed == said.rule.empty());
    require(!said.allowed || rules.shows(tool).allowed);
    require(!denied.shows(tool).allowed && !denied.decides(tool, &arguments).allowed);
}

void check_rules(std::string_view file, std::string_view text) {
    const auto rules = policy::engine::parse({}, file, upstreams, directory);
    if (!rules) {
        require(rules.error().step.starts_with("policy.") && !rules.error().detail.empty());
        return;
    }
    // Rules of tools that are denied by the command line are errors; only denials can be compared.
    const auto denied = policy::engine::parse({.deny = {"fs.*", "up.*"}}, "", upstreams, directory);
    require(denied.has_value());
    (void)rules->describe();
    (void)rules->reads("up", text);
    (void)rules->prompts("up", text);
    const auto arguments = wire::json::read(text, {.form = wire::json::numbers::any});
    auto tools = rules->named_tools();
    tools.emplace_back("up.t");
    for (const auto& name : tools) {
        const auto dot = name.find('.');
        const policy::tool_name tool{std::string_view{name}.substr(0, dot),
                                     std::string_view{name}.substr(dot + 1)};
        if (arguments) check_call(*rules, *denied, tool, *arguments);
        std::string result{text};
        const bool changed = rules->redact(tool, result);
        require(changed == (result != text) || !arguments);
        require(!changed || wire::json::read(result, {.bytes = result.size(),
                                                      .form = wire::json::numbers::any}));
    }
}

void check_path(std::string_view text) {
    static const auto root = policy::path_root::pin("/usr/share");
    require(root.has_value());
    if (!root->holds(text)) return;
    require(text.front() == '/' && text.size() <= policy::longest_path);
    std::vector<std::string_view> parts;
    for (auto rest = text; !rest.empty();) {
        const auto part = rest.substr(0, rest.find('/'));
        rest.remove_prefix(std::min(part.size() + 1, rest.size()));
        if (part == "..") parts.pop_back();
        else if (!part.empty() && part != ".") parts.push_back(part);
    }
    require(parts.size() >= 2 && parts[0] == "usr" && parts[1] == "share");
    require(std::ranges::none_of(text, [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\';
    }));
}

void check_url(std::string_view text) {
    policy::host_list hosts;
    require(hosts.add("a.example").empty());
    const auto url = policy::parse_url(text);
    if (!url || !hosts.holds(*url)) return;
    const auto rest = text.substr(text.find("://") + 3);
    require(rest.size() >= 9 && std::string_view{"/?#:"}.find(rest.size() > 9 ? rest[9] : '/') !=
                                    std::string_view::npos);
}

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    const std::string_view input{reinterpret_cast<const char*>(data), size};
    constexpr std::string_view mark = "\n---\n";
    const auto at = input.find(mark);
    const auto file = input.substr(0, at);
    const auto text =
        at == std::string_view::npos ? std::string_view{} : input.substr(at + mark.size());
    check_rules(file, text);
    check_path(text);
    check_url(text);
    return 0;
}
