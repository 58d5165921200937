// One lock on the directory keeps a file that is being made apart from one that was left behind.
#include <algorithm>
#include <fcntl.h>
#include <glove/container/run_files.hpp>
#include <glove/sys/clock.hpp>
#include <poll.h>
#include <ranges>
#include <sys/file.h>
#include <sys/stat.h>

namespace glove::container {

namespace {

constexpr std::string_view running_ending = ".json";
constexpr std::string_view found_ending = ".found.json";

constexpr std::chrono::seconds patience{15};
constexpr int step_ms = 10;

[[nodiscard]] auto from_now() -> std::chrono::nanoseconds {
    return sys::system_clock{}.monotonic() + patience;
}

// False when another process has it.
[[nodiscard]] auto try_lock(sys::fd_ref file, int how) -> result<bool> {
    while (::flock(file.get(), how | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) return false;
        if (errno != EINTR) return fail_os("manifest.lock");
    }
    return true;
}

[[nodiscard]] auto lock(sys::fd_ref file, int how, const std::string& path,
                        std::chrono::nanoseconds deadline) -> result<> {
    for (;;) {
        GLOVE_TRY(const auto mine, try_lock(file, how));
        if (mine) return {};
        if (sys::system_clock{}.monotonic() >= deadline)
            return fail(errc::timed_out, "manifest.lock",
                        "another glove has held " + path + " for 15 seconds",
                        "see with `fuser " + path + "` whether it is stopped");
        (void)::poll(nullptr, 0, step_ms);
    }
}

[[nodiscard]] auto rename_in(sys::fd_ref directory, const std::string& from, const std::string& to)
    -> result<> {
    if (::renameat(directory.get(), from.c_str(), directory.get(), to.c_str()) != 0)
        return fail_os("manifest.rename", errno, from);
    return {};
}

[[nodiscard]] auto remove_in(sys::fd_ref directory, const std::string& name) -> result<> {
    if (::unlinkat(directory.get(), name.c_str(), 0) != 0 && errno != ENOENT)
        return fail_os("manifest.remove", errno, name);
    return {};
}

struct review_place {
    std::string path;
    sys::unique_fd directory;
    std::chrono::nanoseconds deadline;
};
struct listed_file {
    std::string name, run;
    bool told = false;
};
struct taken_file {
    sys::unique_fd file; // empty when the run goes on, or its manifest is gone
    run_manifest manifest;
};

[[nodiscard]] auto leads_to(sys::fd_ref directory, const std::string& name,
                            const sys::file_identity& what) -> result<bool> {
    const auto pin = sys::open_beneath(directory, name, O_PATH | O_NOFOLLOW, sys::mounts::crossed);
    if (!pin && pin.error().os == ENOENT) return false;
    if (!pin) return std::unexpected(pin.error());
    GLOVE_TRY(const auto facts, sys::inspect(*pin));
    return facts.identity == what;
}

[[nodiscard]] auto take_locked(const review_place& at, const listed_file& what)
    -> result<taken_file> {
    auto file =
        sys::open_beneath(at.directory, what.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
                          sys::mounts::crossed);
    if (!file && file.error().os == ENOENT) return taken_file{}; // concluded meanwhile
    if (!file) return std::unexpected(std::move(file).error());
    if (what.told) { // of no run that goes on: whoever has it looks at it, too
        GLOVE_CHECK(lock(*file, LOCK_EX, at.path + "/" + what.name, at.deadline));
    } else {
        GLOVE_TRY(const auto mine, try_lock(*file, LOCK_EX));
        if (!mine) return taken_file{};
    }
    GLOVE_TRY(const auto facts, sys::inspect(*file));
    // The lock of a run that ended since is free, and its file has another name or none.
    GLOVE_TRY(const auto still, leads_to(at.directory, what.name, facts.identity));
    if (!still) return taken_file{};
    if (facts.identity.type != S_IFREG || facts.owner != ::geteuid())
        return fail(errc::not_permitted, "manifest.read",
                    at.path + "/" + what.name + " is not a regular file of yours");
    GLOVE_TRY(const auto text, sys::read_all(*file, most_manifest_bytes));
    auto read = read_manifest(text);
    if (!read)
        return fail(errc::corrupt, "manifest.read",
                    at.path + "/" + what.name + ": " + read.error().detail,
                    "remove the file if you do not need it");
    return taken_file{*std::move(file), *std::move(read)};
}

// The directory is locked for the taking alone: a run that starts waits for no look.
[[nodiscard]] auto take(const review_place& at, const listed_file& what) -> result<taken_file> {
    if (!what.told) GLOVE_CHECK(lock(at.directory, LOCK_EX, at.path, at.deadline));
    auto taken = take_locked(at, what);
    if (!what.told && ::flock(at.directory.get(), LOCK_UN) != 0)
        return fail_os("manifest.lock", errno, at.path);
    return taken;
}

// Those that are asked for, in the order of their names.
[[nodiscard]] auto list_files(const review_place& at, const review_choice& choice)
    -> result<std::vector<listed_file>> {
    auto names = sys::list_names(at.directory, "");
    if (!names) {
        auto why = std::move(names).error();
        why.detail = at.path + " cannot be listed";
        why.remedy = "remove the manifests that you do not need from it";
        return std::unexpected(std::move(why));
    }
    std::ranges::sort(*names);
    std::vector<listed_file> out;
    for (const auto& [name, type] : *names) {
        const bool told = name.ends_with(found_ending);
        if (!name.ends_with(running_ending) || name.starts_with('.')) continue;
        if (told && !choice.told) continue;
        auto run =
            name.substr(0, name.size() - (told ? found_ending.size() : running_ending.size()));
        if (choice.only.empty() || run == choice.only)
            out.push_back({.name = name, .run = std::move(run), .told = told});
    }
    return out;
}

void review_one(const review_place& at, const listed_file& what,
                const std::function<verdict(const past_run&)>& judge,
                const std::function<void(const error&)>& tell) {
    const auto taken = take(at, what);
    if (!taken) return tell(taken.error());
    if (!taken->file) return;
    const auto what_now = judge({taken->manifest, what.told});
    result<> done;
    if (what_now == verdict::forget) done = remove_in(at.directory, what.name);
    else if (what_now == verdict::keep && !what.told)
        done = rename_in(at.directory, what.name, what.run + std::string{found_ending});
    if (!done) tell(done.error());
}

} // namespace

auto own_manifest::write(const std::string& directory, const run_manifest& from)
    -> result<own_manifest> {
    own_manifest out;
    if (from.grants.empty()) return out;
    GLOVE_TRY(const auto text, manifest_text(from));
    const auto name = from.run + std::string{running_ending};
    GLOVE_TRY(out.directory_, sys::make_private_directory(directory));
    // A look at all files waits, or is waited for.
    GLOVE_CHECK(lock(out.directory_, LOCK_SH, directory, from_now()));
    // Whole from the first moment: who is killed here leaves none that cannot be read.
    if (auto made = sys::create_private_file(out.directory_, name, text); !made) {
        auto why = std::move(made).error();
        why.detail = directory + ": " + (why.detail.empty() ? name : why.detail);
        return std::unexpected(std::move(why));
    }
    out.run_ = from.run;
    if (auto held = out.hold(name); !held) {
        (void)out.conclude(false); // no run begins, so nothing of it stays
        return std::unexpected(std::move(held).error());
    }
    return out;
}

auto own_manifest::hold(const std::string& name) -> result<> {
    GLOVE_TRY(file_, sys::open_private_append(directory_, name));
    GLOVE_CHECK(lock(file_, LOCK_EX, name, from_now()));
    if (::flock(directory_.get(), LOCK_UN) != 0) return fail_os("manifest.lock", errno, name);
    return {};
}

auto own_manifest::conclude(bool keep) -> result<> {
    if (run_.empty()) return {};
    const auto name = run_ + std::string{running_ending};
    auto done = keep ? rename_in(directory_, name, run_ + std::string{found_ending})
                     : remove_in(directory_, name);
    file_ = {}; // whatever this process does from now on, others may look at it
    return done;
}

auto review_runs(const std::string& directory, const review_choice& choice,
                 const std::function<verdict(const past_run&)>& judge,
                 const std::function<void(const error&)>& tell) -> result<> {
    GLOVE_TRY(const bool any, sys::is_there(directory));
    if (!any) return {};
    GLOVE_TRY(auto opened, sys::make_private_directory(directory));
    const review_place at{
        .path = directory, .directory = std::move(opened), .deadline = from_now()};
    GLOVE_TRY(const auto files, list_files(at, choice));
    for (const auto& each : files | std::views::take(most_manifests))
        review_one(at, each, judge, tell);
    if (files.size() > most_manifests)
        tell({.code = errc::limit_exceeded,
              .step = "manifest.list",
              .os = 0,
              .detail = std::to_string(files.size()) + " manifests in " + directory +
                        ", and only the first " + std::to_string(most_manifests) +
                        " were looked at",
              .remedy = "move away what these runs left, or remove the manifests"});
    return {};
}

} // namespace glove::container
