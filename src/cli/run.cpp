// `glove run`: what its help says.
#include "cli/run_options.hpp"

namespace glove::cli {

namespace {

constexpr contained_verb run_row{
    .usage = "glove run [OPTIONS] --upstream NAME=CMD[,ARG...] -- COMMAND [ARGUMENT...]",
    .description = "Run an agent in a sandbox, with tools that you allow.",
    .footer = R"(Examples:
  glove run -p claude --upstream files=mcp-server-filesystem,. --allow files.read_file
  glove run --workspace . --mcp-config servers.json --policy tools.toml -- ./agent
  glove run -p codex --upstream web=./server --allow 'web.*' --deny web.post --explain

The tool servers run outside of the sandbox, as you, in a directory of Glove's own:
in CMD,ARG,... write ./NAME for a path from here. The agent sees only the tools that
a rule allows, and every call is put on record: glove log.

Exit status: the command's own, 128+n when signal n ended it; 2 usage,
125 the sandbox or a server was refused, or the mediation ended,
126 not executable, 127 not found.)",
    .example = "glove run --upstream files=mcp-server-filesystem,. --workspace . -- ./agent",
    .mediated = true,
};

} // namespace

void declare_run(CLI::App& app) {
    static run_words unused; // options keep references to where they store
    declare_contained(app, run_row, unused);
}

auto run_verb(const invocation& call) -> int { return contained_run(run_row, call); }

} // namespace glove::cli
