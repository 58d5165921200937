// Goes through the manifests of runs that are over; a run of which nothing is left is forgotten.
#include "host/move_away.hpp"
#include <algorithm>
#include <fcntl.h>
#include <glove/container/run_files.hpp>
#include <glove/host/quarantine.hpp>
#include <glove/sys/files.hpp>
#include <sys/stat.h>

namespace glove::host {

namespace {

using container::finding;
using container::run_manifest;

constexpr int most_places = 65536; // of one run

// Where one thing goes: directories that were made for it alone, so that nothing that came from an
// agent is on the way.
class fresh_place {
public:
    // In a new numbered directory of `home`, the directories of the absolute `path`.
    [[nodiscard]] static auto make(sys::fd_ref home, const std::string& path)
        -> result<fresh_place> {
        fresh_place out{home};
        GLOVE_TRY(auto at, out.take_number());
        for (std::size_t begin = 1; begin < path.size();) {
            const auto end = std::min(path.find('/', begin), path.size());
            const auto name = path.substr(begin, end - begin);
            GLOVE_TRY(at, sys::make_directory_in(at, name));
            out.made_ += "/" + name;
            begin = end + 1;
        }
        out.end_ = std::move(at);
        return out;
    }
    [[nodiscard]] auto end() const -> sys::fd_ref { return end_; }
    [[nodiscard]] auto name() const -> const std::string& { return made_; }
    // Takes back what holds nothing.
    void remove_empty() const {
        for (auto path = made_; !path.empty();) {
            if (::unlinkat(home_.get(), path.c_str(), AT_REMOVEDIR) != 0) return;
            const auto slash = path.rfind('/');
            path.resize(slash == std::string::npos ? 0 : slash);
        }
    }

private:
    explicit fresh_place(sys::fd_ref home) : home_{home} {}
    [[nodiscard]] auto take_number() -> result<sys::unique_fd> {
        for (int number = 1; number <= most_places; ++number) {
            made_ = std::to_string(number);
            // Whatever the umask; nothing else makes names in this private directory.
            if (::mkdirat(home_.get(), made_.c_str(), 0700) == 0 &&
                ::fchmodat(home_.get(), made_.c_str(), 0700, 0) == 0)
                return sys::make_directory_in(home_, made_);
            if (errno != EEXIST) return fail_os("quarantine.place", errno, made_);
        }
        return fail(errc::limit_exceeded, "quarantine.place", "too many things of one run",
                    "remove what you do not need from Glove's quarantine directory");
    }

    sys::fd_ref home_;
    std::string made_; // relative to it
    sys::unique_fd end_;
};

// Moves one finding into a fresh place in `home`; answers where it is below that.
[[nodiscard]] auto move_one(const run_manifest& from, const finding& what, sys::fd_ref home)
    -> result<std::string> {
    const auto& grant = from.grants[what.grant];
    GLOVE_TRY(const auto root, sys::pin(grant.path, sys::follow::never));
    GLOVE_TRY(const auto facts, sys::inspect(root));
    if (facts.identity.device != grant.device || facts.identity.inode != grant.inode)
        return fail(errc::conflict, "quarantine.grant", grant.path + " is another directory now");
    const auto slash = what.path.rfind('/');
    const auto above = slash == std::string::npos ? std::string{} : what.path.substr(0, slash);
    const auto name = slash == std::string::npos ? what.path : what.path.substr(slash + 1);
    GLOVE_TRY(const auto parent, sys::open_beneath(root, above, O_PATH | O_DIRECTORY | O_NOFOLLOW,
                                                   sys::mounts::crossed));
    const auto full = container::full_path(from, what);
    GLOVE_TRY(const auto place, fresh_place::make(home, sys::parent_of(full)));
    if (auto moved = move_away(parent, name, place.end()); !moved) {
        place.remove_empty();
        return std::unexpected(std::move(moved).error());
    }
    return place.name() + "/" + name;
}

// What lies below another one moves with it; what is there twice moves once.
[[nodiscard]] auto without_what_moves_along(const run_manifest& from,
                                            const std::vector<finding>& all)
    -> std::vector<finding> {
    std::vector<std::pair<std::string, const finding*>> by_path;
    by_path.reserve(all.size());
    for (const auto& each : all) by_path.emplace_back(container::full_path(from, each), &each);
    // With '/' before every other byte, all below a directory follows it at once.
    const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c); };
    std::ranges::sort(by_path, [&](const auto& left, const auto& right) {
        return std::ranges::lexicographical_compare(left.first, right.first, {}, rank, rank);
    });
    std::vector<finding> out;
    std::string_view top;
    for (const auto& [path, each] : by_path) {
        if (!top.empty() && sys::holds(top, path)) continue;
        top = path;
        out.push_back(*each);
    }
    return out;
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
        std::erase_if(changes, [](const finding& f) { return !container::is_movable(f.kind); });
        if (changes.empty()) return container::verdict::forget;
        out_.found = true;
        if (request_.run.empty()) return list(past.manifest, changes);
        return move(past.manifest, changes);
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
        const auto path = request_.state + "/quarantine/" + from.run;
        bool all = true;
        const auto home = sys::make_private_directory(path);
        if (!home) {
            request_.tell(home.error());
            out_.complete = false;
            return container::verdict::keep;
        }
        for (const auto& each : without_what_moves_along(from, changes)) {
            auto moved = move_one(from, each, *home);
            if (moved)
                request_.print(container::full_path(from, each) + " -> " + path + "/" + *moved);
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
