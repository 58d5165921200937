// Credentials on their way between the store and a home.
//
// Guarantees: a home is read and written beneath its top without links; only a regular file of the
// caller's with one name and at most 1 MiB is taken, and only when it held still while it was read;
// what replaces something in the store leaves the former content beside it. Callers hold the gate.
#pragma once
#include "host/home_places.hpp"
#include <glove/host/homes.hpp>
#include <limits>
#include <variant>

namespace glove::host {

inline constexpr std::size_t largest_credential = 1UL << 20U;

struct file_content {
    std::string bytes;
    std::string digest;
    // When it was changed: in a home the kernel's word for it, in the store that of the home that
    // it came from.
    std::int64_t changed_ns = 0;
};
struct nothing_there {};
struct defect {
    std::string why; // "is a link", ...
};
using look = std::variant<nothing_there, defect, file_content>;
enum class place_of : bool { home, store };
[[nodiscard]] auto read_content(sys::fd_ref top, const std::string& path, place_of from)
    -> result<look>;

// Relative, in normal form, and not too long.
[[nodiscard]] auto is_inner_path(std::string_view path) noexcept -> bool;

// The directory that holds `path` below `top`, made where it is missing; a defect when something
// else is in the way.
struct parent_place {
    sys::unique_fd directory;
    std::string name;
};
[[nodiscard]] auto make_parents(sys::fd_ref top, const std::string& path)
    -> result<std::variant<defect, parent_place>>;

// Puts a file into a home; the sentence why it could not, because of what is there.
enum class presence : bool { replace, keep };
[[nodiscard]] auto put_into_home(const home_entry& home, const std::string& path,
                                 std::string_view content, presence what_is_there)
    -> result<std::optional<std::string>>;

// Puts a credential into the store of a profile.
[[nodiscard]] auto put_into_store(const home_area& area, const std::string& profile,
                                  const std::string& path, const file_content& content) -> result<>;

// Returns what an agent changed. `entry.record` is brought up to date and to be saved. Leases from
// `first_new` on were never lent to this home: what it has of them replaces nothing in the store.
[[nodiscard]] auto take_back(const home_area& area, home_entry& entry,
                             std::vector<std::string>& told,
                             std::size_t first_new = std::numeric_limits<std::size_t>::max())
    -> result<>;
// Lends what the store holds, and saves the record on the way.
[[nodiscard]] auto lend(const home_area& area, home_entry& entry, std::vector<std::string>& told)
    -> result<>;

} // namespace glove::host
