// The plan of a session as a controller sends it: identifiers, digests and bounds. It never holds
// an argument vector, a path of the host, an environment or a secret; such members are not known,
// and what is not known is refused.
//
// Guarantees: what `decode_plan` accepts has its lists in strictly increasing order and one
// canonical text, whatever order and white space it came in; decoding that text gives the same
// plan. Nothing here looks at a policy, a clock or the file system: `validate.hpp` does.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/supervisor/vocabulary.hpp>
#include <glove/wire/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace glove::supervisor {

// Of version 1: a path that the operator's policy gave a name.
struct alias_grant {
    std::string alias;
    access_kind access{};
    materialization_kind materialization{};
    std::uint64_t max_bytes = 0;
    std::uint64_t ttl_secs = 0;
    cleanup_kind cleanup_policy{};
    auto operator==(const alias_grant&) const -> bool = default;
};

// Of version 2: one generation of a path that the operator exposed.
struct exposure_grant {
    std::string exposure_id;
    std::uint64_t generation = 0;
    std::string scope_digest;
    access_kind access{};
    materialization_kind materialization{};
    std::uint64_t max_bytes = 0;
    std::uint64_t ttl_secs = 0;
    cleanup_kind cleanup_policy{};
    auto operator==(const exposure_grant&) const -> bool = default;
};

struct library_projection {
    std::string projection_id;
    std::string content_digest;
    std::string destination_alias;
    auto operator==(const library_projection&) const -> bool = default;
};

enum class refinement_variant : std::uint8_t { base, candidate };

// What makes a session one half of a comparison of two skills.
struct refinement_request {
    std::uint8_t schema_version = 1;
    refinement_variant variant{};
    library_projection fixture;
    library_projection base;
    library_projection candidate;
    std::string matched_context_digest;

    [[nodiscard]] auto selected() const -> const library_projection& {
        return variant == refinement_variant::base ? base : candidate;
    }
    auto operator==(const refinement_request&) const -> bool = default;
};

// The alternative is the plan's version.
using path_grants = std::variant<std::vector<alias_grant>, std::vector<exposure_grant>>;

struct session_plan {
    std::uint8_t schema_version = 1;
    std::string runtime_id;
    std::string runtime_template_id;
    std::string adapter_command_digest;
    backend_kind sandbox_backend{};
    std::string egress_policy_id;
    std::string tool_policy_id;
    path_grants grants;
    std::vector<library_projection> library_projections;
    std::vector<std::string> secret_handles;
    resource_limits limits;
    std::uint64_t policy_revision = 0;
    std::uint64_t expires_at_ms = 0; // wall clock
    std::optional<refinement_request> refinement;

    [[nodiscard]] auto grant_count() const -> std::size_t {
        return std::visit([](const auto& list) { return list.size(); }, grants);
    }
    auto operator==(const session_plan&) const -> bool = default;
};

// The one template whose plans have a refinement member, and all of them do.
inline constexpr std::string_view refinement_template_id = "refinement-eval-v1";

// Errors name the member: wire.* as in wire/fields.hpp, plan.order.
[[nodiscard]] auto decode_plan(std::string_view text) -> result<session_plan>;
[[nodiscard]] auto plan_of(const wire::json::value& tree) -> result<session_plan>;

// Both refuse a plan that `decode_plan` would refuse.
[[nodiscard]] auto check_form(const session_plan& plan) -> result<>;
[[nodiscard]] auto canonical_text(const session_plan& plan) -> result<std::string>;

// What a refinement's fixture is matched against. Computed here, never taken from a controller.
[[nodiscard]] auto refinement_context_digest(const session_plan& plan) -> result<std::string>;

// The two names of a plan. The controller's is a digest whose input is not known on this side: its
// form is checked, it is bound to everything the plan leads to, and it is compared for equality.
struct plan_digests {
    std::string controller; // BLAKE3, lower-case hex
    std::string content;    // SHA-256 of the canonical text, lower-case hex
    auto operator==(const plan_digests&) const -> bool = default;
};

struct sealed_plan {
    session_plan plan;
    std::string text; // canonical
    plan_digests digests;
};

[[nodiscard]] auto seal(session_plan plan, std::string controller_digest) -> result<sealed_plan>;
// Of a plan as it came; the errors of `decode_plan` and of `seal`.
[[nodiscard]] auto seal_text(std::string_view text, std::string controller_digest)
    -> result<sealed_plan>;
// From a record: both digests must be those of the text, and the text must be canonical.
[[nodiscard]] auto unseal(std::string_view text, const plan_digests& recorded)
    -> result<sealed_plan>;
// errc::conflict names the digest that differs: plan.controller_digest, plan.content_digest.
[[nodiscard]] auto require_same(const plan_digests& bound, const plan_digests& offered) -> result<>;

} // namespace glove::supervisor
