// Gemini CLI.
//
// Its own sandbox is off unless asked for; GEMINI_SANDBOX=false keeps a project's settings from
// asking. It asks before it acts, as ever.
#include "adapters/agents.hpp"
#include <array>

namespace glove::adapters {

namespace {

constexpr std::array<std::string_view, 1> command{"gemini"};
constexpr std::array<std::string_view, 1> own_places{".local/bin/gemini"};
constexpr std::array<std::string_view, 1> policy{"/etc/gemini-cli"};
constexpr std::array<std::string_view, 6> passed{
    "GEMINI_API_KEY",        "GEMINI_MODEL",         "GOOGLE_API_KEY",
    "GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_PROJECT", "GOOGLE_GENAI_USE_VERTEXAI"};
constexpr std::array<std::string_view, 2> set{"GEMINI_SANDBOX=false", "NO_BROWSER=true"};
constexpr std::array destinations{
    destination{"generativelanguage.googleapis.com", "the model, with an API key"},
    destination{"aiplatform.googleapis.com", "the model, with Vertex AI at its global location"},
    destination{"cloudcode-pa.googleapis.com", "the model, with a Google account"},
    destination{"oauth2.googleapis.com", "login: renewal of its tokens"},
    destination{"accounts.google.com", "login"},
    destination{"www.googleapis.com", "login: which account it is"},
};
// It takes system settings from root only, whom an ordinary user's sandbox does not have. An
// extension may be anybody's, and a linked one that is not there is passed over.
constexpr std::array tool_files{
    home_file{"gemini/gemini-extension.json",
              "{\"name\": \"glove\", \"version\": \"1.0.0\",\n"
              " \"mcpServers\": {\"glove\": {\"command\": \"/run/glove/bin/glove-mcp\"}}}\n"},
};
constexpr std::array tool_home_files{
    home_file{".gemini/extensions/glove/.gemini-extension-install.json",
              "{\"source\": \"/run/glove/gemini\", \"type\": \"link\"}\n"},
};
constexpr std::array<std::string_view, 4> credentials{
    ".gemini/oauth_creds.json", ".gemini/google_accounts.json", ".gemini/gemini-credentials.json",
    ".gemini/mcp-oauth-tokens.json"};
constexpr std::array seeds{
    home_file{".gemini/settings.json",
              "{\"general\": {\"disableAutoUpdate\": true, \"enableAutoUpdate\": false}}\n"},
};

} // namespace

constexpr agent_description gemini{
    .name = "gemini",
    .title = "Gemini CLI, by Google",
    .install = "npm install -g @google/gemini-cli",
    .command = command,
    .own_places = own_places,
    .policy_places = policy,
    .passed_environment = passed,
    .set_environment = set,
    .destinations = destinations,
    .credentials = credentials,
    .seeds = seeds,
    .tools = {.files = tool_files, .home_files = tool_home_files},
};

} // namespace glove::adapters
