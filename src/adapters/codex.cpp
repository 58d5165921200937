// Codex CLI.
//
// Its own sandbox needs namespaces of its own, which Glove refuses, so it is switched off; its
// approvals stay as they are. The switch is a setting rather than an option, because settings reach
// its subcommands too.
#include "adapters/agents.hpp"
#include <array>

namespace glove::adapters {

namespace {

constexpr std::array<std::string_view, 3> command{"codex", "-c",
                                                  "sandbox_mode=\"danger-full-access\""};
constexpr std::array<std::string_view, 1> own_places{".local/bin/codex"};
constexpr std::array<std::string_view, 1> policy{"/etc/codex"};
constexpr std::array<std::string_view, 3> passed{"OPENAI_API_KEY", "CODEX_API_KEY",
                                                 "CODEX_ACCESS_TOKEN"};
constexpr std::array destinations{
    destination{"api.openai.com", "the model, with an API key"},
    destination{"chatgpt.com", "the model, with a subscription"},
    destination{"auth.openai.com", "login"},
};
constexpr std::array<std::string_view, 2> tool_words{
    "-c", "mcp_servers={glove={command=\"/run/glove/bin/glove-mcp\"}}"};
constexpr std::array<std::string_view, 1> credentials{".codex/auth.json"};
constexpr std::array seeds{
    home_file{".codex/config.toml", "check_for_update_on_startup = false\n"},
};

} // namespace

constexpr agent_description codex{
    .name = "codex",
    .title = "Codex CLI, by OpenAI",
    .install = "npm install -g @openai/codex",
    .command = command,
    .own_places = own_places,
    .policy_places = policy,
    .passed_environment = passed,
    .set_environment = {},
    .destinations = destinations,
    .credentials = credentials,
    .seeds = seeds,
    .tools = {.words = tool_words},
};

} // namespace glove::adapters
