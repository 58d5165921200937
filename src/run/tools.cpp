// Names what stands inside, and starts what stands outside.
#include "run/tools.hpp"
#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <glove/run/mediation.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/spawn.hpp>
#include <glove/wire/json_writer.hpp>
#include <iterator>
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

// The writable grant that decides what is at the path: it lies there, or a link on the way to it,
// or what there is of the way.
[[nodiscard]] auto grant_over(const container::plan& plan, const std::string& path)
    -> const container::tree_entry* {
    auto where = container::resolve(path);
    for (auto at = path; !where && at != "/";) {
        at = sys::parent_of(at);
        where = container::resolve(at);
    }
    const auto decides = [&](const container::tree_entry& entry) {
        const auto has = [&](const std::string& of) { return sys::holds(entry.path, of); };
        return entry.mode == container::access::write && entry.origin == container::origin::asked &&
               (has(path) || (where && (has(where->real) ||
                                        std::ranges::any_of(where->links, [&](const auto& link) {
                                            return has(link.first);
                                        }))));
    };
    const auto found = std::ranges::find_if(plan.tree, decides);
    return found == plan.tree.end() ? nullptr : &*found;
}

// The writable grant inside of the directory.
[[nodiscard]] auto grant_inside(const container::plan& plan, const std::string& directory)
    -> const container::tree_entry* {
    const auto where = container::resolve(directory);
    const auto found = std::ranges::find_if(plan.tree, [&](const container::tree_entry& entry) {
        return entry.mode == container::access::write && entry.origin == container::origin::asked &&
               where && sys::holds(where->real, entry.path);
    });
    return found == plan.tree.end() ? nullptr : &*found;
}

// "GRANT may be changed and holds PART", of each part that the agent could change.
[[nodiscard]] auto changeable_parts(const container::plan& plan,
                                    const std::vector<std::string>& parts)
    -> std::vector<std::string> {
    std::vector<std::string> out;
    for (const auto& part : parts) {
        std::string words;
        if (const auto* const over = grant_over(plan, part))
            words = over->path + " may be changed and holds " + part;
        else if (const auto* const inside = grant_inside(plan, part))
            words = inside->path + " may be changed and is inside of " + part;
        if (!words.empty() && std::ranges::count(out, words) == 0) out.push_back(std::move(words));
    }
    return out;
}

[[nodiscard]] auto is_file(const std::string& path) -> bool {
    struct ::stat found{};
    return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode);
}

// As glove-mediator finds it; empty when it will not.
[[nodiscard]] auto program_in(std::string_view path, const std::string& name) -> std::string {
    while (!path.empty()) {
        const auto directory = path.substr(0, path.find(':'));
        path.remove_prefix(std::min(directory.size() + 1, path.size()));
        auto candidate = std::string{directory} + "/" + name;
        if (is_file(candidate) && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return {};
}

// What it executes and the files among its words, as glove-mediator will find them, with each link
// on the way; and what else it is made of.
[[nodiscard]] auto paths_of(const mcp::upstream_wish& server, const mediation_request& tools,
                            std::size_t index, std::string_view search)
    -> std::vector<std::string> {
    std::vector<std::string> out;
    const auto base = server.directory.value_or(tools.what.directory);
    for (const auto& word : server.argv) {
        const bool is_name = &word == server.argv.data() && !word.contains('/');
        auto path = is_name                 ? program_in(search, word)
                    : word.starts_with('/') ? word
                                            : base + "/" + word;
        if (!is_file(path)) continue;
        const auto where = container::resolve(path);
        out.push_back(where ? where->real : std::move(path));
        if (!where) continue;
        for (const auto& [link, target] : where->links) out.push_back(link); // it can be turned
    }
    const auto& more = tools.servers[index].parts;
    out.insert(out.end(), more.begin(), more.end());
    return out;
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

auto search_path_of_servers(const container::plan& plan) -> search_path {
    search_path out;
    const char* const path = std::getenv("PATH");
    for (std::string_view rest{path == nullptr ? "" : path}; !rest.empty();) {
        const std::string each{rest.substr(0, rest.find(':'))};
        rest.remove_prefix(std::min(each.size() + 1, rest.size()));
        if (!each.starts_with('/')) continue;
        if (grant_over(plan, each) != nullptr) out.left_out.push_back(each);
        else out.kept += (out.kept.empty() ? "" : ":") + each;
    }
    return out;
}

auto start_tools(const mediation_request& wish, const container::plan& plan,
                 const shared_record& record, tool_streams& streams) -> result<mediator> {
    auto what = wish.what;
    what.task = wish.on_streams ? kernel::task::serve : kernel::task::bridge;
    what.run = record.run;
    what.audit_log = record.file;
    put_perimeters_on_record(what);
    what.audit_sync = record.sync;
    GLOVE_CHECK(make_server_directories(what));
    const auto path = search_path_of_servers(plan).kept;
    if (!wish.on_streams) return mediator::start(what, {}, {}, path);
    agent_ends ends;
    GLOVE_CHECK(make_pipe(streams.agent_input, ends.output));
    GLOVE_CHECK(make_pipe(ends.input, streams.agent_output));
    return mediator::start(what, std::move(ends), {}, path);
}

auto check_servers(const mediation_request& tools, container::plan& plan) -> result<> {
    const std::string danger =
        tools.what.contain_upstreams
            ? ", so the command can decide what runs with that server's grants"
            : ", so the command can decide what runs outside of the sandbox";
    std::vector<std::string> notes;
    const auto search = search_path_of_servers(plan);
    for (const auto& each : search.left_out)
        notes.push_back("servers are not looked for in " + each +
                        ", which PATH names: the command may change it");
    const auto& upstreams = tools.what.upstreams;
    for (std::size_t i = 0; i < upstreams.size(); ++i) {
        const auto& server = upstreams[i];
        const auto base = server.directory.value_or(tools.what.directory);
        if (const auto* const entry = grant_over(plan, base))
            notes.push_back(entry->path + " may be changed and holds " + base +
                            ", where the server " + server.name + " starts" + danger);
        for (const auto& met : changeable_parts(plan, paths_of(server, tools, i, search.kept))) {
            auto words = met + ", of which the server " + server.name + " is made" + danger;
            if (!tools.servers[i].changeable)
                return fail(errc::invalid_input, "plan.server", std::move(words),
                            "put the server or the grant elsewhere; if that is meant, name it: "
                            "--upstream-changeable " +
                                server.name);
            notes.push_back(std::move(words));
        }
    }
    std::ranges::move(notes, std::back_inserter(plan.notes));
    return {};
}

} // namespace glove::run
