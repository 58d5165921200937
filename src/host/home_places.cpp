// One gate for all homes: what is done under it is short, and one lock cannot deadlock.
#include "host/home_places.hpp"
#include <algorithm>
#include <fcntl.h>
#include <glove/base/ascii.hpp>
#include <glove/base/text.hpp>
#include <glove/container/plan.hpp>
#include <glove/host/homes.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/user_directories.hpp>
#include <glove/wire/fields.hpp>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>

namespace glove::host {

namespace {

constexpr std::size_t record_limit = 256UL * 1024;
constexpr std::chrono::seconds gate_patience{15};
constexpr int gate_step_ms = 10;

constexpr wire::text any_text{wire::grammar::no_nul, 0, 65536};
constexpr auto lease_fields =
    wire::table(wire::row<&lease::path, wire::text{wire::grammar::no_nul, 1, 4096}>("path"),
                wire::row<&lease::known, wire::list<wire::hex64>{0, most_known}>("known"));
constexpr auto record_fields = wire::table(
    wire::row<&home_record::version, wire::integer{1, 1}>("schema_version"),
    wire::row<&home_record::profile, any_text>("profile"),
    wire::row<&home_record::project, any_text>("project"),
    wire::row<&home_record::created_ns, wire::integer{}>("created_ns"),
    wire::row<&home_record::used_ns, wire::integer{}>("used_ns"),
    wire::row<&home_record::grants_digest, any_text>("grants_digest"),
    wire::row<&home_record::grants_words, any_text>("grants"),
    wire::row<&home_record::leases, wire::list<wire::record<lease_fields>{}>{0, most_leases}>(
        "credentials"));

[[nodiscard]] auto require_private(sys::fd_ref directory, const std::string& path) -> result<> {
    GLOVE_TRY(const auto facts, sys::inspect(directory));
    if (facts.owner != ::geteuid())
        return fail(errc::not_permitted, "home.private", path + " belongs to another user");
    if ((facts.permissions & 077U) != 0)
        return fail(errc::not_permitted, "home.private", path + " is open to other users",
                    "chmod 700 " + path);
    return {};
}

// The caller's own, closed to everybody else.
[[nodiscard]] auto own_directory(const std::string& path) -> result<sys::unique_fd> {
    GLOVE_TRY(auto made, sys::make_private_directory(path));
    GLOVE_CHECK(require_private(made, path));
    return made;
}

[[nodiscard]] auto open_lock(sys::fd_ref directory, const char* name) -> result<sys::unique_fd> {
    constexpr int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    sys::unique_fd lock{::openat(directory.get(), name, flags, 0600)};
    if (!lock) return fail_os("home.lock", errno, name);
    return lock;
}

[[nodiscard]] auto try_lock(sys::fd_ref file, int how) -> result<bool> {
    while (::flock(file.get(), how | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) return false;
        if (errno != EINTR) return fail_os("home.lock");
    }
    return true;
}

[[nodiscard]] auto now_ns() -> std::int64_t { return sys::system_clock{}.wall().count(); }

[[nodiscard]] auto read_record(const home_entry& entry) -> result<home_record> {
    const auto file =
        sys::open_beneath(entry.directory, "home.json", O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!file && file.error().os == ENOENT) { // new, or its making was cut short
        home_record fresh;
        fresh.created_ns = fresh.used_ns = now_ns();
        return fresh;
    }
    if (!file) return std::unexpected(file.error());
    GLOVE_TRY(const auto text, sys::read_all(*file, record_limit));
    auto record = wire::decode_text<home_record>(text, record_fields);
    if (!record)
        return fail(errc::corrupt, "home.record",
                    entry.path + "/../home.json: " + record.error().detail,
                    "glove home remove " + entry.name);
    return record;
}

// What agents see. They may have done anything to it but replace it.
[[nodiscard]] auto open_top(const home_entry& entry) -> result<sys::unique_fd> {
    auto top = open_with_own_rights(entry.directory, "home");
    if (!top && top.error().os == ENOENT) top = sys::make_directory_in(entry.directory, "home");
    if (!top) return fail_os("home.place", top.error().os, entry.path);
    return top;
}

} // namespace

auto is_home_name(std::string_view name) noexcept -> bool {
    constexpr std::size_t longest = 64;
    const auto first = [](char c) { return is_lower(c) || is_digit(c); };
    return !name.empty() && name.size() <= longest && first(name.front()) && name != "none" &&
           std::ranges::all_of(
               name, [&](char c) { return first(c) || c == '.' || c == '_' || c == '-'; });
}

auto is_home_key(std::string_view name) noexcept -> bool {
    const auto plus = name.find('+');
    if (plus == std::string_view::npos) return is_home_name(name);
    const auto digest = name.substr(plus + 1);
    return is_home_name(name.substr(0, plus)) && digest.size() == 24 &&
           digest.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

auto check_home_name(const std::string& name) -> result<> {
    if (is_home_name(name)) return {};
    return fail(errc::invalid_input, "usage", in_quotes(name) + " is not a name for a home",
                "take up to 64 of a-z, 0-9, '.', '_' and '-', the first one of a-z or 0-9");
}

auto open_area() -> result<home_area> {
    GLOVE_TRY(const auto state, sys::state_directory());
    home_area out;
    out.credentials_path = state + "/credentials";
    GLOVE_TRY(out.homes, own_directory(state + "/homes"));
    GLOVE_TRY(out.credentials, own_directory(out.credentials_path));
    auto real = container::resolve(state + "/homes");
    if (!real) return fail_os("home.place", real.error().os, real.error().detail);
    out.path = std::move(real->real);
    return out;
}

auto find_area() -> result<std::optional<home_area>> {
    GLOVE_TRY(const auto state, sys::state_directory());
    if (!sys::exists(state + "/homes")) return std::optional<home_area>{};
    GLOVE_TRY(auto area, open_area());
    return std::optional{std::move(area)};
}

auto enter_gate(const home_area& area) -> result<sys::unique_fd> {
    GLOVE_TRY(auto gate, open_lock(area.homes, ".gate"));
    const sys::system_clock time;
    const auto deadline = time.monotonic() + gate_patience;
    for (;;) {
        GLOVE_TRY(const auto got, try_lock(gate, LOCK_EX));
        if (got) return gate;
        if (time.monotonic() >= deadline)
            return fail(errc::timed_out, "home.gate",
                        "another glove has held " + area.path + "/.gate for 15 seconds",
                        "see with `fuser " + area.path + "/.gate` whether it is stopped");
        (void)::poll(nullptr, 0, gate_step_ms);
    }
}

auto open_entry(const home_area& area, const std::string& name, bool make) -> result<home_entry> {
    home_entry out;
    out.name = name;
    out.path = area.path + "/" + name + "/home";
    auto directory = make ? sys::make_directory_in(area.homes, name)
                          : sys::open_beneath(area.homes, name, O_RDONLY | O_DIRECTORY);
    if (!directory && !make && directory.error().os == ENOENT)
        return fail(errc::not_found, "home.open", "there is no home called " + name,
                    "see `glove home list`");
    if (!directory) return std::unexpected(std::move(directory).error());
    out.directory = *std::move(directory);
    GLOVE_CHECK(require_private(out.directory, area.path + "/" + name));
    GLOVE_TRY(out.lock, open_lock(out.directory, "lock"));
    GLOVE_TRY(out.top, open_top(out));
    GLOVE_TRY(out.record, read_record(out));
    return out;
}

auto save(const home_entry& entry) -> result<> {
    GLOVE_TRY(const auto text, wire::encode(entry.record, record_fields));
    return sys::replace_durably(entry.directory, "home.json", text + "\n", now_ns());
}

auto lock_alone(const home_entry& entry) -> result<bool> { return try_lock(entry.lock, LOCK_EX); }
auto lock_shared(const home_entry& entry) -> result<bool> { return try_lock(entry.lock, LOCK_SH); }

} // namespace glove::host
