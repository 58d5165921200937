// Claude Code.
//
// Its own sandbox is off unless its settings ask for it. It asks before it acts, as ever.
#include "adapters/agents.hpp"
#include <array>

namespace glove::adapters {

namespace {

constexpr std::array<std::string_view, 1> command{"claude"};
constexpr std::array<std::string_view, 3> own_places{
    ".local/bin/claude", ".local/share/claude/versions/*", ".claude/local/claude"};
constexpr std::array<std::string_view, 1> policy{"/etc/claude-code"};
constexpr std::array<std::string_view, 4> passed{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN",
                                                 "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_MODEL"};
// It cannot replace a program that it can only read.
constexpr std::array<std::string_view, 2> set{"DISABLE_AUTOUPDATER=1",
                                              "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"};
constexpr std::array destinations{
    destination{"api.anthropic.com", "the model"},
    destination{"claude.ai", "login with a subscription"},
    destination{"platform.claude.com", "login: exchange and renewal of its tokens"},
    destination{"console.anthropic.com", "login, in earlier versions"},
};
// The user's own servers would be started inside. One word: the option takes what follows it, too.
constexpr std::array<std::string_view, 2> tool_words{"--mcp-config=/run/glove/mcp.json",
                                                     "--strict-mcp-config"};
constexpr std::array<std::string_view, 2> credentials{".claude/.credentials.json", ".claude.json"};

} // namespace

constexpr agent_description claude{
    .name = "claude",
    .title = "Claude Code, by Anthropic",
    .install = "npm install -g @anthropic-ai/claude-code",
    .command = command,
    .own_places = own_places,
    .policy_places = policy,
    .passed_environment = passed,
    .set_environment = set,
    .destinations = destinations,
    .credentials = credentials,
    .seeds = {},
    .tools = {.words = tool_words},
};

} // namespace glove::adapters
