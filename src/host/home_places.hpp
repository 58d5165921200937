// Where homes and lent credentials are on the disk, the one gate before them, and the record that
// each home has.
//
//   $XDG_STATE_HOME/glove/homes/NAME/home       what agents see and write
//   $XDG_STATE_HOME/glove/homes/NAME/home.json  the record
//   $XDG_STATE_HOME/glove/homes/NAME/lock       held shared by every run that uses the home
//   $XDG_STATE_HOME/glove/credentials/PROFILE/  the store
//
// Guarantees: directories are 0700 and the caller's; nothing here is ever inside of a mount of an
// agent but `home`.
#pragma once
#include <chrono>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/sys/fd.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/trees.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glove::host {

inline constexpr std::size_t most_leases = 16;
inline constexpr std::size_t most_known = 2;

// A credential that is lent to a home. `known` are digests of contents that are no change of an
// agent's: what it found, and what it was about to be given.
struct lease {
    std::string path;
    std::vector<std::string> known;
    auto operator==(const lease&) const -> bool = default;
};

struct home_record {
    std::uint32_t version = 1;
    std::string profile, project;
    std::int64_t created_ns = 0, used_ns = 0;
    std::string grants_digest, grants_words; // of the runs that use the home now, or did last
    std::vector<lease> leases;
    auto operator==(const home_record&) const -> bool = default;
};

struct home_area {
    std::string path; // canonical, of `homes`
    sys::unique_fd homes;
    std::string credentials_path;
    sys::unique_fd credentials;
};
[[nodiscard]] auto open_area() -> result<home_area>;
// Without making anything; empty when there never was a home.
[[nodiscard]] auto find_area() -> result<std::optional<home_area>>;

// The exclusive lock under which homes are made, opened, settled and removed. Waits for it, but
// not for ever: errc::timed_out.
[[nodiscard]] auto enter_gate(const home_area& area) -> result<sys::unique_fd>;

struct home_entry {
    std::string name;
    std::string path; // of `top`
    sys::unique_fd directory;
    sys::unique_fd top;
    sys::unique_fd lock;
    home_record record;
};
// errc::not_found when there is no such home, and `make` is false.
[[nodiscard]] auto open_entry(const home_area& area, const std::string& name, bool make)
    -> result<home_entry>;
// Through to the disk.
[[nodiscard]] auto save(const home_entry& entry) -> result<>;

// Whether the lock was got. No other process can be in between: callers hold the gate.
[[nodiscard]] auto lock_alone(const home_entry& entry) -> result<bool>;
[[nodiscard]] auto lock_shared(const home_entry& entry) -> result<bool>;

// What an agent could reach.
using sys::each_name;
using sys::names_in;
using sys::open_with_own_rights;

// PROFILE+DIGEST too, unlike `is_home_name`.
[[nodiscard]] auto is_home_key(std::string_view name) noexcept -> bool;
inline constexpr std::string_view removed_prefix = ".removed-";

} // namespace glove::host
