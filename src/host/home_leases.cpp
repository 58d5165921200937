// Which of two contents is newer is decided by the kernel's time of change, which an agent can move
// forward to the present moment and nowhere else.
#include "host/home_leases.hpp"
#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/wire/crypto.hpp>
#include <glove/wire/json.hpp>
#include <sys/stat.h>

namespace glove::host {

namespace {

constexpr int looks = 3; // at a file that somebody writes meanwhile

// What keeps a path of a home from being opened, when it is of the home's own making.
struct obstacle {
    int os;
    const char* why;
};
constexpr obstacle obstacles[] = {
    {ELOOP, "is a link, or lies behind one"},
    {ENOTDIR, "lies below something that is no directory"},
    {EXDEV, "lies on another file system"},
    {ENXIO, "is a socket or a device"},
    {EACCES, "cannot be read"},
    {EPERM, "cannot be read"},
    {EISDIR, "is a directory"},
    {EAGAIN, "is held by another program"},
};
[[nodiscard]] auto obstacle_of(int os) -> const char* {
    const auto* const row = std::ranges::find(obstacles, os, &obstacle::os);
    return row == std::end(obstacles) ? nullptr : row->why;
}

[[nodiscard]] auto defect_of(const sys::file_facts& facts) -> const char* {
    if (facts.identity.type == S_IFDIR) return "is a directory";
    if (facts.identity.type != S_IFREG) return "is not a regular file";
    if (facts.owner != ::geteuid()) return "belongs to another user";
    if (facts.links != 1) return "has more than one name";
    if (facts.size > largest_credential) return "is larger than 1 MiB";
    return nullptr;
}

[[nodiscard]] auto held_still(const sys::file_facts& before, const sys::file_facts& after) -> bool {
    return before.size == after.size && before.changed_ns == after.changed_ns &&
           before.links == after.links;
}

[[nodiscard]] auto digest_of(std::string_view bytes) -> result<std::string> {
    GLOVE_TRY(const auto digest, wire::sha256(bytes));
    return wire::to_hex(digest);
}

// An agent that was killed in the middle of writing leaves half a file.
[[nodiscard]] auto is_half(const std::string& path, const std::string& bytes) -> const char* {
    if (bytes.empty()) return "is empty";
    if (path.ends_with(".json") && !wire::json::read(bytes, {.form = wire::json::numbers::any}))
        return "is not whole JSON";
    return nullptr;
}

[[nodiscard]] auto sentence(const home_entry& home, const std::string& path, std::string_view what)
    -> std::string {
    return "home " + home.name + ": " + path + " " + std::string{what};
}

// Beside the store, so that no path of a credential can be the place of another's former content.
[[nodiscard]] auto superseded(const std::string& profile) -> std::string {
    return profile + "+superseded";
}

[[nodiscard]] auto open_store(const home_area& area, const std::string& profile)
    -> result<sys::unique_fd> {
    return sys::make_directory_in(area.credentials, profile);
}

// What stands in the store is the operator's own: a defect is an error there.
[[nodiscard]] auto read_store(const home_area& area, const std::string& profile,
                              const std::string& path) -> result<std::optional<file_content>> {
    GLOVE_TRY(const auto store, open_store(area, profile));
    GLOVE_TRY(auto found, read_content(store, path, place_of::store));
    if (const auto* const bad = std::get_if<defect>(&found))
        return fail(errc::not_permitted, "home.store",
                    area.credentials_path + "/" + profile + "/" + path + " " + bad->why,
                    "remove it, and log in again");
    if (auto* const good = std::get_if<file_content>(&found))
        return std::optional{std::move(*good)};
    return std::optional<file_content>{};
}

[[nodiscard]] auto put_beside_store(const home_area& area, const std::string& profile,
                                    const std::string& path, const file_content& content)
    -> result<std::string> {
    const auto beside = superseded(profile);
    GLOVE_CHECK(put_into_store(area, beside, path, content));
    return area.credentials_path + "/" + beside + "/" + path;
}

struct exchange {
    const home_area& area;
    home_entry& entry;
    std::vector<std::string>& told;
};

// What was in a home before it was lent anything: whoever wrote it may have had no profile. It
// becomes the store's only where the store has nothing.
[[nodiscard]] auto return_found(exchange& at, lease& of, const file_content& mine) -> result<> {
    const auto& profile = at.entry.record.profile;
    GLOVE_TRY(const auto kept, read_store(at.area, profile, of.path));
    of.known = {mine.digest};
    if (kept && kept->digest == mine.digest) return {};
    if (kept) {
        GLOVE_TRY(const auto place, put_beside_store(at.area, profile, of.path, mine));
        at.told.push_back(sentence(at.entry, of.path,
                                   "was there before this home had a login of profile " + profile +
                                       ", which stays: the file of the home is at " + place));
        return {};
    }
    GLOVE_CHECK(put_into_store(at.area, profile, of.path, mine));
    at.told.push_back(sentence(at.entry, of.path,
                               "was there before this home had a login of profile " + profile +
                                   ": it was taken, and from now on is lent to every home of it"));
    return {};
}

// The agent's content becomes the store's, unless the store's is newer.
[[nodiscard]] auto return_content(exchange& at, lease& of, const file_content& mine) -> result<> {
    const auto& profile = at.entry.record.profile;
    GLOVE_TRY(const auto kept, read_store(at.area, profile, of.path));
    const auto tell = [&](const std::string& what) {
        at.told.push_back(sentence(at.entry, of.path, what));
    };
    const bool same = kept && kept->digest == mine.digest;
    const bool both = kept && !same && std::ranges::count(of.known, kept->digest) == 0;
    if (both && kept->changed_ns > mine.changed_ns) {
        GLOVE_TRY(const auto place, put_beside_store(at.area, profile, of.path, mine));
        tell("was changed here, and later in another home: the later one stays, this one is at " +
             place);
    } else if (!same) {
        std::string former;
        if (kept) {
            GLOVE_TRY(former, put_beside_store(at.area, profile, of.path, *kept));
        }
        GLOVE_CHECK(put_into_store(at.area, profile, of.path, mine));
        if (both)
            tell("was changed in another home, and later here: this one stays, the other one is "
                 "at " +
                 former);
        if (!kept) tell("is new, and from now on is lent to every home of profile " + profile);
    }
    of.known = {mine.digest};
    return {};
}

enum class lease_age : bool { old, fresh };
[[nodiscard]] auto take_back_one(exchange& at, lease& of, lease_age age) -> result<> {
    GLOVE_TRY(const auto found, read_content(at.entry.top, of.path, place_of::home));
    if (const auto* const bad = std::get_if<defect>(&found)) {
        at.told.push_back(sentence(at.entry, of.path, bad->why + ": it was not taken back"));
        return {};
    }
    const auto* const mine = std::get_if<file_content>(&found);
    if (mine == nullptr || std::ranges::count(of.known, mine->digest) != 0) return {};
    if (const auto* const half = is_half(of.path, mine->bytes)) {
        at.told.push_back(
            sentence(at.entry, of.path, std::string{half} + ": it was not taken back"));
        return {};
    }
    return age == lease_age::fresh ? return_found(at, of, *mine) : return_content(at, of, *mine);
}

// What is to be copied into the home, after the record says so.
struct loan {
    std::string path;
    std::string bytes;
};
[[nodiscard]] auto prepare_loan(exchange& at, lease& of) -> result<std::optional<loan>> {
    GLOVE_TRY(auto kept, read_store(at.area, at.entry.record.profile, of.path));
    if (!kept) return std::optional<loan>{};
    GLOVE_TRY(const auto found, read_content(at.entry.top, of.path, place_of::home));
    if (const auto* const bad = std::get_if<defect>(&found)) {
        at.told.push_back(sentence(at.entry, of.path, bad->why + ": the login was not lent"));
        return std::optional<loan>{};
    }
    const auto* const mine = std::get_if<file_content>(&found);
    const bool same = mine != nullptr && mine->digest == kept->digest;
    of.known.clear();
    if (mine != nullptr && !same) of.known.push_back(mine->digest);
    of.known.push_back(kept->digest);
    if (same) return std::optional<loan>{};
    return std::optional{loan{of.path, std::move(kept->bytes)}};
}

} // namespace

auto is_inner_path(std::string_view path) noexcept -> bool {
    constexpr std::size_t longest = 1024;
    return !path.empty() && path.size() <= longest &&
           sys::is_normal_absolute("/" + std::string{path});
}

auto read_content(sys::fd_ref top, const std::string& path, place_of from) -> result<look> {
    for (int i = 0; i < looks; ++i) {
        const auto file = sys::open_beneath(top, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
        if (!file) {
            if (file.error().os == ENOENT) return look{nothing_there{}};
            if (const auto* const why = obstacle_of(file.error().os)) return look{defect{why}};
            return std::unexpected(file.error());
        }
        GLOVE_TRY(const auto before, sys::inspect(*file));
        if (const auto* const why = defect_of(before)) return look{defect{why}};
        auto bytes = sys::read_all(*file, largest_credential);
        if (!bytes && bytes.error().code == errc::limit_exceeded) continue; // it grew meanwhile
        if (!bytes) return std::unexpected(std::move(bytes).error());
        GLOVE_TRY(const auto after, sys::inspect(*file));
        if (!held_still(before, after)) continue;
        GLOVE_TRY(auto digest, digest_of(*bytes));
        return look{file_content{*std::move(bytes), std::move(digest),
                                 from == place_of::home ? after.changed_ns : after.written_ns}};
    }
    return look{defect{"is being written"}};
}

auto make_parents(sys::fd_ref top, const std::string& path)
    -> result<std::variant<defect, parent_place>> {
    using answer = std::variant<defect, parent_place>;
    auto at = sys::open_beneath(top, ".", O_RDONLY | O_DIRECTORY);
    std::string_view rest{path};
    for (auto slash = rest.find('/'); at && slash != std::string_view::npos;
         slash = rest.find('/')) {
        const sys::unique_fd above{*std::move(at)};
        at = sys::make_directory_in(above, std::string{rest.substr(0, slash)});
        rest.remove_prefix(slash + 1);
    }
    if (at) return answer{parent_place{*std::move(at), std::string{rest}}};
    if (const auto* const why = obstacle_of(at.error().os)) return answer{defect{why}};
    return std::unexpected(std::move(at).error());
}

auto put_into_home(const home_entry& home, const std::string& path, std::string_view content,
                   presence what_is_there) -> result<std::optional<std::string>> {
    const auto refused = [&](std::string_view why) {
        return std::optional{sentence(home, path, std::string{why} + ": it was left as it is")};
    };
    GLOVE_TRY(const auto made, make_parents(home.top, path));
    if (const auto* const bad = std::get_if<defect>(&made)) return refused(bad->why);
    const auto& place = std::get<parent_place>(made);
    if (what_is_there == presence::keep) {
        const auto put = sys::create_private_file(place.directory, place.name, content);
        if (put || put.error().code == errc::conflict) return std::optional<std::string>{};
        if (const auto* const why = obstacle_of(put.error().os)) return refused(why);
        return std::unexpected(put.error());
    }
    struct ::stat found{};
    if (::fstatat(place.directory.get(), place.name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
        !S_ISREG(found.st_mode))
        return refused("is not a regular file");
    const auto put = sys::replace_private_file(place.directory, place.name, content);
    if (put) return std::optional<std::string>{};
    if (const auto* const why = obstacle_of(put.error().os)) return refused(why);
    return std::unexpected(put.error());
}

auto put_into_store(const home_area& area, const std::string& profile, const std::string& path,
                    const file_content& content) -> result<> {
    GLOVE_TRY(const auto store, open_store(area, profile));
    GLOVE_TRY(const auto made, make_parents(store, path));
    const auto where = area.credentials_path + "/" + profile + "/" + path;
    if (const auto* const bad = std::get_if<defect>(&made))
        return fail(errc::not_permitted, "home.store", where + " " + bad->why);
    const auto& place = std::get<parent_place>(made);
    auto put = sys::replace_durably(place.directory, place.name, content.bytes, content.changed_ns);
    if (put) return {};
    auto problem = std::move(put).error();
    problem.detail = where;
    problem.remedy = "what the home holds stays there, and is taken back at its next opening";
    return std::unexpected(std::move(problem));
}

auto take_back(const home_area& area, home_entry& entry, std::vector<std::string>& told,
               std::size_t first_new) -> result<> {
    exchange at{area, entry, told};
    auto& leases = entry.record.leases;
    for (std::size_t i = 0; i < leases.size(); ++i)
        GLOVE_CHECK(
            take_back_one(at, leases[i], i < first_new ? lease_age::old : lease_age::fresh));
    return {};
}

auto lend(const home_area& area, home_entry& entry, std::vector<std::string>& told) -> result<> {
    exchange at{area, entry, told};
    std::vector<loan> loans;
    for (auto& each : entry.record.leases) {
        GLOVE_TRY(auto next, prepare_loan(at, each));
        if (next) loans.push_back(*std::move(next));
    }
    // First the record: whatever is cut short from here on, what the home holds is known.
    GLOVE_CHECK(save(entry));
    for (const auto& each : loans) {
        GLOVE_TRY(auto refused, put_into_home(entry, each.path, each.bytes, presence::replace));
        if (refused) told.push_back(*std::move(refused));
    }
    return {};
}

} // namespace glove::host
