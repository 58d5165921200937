// The one table of methods. Rows are in the order of the pages that describe them.
#include <algorithm>
#include <glove/mcp/protocol.hpp>

namespace glove::mcp {

namespace {

using enum sender;
using enum shape;
using f = feature;
using t = treatment;

// agent -> upstream and upstream -> agent; tasks are offered to neither.
constexpr std::array table{
    method_row{"initialize", agent, request, f::base, t::own},
    method_row{"ping", agent, request, f::base, t::own},
    method_row{"server/discover", agent, request, f::base, t::refuse},
    method_row{"tools/list", agent, request, f::tools, t::own},
    method_row{"tools/call", agent, request, f::tools, t::call},
    method_row{"resources/list", agent, request, f::resources, t::relay},
    method_row{"resources/templates/list", agent, request, f::resources, t::relay},
    method_row{"resources/read", agent, request, f::resources, t::relay},
    method_row{"resources/subscribe", agent, request, f::resources, t::relay},
    method_row{"resources/unsubscribe", agent, request, f::resources, t::relay},
    method_row{"prompts/list", agent, request, f::prompts, t::relay},
    method_row{"prompts/get", agent, request, f::prompts, t::relay},
    method_row{"completion/complete", agent, request, f::completion, t::relay},
    method_row{"logging/setLevel", agent, request, f::logging, t::relay},
    method_row{"tasks/get", agent, request, f::tasks, t::refuse},
    method_row{"tasks/result", agent, request, f::tasks, t::refuse},
    method_row{"tasks/list", agent, request, f::tasks, t::refuse},
    method_row{"tasks/cancel", agent, request, f::tasks, t::refuse},
    method_row{"notifications/initialized", agent, notification, f::base, t::own},
    method_row{"notifications/cancelled", agent, notification, f::base, t::own},
    method_row{"notifications/progress", agent, notification, f::base, t::own},
    method_row{"notifications/roots/list_changed", agent, notification, f::roots, t::refuse},
    method_row{"notifications/tasks/status", agent, notification, f::tasks, t::refuse},

    method_row{"ping", upstream, request, f::base, t::own},
    method_row{"roots/list", upstream, request, f::roots, t::own},
    method_row{"sampling/createMessage", upstream, request, f::sampling, t::relay},
    method_row{"elicitation/create", upstream, request, f::elicitation, t::relay},
    method_row{"tasks/get", upstream, request, f::tasks, t::refuse},
    method_row{"tasks/result", upstream, request, f::tasks, t::refuse},
    method_row{"tasks/list", upstream, request, f::tasks, t::refuse},
    method_row{"tasks/cancel", upstream, request, f::tasks, t::refuse},
    method_row{"notifications/cancelled", upstream, notification, f::base, t::own},
    method_row{"notifications/progress", upstream, notification, f::base, t::own},
    method_row{"notifications/tools/list_changed", upstream, notification, f::tools, t::own},
    method_row{"notifications/resources/list_changed", upstream, notification, f::resources,
               t::relay},
    method_row{"notifications/resources/updated", upstream, notification, f::resources, t::relay},
    method_row{"notifications/prompts/list_changed", upstream, notification, f::prompts, t::relay},
    method_row{"notifications/message", upstream, notification, f::logging, t::relay},
    method_row{"notifications/elicitation/complete", upstream, notification, f::elicitation,
               t::relay},
    method_row{"notifications/tasks/status", upstream, notification, f::tasks, t::refuse},
};

constexpr std::array relayed{feature::resources, feature::prompts,  feature::completion,
                             feature::logging,   feature::sampling, feature::elicitation};

} // namespace

auto negotiated(std::string_view wanted) noexcept -> std::string_view {
    const auto* const found = std::ranges::find(revisions, wanted);
    return found == revisions.end() ? latest_revision : *found;
}

auto speaks(std::string_view revision) noexcept -> bool {
    return std::ranges::find(revisions, revision) != revisions.end();
}

auto to_string(feature which) noexcept -> std::string_view {
    switch (which) {
    case feature::base: return "base";
    case feature::tools: return "tools";
    case feature::resources: return "resources";
    case feature::prompts: return "prompts";
    case feature::completion: return "completion";
    case feature::logging: return "logging";
    case feature::sampling: return "sampling";
    case feature::elicitation: return "elicitation";
    case feature::roots: return "roots";
    case feature::tasks: return "tasks";
    }
    return "base";
}

auto to_string(sender from) noexcept -> std::string_view {
    return from == sender::agent ? "agent" : "upstream";
}

auto to_string(shape of) noexcept -> std::string_view {
    return of == shape::request ? "request" : "notification";
}

auto to_string(treatment how) noexcept -> std::string_view {
    switch (how) {
    case treatment::own: return "own";
    case treatment::call: return "call";
    case treatment::relay: return "relay";
    case treatment::refuse: return "refuse";
    }
    return "refuse";
}

auto relayable(std::string_view word) noexcept -> std::optional<feature> {
    const auto* const found =
        std::ranges::find(relayed, word, [](feature each) { return to_string(each); });
    if (found == relayed.end()) return std::nullopt;
    return *found;
}

auto methods() noexcept -> std::span<const method_row> { return table; }

auto find_method(std::string_view name, sender from, shape of) noexcept -> const method_row* {
    const auto* const found = std::ranges::find_if(table, [&](const method_row& row) {
        return row.from == from && row.shape == of && row.name == name;
    });
    return found == table.end() ? nullptr : found;
}

} // namespace glove::mcp
