// Names at which a program of the host looks for what to do by itself: the one list of them.
//
// A row is here because opening a directory, starting a shell or running git is enough; what runs
// only when somebody asks for it (a build script, a test) is no row.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace glove::container {

enum class protected_in : std::uint8_t {
    project,    // the top of a writable grant, and of a repository's working tree
    grant,      // the top of a writable grant
    home,       // a home directory that lies in a writable grant
    repository, // git's own directory
    worktree,   // git's directory of a linked worktree, and any other
};

struct protected_name {
    protected_in place;
    std::string_view path; // below the place
    std::string_view reason;
};

inline constexpr auto protected_names = std::to_array<protected_name>({
    {protected_in::repository, "config", "git runs programs that it names"},
    {protected_in::worktree, "config.worktree", "git runs programs that it names"},
    {protected_in::repository, "hooks", "git runs what is in it"},
    {protected_in::repository, "info/attributes", "selects the filters that git runs"},
    {protected_in::worktree, "commondir", "leads git to another directory's hooks and settings"},

    {protected_in::project, ".gitmodules", "names what git fetches, and from where"},
    {protected_in::project, ".githooks", "git runs what is in it where core.hooksPath says so"},
    {protected_in::project, ".husky", "git runs what is in it where husky is installed"},
    {protected_in::project, ".envrc", "direnv runs it on entering the directory"},
    {protected_in::project, ".direnv", "direnv runs what it has kept in it"},
    {protected_in::project, ".vscode", "the editor's tasks, programs and settings"},
    {protected_in::project, ".idea", "the editor's run configurations and settings"},
    {protected_in::project, ".zed", "the editor's tasks, programs and settings"},
    {protected_in::project, ".cursor", "the agent's settings, hooks and servers"},
    {protected_in::project, ".windsurf", "the agent's settings, hooks and servers"},
    {protected_in::project, ".claude", "the agent's settings, hooks and servers"},
    {protected_in::project, ".codex", "the agent's settings, hooks and servers"},
    {protected_in::project, ".gemini", "the agent's settings, hooks and servers"},
    {protected_in::project, ".opencode", "the agent's settings, plugins and servers"},
    {protected_in::project, ".mcp.json", "agents start the servers that it names"},
    {protected_in::grant, ".bashrc", "a shell runs it when it starts"},
    {protected_in::grant, ".bash_profile", "a shell runs it when it starts"},
    {protected_in::grant, ".bash_login", "a shell runs it when it starts"},
    {protected_in::grant, ".bash_logout", "a shell runs it when it ends"},
    {protected_in::grant, ".profile", "a shell runs it when it starts"},
    {protected_in::grant, ".zshrc", "a shell runs it when it starts"},
    {protected_in::grant, ".zshenv", "a shell runs it when it starts"},
    {protected_in::grant, ".zprofile", "a shell runs it when it starts"},
    {protected_in::grant, ".zlogin", "a shell runs it when it starts"},
    {protected_in::grant, ".zlogout", "a shell runs it when it ends"},
    {protected_in::grant, ".inputrc", "binds keys of every shell to commands"},

    {protected_in::home, ".gitconfig", "git runs programs that it names"},
    {protected_in::home, ".config/git", "git runs programs that it names"},
    {protected_in::home, ".ssh", "ssh runs programs that its settings name; who may log in"},
    {protected_in::home, ".config/fish", "a shell runs it when it starts"},
    {protected_in::home, ".config/environment.d", "the variables of every program of the session"},
    {protected_in::home, ".config/systemd", "services that start with the session"},
    {protected_in::home, ".config/autostart", "programs that start with the session"},
    {protected_in::home, ".pam_environment", "the variables of every program of the session"},
    {protected_in::home, ".xprofile", "runs when the session starts"},
    {protected_in::home, ".xinitrc", "runs when the session starts"},
    {protected_in::home, ".xsession", "runs when the session starts"},
    {protected_in::home, ".xsessionrc", "runs when the session starts"},
    {protected_in::home, ".vimrc", "the editor runs it when it starts"},
    {protected_in::home, ".config/nvim", "the editor runs it when it starts"},
    {protected_in::home, ".tmux.conf", "tmux runs what it says when it starts"},
    {protected_in::home, ".local/bin", "programs that are found by name"},
});

} // namespace glove::container
