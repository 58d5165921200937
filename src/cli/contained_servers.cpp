// A perimeter is planned here only to know whether it can be: the same plan is made again, and
// carried out, by the `glove exec` that starts the server. Nothing here starts a server, and no
// server that is to be contained is left without.
#include "cli/contained_servers.hpp"
#include "cli/server_parts.hpp"
#include "cli/values.hpp"
#include <algorithm>
#include <array>
#include <cstdlib>
#include <glove/base/text.hpp>
#include <glove/container/launch.hpp>
#include <glove/container/plan.hpp>
#include <glove/host/profiles.hpp>
#include <glove/run/mediation.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/spawn.hpp>
#include <glove/sys/user_directories.hpp>

namespace glove::cli {

namespace {

using words_of = std::vector<std::string>;

struct grant_option {
    const char* flag;
    const char* type;
    const char* help;
    words_of mediation_words::* words;
    words_of mcp::upstream_grants::* grants;
    bool is_path;
    const char* example;
};
constexpr std::array grant_options{
    grant_option{"--upstream-read", "UP=PATH", "What a contained server may read (repeatable)",
                 &mediation_words::upstream_read, &mcp::upstream_grants::read, true,
                 "--upstream-read files=/srv/data"},
    grant_option{"--upstream-write", "UP=PATH", "What a contained server may change (repeatable)",
                 &mediation_words::upstream_write, &mcp::upstream_grants::write, true,
                 "--upstream-write files=/srv/out"},
    grant_option{"--upstream-egress", "UP=RULE", "What a contained server may reach (repeatable)",
                 &mediation_words::upstream_egress, &mcp::upstream_grants::egress, false,
                 "--upstream-egress github=api.github.com"},
};
// Where Glove itself keeps its records while it contains a server.
constexpr std::array<std::string_view, 2> own_variables{"XDG_CONFIG_HOME", "XDG_STATE_HOME"};

[[nodiscard]] auto wrong(std::string what, std::string remedy) {
    return fail(errc::invalid_input, "usage", std::move(what), std::move(remedy));
}

[[nodiscard]] auto of_server(const mcp::upstream_wish& server, error problem)
    -> std::unexpected<error> {
    problem.detail.insert(0, "the server " + server.name + ": ");
    return std::unexpected(std::move(problem));
}

[[nodiscard]] auto add_grant(const grant_option& option, const std::string& word,
                             mediation_wish& into) -> result<> {
    const auto given = std::string{option.flag} + " " + word;
    const auto equals = word.find('=');
    if (equals == std::string::npos || equals + 1 == word.size())
        return wrong(given + ": not " + option.type, std::string{"as in: "} + option.example);
    auto* const server = find_upstream(into, std::string_view{word}.substr(0, equals));
    if (server == nullptr) return no_such_upstream(given, word.substr(0, equals), into);
    auto value = word.substr(equals + 1);
    if (option.is_path) {
        GLOVE_TRY(value, sys::absolute(value));
    }
    (server->grants.*option.grants).push_back(std::move(value));
    return {};
}

[[nodiscard]] auto refuse_grants(const mediation_wish& wish) -> result<> {
    for (const auto& server : wish.what.upstreams)
        if (server.grants != mcp::upstream_grants{})
            return wrong("the server " + server.name + " has grants, and it is not contained",
                         "add --contain-upstreams, or leave its grants out");
    return {};
}

// A directory that it was to start in is one that it may change, or it cannot be given.
[[nodiscard]] auto workspace_of(const mcp::upstream_wish& server, const mediation_wish& wish)
    -> result<std::optional<std::string>> {
    if (server.directory == run::server_directory(wish.what, server.name)) return std::nullopt;
    const auto& writable = server.grants.write;
    if (std::ranges::count(writable, *server.directory) != 0) return server.directory;
    return wrong("the server " + server.name + " has the cwd " + *server.directory +
                     ", and a contained server starts in a private directory",
                 "leave cwd out, or grant it with --upstream-write " + server.name + "=" +
                     *server.directory);
}

[[nodiscard]] auto variables_of(const mcp::upstream_wish& server)
    -> result<std::vector<std::pair<std::string, std::string>>> {
    auto out = server.environment;
    for (const auto& name : server.passed)
        if (const char* const value = std::getenv(name.c_str())) out.emplace_back(name, value);
    for (const auto& [name, value] : out)
        if (std::ranges::count(own_variables, name) != 0)
            return wrong("the server " + server.name + ": " + name +
                             " cannot be set for a contained server",
                         "leave it out; inside, its home is private");
    return out;
}

[[nodiscard]] auto profile_of(const mcp::upstream_wish& server, const mediation_wish& wish)
    -> result<container::profile> {
    using container::access;
    const auto& with = *server.perimeter;
    container::profile out;
    out.argv = {with.program};
    out.workspace = with.workspace;
    for (const auto& path : server.grants.read)
        out.grants.push_back({"--upstream-read", path, access::read});
    for (const auto& path : server.grants.write)
        if (path != with.workspace) out.grants.push_back({"--upstream-write", path, access::write});
    for (const auto& path : with.needs) out.grants.push_back({"program", path, access::read, true});
    GLOVE_TRY(out.environment, variables_of(server));
    out.path_directories = with.directories;
    out.egress.allow = server.grants.egress;
    if (!out.egress.allow.empty()) out.network = container::network_tier::egress;
    GLOVE_TRY(const auto configuration, sys::configuration_directory());
    out.control_paths = wish.files;
    out.control_paths.push_back(wish.what.state);
    out.control_paths.push_back(configuration);
    out.control_paths.push_back(configuration + "/config.toml");
    return out;
}

[[nodiscard]] auto is_bound(const container::plan& plan, const std::string& path) -> bool {
    return std::ranges::any_of(plan.tree, [&](const container::tree_entry& entry) {
        return entry.kind == container::entry_kind::bind && sys::holds(entry.path, path);
    });
}

// Leaves what would not be seen anyway. A link to what is seen is no path inside: what it leads to
// is taken in its place.
void settle_program(const container::plan& plan, mcp::upstream_perimeter& with) {
    words_of needs;
    for (const auto& need : with.needs) {
        const auto real = real_of(need);
        const bool alone = std::ranges::any_of(plan.tree, [&](const container::tree_entry& entry) {
            return entry.kind == container::entry_kind::bind &&
                   entry.origin == container::origin::program && entry.path == real;
        });
        if (alone) needs.push_back(need);
        else if (!is_bound(plan, need)) with.directories.push_back(sys::parent_of(real));
    }
    const auto shown = [&](const std::string& path) { // by itself, or as a link that is made
        return is_bound(plan, path) || std::ranges::count(needs, path) != 0;
    };
    if (!shown(with.program)) with.program = real_of(with.program);
    with.needs = std::move(needs);
}

// A path among its words that it will not find.
void note_unseen_words(const mcp::upstream_wish& server, const container::plan& plan,
                       mediation_wish& into) {
    for (auto word = server.argv.begin() + 1; word != server.argv.end(); ++word) {
        if (!word->starts_with('/')) continue;
        const auto where = container::resolve(*word);
        if (!where) continue;
        if (!is_bound(plan, where->real))
            into.notes.push_back("the server " + server.name + " is contained and does not see " +
                                 *word +
                                 ": grant it, or the directory that it needs, with "
                                 "--upstream-read " +
                                 server.name + "=PATH");
    }
}

// The first of the paths, links in it followed, that one of the grants holds.
[[nodiscard]] auto held_by(std::span<const std::string> grants, const words_of& paths)
    -> std::optional<std::pair<std::string, std::string>> {
    for (const auto& grant : grants)
        for (const auto& path : paths)
            if (sys::holds(real_of(grant), real_of(path)) || sys::holds(real_of(grant), path))
                return std::pair{grant, path};
    return std::nullopt;
}

// They are executed outside of every sandbox whenever a server is started again.
[[nodiscard]] auto check_own_programs(const std::string& glove, std::span<const std::string> agent,
                                      const mediation_wish& wish) -> result<> {
    words_of own{glove};
    for (const auto* const name : {"glove-mediator", "glove-egress", "glove-ssh-agent"})
        if (auto found = sys::find_own_program(name, "mediation.program"))
            own.push_back(*std::move(found));
    const auto refuse = [](const std::string& who, const auto& held) {
        return wrong(who + " may change " + held.first + ", which holds " + held.second +
                         ", and that runs outside of the sandbox of each contained server",
                     "leave the grant out, or grant what is beside it");
    };
    if (const auto held = held_by(agent, own)) return refuse("the command", *held);
    for (const auto& server : wish.what.upstreams)
        if (const auto held = held_by(server.grants.write, own))
            return refuse("the server " + server.name, *held);
    return {};
}

// What one server may change, another must not be made of: it would get that one's variables and
// grants. A grant inside of a directory changes that directory too.
[[nodiscard]] auto check_neighbours(const mcp::upstream_wish& server, const mediation_wish& wish)
    -> result<> {
    const auto parts = parts_of(server, {});
    for (const auto& other : wish.what.upstreams) {
        if (&other == &server) continue;
        auto met = held_by(other.grants.write, parts);
        const auto* relation = ", which holds ";
        if (!met) {
            if (met = held_by(parts, other.grants.write); !met) continue;
            std::swap(met->first, met->second);
            relation = ", which is inside of ";
        }
        return wrong("the server " + other.name + " may change " + met->first + relation +
                         met->second + ", of which the server " + server.name + " is made",
                     "leave the grant out, or put the one elsewhere");
    }
    return {};
}

// Data that two servers share is theirs to share; a module among it would be executed.
void note_shared(const mcp::upstream_wish& server, mediation_wish& into) {
    for (const auto& other : into.what.upstreams) {
        if (&other == &server) continue;
        for (const auto& path : server.grants.read)
            if (const words_of read{path};
                held_by(other.grants.write, read) || held_by(read, other.grants.write))
                into.notes.push_back("the server " + other.name + " may change what the server " +
                                     server.name + " reads of " + path);
    }
}

// Nobody need have read the file.
void note_grants_of_files(mediation_wish& into) {
    for (const auto& server : into.what.upstreams)
        for (const auto& option : grant_options)
            for (const auto& value : server.grants.*option.grants)
                into.notes.push_back("by its file, the server " + server.name + " has " +
                                     option.flag + " " + server.name + "=" + value);
}

[[nodiscard]] auto contain(mcp::upstream_wish& server, std::span<const std::string> writable,
                           const std::string& glove, mediation_wish& into) -> result<> {
    words_of changeable{writable.begin(), writable.end()};
    for (const auto& each : into.what.upstreams)
        changeable.insert(changeable.end(), each.grants.write.begin(), each.grants.write.end());
    auto found = host::find_program_view(server.argv.front(), changeable);
    if (!found) return of_server(server, std::move(found).error());
    mcp::upstream_perimeter with{.glove = glove,
                                 .program = std::move(found->path),
                                 .needs = std::move(found->files),
                                 .directories = std::move(found->directories),
                                 .workspace = {}};
    GLOVE_TRY(with.workspace, workspace_of(server, into));
    server.perimeter = std::move(with);
    GLOVE_TRY(const auto profile, profile_of(server, into));
    auto plan = container::make_plan(profile);
    if (!plan) return of_server(server, std::move(plan).error());
    settle_program(*plan, *server.perimeter);
    if (!server.perimeter->directories.empty() && server.perimeter->program.contains('='))
        return wrong("the server " + server.name + ": a program with a '=' in its path, " +
                         server.perimeter->program + ", cannot be contained",
                     "install it elsewhere"); // env would take it for a variable
    GLOVE_CHECK(check_neighbours(server, into));
    note_shared(server, into);
    note_unseen_words(server, *plan, into);
    for (const auto& note : plan->notes)
        into.notes.push_back("the server " + server.name + ": " + note);
    return {};
}

} // namespace

void declare_containment(CLI::App& app, mediation_words& words) {
    app.add_flag("--contain-upstreams", words.contain,
                 "Start each tool server in a sandbox of its own");
    for (const auto& option : grant_options)
        repeatable(app, option.flag, words.*option.words, option.type, option.help);
}

auto contain_servers(const mediation_words& words, std::span<const std::string> writable,
                     mediation_wish& into) -> result<> {
    if (words.contain) note_grants_of_files(into);
    for (const auto& option : grant_options)
        for (const auto& word : words.*option.words) GLOVE_CHECK(add_grant(option, word, into));
    if (!words.contain) return refuse_grants(into);
    GLOVE_CHECK(container::check_identity());
    GLOVE_TRY(const auto glove, sys::read_link("/proc/self/exe"));
    GLOVE_CHECK(check_own_programs(glove, writable, into));
    for (auto& server : into.what.upstreams) GLOVE_CHECK(contain(server, writable, glove, into));
    into.what.contain_upstreams = true;
    return {};
}

} // namespace glove::cli
