// Profiles: what `glove exec -p NAME` stands for.
//
// There is one for each agent that Glove knows, and one for each table [profile.NAME] of the user's
// configuration file. A profile may extend another: its lists go after that one's, and all else
// replaces it.
//
// Guarantees: nothing of a profile comes from the working directory or a project. What cannot be
// used exactly as it is written is an error that says where it stands.
#pragma once
#include <glove/adapters/agent.hpp>
#include <glove/base/error.hpp>
#include <glove/container/profile.hpp>
#include <glove/host/homes.hpp>
#include <glove/host/settings.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glove::host {

// With everything that it extends.
struct effective_profile {
    std::string name;
    std::string source; // "built-in", or FILE:LINE
    settings values;
    const adapters::agent_description* agent = nullptr; // of the built-in at the root, if any
};

class profile_catalogue {
public:
    // Reads the user's file; all of it must be right.
    [[nodiscard]] static auto load() -> result<profile_catalogue>;
    // The same from a text, for tests.
    [[nodiscard]] static auto parse(std::string_view text, const std::string& file,
                                    const std::string& home) -> result<profile_catalogue>;
    profile_catalogue(profile_catalogue&&) noexcept;
    auto operator=(profile_catalogue&&) noexcept -> profile_catalogue&;
    ~profile_catalogue();

    [[nodiscard]] auto names() const -> std::vector<std::string>; // built-in ones first
    [[nodiscard]] auto find(std::string_view name) const -> result<effective_profile>;
    [[nodiscard]] auto file() const -> const std::string&;

private:
    struct content;
    explicit profile_catalogue(std::unique_ptr<content> made);
    std::unique_ptr<content> content_;
};

// What is kept of it in the store of logins, relative to a home.
[[nodiscard]] auto credentials_of(const effective_profile& profile) -> std::vector<std::string>;

// What a run needs beside the options: looked up on this machine.
struct run_profile {
    std::string name;
    // The program and the words that always follow it; the program as a path when it was found
    // outside of the system's places. Empty when the profile names none.
    std::vector<std::string> command;
    std::string program;                  // as the profile names it
    std::optional<error> program_problem; // why it cannot be started
    std::vector<std::string> files;       // to be seen, read-only
    std::vector<std::string> path_directories;
    std::vector<std::string> credentials;         // of the home, relative
    std::vector<seed_file> seeds;                 // written where nothing has their name
    const adapters::tool_access* tools = nullptr; // of the agent that `command` starts, if any
};
// `writable` is what the run may change, whose programs are not the caller's.
[[nodiscard]] auto prepare_profile(const effective_profile& profile,
                                   std::span<const std::string> writable) -> result<run_profile>;

// Words of `glove exec` that say the same. Variables that are not set are left out.
struct profile_option {
    const setting* row;
    std::string word; // "--read=/srv/data"
};
[[nodiscard]] auto options_of(const effective_profile& profile) -> std::vector<profile_option>;

// The programs of the caller's home that are on PATH, for --path.
struct path_programs {
    std::vector<std::string> files, directories, left_out;
};
[[nodiscard]] auto find_path_programs(std::span<const std::string> writable)
    -> result<path_programs>;

// Where a program of this name, or at this absolute path, is found, and what must be seen for it.
struct program_view {
    std::string path;
    std::vector<std::string> files, directories;
};
[[nodiscard]] auto find_program_view(std::string_view name, std::span<const std::string> writable)
    -> result<program_view>;

// As a table of the configuration file.
[[nodiscard]] auto to_toml(const effective_profile& profile) -> std::string;

} // namespace glove::host
