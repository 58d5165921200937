// Goes through the manifests of runs that are over; a run of which nothing is left is forgotten.
#include "host/move_away.hpp"
#include <algorithm>
#include <fcntl.h>
#include <glove/container/run_files.hpp>
#include <glove/host/quarantine.hpp>
#include <glove/sys/files.hpp>
#include <sys/stat.h>
#include <variant>
#include <vector>

namespace glove::host {

namespace {

using container::finding;
using container::finding_kind;
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

// Collected while a manifest is locked, and printed when none is: whoever reads may be slow.
struct outcome {
    std::vector<std::variant<std::string, error>> said;
    bool found = false; // a run with something left
    bool complete = true;

    void print(std::string line) { said.emplace_back(std::move(line)); }
    void tell(error what) {
        complete = false;
        said.emplace_back(std::move(what));
    }
};

class visitor {
public:
    explicit visitor(const quarantine_request& request) : request_{request} {}
    [[nodiscard]] auto out() noexcept -> outcome& { return out_; }

    [[nodiscard]] auto judge(const container::past_run& past) -> container::verdict {
        const auto& from = past.manifest;
        const auto now = look(from);
        const bool left = !now.movable.empty() || !now.unsearched.empty() || now.is_full;
        out_.found = true;
        if (request_.run.empty()) { // a list forgets nothing
            if (left || past.was_told) list(from, now);
            return left ? container::verdict::keep : container::verdict::leave;
        }
        if (!left) out_.print("nothing of run " + from.run + " is left");
        if (!now.movable.empty() && !move(from, now.movable)) return container::verdict::keep;
        // What was moved may have kept the rest from being seen.
        return left && !is_done(from, look(from)) ? container::verdict::keep
                                                  : container::verdict::forget;
    }

    [[nodiscard]] auto runs() const -> std::string { return request_.state + "/runs"; }

private:
    struct sight {
        std::vector<finding> movable, unsearched;
        bool is_full = false; // there may be more
    };
    [[nodiscard]] static auto look(const run_manifest& from) -> sight {
        sight out;
        auto changes = container::find_changes(from);
        out.is_full = container::is_cut_short(changes);
        for (auto& each : changes)
            if (container::is_movable(each.kind)) out.movable.push_back(std::move(each));
            else if (each.kind == finding_kind::unsearched)
                out.unsearched.push_back(std::move(each));
        return out;
    }
    void list(const run_manifest& from, const sight& now) {
        out_.print(from.run);
        for (const auto& each : now.movable) out_.print("  " + container::full_path(from, each));
        for (const auto& each : now.unsearched)
            out_.print("  " + container::full_path(from, each) + " could not be searched");
        if (now.is_full) out_.print("  and there may be more");
        if (now.movable.empty() && now.unsearched.empty() && !now.is_full)
            out_.print("  nothing is left; `glove quarantine --run " + from.run + "` forgets it");
    }
    // Says what keeps the manifest.
    [[nodiscard]] auto is_done(const run_manifest& from, const sight& now) -> bool {
        for (const auto& each : now.unsearched)
            out_.tell({.code = errc::not_found,
                       .step = "quarantine.search",
                       .os = 0,
                       .detail = container::full_path(from, each) + " could not be searched",
                       .remedy = "make it readable, or bring it back, and do it again; or remove " +
                                 runs() + "/" + from.run + ".found.json"});
        if (!now.movable.empty() || now.is_full)
            out_.tell({.code = errc::limit_exceeded,
                       .step = "quarantine.search",
                       .os = 0,
                       .detail = "run " + from.run + " left more than is found at once",
                       .remedy = "do it again"});
        return now.unsearched.empty() && now.movable.empty() && !now.is_full;
    }
    // Whether all was moved.
    [[nodiscard]] auto move(const run_manifest& from, const std::vector<finding>& movable) -> bool {
        const auto path = request_.state + "/quarantine/" + from.run;
        const auto home = sys::make_private_directory(path);
        if (!home) {
            out_.tell(home.error());
            return false;
        }
        bool all = true;
        for (const auto& each : without_what_moves_along(from, movable)) {
            auto moved = move_one(from, each, *home);
            if (moved) out_.print(container::full_path(from, each) + " -> " + path + "/" + *moved);
            else out_.tell(std::move(moved).error());
            all &= moved.has_value();
        }
        return all;
    }

    const quarantine_request& request_;
    outcome out_;
};

} // namespace

auto quarantine(const quarantine_request& request) -> result<bool> {
    visitor visit{request};
    auto& out = visit.out();
    const auto done = container::review_runs(
        visit.runs(), {.only = request.run},
        [&](const container::past_run& past) { return visit.judge(past); },
        [&](const error& what) { out.tell(what); });
    for (const auto& each : out.said)
        if (const auto* line = std::get_if<std::string>(&each)) request.print(*line);
        else request.tell(std::get<error>(each));
    GLOVE_CHECK(done);
    if (!request.run.empty() && !out.found && out.complete)
        return fail(errc::not_found, "quarantine.run",
                    "run " + request.run + " left nothing, or goes on still",
                    "glove quarantine lists the runs that left something");
    return out.complete;
}

} // namespace glove::host
