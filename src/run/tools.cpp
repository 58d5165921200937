// Names what stands inside, and starts what stands outside.
#include "run/tools.hpp"
#include <algorithm>
#include <fcntl.h>
#include <glove/sys/files.hpp>
#include <glove/sys/spawn.hpp>
#include <glove/wire/json_writer.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::run {

namespace {

constexpr std::string_view tools_flag = "--upstream";
constexpr std::string_view tools_socket = "mcp.sock";
constexpr std::string_view tools_bridge = "bin/glove-mcp";
constexpr std::string_view tools_file = "mcp.json";
constexpr std::string_view tools_variable = "GLOVE_MCP_CONFIG";

[[nodiscard]] auto make_pipe(sys::unique_fd& from, sys::unique_fd& to) -> result<> {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_os("mediation.streams");
    from = sys::unique_fd{ends[0]};
    to = sys::unique_fd{ends[1]};
    return {};
}

} // namespace

auto plan_tools(const mediation_request& wish, container::profile& into) -> result<> {
    if (wish.on_streams) return {};
    GLOVE_TRY(auto bridge, sys::find_own_program("glove-mcp", "mediation.program"));
    const auto directory = std::string{container::listener_directory} + "/";
    std::string text;
    {
        wire::json::writer w{text};
        w.begin_object();
        w.begin_object("mcpServers");
        w.begin_object("glove");
        w.member("command", directory + std::string{tools_bridge});
        w.begin_array("args");
        w.end_array();
        w.end_object();
        w.end_object();
        w.end_object();
    }
    into.listeners.push_back({.flag = tools_flag, .name = std::string{tools_socket}});
    into.companions.push_back({.name = std::string{tools_bridge}, .program = std::move(bridge)});
    into.companions.push_back({.name = std::string{tools_file},
                               .text = text + "\n",
                               .variable = std::string{tools_variable}});
    return {};
}

auto tools_listener(const container::plan& plan) -> std::size_t {
    const auto path = std::string{container::listener_directory} + "/" + std::string{tools_socket};
    const auto at = std::ranges::find(plan.listeners, path, &container::planned_listener::path);
    return static_cast<std::size_t>(at - plan.listeners.begin());
}

auto start_tools(const mediation_request& wish, const shared_record& record, tool_streams& streams)
    -> result<mediator> {
    auto what = wish.what;
    what.task = wish.on_streams ? kernel::task::serve : kernel::task::bridge;
    what.run = record.run;
    what.audit_log = record.file;
    what.audit_sync = record.sync;
    if (!wish.on_streams) return mediator::start(what, {});
    agent_ends ends;
    GLOVE_CHECK(make_pipe(streams.agent_input, ends.output));
    GLOVE_CHECK(make_pipe(ends.input, streams.agent_output));
    return mediator::start(what, std::move(ends));
}

auto note_servers(const mediation_request& tools, container::plan& plan) -> result<> {
    for (const auto& upstream : tools.what.upstreams)
        for (const auto& word : upstream.argv) {
            const auto& base = upstream.directory.value_or(tools.what.directory);
            const auto path = word.starts_with('/') ? word : base + "/" + word;
            const auto where = container::resolve(path);
            struct ::stat found{};
            if (!where || ::stat(where->real.c_str(), &found) != 0 || !S_ISREG(found.st_mode))
                continue;
            for (const auto& entry : plan.tree)
                if (entry.mode == container::access::write &&
                    entry.origin == container::origin::asked && sys::holds(entry.path, where->real))
                    plan.notes.push_back(entry.path + " may be changed and holds " + where->real +
                                         ", of which the server " + upstream.name +
                                         " is made, so the command can decide what runs outside "
                                         "of the sandbox");
        }
    return {};
}

} // namespace glove::run
