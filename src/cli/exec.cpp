// `glove exec`: what its help says, and what a profile comes to as its options.
#include "cli/profile_options.hpp"
#include "cli/run_options.hpp"

namespace glove::cli {

namespace {

constexpr contained_verb exec{
    .usage = "glove exec [OPTIONS] -- COMMAND [ARGUMENT...]",
    .description = "Run a command that can reach only what you name.",
    .footer = R"(Examples:
  glove exec --workspace . -- bash
  glove exec -p claude
  glove exec --workspace . --read ~/notes --egress-allow api.example.com -- ./agent
  glove exec --workspace . --explain -- bash

Exit status: the command's own, 128+n when signal n ended it; 2 usage,
125 the sandbox was refused, 126 not executable, 127 not found.)",
    .example = "glove exec --workspace . -- bash",
    .mediated = false,
};

} // namespace

void declare_exec(CLI::App& app) {
    static run_words unused; // options keep references to where they store
    declare_contained(app, exec, unused);
}

auto exec_verb(const invocation& call) -> int { return contained_run(exec, call); }

auto try_profile(const host::effective_profile& profile) -> result<profile_trial> {
    invocation call{
        .verb = "exec", .options = {}, .command = {}, .has_command = false, .arguments = {}};
    run_words words;
    CLI::App app;
    declare_contained(app, exec, words);
    const auto whole = with_profile(app, call, profile);
    if (parse_options(app, exec.usage, whole))
        return fail(errc::invalid_input, "profile.options", profile.name);
    auto& asked = words.request.profile;
    // Whether the working directory can be granted says nothing about the profile.
    if (asked.workspace == ".") asked.workspace.reset();
    GLOVE_TRY(const auto wish, host::prepare_profile(profile, words.write));
    if (wish.program_problem || wish.command.empty()) call.command = {"true"};
    GLOVE_CHECK(complete(words, exec, call, &wish));
    GLOVE_CHECK(check_plan(asked));
    return profile_trial{wish.command.empty() ? std::string{} : wish.command.front(),
                         wish.program_problem};
}

} // namespace glove::cli
