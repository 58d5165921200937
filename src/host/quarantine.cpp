// Goes through the manifests of runs that are over; a run of which nothing is left is forgotten.
#include "host/move_away.hpp"
#include <algorithm>
#include <fcntl.h>
#include <glove/container/run_files.hpp>
#include <glove/host/quarantine.hpp>
#include <glove/sys/files.hpp>

namespace glove::host {

namespace {

using container::finding;
using container::run_manifest;

// Moves one finding to the same absolute path below `into`.
[[nodiscard]] auto move_one(const run_manifest& from, const finding& what, const std::string& into)
    -> result<std::string> {
    const auto& grant = from.grants[what.grant];
    GLOVE_TRY(const auto root, sys::pin(grant.path, sys::follow::never));
    GLOVE_TRY(const auto facts, sys::inspect(root));
    if (facts.identity.device != grant.device || facts.identity.inode != grant.inode)
        return fail(errc::conflict, "quarantine.grant", grant.path + " is another directory now");
    const auto slash = what.path.rfind('/');
    const auto above = slash == std::string::npos ? std::string{} : what.path.substr(0, slash);
    const auto name = slash == std::string::npos ? what.path : what.path.substr(slash + 1);
    GLOVE_TRY(const auto parent, sys::open_beneath(root, above, O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
                                                   sys::mounts::crossed));
    const auto full = container::full_path(from, what);
    GLOVE_TRY(const auto target, sys::make_private_directory(into + sys::parent_of(full)));
    GLOVE_CHECK(move_away(parent, name, target));
    return into + full;
}

struct outcome {
    bool found = false; // a run with something left
    bool complete = true;
};

class visitor {
public:
    explicit visitor(const quarantine_request& request) : request_{request} {}
    [[nodiscard]] auto result_of() const noexcept -> const outcome& { return out_; }

    [[nodiscard]] auto judge(const container::past_run& past) -> container::verdict {
        auto changes = container::find_changes(past.manifest);
        const bool is_all = !container::is_cut_short(changes);
        std::erase_if(changes, [](const finding& f) { return !container::is_movable(f.kind); });
        if (changes.empty()) return container::verdict::forget;
        out_.found = true;
        if (request_.run.empty()) return list(past.manifest, changes);
        const auto moved = move(past.manifest, changes);
        return is_all ? moved : container::verdict::keep; // the next time finds more
    }

private:
    [[nodiscard]] auto list(const run_manifest& from, const std::vector<finding>& changes) const
        -> container::verdict {
        request_.print(from.run);
        for (const auto& each : changes) request_.print("  " + container::full_path(from, each));
        return container::verdict::keep;
    }
    [[nodiscard]] auto move(const run_manifest& from, const std::vector<finding>& changes)
        -> container::verdict {
        bool all = true;
        for (const auto& each : changes) {
            auto moved = move_one(from, each, request_.state + "/quarantine/" + from.run);
            if (moved) request_.print(container::full_path(from, each) + " -> " + *moved);
            else request_.tell(moved.error());
            all &= moved.has_value();
        }
        out_.complete &= all;
        return all ? container::verdict::forget : container::verdict::keep;
    }

    const quarantine_request& request_;
    outcome out_;
};

} // namespace

auto quarantine(const quarantine_request& request) -> result<bool> {
    visitor visit{request};
    bool readable = true;
    GLOVE_CHECK(container::review_runs(
        request.state + "/runs", request.run,
        [&](const container::past_run& past) { return visit.judge(past); },
        [&](const error& what) {
            readable = false;
            request.tell(what);
        }));
    const auto& out = visit.result_of();
    if (!request.run.empty() && !out.found && readable)
        return fail(errc::not_found, "quarantine.run",
                    "run " + request.run + " left nothing, or goes on still",
                    "glove quarantine lists the runs that left something");
    return out.complete && readable;
}

} // namespace glove::host
