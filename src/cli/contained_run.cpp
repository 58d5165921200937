// From the words of a verb that runs a command to its end: the profile, the home, the run.
#include "cli/profile_options.hpp"
#include "cli/report_error.hpp"
#include "cli/run_options.hpp"
#include <cstdio>
#include <glove/base/text.hpp>
#include <glove/container/launch.hpp>
#include <glove/container/plan.hpp>
#include <glove/host/homes.hpp>
#include <glove/sys/user_directories.hpp>

namespace glove::cli {

namespace {

[[nodiscard]] auto parse(run_words& words, CLI::App& app, const contained_verb& verb,
                         const invocation& call) -> std::optional<int> {
    declare_contained(app, verb, words);
    return parse_options(app, verb.usage, call);
}

[[nodiscard]] auto refused_words(const error& problem) -> int {
    if (problem.step != run::told_step.text) report_error(problem);
    return static_cast<int>(run::status_of(problem));
}

[[nodiscard]] auto run_request(run::exec_request request) -> int {
    const auto status = run::exec(std::move(request));
    return status ? *status : refused_words(status.error());
}

void tell(const std::vector<std::string>& sentences) {
    for (const auto& each : sentences)
        (void)std::fputs(("glove: " + printable(each) + "\n").c_str(), stderr);
}

[[nodiscard]] auto refused(const error& problem) -> int {
    report_error(problem);
    return static_cast<int>(run::exit_status::refused);
}

// What was not understood, or names what is not there.
[[nodiscard]] auto not_started(const error& problem) -> int {
    if (problem.step != "profile.program" || problem.code != errc::not_found)
        return usage_failure(problem);
    report_error(problem);
    return static_cast<int>(run::exit_status::not_found);
}

// The home of a run: the one that is named, or that of the profile for this workspace.
[[nodiscard]] auto home_of(const run_words& words, const host::run_profile* profile)
    -> result<host::home_wish> {
    host::home_wish out;
    out.name = words.home;
    const auto& asked = words.request.profile;
    if (profile != nullptr) {
        out.profile = profile->name;
        out.credentials = profile->credentials;
        out.seeds = profile->seeds;
    }
    if (asked.workspace) {
        GLOVE_TRY(auto project, container::resolve(*asked.workspace));
        out.project = std::move(project.real);
    }
    GLOVE_TRY(out.grants, host::grants_of(asked));
    return out;
}

// The home is open for as long as the command runs. What cannot be planned makes none.
[[nodiscard]] auto run_in_home(run_words& words, const host::run_profile* with) -> int {
    if (!words.home.empty())
        if (const auto good = host::check_home_name(words.home); !good)
            return usage_failure(good.error());
    const auto wish = home_of(words, with);
    if (!wish) return refused_words(wish.error());
    auto& profile = words.request.profile;
    auto seen = host::look_at_home(*wish);
    if (!seen) return refused(seen.error());
    const bool is_new = seen->identity.type == 0;
    profile.home = *std::move(seen);
    if (words.request.explain) return run_request(std::move(words.request));
    if (is_new)
        if (const auto good = check_plan(profile); !good) return refused_words(good.error());
    auto home = host::open_home::open(*wish);
    if (!home) return refused(home.error());
    tell(home->warnings());
    profile.home = home->directory();
    const int status = run_request(std::move(words.request));
    const auto returned = home->finish();
    if (!returned) return refused(returned.error());
    tell(*returned);
    return status;
}

// A profile has a home that is kept; without one, only a home that is named is.
[[nodiscard]] auto start(run_words words, const contained_verb& verb, const invocation& call,
                         const host::run_profile* wish) -> int {
    if (const auto good = complete(words, verb, call, wish); !good)
        return not_started(good.error());
    const bool kept = words.home.empty() ? wish != nullptr : words.home != "none";
    if (!kept) return run_request(std::move(words.request));
    return run_in_home(words, wish);
}

[[nodiscard]] auto find_profile(const std::string& name) -> result<host::effective_profile> {
    GLOVE_TRY(const auto catalogue, host::profile_catalogue::load());
    return catalogue.find(name);
}

// The words that make the agent load its tools follow those that it always gets.
void tell_of_tools(const contained_verb& verb, const run_words& words, host::run_profile& wish) {
    if (!verb.mediated || wish.tools == nullptr) return;
    if (words.transport == "stdio" || words.network == "sealed") return;
    wish.command.insert(wish.command.end(), wish.tools->words.begin(), wish.tools->words.end());
    for (const auto& file : wish.tools->home_files)
        wish.seeds.push_back({std::string{file.path}, std::string{file.content}});
}

// The same words once more, with those of the profile in front.
[[nodiscard]] auto start_with_profile(const run_words& given, const CLI::App& parsed,
                                      const contained_verb& verb, const invocation& call) -> int {
    const auto profile = find_profile(given.profile);
    if (!profile) return usage_failure(profile.error());
    const auto whole = with_profile(parsed, call, *profile);
    run_words words;
    CLI::App app;
    if (const auto ended = parse(words, app, verb, whole)) return *ended;
    auto writable = words.write;
    if (words.request.profile.workspace) writable.push_back(*words.request.profile.workspace);
    auto wish = host::prepare_profile(*profile, writable);
    if (!wish) return not_started(wish.error());
    tell_of_tools(verb, words, *wish);
    const auto& values = profile->values;
    if (!verb.mediated && (values.find("upstream") || values.find("mcp-config")))
        words.request.profile.notes.push_back("the tools of the profile " + profile->name +
                                              " are left out: glove run gives them");
    return start(std::move(words), verb, whole, &*wish);
}

} // namespace

auto check_plan(container::profile wish) -> result<> {
    GLOVE_CHECK(container::check_identity()); // before anything is looked up for the caller
    for (const auto& own : {sys::state_directory(), sys::configuration_directory()}) {
        if (!own) return std::unexpected(own.error());
        wish.control_paths.push_back(*own);
    }
    wish.control_paths.push_back(wish.control_paths.back() + "/config.toml");
    const auto plan = container::make_plan(wish);
    if (!plan) return std::unexpected(plan.error());
    return {};
}

auto contained_run(const contained_verb& verb, const invocation& call) -> int {
    run_words words;
    CLI::App app;
    if (const auto ended = parse(words, app, verb, call)) return *ended;
    if (!words.profile.empty()) return start_with_profile(words, app, verb, call);
    return start(std::move(words), verb, call, nullptr);
}

} // namespace glove::cli
