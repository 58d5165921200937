// opencode.
//
// It has no sandbox of its own. It speaks with many providers: those whose keys are passed on can
// be reached; add others to a profile that extends this one.
#include "adapters/agents.hpp"
#include <array>

namespace glove::adapters {

namespace {

constexpr std::array<std::string_view, 1> command{"opencode"};
constexpr std::array<std::string_view, 2> own_places{".opencode/bin/opencode",
                                                     ".local/bin/opencode"};
constexpr std::array<std::string_view, 1> policy{"/etc/opencode"};
constexpr std::array<std::string_view, 5> passed{"ANTHROPIC_API_KEY", "OPENAI_API_KEY",
                                                 "GEMINI_API_KEY", "OPENROUTER_API_KEY",
                                                 "OPENCODE_API_KEY"};
constexpr std::array<std::string_view, 1> set{"OPENCODE_DISABLE_AUTOUPDATE=1"};
constexpr std::array destinations{
    destination{"opencode.ai", "its own models"},
    destination{"models.opencode.ai", "the list of models"},
    destination{"models.dev", "the list of models, in earlier versions"},
    destination{"api.anthropic.com", "models of Anthropic"},
    destination{"api.openai.com", "models of OpenAI"},
    destination{"generativelanguage.googleapis.com", "models of Google"},
    destination{"openrouter.ai", "models of OpenRouter"},
};
constexpr std::array<std::string_view, 1> tool_variables{
    "OPENCODE_CONFIG=/run/glove/opencode.json"};
constexpr std::array tool_files{
    home_file{"opencode.json",
              "{\"mcp\": {\"glove\": {\"type\": \"local\", \"enabled\": true, \"command\": "
              "[\"/run/glove/bin/glove-mcp\"]}}}\n"},
};
constexpr std::array<std::string_view, 2> credentials{".local/share/opencode/auth.json",
                                                      ".local/share/opencode/mcp-auth.json"};

} // namespace

constexpr agent_description opencode{
    .name = "opencode",
    .title = "opencode",
    .install = "npm install -g opencode-ai",
    .command = command,
    .own_places = own_places,
    .policy_places = policy,
    .passed_environment = passed,
    .set_environment = set,
    .destinations = destinations,
    .credentials = credentials,
    .seeds = {},
    .tools = {.environment = tool_variables, .files = tool_files},
};

} // namespace glove::adapters
