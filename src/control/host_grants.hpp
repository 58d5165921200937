// The paths of the host that a plan's session gets, each by a pinned descriptor.
//
// Guarantees: the plan is judged by the rules and exposures of this very moment, and what is pinned
// is what was judged; a kind of grant that nothing here can carry out is refused by its name.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/control/exposure_store.hpp>
#include <glove/supervisor/plan.hpp>
#include <glove/supervisor/session_policy.hpp>
#include <glove/sys/files.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

namespace glove::control {

// Which generation of an exposure it is; of a plan of version 2.
struct granted_exposure {
    std::uint64_t generation = 0;
    std::string scope_digest;
};

struct granted_path {
    std::string alias; // of the policy, or the exposure's id; a partition's name when it is written
    std::string target; // inside
    supervisor::access_kind access{};
    std::uint64_t max_bytes = 0; // the quota of what is written
    sys::unique_fd pin;
    sys::file_facts facts;
    std::string source_identity_digest;
    std::optional<granted_exposure> exposure;

    [[nodiscard]] auto is_directory() const noexcept -> bool {
        return facts.identity.type == S_IFDIR;
    }
    [[nodiscard]] auto is_written() const noexcept -> bool { return supervisor::writes(access); }
};

inline constexpr std::string_view exposures_target = "/workspace/exposures/";
inline constexpr std::string_view scratch_partition = "__scratch";

struct judged_plan {
    const supervisor::runtime_template* chosen = nullptr; // lives as long as the policy
    std::vector<granted_path> grants;                     // in the plan's order
};

// Of a plan that was accepted at `accepted_at_ms`. `exposures` may be null. Steps: those of
// `validate_plan` and `check_startable`, policy.alias, prepare.backend, prepare.adoption,
// prepare.materialization, prepare.alias.
[[nodiscard]] auto judge_plan(const supervisor::session_plan& plan,
                              const supervisor::session_policy& policy,
                              const exposure_store* exposures, std::uint64_t accepted_at_ms,
                              std::uint64_t now_ms) -> result<judged_plan>;

// Once more, when everything was made: whether an exposure of the plan was revoked meanwhile, has
// expired, or its path leads somewhere else.
[[nodiscard]] auto check_still_granted(const supervisor::session_plan& plan,
                                       const exposure_store* exposures, std::uint64_t now_ms)
    -> result<>;

// A sandbox does not stand in less.
inline constexpr std::uint64_t least_scratch_bytes = 1U << 20U;
// What the grants leave of the session's disk for its private places. Step: prepare.disk.
[[nodiscard]] auto scratch_bytes(const supervisor::session_plan& plan,
                                 const std::vector<granted_path>& grants) -> result<std::uint64_t>;

} // namespace glove::control
