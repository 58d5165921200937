// For people and for scripts from the same members.
#include "run/description_tools.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <glove/base/ascii.hpp>
#include <glove/base/text.hpp>
#include <utility>

namespace glove::run {

namespace {

using json = wire::json::writer;

// What an option is called whose value is nobody's to read.
[[nodiscard]] auto names_secret(std::string_view option) -> bool {
    constexpr std::string_view parts[] = {"token", "key",  "pass",   "secret",
                                          "cred",  "auth", "header", "cookie"};
    if (!option.starts_with('-')) return false;
    std::string lower;
    for (const char c : option) lower += to_lower(c);
    return std::ranges::any_of(parts, [&](std::string_view part) { return lower.contains(part); });
}

void write_texts(json& w, std::string_view name, const std::vector<std::string>& texts) {
    w.begin_array(name);
    for (const auto& text : texts) w.element(text);
    w.end_array();
}

void write_perimeter(json& w, const mcp::upstream_wish& upstream) {
    w.begin_object("perimeter");
    w.member("program", upstream.perimeter->program);
    write_texts(w, "needs", upstream.perimeter->needs);
    write_texts(w, "read", upstream.grants.read);
    write_texts(w, "write", upstream.grants.write);
    write_texts(w, "egress", upstream.grants.egress);
    w.end_object();
}

// Never a value of a variable: it may be a secret.
void write_upstream(json& w, const mcp::upstream_wish& upstream) {
    w.begin_object();
    w.member("name", upstream.name);
    w.begin_array("command");
    for (const auto& word : shown_words(upstream.argv)) w.element(word);
    w.end_array();
    w.begin_array("environment");
    for (const auto& [name, value] : upstream.environment) w.element(name);
    for (const auto& name : upstream.passed) w.element(name);
    w.end_array();
    if (upstream.directory) w.member("directory", *upstream.directory);
    w.member("required", upstream.required);
    w.member("contained", upstream.perimeter.has_value());
    if (upstream.perimeter) write_perimeter(w, upstream);
    w.end_object();
}

[[nodiscard]] auto perimeter_text(const mcp::upstream_wish& upstream) -> std::string {
    std::string out;
    const auto list = [&](std::string_view what, const std::vector<std::string>& of) {
        for (const auto& each : of) out += fmt::format("    {} {}\n", what, printable(each));
    };
    list("sees, for its program,", upstream.perimeter->needs);
    list("sees", upstream.grants.read);
    list("may change", upstream.grants.write);
    list("may reach", upstream.grants.egress);
    if (upstream.grants.egress.empty()) out += "    has no network\n";
    return out;
}

} // namespace

auto shown_words(const std::vector<std::string>& argv) -> std::vector<std::string> {
    constexpr std::string_view hidden = "...", mark = "://";
    std::vector<std::string> out;
    bool is_value = false;
    for (const auto& word : argv) {
        const bool hide = std::exchange(is_value, names_secret(word) && !word.contains('='));
        std::string shown = word.substr(0, word.find('='));
        if (shown.size() < word.size()) shown += "=" + std::string{hidden};
        const auto user = shown.find(mark), host = shown.rfind('@');
        if (user != std::string::npos && host != std::string::npos && user < host)
            shown.replace(user + mark.size(), host - user - mark.size(), hidden);
        out.push_back(hide ? std::string{hidden} : std::move(shown));
    }
    return out;
}

void write_mediation(json& w, const mediation_request& request,
                     const std::vector<std::string>* rules) {
    const auto& what = request.what;
    w.begin_object("mediation");
    w.member("transport", request.on_streams ? "stdio" : "bridge");
    w.begin_array("upstreams");
    for (const auto& upstream : what.upstreams) write_upstream(w, upstream);
    w.end_array();
    write_texts(w, "allow", what.rules.allow);
    write_texts(w, "deny", what.rules.deny);
    write_texts(w, "allow_arg", what.rules.allow_arg);
    if (what.rules.file) w.member("policy", *what.rules.file);
    if (rules != nullptr) write_texts(w, "rules", *rules);
    write_texts(w, "relay", what.relay);
    w.member("tool_names", what.names == kernel::tool_names::bare ? "bare" : "qualified");
    w.begin_array("renames");
    for (const auto& [name, tool] : what.renames) w.element(name + "=" + tool);
    w.end_array();
    w.member("start_timeout_ms", what.start_timeout_ms);
    w.member("call_timeout_ms", what.call_timeout_ms);
    w.member("result_bytes", what.result_bytes);
    w.member("instructions", what.instructions);
    w.member("pins", what.pinning);
    w.end_object();
}

auto tools_text(const mediation_request& request, const std::vector<std::string>& rules)
    -> std::string {
    std::string out;
    for (const auto& upstream : request.what.upstreams) {
        out += fmt::format("  {}:", upstream.name);
        for (const auto& word : shown_words(upstream.argv)) out += " " + printable(word);
        out += upstream.perimeter ? ", in a sandbox of its own" : ", outside of the sandbox";
        std::string variables;
        for (const auto& [name, value] : upstream.environment) variables += " " + name;
        for (const auto& name : upstream.passed) variables += " " + name;
        out += variables.empty() ? "\n" : ", with" + variables + "\n";
        if (upstream.perimeter) out += perimeter_text(upstream);
    }
    for (const auto& rule : rules) out += fmt::format("  {}\n", printable(rule));
    return out + fmt::format("  spoken with {}\n", request.on_streams
                                                       ? "on standard input and output"
                                                       : "by a socket inside");
}

} // namespace glove::run
