// pi, a coding agent.
//
// It has no sandbox and no approvals of its own. It speaks with many providers: those whose keys
// are passed on can be reached; add others to a profile that extends this one.
#include "adapters/agents.hpp"
#include <array>

namespace glove::adapters {

namespace {

constexpr std::array<std::string_view, 1> command{"pi"};
constexpr std::array<std::string_view, 1> own_places{".local/bin/pi"};
constexpr std::array<std::string_view, 4> passed{"ANTHROPIC_API_KEY", "OPENAI_API_KEY",
                                                 "GEMINI_API_KEY", "OPENROUTER_API_KEY"};
constexpr std::array<std::string_view, 2> set{"PI_SKIP_VERSION_CHECK=1", "PI_TELEMETRY=0"};
constexpr std::array destinations{
    destination{"api.anthropic.com", "models of Anthropic"},
    destination{"api.openai.com", "models of OpenAI"},
    destination{"generativelanguage.googleapis.com", "models of Google"},
    destination{"openrouter.ai", "models of OpenRouter"},
    destination{"chatgpt.com", "models of OpenAI, with a subscription"},
    destination{"auth.openai.com", "login with that"},
    destination{"claude.ai", "login with a subscription of Anthropic"},
    destination{"platform.claude.com", "login: exchange and renewal of its tokens"},
};
constexpr std::array<std::string_view, 1> credentials{".pi/agent/auth.json"};

} // namespace

constexpr agent_description pi{
    .name = "pi",
    .title = "pi coding agent",
    .install = "npm install -g @mariozechner/pi-coding-agent",
    .command = command,
    .own_places = own_places,
    .policy_places = {},
    .passed_environment = passed,
    .set_environment = set,
    .destinations = destinations,
    .credentials = credentials,
    .seeds = {},
    .tools = {.note = "pi has no MCP client of its own: an extension of it can start "
                      "/run/glove/bin/glove-mcp"},
};

} // namespace glove::adapters
