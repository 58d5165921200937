// Whatever text a server sent, what is printed draws nothing but itself.
#include "kernel/mediator_process/verbs.hpp"
#include "kernel/mediator_process/differences.hpp"
#include <algorithm>
#include <glove/audit/table.hpp>
#include <glove/base/text.hpp>
#include <glove/mcp/message.hpp>
#include <glove/wire/json_writer.hpp>

namespace glove::kernel {

namespace {

namespace json = wire::json;

constexpr std::size_t widest_value = 400, widest_words = 100;

[[nodiscard]] auto padded(std::string text, std::size_t width) -> std::string {
    text = audit::safe_text(text);
    if (text.size() < width) text.append(width - text.size(), ' ');
    return text;
}

[[nodiscard]] auto pin_word(policy::pin_state state) -> std::string_view {
    switch (state) {
    case policy::pin_state::first_use: return "new";
    case policy::pin_state::same: return "pinned";
    case policy::pin_state::changed: return "changed";
    }
    return "new";
}

[[nodiscard]] auto subject_of(const seen_tool& of) -> std::string {
    return of.tool.empty() ? of.upstream + " (instructions)" : of.upstream + "." + of.tool;
}

[[nodiscard]] auto description_of(const seen_tool& of) -> std::string {
    const auto tree = json::read(of.definition, mcp::message_limits());
    const auto* found = tree ? tree->find("description") : nullptr;
    const auto* words = found != nullptr ? found->as_string() : nullptr;
    if (words == nullptr) return {};
    return audit::fitted(audit::safe_text(words->substr(0, words->find('\n'))), widest_words);
}

[[nodiscard]] auto tools_as_json(const gateway& of) -> std::string {
    std::string out;
    {
        json::writer to{out};
        to.begin_object();
        to.begin_array("servers");
        for (const auto& each : of.upstreams()) {
            to.begin_object();
            to.member("name", each.name);
            to.member("up", each.up);
            to.member("revision", each.revision);
            if (!each.problem.empty()) to.member("problem", each.problem);
            to.end_object();
        }
        to.end_array();
        to.begin_array("tools");
        for (const auto& each : of.tools()) {
            if (each.tool.empty()) continue;
            to.begin_object();
            to.member("name", each.visible);
            to.member("tool", subject_of(each));
            to.member("shown", each.shown);
            if (!each.shown) to.member("why", each.why);
            to.member("pin", pin_word(each.pin));
            to.key("definition");
            to.raw(each.definition);
            to.end_object();
        }
        to.end_array();
        to.end_object();
    }
    return out += '\n';
}

[[nodiscard]] auto tools_as_table(const gateway& of) -> std::string {
    const auto all = of.tools();
    std::size_t name = 4, tool = 4;
    for (const auto& each : all) {
        name = std::max(name, std::min<std::size_t>(each.visible.size(), 40));
        tool = std::max(tool, std::min<std::size_t>(subject_of(each).size(), 40));
    }
    std::string out =
        padded("NAME", name) + "  " + padded("TOOL", tool) + "  SHOWN  PIN      WHAT\n";
    for (const auto& each : all) {
        if (each.tool.empty()) continue;
        out += padded(each.visible, name) + "  " + padded(subject_of(each), tool) + "  " +
               padded(each.shown ? "yes" : "no", 5) + "  " +
               padded(std::string{pin_word(each.pin)}, 7) + "  ";
        out += each.shown ? description_of(each) : audit::safe_text(each.why);
        while (out.ends_with(' ')) out.pop_back();
        out += '\n';
    }
    for (const auto& each : of.upstreams())
        if (!each.up) out += "server " + each.name + ": " + audit::safe_text(each.problem) + "\n";
    return out;
}

} // namespace

auto print_tools(const gateway& of, bool as_json) -> printed {
    const auto all = of.upstreams();
    const bool whole = std::ranges::all_of(all, &seen_upstream::up);
    return {as_json ? tools_as_json(of) : tools_as_table(of), whole ? 0 : 1};
}

namespace {

struct checked_call {
    std::string upstream, tool;
    std::optional<json::value> arguments;
};

[[nodiscard]] auto call_to_check(const mediation& what) -> result<checked_call> {
    const auto dot = what.check_tool->find('.');
    checked_call out;
    out.upstream = what.check_tool->substr(0, dot);
    const bool known = std::ranges::any_of(
        what.upstreams, [&](const auto& each) { return each.name == out.upstream; });
    if (dot == std::string::npos || dot + 1 == what.check_tool->size() || !known)
        return fail(errc::invalid_input, "mcp.check",
                    in_quotes(*what.check_tool) + " is not UPSTREAM.TOOL of an upstream that is "
                                                  "named");
    out.tool = what.check_tool->substr(dot + 1);
    if (!what.check_arguments) return out;
    auto read = json::read(*what.check_arguments, mcp::message_limits());
    if (!read) {
        auto why = std::move(read).error();
        why.detail = "the arguments: " + why.detail;
        return std::unexpected(std::move(why));
    }
    if (read->as_object() == nullptr)
        return fail(errc::invalid_input, "mcp.check", "the arguments of a call are a JSON object");
    out.arguments = *std::move(read);
    return out;
}

[[nodiscard]] auto lines_of(std::string_view text) -> std::vector<std::string> {
    std::vector<std::string> out;
    while (!text.empty()) {
        const auto line = text.substr(0, text.find('\n'));
        if (!line.empty()) out.emplace_back(line);
        text.remove_prefix(std::min(line.size() + 1, text.size()));
    }
    return out;
}

// A line of the rules begins with what it is about.
[[nodiscard]] auto is_about(const std::string& line, const checked_call& call) -> bool {
    const auto one = call.upstream + "." + call.tool;
    return line.find(one) != std::string::npos ||
           line.find(call.upstream + ".*") != std::string::npos;
}

} // namespace

auto print_check(const mediation& what, const policy::engine& rules) -> result<printed> {
    auto lines = lines_of(rules.describe());
    printed out;
    std::optional<policy::verdict> verdict;
    if (what.check_tool) {
        GLOVE_TRY(const auto call, call_to_check(what));
        const policy::tool_name id{call.upstream, call.tool};
        // Without arguments it is asked whether agents see the tool at all.
        verdict = what.check_arguments ? rules.decides(id, &*call.arguments) : rules.shows(id);
        std::erase_if(lines, [&](const std::string& line) { return !is_about(line, call); });
        out.status = verdict->allowed ? 0 : 1;
    }
    if (what.json) {
        json::writer to{out.text};
        to.begin_object();
        to.begin_array("rules");
        for (const auto& line : lines) to.element(line);
        to.end_array();
        if (verdict) {
            to.member("tool", *what.check_tool);
            to.member("allowed", verdict->allowed);
            if (!verdict->allowed) to.member("rule", verdict->rule);
        }
        to.end_object();
        out.text += '\n';
        return out;
    }
    for (const auto& line : lines) out.text += audit::safe_text(line) + "\n";
    if (!verdict) return out;
    if (lines.empty()) out.text += "no rule names " + audit::safe_text(*what.check_tool) + "\n";
    out.text += verdict->allowed ? "allowed" : "denied: " + audit::safe_text(verdict->rule);
    out.text += what.check_arguments || !verdict->allowed ? "\n" : ", with arguments that fit\n";
    return out;
}

namespace {

[[nodiscard]] auto is_accepted(const std::vector<std::string>& words, const seen_tool& of) -> bool {
    return std::ranges::any_of(words, [&](const std::string& word) {
        return word == "*" || word == of.upstream ||
               (!of.tool.empty() && word == of.upstream + "." + of.tool);
    });
}

// Words that name nothing of what is there.
[[nodiscard]] auto check_accepted(const std::vector<std::string>& words,
                                  const std::vector<seen_tool>& all) -> result<> {
    for (const auto& word : words)
        if (std::ranges::none_of(all, [&](const auto& each) { return is_accepted({word}, each); }))
            return fail(errc::not_found, "mcp.accept",
                        in_quotes(word) +
                            " is neither a server with pins nor a tool that one lists",
                        "glove mcp pin lists them");
    return {};
}

[[nodiscard]] auto value_text(const std::string& text) -> std::string {
    return text.empty() ? "(nothing)" : audit::fitted(audit::safe_text(text), widest_value);
}

[[nodiscard]] auto change_text(const seen_tool& of, const policy::pin* old) -> std::string {
    if (old == nullptr || old->definition.empty()) return "    the old text was not kept\n";
    const auto before = json::read(old->definition, mcp::message_limits());
    const auto after = json::read(of.definition, mcp::message_limits());
    if (!before || !after) return "    the old text cannot be read\n";
    std::string out;
    for (const auto& each : differences(*before, *after))
        out += "    " + (each.place.empty() ? std::string{"text"} : audit::safe_text(each.place)) +
               "\n      was " + value_text(each.old) + "\n      is  " + value_text(each.fresh) +
               "\n";
    return out;
}

[[nodiscard]] auto pins_as_json(const std::vector<seen_tool>& all,
                                const std::vector<std::string>& accepted,
                                const policy::pin_store& pins) -> std::string {
    std::string out;
    {
        json::writer to{out};
        to.begin_object();
        to.begin_array("pins");
        for (const auto& each : all) {
            to.begin_object();
            to.member("server", each.upstream);
            if (!each.tool.empty()) to.member("tool", subject_of(each));
            to.member("state", pin_word(each.pin));
            to.member("accepted", is_accepted(accepted, each));
            if (const auto* old = pins.find(each.server, each.tool);
                each.pin == policy::pin_state::changed && old != nullptr &&
                !old->definition.empty()) {
                to.key("was");
                to.raw(old->definition);
            }
            to.key("is");
            to.raw(each.definition);
            to.end_object();
        }
        to.end_array();
        to.end_object();
    }
    return out += '\n';
}

} // namespace

auto print_pins(const mediation& what, const gateway& of, policy::pin_store& pins)
    -> result<printed> {
    const auto all = of.tools();
    GLOVE_CHECK(check_accepted(what.accept, all));
    printed out;
    if (what.json) out.text = pins_as_json(all, what.accept, pins);
    std::vector<policy::pin> accepted;
    for (const auto& each : all) {
        const bool takes = is_accepted(what.accept, each);
        if (takes && each.pin != policy::pin_state::same)
            accepted.push_back(
                {each.server, each.upstream, each.tool, each.digest, each.definition});
        if (!takes && each.pin == policy::pin_state::changed) out.status = 1;
        if (what.json) continue;
        out.text += padded(std::string{pin_word(each.pin)}, 7) + "  " +
                    audit::safe_text(subject_of(each)) +
                    (takes && each.pin != policy::pin_state::same ? "  (accepted now)\n" : "\n");
        if (each.pin == policy::pin_state::changed)
            out.text += change_text(each, pins.find(each.server, each.tool));
    }
    if (!accepted.empty()) GLOVE_CHECK(pins.accept(std::move(accepted)));
    for (const auto& each : of.upstreams()) {
        if (each.up) continue;
        out.status = 1;
        if (!what.json)
            out.text += "server " + each.name + ": " + audit::safe_text(each.problem) + "\n";
    }
    return out;
}

auto print_forgotten(const mediation& what, policy::pin_store& pins) -> result<printed> {
    GLOVE_TRY(const auto gone, pins.forget(what.forget));
    printed out;
    const auto name_of = [](const policy::pin& each) {
        return each.subject.empty() ? each.upstream : each.upstream + "." + each.subject;
    };
    if (!what.json) {
        for (const auto& each : gone)
            out.text += "forgotten  " + audit::safe_text(name_of(each)) +
                        (each.subject.empty() ? " (instructions)\n" : "\n");
        return out;
    }
    {
        json::writer to{out.text};
        to.begin_object();
        to.begin_array("forgotten");
        for (const auto& each : gone) {
            to.begin_object();
            to.member("server", each.upstream);
            if (!each.subject.empty()) to.member("tool", name_of(each));
            to.end_object();
        }
        to.end_array();
        to.end_object();
    }
    out.text += '\n';
    return out;
}

} // namespace glove::kernel
