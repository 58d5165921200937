// Plans that are good, for tests to break.
#pragma once
#include <glove/supervisor/plan.hpp>

namespace glove::test {

inline constexpr std::uint64_t mib = 1U << 20U;

inline auto digits(char c) -> std::string { return std::string(64, c); }

inline auto usual_plan() -> supervisor::session_plan {
    supervisor::session_plan out;
    out.runtime_id = "codex";
    out.runtime_template_id = "codex-safe";
    out.adapter_command_digest = digits('a');
    out.egress_policy_id = "no-network";
    out.tool_policy_id = "sage-readonly";
    out.library_projections = {{"sage-core", digits('b'), "libraries"}};
    out.secret_handles = {"codex-token"};
    out.limits = {1000, 64 * mib, 16, 2000, 2 * mib, mib};
    out.policy_revision = 7;
    out.expires_at_ms = 61'000;
    return out;
}

inline auto workspace_grant() -> supervisor::alias_grant {
    using namespace supervisor;
    return {"workspace", access_kind::ephemeral_write, materialization_kind::copy, mib,
            60,          cleanup_kind::remove};
}

inline auto project_grant() -> supervisor::exposure_grant {
    using namespace supervisor;
    return {"proj", 1,  digits('d'),         access_kind::read, materialization_kind::bind,
            0,      60, cleanup_kind::retain};
}

inline auto plan_of_version_2() -> supervisor::session_plan {
    auto out = usual_plan();
    out.schema_version = 2;
    out.grants = std::vector{project_grant()};
    return out;
}

inline auto refinement_plan() -> supervisor::session_plan {
    using namespace supervisor;
    auto out = usual_plan();
    out.runtime_template_id = std::string{refinement_template_id};
    refinement_request wanted;
    wanted.variant = refinement_variant::candidate;
    wanted.fixture = {"fixture", digits('1'), "fixtures"};
    wanted.base = {"skill-base", digits('2'), "libraries"};
    wanted.candidate = {"skill-candidate", digits('3'), "libraries"};
    wanted.matched_context_digest = digits('4');
    out.library_projections = {wanted.fixture, wanted.candidate};
    out.secret_handles.clear();
    out.refinement = wanted;
    return out;
}

} // namespace glove::test
