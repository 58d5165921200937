// The field tables of a plan, in canonical order. The tests break each row of them.
#pragma once
#include "supervisor/words.hpp"
#include <glove/supervisor/plan.hpp>

namespace glove::supervisor {

inline constexpr std::size_t most_grants = 64;
inline constexpr std::size_t most_projections = 128;
inline constexpr std::size_t most_secrets = 32;

// One alternative of a variant. The other one is not of this version.
template<std::size_t Index, auto Rule> struct alternative {
    [[nodiscard]] constexpr auto form() const -> wire::shape { return Rule.form(); }
    template<class V> [[nodiscard]] auto check(const V& in, const wire::place& at) const
        -> result<> {
        if (const auto* chosen = std::get_if<Index>(&in)) return Rule.check(*chosen, at);
        return wire::detail::refuse(errc::invalid_input, "wire.choice", at,
                                    "is of another version of the plan");
    }
    template<class V> [[nodiscard]] auto read(const wire::json::value& in, V& out,
                                              const wire::place& at) const -> result<> {
        return Rule.read(in, out.template emplace<Index>(), at);
    }
    template<class V>
        requires wire::takes_text<decltype(Rule), std::variant_alternative_t<Index, V>>
    [[nodiscard]] auto take(wire::json::cursor& in, V& out) const -> bool {
        return Rule.take(in, out.template emplace<Index>());
    }
    template<class V> void write(wire::json::writer& out, const V& in) const {
        if (const auto* chosen = std::get_if<Index>(&in)) Rule.write(out, *chosen);
    }
};

inline constexpr auto alias_grant_fields = wire::table(
    wire::row<&alias_grant::alias, alias_name>("alias"),
    wire::row<&alias_grant::access, wire::choice<access_words>{}>("access"),
    wire::row<&alias_grant::materialization, wire::choice<materialization_words>{}>(
        "materialization"),
    wire::row<&alias_grant::max_bytes, wire::integer{}>("max_bytes"),
    wire::row<&alias_grant::ttl_secs, positive>("ttl_secs"),
    wire::row<&alias_grant::cleanup_policy, wire::choice<cleanup_words>{}>("cleanup_policy"));

inline constexpr auto exposure_grant_fields = wire::table(
    wire::row<&exposure_grant::exposure_id, exposure_name>("exposure_id"),
    wire::row<&exposure_grant::generation, positive>("generation"),
    wire::row<&exposure_grant::scope_digest, wire::hex64>("scope_digest"),
    wire::row<&exposure_grant::access, wire::choice<access_words>{}>("access"),
    wire::row<&exposure_grant::materialization, wire::choice<materialization_words>{}>(
        "materialization"),
    wire::row<&exposure_grant::max_bytes, wire::integer{}>("max_bytes"),
    wire::row<&exposure_grant::ttl_secs, positive>("ttl_secs"),
    wire::row<&exposure_grant::cleanup_policy, wire::choice<cleanup_words>{}>("cleanup_policy"));

inline constexpr auto projection_fields = wire::table(
    wire::row<&library_projection::projection_id, wire::ident>("projection_id"),
    wire::row<&library_projection::content_digest, wire::hex64>("content_digest"),
    wire::row<&library_projection::destination_alias, wire::ident>("destination_alias"));

inline constexpr auto limits_fields = wire::table(
    wire::row<&resource_limits::cpu_time_ms, positive>("cpu_time_ms"),
    wire::row<&resource_limits::memory_bytes, positive>("memory_bytes"),
    wire::row<&resource_limits::pids, wire::integer{1, UINT32_MAX}>("pids"),
    wire::row<&resource_limits::wall_time_ms, positive>("wall_time_ms"),
    wire::row<&resource_limits::disk_bytes, positive>("disk_bytes"),
    wire::row<&resource_limits::terminal_output_bytes, positive>("terminal_output_bytes"));

inline constexpr wire::word<refinement_variant> variant_words[] = {
    {"base", refinement_variant::base},
    {"candidate", refinement_variant::candidate},
};
inline constexpr auto refinement_fields = wire::table(
    wire::row<&refinement_request::schema_version, version_1>("schema_version"),
    wire::row<&refinement_request::variant, wire::choice<variant_words>{}>("variant"),
    wire::row<&refinement_request::fixture, wire::record<projection_fields>{}>("fixture"),
    wire::row<&refinement_request::base, wire::record<projection_fields>{}>("base"),
    wire::row<&refinement_request::candidate, wire::record<projection_fields>{}>("candidate"),
    wire::row<&refinement_request::matched_context_digest, wire::hex64>("matched_context_digest"));

template<std::size_t Index, const auto& GrantFields> [[nodiscard]] consteval auto plan_table() {
    using p = session_plan;
    return wire::table(
        wire::row<&p::schema_version, wire::integer{1, 2}>("schema_version"),
        wire::row<&p::runtime_id, wire::ident>("runtime_id"),
        wire::row<&p::runtime_template_id, wire::ident>("runtime_template_id"),
        wire::row<&p::adapter_command_digest, wire::hex64>("adapter_command_digest"),
        wire::row<&p::sandbox_backend, wire::choice<backend_words>{}>("sandbox_backend"),
        wire::row<&p::egress_policy_id, wire::ident>("egress_policy_id"),
        wire::row<&p::tool_policy_id, wire::ident>("tool_policy_id"),
        wire::row<&p::grants,
                  alternative<Index, wire::list<wire::record<GrantFields>{}>{0, most_grants}>{}>(
            "path_grants"),
        wire::row<&p::library_projections,
                  wire::list<wire::record<projection_fields>{}>{0, most_projections}>(
            "library_projections"),
        wire::row<&p::secret_handles, wire::list<wire::ident>{0, most_secrets}>("secret_handles"),
        wire::row<&p::limits, wire::record<limits_fields>{}>("limits"),
        wire::row<&p::policy_revision, wire::integer{}>("policy_revision"),
        wire::row<&p::expires_at_ms, wire::integer{}>("expires_at_ms"),
        wire::row<&p::refinement, wire::record<refinement_fields>{}>("refinement"));
}

inline constexpr auto plan_v1_fields = plan_table<0, alias_grant_fields>();
inline constexpr auto plan_v2_fields = plan_table<1, exposure_grant_fields>();

} // namespace glove::supervisor
