// GitHub Copilot CLI.
//
// It has no sandbox of its own that would have to be switched off. It asks before it acts, as ever.
#include "adapters/agents.hpp"
#include <array>

namespace glove::adapters {

namespace {

constexpr std::array<std::string_view, 1> command{"copilot"};
constexpr std::array<std::string_view, 1> own_places{".local/bin/copilot"};
// GH_TOKEN and GITHUB_TOKEN may do far more than Copilot needs.
constexpr std::array<std::string_view, 2> passed{"COPILOT_GITHUB_TOKEN", "COPILOT_MODEL"};
constexpr std::array<std::string_view, 1> set{"COPILOT_AUTO_UPDATE=false"};
constexpr std::array destinations{
    destination{"github.com", "login"},
    destination{"api.github.com", "login, and its GitHub tools"},
    destination{".githubcopilot.com", "the model"},
};
constexpr std::array<std::string_view, 1> tool_words{
    "--additional-mcp-config=@/run/glove/copilot.json"};
constexpr std::array tool_files{
    home_file{"copilot.json",
              "{\"mcpServers\": {\"glove\": {\"type\": \"local\", \"command\": "
              "\"/run/glove/bin/glove-mcp\", \"args\": [], \"tools\": [\"*\"]}}}\n"},
};
constexpr std::array<std::string_view, 1> credentials{".copilot/config.json"};

} // namespace

constexpr agent_description copilot{
    .name = "copilot",
    .title = "GitHub Copilot CLI",
    .install = "npm install -g @github/copilot",
    .command = command,
    .own_places = own_places,
    .policy_places = {},
    .passed_environment = passed,
    .set_environment = set,
    .destinations = destinations,
    .credentials = credentials,
    .seeds = {},
    .tools = {.words = tool_words, .files = tool_files},
};

} // namespace glove::adapters
