// Opening: under the gate the first run of a home takes back what was left, lends, and says which
// grants it has; a further one only compares.
#include "host/home_leases.hpp"
#include <algorithm>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/container/launch.hpp>
#include <glove/container/plan.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/user_directories.hpp>
#include <glove/wire/digest.hpp>
#include <glove/wire/utf8.hpp>

namespace glove::host {

struct open_home::state {
    home_area area;
    home_entry entry;
    sys::file_identity identity;
    std::vector<std::string> told;
};

namespace {

[[nodiscard]] auto check_paths(const home_wish& wish) -> result<> {
    const auto bad = [](const std::string& path) {
        return fail(errc::invalid_input, "home.path",
                    in_quotes(path) + " is not a path inside of a home");
    };
    for (const auto& path : wish.credentials)
        if (!is_inner_path(path)) return bad(path);
    for (const auto& seed : wish.seeds)
        if (!is_inner_path(seed.path)) return bad(seed.path);
    if (wish.credentials.size() > most_leases)
        return fail(errc::limit_exceeded, "home.path",
                    "more than " + std::to_string(most_leases) + " credentials");
    return {};
}

[[nodiscard]] auto check_profile(const home_entry& entry, const home_wish& wish) -> result<> {
    const auto& of = entry.record.profile;
    if (of.empty() || wish.profile.empty() || of == wish.profile) return {};
    return fail(errc::conflict, "home.profile",
                "home " + entry.name + " is one of profile " + of + ", not of " + wish.profile,
                "use --home OTHER");
}

[[nodiscard]] auto check_shared(const home_entry& entry, const home_wish& wish) -> result<> {
    if (entry.record.grants_digest == wish.grants.digest) return {};
    return fail(errc::conflict, "home.in_use",
                "home " + entry.name + " is in use by a run with other grants: " +
                    entry.record.grants_words + "; this one has " + wish.grants.words,
                "wait for the end of that run, or use --home OTHER");
}

// What the profile lends now is looked at as well: a login that was there before is not to be lost.
// The answer is where the new ones begin.
[[nodiscard]] auto add_leases(home_record& record, const home_wish& wish) -> std::size_t {
    const auto before = record.leases.size();
    if (wish.profile.empty()) return before; // the home keeps the profile that it had
    record.profile = wish.profile;
    for (const auto& path : wish.credentials)
        if (std::ranges::count(record.leases, path, &lease::path) == 0)
            record.leases.push_back({.path = path, .known = {}});
    return before;
}
void drop_old_leases(home_record& record, const home_wish& wish) {
    if (wish.profile.empty()) return;
    std::erase_if(record.leases, [&](const lease& each) {
        return std::ranges::count(wish.credentials, each.path) == 0;
    });
}

// Paths may be any bytes, and the record is UTF-8.
[[nodiscard]] auto recordable(const std::string& text) -> std::string {
    return wire::is_utf8(text) ? text : in_quotes(text);
}

[[nodiscard]] auto first_opening(const home_area& area, home_entry& entry, const home_wish& wish,
                                 std::vector<std::string>& told) -> result<> {
    const auto first_new = add_leases(entry.record, wish);
    GLOVE_CHECK(take_back(area, entry, told, first_new));
    drop_old_leases(entry.record, wish);
    entry.record.project = recordable(wish.project);
    entry.record.grants_digest = wish.grants.digest;
    entry.record.grants_words = recordable(wish.grants.words);
    return lend(area, entry, told);
}

[[nodiscard]] auto plant_seeds(const home_entry& entry, const home_wish& wish,
                               std::vector<std::string>& told) -> result<> {
    for (const auto& seed : wish.seeds) {
        GLOVE_TRY(auto refused, put_into_home(entry, seed.path, seed.content, presence::keep));
        if (refused) told.push_back(*std::move(refused));
    }
    return {};
}

} // namespace

auto home_key(const home_wish& wish) -> result<std::string> {
    if (!wish.profile.empty() && !is_home_name(wish.profile))
        return fail(errc::invalid_input, "home.profile",
                    in_quotes(wish.profile) + " is not a name for a profile");
    if (!wish.name.empty()) {
        GLOVE_CHECK(check_home_name(wish.name));
        return wish.name;
    }
    if (wish.profile.empty())
        return fail(errc::invalid_input, "home.name", "a home has neither a name nor a profile");
    GLOVE_TRY(const auto digest, wire::digest_encoder{}
                                     .str("glove.home.v1")
                                     .str(wish.profile)
                                     .str(wish.project)
                                     .sha256_hex());
    return wish.profile + "+" + digest.substr(0, 24);
}

auto look_at_home(const home_wish& wish) -> result<container::kept_home> {
    GLOVE_TRY(const auto key, home_key(wish));
    GLOVE_TRY(const auto state, sys::state_directory());
    container::kept_home out{
        .name = key, .path = state + "/homes/" + key + "/home", .identity = {}};
    auto real = container::resolve(out.path);
    if (!real) return out;
    out.path = std::move(real->real);
    GLOVE_TRY(const auto pin, sys::pin(out.path, sys::follow::never));
    GLOVE_TRY(const auto facts, sys::inspect(pin));
    out.identity = facts.identity;
    return out;
}

auto open_home::open(const home_wish& wish) -> result<open_home> {
    GLOVE_CHECK(container::check_identity()); // before anything is made where HOME says
    GLOVE_CHECK(check_paths(wish));
    GLOVE_TRY(const auto key, home_key(wish));
    auto made = std::make_unique<state>();
    GLOVE_TRY(made->area, open_area());
    GLOVE_TRY(const auto gate, enter_gate(made->area));
    GLOVE_TRY(made->entry, open_entry(made->area, key, true));
    auto& entry = made->entry;
    GLOVE_CHECK(check_profile(entry, wish));
    entry.record.used_ns = sys::system_clock{}.wall().count();
    GLOVE_TRY(const bool alone, lock_alone(entry));
    if (alone) GLOVE_CHECK(first_opening(made->area, entry, wish, made->told));
    GLOVE_TRY(const bool shared, lock_shared(entry));
    if (!shared)
        return fail(errc::conflict, "home.in_use", "home " + key + " is being removed",
                    "run it again");
    if (!alone) {
        GLOVE_CHECK(check_shared(entry, wish));
        GLOVE_CHECK(save(entry));
    }
    GLOVE_CHECK(plant_seeds(entry, wish, made->told));
    GLOVE_TRY(const auto facts, sys::inspect(entry.top));
    made->identity = facts.identity;
    return open_home{std::move(made)};
}

open_home::open_home(std::unique_ptr<state> made) noexcept : state_{std::move(made)} {}
open_home::open_home(open_home&&) noexcept = default;
auto open_home::operator=(open_home&&) noexcept -> open_home& = default;
open_home::~open_home() = default;

auto open_home::directory() const -> container::kept_home {
    return {.name = state_->entry.name, .path = state_->entry.path, .identity = state_->identity};
}

auto open_home::descriptor() const noexcept -> sys::fd_ref { return state_->entry.top; }

auto open_home::warnings() const -> const std::vector<std::string>& { return state_->told; }

auto open_home::finish() -> result<std::vector<std::string>> {
    std::vector<std::string> told;
    auto& entry = state_->entry;
    if (entry.record.leases.empty()) return told;
    GLOVE_TRY(const auto gate, enter_gate(state_->area));
    // Another run of this home may have taken something back since.
    GLOVE_TRY(const auto now, open_entry(state_->area, entry.name, false));
    entry.record = now.record;
    GLOVE_CHECK(take_back(state_->area, entry, told));
    if (entry.record != now.record) GLOVE_CHECK(save(entry));
    return told;
}

} // namespace glove::host
