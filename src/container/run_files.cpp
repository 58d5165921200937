// One lock on the directory keeps a file that is being made apart from one that was left behind.
#include <fcntl.h>
#include <glove/container/run_files.hpp>
#include <sys/file.h>
#include <sys/stat.h>

namespace glove::container {

namespace {

constexpr std::string_view running_ending = ".json";
constexpr std::string_view found_ending = ".found.json";

[[nodiscard]] auto lock(sys::fd_ref file, int how) -> result<bool> {
    while (::flock(file.get(), how) != 0) {
        if (errno == EWOULDBLOCK) return false;
        if (errno != EINTR) return fail_os("manifest.lock");
    }
    return true;
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

// Empty when the run goes on.
[[nodiscard]] auto take(sys::fd_ref directory, const std::string& name)
    -> result<std::pair<sys::unique_fd, run_manifest>> {
    GLOVE_TRY(auto file,
              sys::open_beneath(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
                                sys::mounts::crossed));
    GLOVE_TRY(const auto mine, lock(file, LOCK_EX | LOCK_NB));
    if (!mine) return std::pair{sys::unique_fd{}, run_manifest{}};
    GLOVE_TRY(const auto facts, sys::inspect(file));
    if (facts.identity.type != S_IFREG || facts.owner != ::geteuid())
        return fail(errc::not_permitted, "manifest.read", name + " is not a regular file of yours");
    GLOVE_TRY(const auto text, sys::read_all(file, most_manifest_bytes));
    auto read = read_manifest(text);
    if (!read)
        return fail(errc::corrupt, "manifest.read", name + ": " + read.error().detail,
                    "remove the file if you do not need it");
    return std::pair{std::move(file), *std::move(read)};
}

} // namespace

auto own_manifest::write(const std::string& directory, const run_manifest& from)
    -> result<own_manifest> {
    own_manifest out;
    if (from.grants.empty()) return out;
    GLOVE_TRY(const auto text, manifest_text(from));
    const auto name = from.run + std::string{running_ending};
    GLOVE_TRY(out.directory_, sys::make_private_directory(directory));
    GLOVE_CHECK(lock(out.directory_, LOCK_SH)); // a look at all files waits, or is waited for
    // Whole from the first moment: who is killed here leaves none that cannot be read.
    GLOVE_CHECK(sys::create_private_file(out.directory_, name, text));
    out.run_ = from.run;
    if (auto held = out.hold(name); !held) {
        (void)out.conclude(false); // no run begins, so nothing of it stays
        return std::unexpected(std::move(held).error());
    }
    return out;
}

auto own_manifest::hold(const std::string& name) -> result<> {
    GLOVE_TRY(file_, sys::open_private_append(directory_, name));
    GLOVE_CHECK(lock(file_, LOCK_EX));
    GLOVE_CHECK(lock(directory_, LOCK_UN));
    return {};
}

auto own_manifest::conclude(bool keep) -> result<> {
    if (run_.empty()) return {};
    const auto name = run_ + std::string{running_ending};
    return keep ? rename_in(directory_, name, run_ + std::string{found_ending})
                : remove_in(directory_, name);
}

auto review_runs(const std::string& directory, std::string_view only,
                 const std::function<verdict(const past_run&)>& judge,
                 const std::function<void(const error&)>& tell) -> result<> {
    GLOVE_TRY(const bool any, sys::is_there(directory));
    if (!any) return {};
    GLOVE_TRY(const auto opened, sys::make_private_directory(directory));
    GLOVE_CHECK(lock(opened, LOCK_EX));
    GLOVE_TRY(const auto names, sys::list_names(opened, ""));
    std::size_t seen = 0;
    for (const auto& [name, type] : names) {
        const bool told = name.ends_with(found_ending);
        if (!name.ends_with(running_ending) || name.starts_with('.')) continue;
        const auto run =
            name.substr(0, name.size() - (told ? found_ending.size() : running_ending.size()));
        if (!only.empty() && run != only) continue;
        if (++seen > most_manifests) break;
        const auto taken = take(opened, name);
        if (!taken) {
            tell(taken.error());
            continue;
        }
        if (!taken->first) continue;
        const bool keep = judge({taken->second, told}) == verdict::keep;
        auto done = keep && told ? result<>{}
                    : keep       ? rename_in(opened, name, run + std::string{found_ending})
                                 : remove_in(opened, name);
        if (!done) tell(done.error());
    }
    return {};
}

} // namespace glove::container
