// `--path`: the programs of the caller's home that are on PATH.
//
// Every directory is judged as a program's own is. A link that leads out of its directory brings
// what it leads to, or is left out with the reason; the numbers of both are bounded.
#include "host/program_places.hpp"
#include "host/programs.hpp"
#include "host/trusted.hpp"
#include <algorithm>
#include <dirent.h>
#include <glove/container/plan.hpp>
#include <memory>
#include <sys/stat.h>

namespace glove::host {

namespace {

constexpr std::size_t most_entries = 1024; // of one directory
constexpr std::size_t most_links = 256;    // of all directories

struct offer {
    const program_search& search;
    path_offer out;
    std::size_t links = 0;

    void leave_out(const std::string& path, const std::string& why) {
        out.left_out.push_back(path + " (" + why + ")");
    }
};

[[nodiscard]] auto why(const error& problem) -> std::string {
    return problem.os != 0 ? std::string{to_string(problem.code)} : problem.detail;
}

void offer_link(offer& at, const std::string& directory, const std::string& path) {
    const auto where = container::resolve(path);
    if (!where) return at.leave_out(path, "leads nowhere");
    if (sys::holds(directory, where->real) || container::is_system_place(where->real)) return;
    struct ::stat found{};
    if (::stat(where->real.c_str(), &found) != 0 || !S_ISREG(found.st_mode))
        return at.leave_out(path, "leads to no file");
    if (++at.links > most_links)
        return at.leave_out(path, "more than " + std::to_string(most_links) + " links");
    auto needs = closure_of(path, at.search);
    if (!needs) return at.leave_out(path, why(needs.error()));
    // Its directory is offered as a whole; that of its interpreter is not on the caller's PATH.
    needs->directories.clear();
    std::erase(needs->files, path);
    at.out.needs.join(*std::move(needs));
}

void offer_links(offer& at, const std::string& directory) {
    struct closer {
        void operator()(::DIR* open) const noexcept { (void)::closedir(open); }
    };
    const std::unique_ptr<::DIR, closer> open{::opendir(directory.c_str())};
    if (open == nullptr) return at.leave_out(directory, "cannot be listed");
    std::vector<std::string> links;
    for (std::size_t seen = 0;; ++seen) {
        const auto* const entry = ::readdir(open.get());
        if (entry == nullptr) break;
        if (seen == most_entries) {
            at.leave_out(directory + "/...",
                         "more than " + std::to_string(most_entries) + " names");
            break;
        }
        auto path = directory + "/" + entry->d_name;
        struct ::stat found{};
        if (::lstat(path.c_str(), &found) == 0 && S_ISLNK(found.st_mode))
            links.push_back(std::move(path));
    }
    std::ranges::sort(links); // not as the file system has them
    for (const auto& link : links) offer_link(at, directory, link);
}

void offer_directory(offer& at, const std::string& named) {
    const auto where = container::resolve(named);
    if (!where || !sys::holds(at.search.home, where->real)) return; // nothing of the home
    if (where->real == at.search.home) return at.leave_out(named, "is the whole home");
    for (const auto& own : at.search.closed)
        if (sys::holds(where->real, own) || sys::holds(own, where->real))
            return at.leave_out(named, "holds Glove's own files");
    if (is_writable(named, at.search) || is_writable(where->real, at.search))
        return at.leave_out(named, "can be written by the command");
    if (named.find(':') != std::string::npos) return at.leave_out(named, "has a colon");
    const auto found = find_trusted(named, own_group::allowed, "profile.path");
    if (!found) return at.leave_out(named, why(found.error()));
    if (found->facts.identity.type != S_IFDIR) return at.leave_out(named, "is no directory");
    at.out.needs.join({.files = {named}, .directories = {named}});
    offer_links(at, found->real);
}

} // namespace

auto offer_path(const program_search& search) -> result<path_offer> {
    if (search.home.empty())
        return fail(errc::invalid_input, "profile.path",
                    "--path offers programs of your home, and HOME is not set to one",
                    "set HOME, or leave --path out");
    offer at{search, {}, 0};
    for (const auto& directory : search.path) offer_directory(at, directory);
    return std::move(at.out);
}

} // namespace glove::host
