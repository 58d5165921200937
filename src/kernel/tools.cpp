// A list of tools, judged: which of them an agent sees, and why not the others.
#include "kernel/core.hpp"
#include "kernel/texts.hpp"
#include "kernel/visible_text.hpp"
#include <glove/wire/json_writer.hpp>
#include <map>

namespace glove::kernel {

namespace {

constexpr std::size_t longest_name = 1024; // as pins have it
constexpr std::string_view changed_words =
    "the definition of this tool has changed since it was pinned; the operator has to accept it "
    "(glove mcp pin)";

void hide(tool& which, std::string why, std::string refusal) {
    which.shown = false;
    which.why = std::move(why);
    which.refusal = std::move(refusal);
}

[[nodiscard]] auto needs_tasks(const wire::json::value& definition) -> bool {
    const auto* execution = definition.find("execution");
    const auto* support = execution != nullptr ? execution->find("taskSupport") : nullptr;
    const auto* word = support != nullptr ? support->as_string() : nullptr;
    return word != nullptr && *word == "required";
}

} // namespace

// Everything about it but its pin and the names of others.
void gateway::state::judge(tool& each) const {
    const policy::tool_name id{each.server, each.name};
    const auto verdict = parts.rules.shows(id);
    each.shown = verdict.allowed;
    if (!verdict.allowed) {
        each.why = verdict.rule; // a call is told by the rules themselves
        return;
    }
    if (each.name.empty() || each.name.size() > longest_name)
        return hide(each, "its name is not 1 to 1024 bytes", "its name cannot be used");
    if (!is_tool_name(each.visible))
        return hide(each,
                    "its name is not 1 to 128 of A-Z, a-z, 0-9, '_', '-' and '.'; --rename "
                    "gives it another",
                    "its name is not one that agents can use");
    if (needs_tasks(each.definition))
        return hide(each, "it can only be called as a task, and tasks are not relayed",
                    "it can only be called as a task");
    if (wire::json::to_text(each.definition).size() > most_definition)
        return hide(each, "its definition is longer than 1 MiB", "its definition is too long");
    if (has_wide_object(each.definition, most_members))
        return hide(each,
                    "an object of its definition has more than " + std::to_string(most_members) +
                        " members",
                    "its definition has too many members");
}

// Pins what is shown for the first time, and hides what is not what it was.
void gateway::state::pin(std::vector<tool>& all) {
    if (parts.pins == nullptr) return;
    std::vector<policy::pin> fresh;
    const auto compare = [&](tool& each) {
        each.pin = parts.pins->compare(ups[each.upstream].server, each.name, each.digest);
    };
    for (auto& each : all) {
        compare(each);
        if (each.shown && each.pin == policy::pin_state::first_use)
            fresh.push_back({ups[each.upstream].server, each.server, each.name, each.digest,
                             policy::canonical_definition(each.definition)});
    }
    std::string unpinned = "it could not be pinned: its server has as many pins as one may have";
    if (!fresh.empty() && options.pins_first_use) {
        if (const auto added = parts.pins->add(std::move(fresh)); !added) {
            unpinned = "it could not be pinned";
            note(ups[all.front().upstream],
                 "tools could not be pinned: " + std::string{added.error().step} + ": " +
                     added.error().detail);
        }
        for (auto& each : all) compare(each);
    }
    for (auto& each : all) {
        if (!each.shown) continue;
        if (each.pin == policy::pin_state::changed) {
            note(ups[each.upstream],
                 "the tool " + each.qualified +
                     " is refused: its definition has changed since it was pinned (glove mcp pin)");
            hide(
                each,
                "its definition has changed since it was pinned; `glove mcp pin` shows the change, "
                "and `glove mcp pin --accept " +
                    each.qualified + "` accepts it",
                std::string{changed_words});
        } else if (each.pin == policy::pin_state::first_use && options.pins_first_use)
            hide(each, unpinned, "it could not be pinned");
    }
}

void gateway::state::take_tools(std::size_t of, const wire::json::array& definitions) {
    auto& up = ups[of];
    std::vector<tool> made;
    made.reserve(definitions.size());
    for (const auto& definition : definitions) {
        auto& each = made.emplace_back();
        each.upstream = static_cast<std::uint32_t>(of);
        each.server = up.wish.name;
        each.name = *definition.find("name")->as_string();
        each.qualified = each.server + "." + each.name;
        each.visible = names.visible(each.server, each.name);
        each.head = "{\"name\":";
        wire::json::append_quoted(each.head, each.name);
        each.head = safe(each.head);
        each.definition = definition;
        each.digest = policy::definition_digest(definition);
        const policy::tool_name id{each.server, each.name};
        each.limits = parts.rules.limits_of(id);
        each.metered = each.limits.calls || each.limits.per_minute;
        each.judged = parts.rules.judges_arguments(id);
        each.redacted = parts.rules.redacts(id);
        each.result_bytes = each.limits.result_bytes.value_or(options.result_bytes);
        each.patience = each.limits.timeout ? nanoseconds{*each.limits.timeout} : up.call_timeout;
        judge(each);
    }
    std::map<std::string_view, std::size_t> times;
    for (const auto& each : made) ++times[each.name];
    for (auto& each : made)
        if (times[each.name] > 1)
            hide(each, "the server lists two tools with this name",
                 "more than one tool has this name");
    pin(made);
    for (auto& each : made)
        if (each.shown) each.text = agent_text(each);
    if (tools.replace(of, std::move(made))) tell_ready_agents("notifications/tools/list_changed");
}

} // namespace glove::kernel
