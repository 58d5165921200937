// What is known of an agent: how its program is called and installed, what it needs of the network
// and of the caller's environment, and where it keeps its login.
//
// Data only: nothing here looks at the machine. One file per agent, one row each; the built-in
// profiles of `glove exec -p` are made of these.
#pragma once
#include <span>
#include <string_view>

namespace glove::adapters {

struct destination {
    std::string_view rule;   // as of --egress-allow
    std::string_view reason; // what the agent does there
};

// A file that a new home begins with.
struct home_file {
    std::string_view path; // relative to the home
    std::string_view content;
};

// What makes the agent load the tools of `glove run`.
struct tool_access {
    std::span<const std::string_view> words = {};       // after those of `command`
    std::span<const std::string_view> environment = {}; // NAME=VALUE
    std::span<const home_file> files = {};              // relative to Glove's directory inside
    std::span<const home_file> home_files = {};         // written only where there is none
    std::string_view note = {};                         // what the user must do beside
};

struct agent_description {
    std::string_view name;    // of the profile
    std::string_view title;   // what it is, and who makes it
    std::string_view install; // the command that installs it

    // The program, then the words that always follow it. They switch off a sandbox of the agent's
    // own, which cannot start where nested namespaces are refused, and leave its approvals alone.
    std::span<const std::string_view> command;
    // Programs relative to the home, where its own installer puts them; a last component "*" is the
    // highest version.
    std::span<const std::string_view> own_places;

    // Where whoever owns the machine says what the agent may do; seen where there is one.
    std::span<const std::string_view> policy_places;

    std::span<const std::string_view> passed_environment; // names, passed on when they are set
    std::span<const std::string_view> set_environment;    // NAME=VALUE
    std::span<const destination> destinations;

    std::span<const std::string_view> credentials; // files relative to the home
    std::span<const home_file> seeds;              // written only where there is none
    tool_access tools = {};
};

[[nodiscard]] auto agents() noexcept -> std::span<const agent_description* const>;
// Null when there is none of this name.
[[nodiscard]] auto find_agent(std::string_view name) noexcept -> const agent_description*;

} // namespace glove::adapters
