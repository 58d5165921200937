// A root, a project below it, and requests that are good, for tests to break.
#pragma once
#include "plan_scene.hpp"
#include <glove/supervisor/exposure_ledger.hpp>
#include <glove/supervisor/exposure_policy.hpp>
#include <sys/stat.h>

namespace glove::test {

inline auto read_mode() -> supervisor::exposure_mode {
    using namespace supervisor;
    return {access_kind::read, materialization_kind::bind, 0, cleanup_kind::retain};
}
inline auto ephemeral_mode(std::uint64_t bytes = mib) -> supervisor::exposure_mode {
    using namespace supervisor;
    return {access_kind::ephemeral_write, materialization_kind::copy, bytes, cleanup_kind::remove};
}
inline auto retained_mode(std::uint64_t bytes = 32 * mib) -> supervisor::exposure_mode {
    using namespace supervisor;
    return {access_kind::retained_write, materialization_kind::copy, bytes, cleanup_kind::retain};
}

// Those of the digests that others compute.
inline const std::string usual_host_root = "/srv/work";
inline const std::string usual_host_path = usual_host_root + "/proj";

inline auto usual_root(std::string host_root = usual_host_root) -> supervisor::exposure_root {
    return {"projects",
            std::move(host_root),
            {read_mode(), ephemeral_mode(64 * mib)},
            86'400,
            {"codex-safe", "pi-safe"}};
}
inline auto usual_exposure_rules(std::string host_root = usual_host_root)
    -> supervisor::exposure_rules {
    return {1, {usual_root(std::move(host_root))}};
}
inline auto usual_create(std::string host_path = usual_host_path) -> supervisor::create_exposure {
    return {"proj", "projects", std::move(host_path), "proj", {read_mode()}, 3600, {"codex-safe"}};
}
// As if `usual_create` had found a directory with the identity of the known digests.
inline auto made_up_source() -> supervisor::exposed_source {
    sys::file_facts facts;
    facts.identity = {1, 2, S_IFDIR};
    facts.permissions = 0755;
    facts.owner = facts.group = 1000;
    auto parent = facts;
    parent.identity.inode = 3;
    return {{}, facts, parent};
}

} // namespace glove::test
