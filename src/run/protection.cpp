// Says each kind of finding once, in words that name the path; decides nothing and moves nothing.
#include "run/protection.hpp"
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <glove/base/text.hpp>

namespace glove::run {

namespace {

using container::finding;
using container::finding_kind;
using container::run_manifest;

constexpr std::size_t most_told = 20;

struct kind_words {
    finding_kind kind;
    std::string_view words;
};
// In the order in which they are told. A hook is told of with what was made.
constexpr kind_words told_kinds[] = {
    {finding_kind::made, "appeared, and programs of the host may run what is in it"},
    {finding_kind::hook, "appeared, and git on the host runs it"},
    {finding_kind::replaced,
     "was replaced or removed on the host meanwhile, so from then on it was not protected"},
    {finding_kind::new_repository, "is a new repository, with settings of the command's own"},
    {finding_kind::unsearched, "was not searched in full for what appeared in it"},
};

[[nodiscard]] auto directory_of(const std::string& state) -> std::string { return state + "/runs"; }

void say(const std::string& line) {
    (void)std::fputs(("glove: " + printable(line) + "\n").c_str(), stderr);
}

// New repositories take one line, however many: an agent that clones is no alarm.
void tell_kind(const run_manifest& from, const std::vector<finding>& all, const kind_words& row) {
    std::vector<std::string> paths;
    for (const auto& each : all)
        if (each.kind == row.kind) paths.push_back(container::full_path(from, each));
    if (paths.empty()) return;
    if (row.kind == finding_kind::new_repository && paths.size() > 1)
        return say(paths.front() + " and " + std::to_string(paths.size() - 1) +
                   " more are new repositories, with settings of the command's own");
    for (std::size_t i = 0; i < std::min(paths.size(), most_told); ++i)
        say(paths[i] + " " + std::string{row.words});
    if (paths.size() > most_told)
        say("and " + std::to_string(paths.size() - most_told) + " more like this");
}

[[nodiscard]] auto any_movable(const std::vector<finding>& all) -> bool {
    return std::ranges::any_of(all, container::is_movable, &finding::kind);
}

void tell(const run_manifest& from, const std::vector<finding>& all) {
    for (const auto& row : told_kinds) tell_kind(from, all, row);
    if (any_movable(all))
        say("do not open or use it before you have looked at it; `glove quarantine --run " +
            from.run + "` moves it away");
}

void tell_problem(const error& what) {
    say(std::string{what.step} + ": " + what.detail +
        (what.os == 0 ? std::string{} : std::string{": "} + std::strerror(what.os)) +
        (what.remedy.empty() ? std::string{} : "; " + what.remedy));
}

} // namespace

void tell_of_killed_runs(const std::string& state) {
    const auto judge = [](const container::past_run& past) {
        if (past.was_told) return container::verdict::keep;
        const auto changes = container::find_changes(past.manifest);
        if (!changes.empty()) say("run " + past.manifest.run + " was killed");
        tell(past.manifest, changes);
        return any_movable(changes) ? container::verdict::keep : container::verdict::forget;
    };
    if (const auto done = container::review_runs(directory_of(state), {}, judge, tell_problem);
        !done)
        tell_problem(done.error());
}

auto protection::begin(const std::string& state, const std::string& run,
                       const container::plan& plan) -> result<protection> {
    protection out;
    out.manifest_ = container::manifest_of(plan, run);
    GLOVE_TRY(out.file_, container::own_manifest::write(directory_of(state), out.manifest_));
    return out;
}

auto protection::end() -> std::vector<place_change> {
    const auto changes = container::find_changes(manifest_);
    tell(manifest_, changes);
    if (const auto done = file_.conclude(any_movable(changes)); !done) tell_problem(done.error());
    std::vector<place_change> out;
    for (const auto& each : changes)
        out.push_back({each.kind, container::full_path(manifest_, each)});
    return out;
}

} // namespace glove::run
