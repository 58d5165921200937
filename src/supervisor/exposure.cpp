// Requests, identities and digests of exposures.
#include "supervisor/exposure_fields.hpp"
#include "supervisor/refusal.hpp"
#include <glove/sys/user_namespace.hpp>
#include <glove/wire/digest.hpp>

namespace glove::supervisor {

namespace {

[[nodiscard]] auto domain(std::string_view name) -> wire::digest_encoder {
    wire::digest_encoder out;
    out.str(name).u8(1);
    return out;
}

void put(wire::digest_encoder& out, const std::vector<exposure_mode>& modes) {
    out.count(modes.size());
    for (const auto& mode : modes) {
        out.u8(static_cast<std::uint8_t>(mode.access));
        out.u8(static_cast<std::uint8_t>(mode.materialization)).u64(mode.max_bytes);
        out.u8(static_cast<std::uint8_t>(mode.cleanup_policy));
    }
}

} // namespace

auto fault_of(const exposure_mode& mode) noexcept -> std::string_view {
    using enum access_kind;
    const bool copies = mode.materialization == materialization_kind::copy;
    const bool retains = mode.cleanup_policy == cleanup_kind::retain;
    switch (mode.access) {
    case read:
        if (mode.materialization == materialization_kind::bind && mode.max_bytes == 0 && retains)
            return {};
        return "is not read, bind, 0 and retain";
    case ephemeral_write:
        if (copies && mode.max_bytes > 0 && !retains) return {};
        return "is not ephemeral_write, copy, a quota and remove";
    case retained_write:
        if (copies && mode.max_bytes >= least_retained_bytes && retains) return {};
        return "is not retained_write, copy, a quota of at least 32 MiB and retain";
    case direct_write: break;
    }
    return "is not a way in which a path may be exposed";
}

auto within(const exposure_mode& wanted, const exposure_mode& allowed) noexcept -> bool {
    return wanted.access == allowed.access && wanted.materialization == allowed.materialization &&
           wanted.cleanup_policy == allowed.cleanup_policy && wanted.max_bytes <= allowed.max_bytes;
}

auto identity_of(const sys::file_facts& facts) noexcept -> source_identity {
    return {facts.identity.device, facts.identity.inode,
            static_cast<std::uint32_t>(facts.identity.type | facts.permissions), facts.owner,
            facts.group};
}

auto lasting_identity_of(const sys::file_facts& facts) -> source_identity {
    auto out = identity_of(facts);
    out.uid = sys::outer_user(out.uid);
    out.gid = sys::outer_group(out.gid);
    return out;
}

auto source_identity_digest(const source_identity& of) -> result<std::string> {
    return domain("glove.path-exposure-source-identity")
        .u64(of.device)
        .u64(of.inode)
        .u32(of.mode)
        .u32(of.uid)
        .u32(of.gid)
        .sha256_hex();
}

auto normalised(create_exposure what) -> result<create_exposure> {
    const wire::place root;
    GLOVE_CHECK(wire::check_object(what, create_fields, root));
    GLOVE_CHECK(sort_modes(what.allowed_modes, member_of(root, "allowed_modes")));
    GLOVE_CHECK(sort_names(what.allowed_runtime_template_ids,
                           member_of(root, "allowed_runtime_template_ids")));
    return what;
}

auto decode_create(std::string_view text) -> result<create_exposure> {
    GLOVE_TRY(auto out, wire::decode_text(text, create_fields));
    return normalised(std::move(out));
}
auto decode_revoke(std::string_view text) -> result<revoke_exposure> {
    return wire::decode_text(text, revoke_fields);
}
auto encode(const create_exposure& what) -> result<std::string> {
    GLOVE_TRY(const auto sorted, normalised(what));
    return wire::encode(sorted, create_fields);
}
auto encode(const revoke_exposure& what) -> result<std::string> {
    return wire::encode(what, revoke_fields);
}

auto request_digest(std::string_view request_id, const create_exposure& what)
    -> result<std::string> {
    auto out = domain("glove.path-exposure-create-request");
    out.str(request_id).str(what.exposure_id).str(what.root_id).str(what.host_path);
    out.str(what.display_label);
    put(out, what.allowed_modes);
    return out.u64(what.ttl_secs).list(what.allowed_runtime_template_ids).sha256_hex();
}

auto request_digest(std::string_view request_id, const revoke_exposure& what)
    -> result<std::string> {
    auto out = domain("glove.path-exposure-revoke-request");
    return out.str(request_id).str(what.exposure_id).u64(what.generation).sha256_hex();
}

auto scope_digest(const exposure_descriptor& of) -> result<std::string> {
    auto out = domain("glove.path-exposure-scope");
    out.str(of.exposure_id).u64(of.generation).str(of.root_id).str(of.source_identity_digest);
    put(out, of.allowed_modes);
    return out.u64(of.expires_at_ms).list(of.allowed_runtime_template_ids).sha256_hex();
}

auto to_string(exposure_state of) noexcept -> std::string_view {
    for (const auto& w : state_words)
        if (w.means == of) return w.name;
    return {};
}

namespace {

template<class T> [[nodiscard]] auto check_sorted(const T& what) -> result<> {
    const wire::place root;
    auto modes = what.allowed_modes;
    auto names = what.allowed_runtime_template_ids;
    const auto here = member_of(root, "allowed_modes");
    const auto there = member_of(root, "allowed_runtime_template_ids");
    GLOVE_CHECK(sort_modes(modes, here));
    GLOVE_CHECK(sort_names(names, there));
    if (modes != what.allowed_modes)
        return refuse(errc::invalid_input, "exposure.order", here, "is not sorted");
    if (names != what.allowed_runtime_template_ids)
        return refuse(errc::invalid_input, "exposure.order", there, "is not sorted");
    return {};
}

} // namespace

auto encode(const catalog_entry& what) -> result<std::string> {
    GLOVE_CHECK(check_sorted(what));
    return wire::encode(what, catalog_fields);
}
auto decode_catalog_entry(std::string_view text) -> result<catalog_entry> {
    GLOVE_TRY(auto out, wire::decode_text(text, catalog_fields));
    GLOVE_CHECK(check_sorted(out));
    return out;
}

// --- records ---

namespace {

[[nodiscard]] auto flat(const exposure_record& in) -> flat_record {
    flat_record out;
    out.sequence = in.sequence;
    out.previous_hash = in.previous_hash;
    out.record_hash = in.record_hash;
    if (const auto* made = std::get_if<exposure_created>(&in.fact)) {
        out.kind = "create";
        out.descriptor = {made->descriptor, 1, "active"};
        out.request_id = made->request_id;
        out.request_digest = made->request_digest;
        out.host_path = made->host_path;
        out.parent_identity_digest = made->parent_identity_digest;
    } else if (const auto* ended = std::get_if<exposure_revoked>(&in.fact)) {
        out.kind = "revoke";
        out.state = "revoked";
        static_cast<exposure_revoked&>(out) = *ended;
    }
    return out;
}

[[nodiscard]] auto created_from(const flat_record& in) -> result<exposure_created> {
    const exposure_descriptor& d = in.descriptor;
    if (d.exposure_id.empty() || d.generation == 0 || d.root_id.empty() ||
        d.source_identity_digest.empty() || d.scope_digest.empty() || d.display_label.empty() ||
        d.allowed_modes.empty() || d.expires_at_ms == 0 || d.allowed_runtime_template_ids.empty() ||
        in.host_path.empty() || in.parent_identity_digest.empty())
        return fail(errc::corrupt, "exposure.record", "a creation lacks a member");
    GLOVE_CHECK(check_sorted(d));
    return exposure_created{d, in.request_id, in.request_digest, in.host_path,
                            in.parent_identity_digest};
}

[[nodiscard]] auto revoked_from(const flat_record& in) -> result<exposure_revoked> {
    if (in.exposure_id.empty() || in.generation == 0)
        return fail(errc::corrupt, "exposure.record", "a revocation lacks a member");
    return static_cast<const exposure_revoked&>(in);
}

void put(wire::digest_encoder& out, const exposure_created& fact) {
    const auto& d = fact.descriptor;
    out.u8(1).str(d.exposure_id).u64(d.generation).str(d.root_id).str(d.source_identity_digest);
    out.str(d.scope_digest).str(d.display_label).count(d.allowed_modes.size());
    for (const auto& mode : d.allowed_modes)
        out.str(to_string(mode.access))
            .str(to_string(mode.materialization))
            .u64(mode.max_bytes)
            .str(to_string(mode.cleanup_policy));
    out.u64(d.expires_at_ms).list(d.allowed_runtime_template_ids).str("active");
    out.str(fact.request_id).str(fact.request_digest).str(fact.host_path);
    out.str(fact.parent_identity_digest);
}
void put(wire::digest_encoder& out, const exposure_revoked& fact) {
    out.str(fact.request_id).str(fact.request_digest).str(fact.exposure_id).u64(fact.generation);
    out.str("revoked").u64(fact.revoked_at_ms);
}

} // namespace

auto record_hash(const exposure_record& of) -> result<std::string> {
    auto out = domain("glove.path-exposure-journal-record");
    out.u64(of.sequence);
    out.str(std::holds_alternative<exposure_created>(of.fact) ? "create" : "revoke");
    std::visit([&](const auto& fact) { put(out, fact); }, of.fact);
    return out.str(of.previous_hash).sha256_hex();
}

auto encode(const exposure_record& what) -> result<std::string> {
    return wire::encode(flat(what), record_fields);
}

auto decode_exposure_record(std::string_view text) -> result<exposure_record> {
    GLOVE_TRY(auto in,
              wire::decode_text(text, record_fields, {.bytes = most_exposure_record_bytes}));
    exposure_record out{in.sequence, {}, in.previous_hash, in.record_hash};
    if (in.kind == "create") {
        GLOVE_TRY(out.fact, created_from(in));
    } else {
        GLOVE_TRY(out.fact, revoked_from(in));
    }
    GLOVE_TRY(const auto hash, record_hash(out));
    // The hash does not cover the members that its kind leaves at their defaults.
    GLOVE_TRY(const auto canonical, encode(out));
    if (hash != out.record_hash || canonical != text)
        return fail(errc::corrupt, "exposure.record",
                    "record " + std::to_string(out.sequence) + " is not what its hash says");
    return out;
}

} // namespace glove::supervisor
