// A mediation that this process hands over to `glove-mediator`.
#pragma once
#include <glove/base/error.hpp>
#include <glove/kernel/mediation.hpp>
#include <optional>
#include <string>

namespace glove::run {

// Names the run and its audit file: the one that is given, or a new one under the state directory.
[[nodiscard]] auto put_on_record(kernel::mediation& what,
                                 const std::optional<std::string>& audit_log) -> result<>;

// The perimeters of contained servers are put on record with the run, each under an id of its own.
void put_perimeters_on_record(kernel::mediation& what);

// Where a server starts for which no directory is named: one of Glove's own, for its user alone, so
// that nothing of an agent's is looked for there by npx, uvx, python -m and the like.
[[nodiscard]] auto server_directory(const kernel::mediation& of, const std::string& upstream)
    -> std::string;
// Those of them that are missing.
[[nodiscard]] auto make_server_directories(const kernel::mediation& what) -> result<>;

// This process becomes glove-mediator, with its own streams. Returns only what went wrong.
[[nodiscard]] auto become_mediator(const kernel::mediation& what) -> result<>;

} // namespace glove::run
