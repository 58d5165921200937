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
     "is another file than at the start, or gone, so from then on it was not protected"},
    {finding_kind::new_repository, "is a new repository, with settings of the command's own"},
    {finding_kind::unsearched, "was not searched in full for what appeared in it"},
};

[[nodiscard]] auto directory_of(const std::string& state) -> std::string { return state + "/runs"; }

// Lines that are printed when nothing is locked: whoever reads them may be slow.
using lines = std::vector<std::string>;

void print(const lines& all) {
    for (const auto& line : all)
        (void)std::fputs(("glove: " + printable(line) + "\n").c_str(), stderr);
}

// New repositories take one line, however many: an agent that clones is no alarm.
void tell_kind(lines& out, const run_manifest& from, const std::vector<finding>& all,
               const kind_words& row) {
    std::vector<std::string> paths;
    for (const auto& each : all)
        if (each.kind == row.kind) paths.push_back(container::full_path(from, each));
    if (paths.empty()) return;
    if (row.kind == finding_kind::new_repository && paths.size() > 1)
        return out.push_back(paths.front() + " and " + std::to_string(paths.size() - 1) +
                             " more are new repositories, with settings of the command's own");
    for (std::size_t i = 0; i < std::min(paths.size(), most_told); ++i)
        out.push_back(paths[i] + " " + std::string{row.words});
    if (paths.size() > most_told)
        out.push_back("and " + std::to_string(paths.size() - most_told) + " more like this");
}

[[nodiscard]] auto any(const std::vector<finding>& all, finding_kind kind) -> bool {
    return std::ranges::any_of(all, [&](const finding& f) { return f.kind == kind; });
}

// Whether `glove quarantine` has something to do; past the bound, what was not kept may be such.
[[nodiscard]] auto is_to_be_kept(const std::vector<finding>& all) -> bool {
    return std::ranges::any_of(all, container::is_movable, &finding::kind) ||
           all.size() >= container::most_findings;
}

void tell(lines& out, const run_manifest& from, const std::vector<finding>& all) {
    for (const auto& row : told_kinds) tell_kind(out, from, all, row);
    if (all.size() >= container::most_findings)
        out.push_back("there may be more: at most " + std::to_string(container::most_findings) +
                      " changes of a run are kept");
    if (is_to_be_kept(all))
        out.push_back("do not open or use it before you have looked at it; `glove quarantine "
                      "--run " +
                      from.run + "` moves it away");
}

void tell_problem(lines& out, const error& what) {
    out.push_back(std::string{what.step} + ": " + what.detail +
                  (what.os == 0 ? std::string{} : std::string{": "} + std::strerror(what.os)) +
                  (what.remedy.empty() ? std::string{} : "; " + what.remedy));
}

} // namespace

void tell_of_killed_runs(const std::string& state) {
    lines out;
    const auto judge = [&](const container::past_run& past) {
        const auto changes = container::find_changes(past.manifest);
        if (!changes.empty()) out.push_back("run " + past.manifest.run + " was killed");
        tell(out, past.manifest, changes);
        // What is away, such as a disk, may be back later.
        return is_to_be_kept(changes) || any(changes, finding_kind::unsearched)
                   ? container::verdict::keep
                   : container::verdict::forget;
    };
    const auto problem = [&](const error& what) { tell_problem(out, what); };
    if (const auto done =
            container::review_runs(directory_of(state), {.told = false}, judge, problem);
        !done)
        problem(done.error());
    print(out);
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
    lines told;
    tell(told, manifest_, changes);
    if (const auto done = file_.conclude(is_to_be_kept(changes)); !done)
        tell_problem(told, done.error());
    print(told);
    std::vector<place_change> out;
    for (const auto& each : changes)
        out.push_back({each.kind, container::full_path(manifest_, each)});
    return out;
}

} // namespace glove::run
