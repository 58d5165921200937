// Where exposures meet the policy and the file system. A replay is answered before either is asked.
#include "supervisor/exposure_fields.hpp"
#include <glove/supervisor/exposure_ledger.hpp>

namespace glove::supervisor {

namespace {

[[nodiscard]] auto check_request_id(std::string_view id) -> result<> {
    if (!id.empty() && id.size() <= wire::ident.max && wire::conforms(wire::grammar::ident, id))
        return {};
    return fail(errc::invalid_input, "exposure.request", "the request id is not an identifier");
}

// What the policy allows still, and what is still the same source.
[[nodiscard]] auto open_again(const kept_exposure& kept, const exposure_policy& policy)
    -> result<exposed_source> {
    const auto& made = kept.created.descriptor;
    GLOVE_CHECK(check_allowed(policy.rules(), made));
    GLOVE_TRY(auto source, policy.open(made.root_id, kept.created.host_path));
    GLOVE_TRY(const auto digest, source_identity_digest(lasting_identity_of(source.facts)));
    if (digest != made.source_identity_digest)
        return fail(errc::conflict, "exposure.source", "the source is not what it was",
                    "revoke the exposure and create it anew");
    return source;
}

[[nodiscard]] auto mode_of(const exposure_grant& grant) -> exposure_mode {
    return {grant.access, grant.materialization, grant.max_bytes, grant.cleanup_policy};
}

[[nodiscard]] auto check_grant(const exposure_descriptor& made, const exposure_grant& grant,
                               std::string_view runtime_template_id) -> result<> {
    if (made.scope_digest != grant.scope_digest)
        return fail(errc::conflict, "exposure.scope", "scope_digest is not that of the generation");
    const auto& names = made.allowed_runtime_template_ids;
    if (!std::binary_search(names.begin(), names.end(), runtime_template_id))
        return fail(errc::not_permitted, "exposure.template",
                    "the exposure is not for the plan's template");
    const auto wanted = mode_of(grant);
    if (!fault_of(wanted).empty() ||
        std::none_of(made.allowed_modes.begin(), made.allowed_modes.end(),
                     [&](const auto& allowed) { return within(wanted, allowed); }))
        return fail(errc::not_permitted, "exposure.mode", "the exposure does not allow the mode");
    return {};
}

} // namespace

auto decide_create(const exposure_ledger& ledger, const exposure_policy& policy,
                   std::string_view request_id, create_exposure what, std::uint64_t now_ms)
    -> result<exposure_decision> {
    GLOVE_CHECK(check_request_id(request_id));
    GLOVE_TRY(what, normalised(std::move(what)));
    GLOVE_TRY(const auto digest, request_digest(request_id, what));
    GLOVE_TRY(const auto before, ledger.replayed(request_id, digest));
    if (before) return exposure_decision{*before, std::nullopt};
    GLOVE_CHECK(check_allowed(policy.rules(), what));
    GLOVE_TRY(const auto source, policy.open(what.root_id, what.host_path));
    GLOVE_TRY(auto record, ledger.next_create(request_id, what, source, now_ms));
    const auto& made = std::get<exposure_created>(record.fact).descriptor;
    exposure_key subject{made.exposure_id, made.generation};
    return exposure_decision{std::move(subject), std::move(record)};
}

auto decide_revoke(const exposure_ledger& ledger, std::string_view request_id,
                   const revoke_exposure& what, std::uint64_t now_ms) -> result<exposure_decision> {
    GLOVE_CHECK(check_request_id(request_id));
    GLOVE_CHECK(wire::check_object(what, revoke_fields, wire::place{}));
    GLOVE_TRY(const auto digest, request_digest(request_id, what));
    GLOVE_TRY(const auto before, ledger.replayed(request_id, digest));
    if (before) return exposure_decision{*before, std::nullopt};
    GLOVE_TRY(auto record, ledger.next_revoke(request_id, what, now_ms));
    return exposure_decision{{what.exposure_id, what.generation}, std::move(record)};
}

auto show(const kept_exposure& kept, const exposure_policy& policy, std::uint64_t now_ms)
    -> catalog_entry {
    const auto& made = kept.created.descriptor;
    auto state = state_of(kept, now_ms);
    if (state == exposure_state::active && !open_again(kept, policy))
        state = exposure_state::revoked;
    return {1,
            made.exposure_id,
            made.generation,
            made.scope_digest,
            made.display_label,
            made.allowed_modes,
            made.expires_at_ms,
            made.allowed_runtime_template_ids,
            state};
}

auto catalog(const exposure_ledger& ledger, const exposure_policy& policy, std::uint64_t now_ms)
    -> std::vector<catalog_entry> {
    std::vector<catalog_entry> out;
    for (const auto* kept : ledger.newest()) out.push_back(show(*kept, policy, now_ms));
    return out;
}

auto use_exposure(const exposure_ledger& ledger, const exposure_policy& policy,
                  const exposure_grant& grant, std::string_view runtime_template_id,
                  std::uint64_t now_ms) -> result<used_exposure> {
    const auto* kept = ledger.find({grant.exposure_id, grant.generation});
    if (kept == nullptr)
        return fail(errc::not_found, "exposure.unknown", "there is no such generation");
    if (!ledger.is_newest(*kept))
        return fail(errc::wrong_state, "exposure.state", "the generation is not the newest one");
    const auto state = state_of(*kept, now_ms);
    if (state != exposure_state::active)
        return fail(errc::wrong_state, "exposure.state",
                    "the generation is " + std::string{to_string(state)});
    const auto& made = kept->created.descriptor;
    GLOVE_CHECK(check_grant(made, grant, runtime_template_id));
    GLOVE_TRY(auto source, open_again(*kept, policy));
    return used_exposure{kept, std::move(source), made.expires_at_ms - now_ms};
}

} // namespace glove::supervisor
