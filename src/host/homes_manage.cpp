// What `glove home` does: looking, removing, importing.
#include "host/home_leases.hpp"
#include "host/hostile_tree.hpp"
#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/container/launch.hpp>
#include <glove/container/plan.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/entropy.hpp>
#include <glove/wire/crypto.hpp>

namespace glove::host {

namespace {

constexpr std::uint64_t counted_entries = 200'000;

[[nodiscard]] auto no_such_home(const std::string& name) {
    return fail(errc::not_found, "home.open", "there is no home called " + in_quotes(name),
                "see `glove home list`");
}

[[nodiscard]] auto check_key(const std::string& name) -> result<> {
    if (!is_home_key(name)) return no_such_home(name);
    return {};
}

[[nodiscard]] auto facts_of(const home_entry& entry) -> result<home_facts> {
    const auto& record = entry.record;
    home_facts out{.name = entry.name,
                   .profile = record.profile,
                   .project = record.project,
                   .path = entry.path,
                   .credentials = {},
                   .created_ns = record.created_ns,
                   .used_ns = record.used_ns,
                   .in_use = false,
                   .grants = record.grants_words};
    for (const auto& each : record.leases) out.credentials.push_back(each.path);
    GLOVE_TRY(const bool alone, lock_alone(entry));
    out.in_use = !alone;
    return out;
}

// Takes its time, and therefore not under the gate.
[[nodiscard]] auto add_size(home_facts& to, sys::fd_ref top) -> result<> {
    GLOVE_TRY(const auto size, measure_tree(top, counted_entries));
    to.bytes = size.bytes;
    to.entries = size.entries;
    to.counted_all = size.counted_all;
    return {};
}

struct looked_at {
    home_facts facts;
    sys::unique_fd top;
};
[[nodiscard]] auto look_at(const home_area& area, const std::string& name) -> result<looked_at> {
    GLOVE_TRY(auto entry, open_entry(area, name, false));
    GLOVE_TRY(auto facts, facts_of(entry));
    return looked_at{std::move(facts), std::move(entry.top)};
}

[[nodiscard]] auto remove_leftovers(const home_area& area) -> result<> {
    GLOVE_TRY(const auto names, names_in(area.homes));
    result<> first; // one that cannot be removed must not keep the others
    for (const auto& name : names) {
        if (!name.starts_with(removed_prefix)) continue;
        auto gone = remove_tree(area.homes, name, area.path + "/" + name);
        const bool elsewhere = !gone && gone.error().os == ENOENT; // another glove is at it, too
        if (!gone && !elsewhere && first) first = std::move(gone);
    }
    return first;
}

// A home that has filled the disk must go, or there is no room for anything, its login neither.
[[nodiscard]] auto settle_before_removal(const home_area& area, home_entry& entry)
    -> result<std::vector<std::string>> {
    std::vector<std::string> told;
    const auto settled = take_back(area, entry, told);
    if (settled) return told;
    const auto& problem = settled.error();
    if (problem.os != ENOSPC && problem.os != EDQUOT) return std::unexpected(problem);
    told.push_back("home " + entry.name + ": the disk is full, so a changed login was not taken " +
                   "back to " + problem.detail + ", which stays as it was");
    return told;
}

// Under the gate: out of the way of every later opening.
[[nodiscard]] auto put_aside(const home_area& area, const std::string& name)
    -> result<std::vector<std::string>> {
    GLOVE_TRY(const auto gate, enter_gate(area));
    std::vector<std::string> told;
    sys::unique_fd lock;
    auto entry = open_entry(area, name, false); // removed without its record, if that is broken
    if (!entry && entry.error().code == errc::not_found) return no_such_home(name);
    if (entry) {
        GLOVE_TRY(const bool alone, lock_alone(*entry));
        if (!alone)
            return fail(errc::conflict, "home.in_use",
                        "home " + name + " is in use by a run with " + entry->record.grants_words,
                        "wait for its end");
        GLOVE_TRY(told, settle_before_removal(area, *entry));
        lock = std::move(entry->lock);
    } else if (entry.error().code != errc::corrupt) return std::unexpected(entry.error());
    sys::system_entropy random;
    GLOVE_TRY(const auto id, sys::random_id(random));
    const auto aside = std::string{removed_prefix} + id;
    if (::renameat(area.homes.get(), name.c_str(), area.homes.get(), aside.c_str()) != 0)
        return fail_os("home.remove", errno, area.path + "/" + name);
    return told;
}

} // namespace

auto list_homes() -> result<home_list> {
    home_list out;
    GLOVE_TRY(const auto area, find_area());
    if (!area) return out;
    GLOVE_TRY(const auto names, names_in(area->homes));
    for (const auto& name : names) {
        if (name.starts_with(removed_prefix)) out.leftovers.push_back(area->path + "/" + name);
        if (!is_home_key(name)) continue;
        result<looked_at> home = [&]() -> result<looked_at> {
            GLOVE_TRY(const auto gate, enter_gate(*area));
            return look_at(*area, name);
        }();
        if (home) {
            GLOVE_CHECK(add_size(home->facts, home->top));
            out.homes.push_back(std::move(home->facts));
        } else if (home.error().code != errc::not_found) out.problems.push_back(home.error());
    }
    return out;
}

auto show_home(const std::string& name) -> result<home_facts> {
    GLOVE_CHECK(check_key(name));
    GLOVE_TRY(const auto area, find_area());
    if (!area) return no_such_home(name);
    result<looked_at> home = [&]() -> result<looked_at> {
        GLOVE_TRY(const auto gate, enter_gate(*area));
        return look_at(*area, name);
    }();
    if (!home) return std::unexpected(std::move(home).error());
    GLOVE_CHECK(add_size(home->facts, home->top));
    return std::move(home->facts);
}

auto remove_home(const std::string& name) -> result<std::vector<std::string>> {
    GLOVE_CHECK(container::check_identity());
    GLOVE_CHECK(check_key(name));
    GLOVE_TRY(const auto area, find_area());
    if (!area) return no_such_home(name);
    GLOVE_TRY(auto told, put_aside(*area, name));
    GLOVE_CHECK(remove_leftovers(*area));
    return told;
}

} // namespace glove::host
