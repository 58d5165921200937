// A plan's form: what its field tables say, and that its lists are sorted. One text for each plan.
#include "supervisor/plan_fields.hpp"
#include "supervisor/refusal.hpp"
#include <glove/wire/crypto.hpp>
#include <glove/wire/digest.hpp>

namespace glove::supervisor {

namespace {

constexpr std::uint64_t second_version = 2;

template<class T, class Key>
[[nodiscard]] auto check_order(const std::vector<T>& list, std::string_view name, Key key)
    -> result<> {
    const auto wrong = first_out_of_order(list, key);
    if (wrong == list.size()) return {};
    const wire::place root;
    const auto whole = member_of(root, name);
    return refuse(errc::invalid_input, "plan.order", element_of(whole, wrong),
                  "does not come after the one before it");
}

[[nodiscard]] auto check_orders(const session_plan& plan) -> result<> {
    using view = std::string_view;
    if (const auto* first = std::get_if<0>(&plan.grants))
        GLOVE_CHECK(check_order(*first, "path_grants",
                                [](const alias_grant& g) -> view { return g.alias; }));
    if (const auto* second = std::get_if<1>(&plan.grants))
        GLOVE_CHECK(check_order(*second, "path_grants",
                                [](const exposure_grant& g) -> view { return g.exposure_id; }));
    GLOVE_CHECK(check_order(plan.library_projections, "library_projections",
                            [](const library_projection& p) -> view { return p.projection_id; }));
    return check_order(plan.secret_handles, "secret_handles",
                       [](const std::string& s) -> view { return s; });
}

// Looked at first, so that a plan without one is not called a bad plan of version 1.
[[nodiscard]] auto version_of(const wire::json::value& tree) -> result<std::uint8_t> {
    constexpr const auto& row = plan_v1_fields.front();
    const wire::place root;
    if (tree.as_object() == nullptr)
        return wire::detail::refuse_type(tree, wire::json::kind::object, root);
    const auto* found = tree.find(row.name);
    if (found == nullptr)
        return refuse(errc::invalid_input, "wire.missing", member_of(root, row.name), "is missing");
    session_plan out;
    GLOVE_CHECK(row.read(*found, out, member_of(root, row.name)));
    return out.schema_version;
}

void put(wire::digest_encoder& out, const library_projection& what) {
    out.str(what.projection_id).str(what.content_digest).str(what.destination_alias);
}

} // namespace

auto plan_of(const wire::json::value& tree) -> result<session_plan> {
    GLOVE_TRY(const auto version, version_of(tree));
    GLOVE_TRY(auto out, version == second_version ? wire::decode(tree, plan_v2_fields)
                                                  : wire::decode(tree, plan_v1_fields));
    GLOVE_CHECK(check_orders(out));
    return out;
}

namespace {

using read_plan = wire::decoded<session_plan>;

// Of the version that the first member names; nothing when another member is the first.
[[nodiscard]] auto take_plan(std::string_view text) -> std::optional<read_plan> {
    wire::json::cursor in{text, {}};
    std::string_view name;
    session_plan head;
    constexpr const auto& row = plan_v1_fields.front();
    if (!in.enter_object() || !in.next_member(name) || name != row.name || !row.take(in, head))
        return std::nullopt;
    return head.schema_version == second_version ? wire::take_text(text, plan_v2_fields)
                                                 : wire::take_text(text, plan_v1_fields);
}

[[nodiscard]] auto read_plan_text(std::string_view text) -> result<read_plan> {
    if (auto taken = take_plan(text)) {
        GLOVE_CHECK(check_orders(taken->data));
        return *std::move(taken);
    }
    read_plan out;
    GLOVE_TRY(const auto tree, wire::json::read(text));
    GLOVE_TRY(out.data, plan_of(tree));
    GLOVE_TRY(const auto canonical, canonical_text(out.data));
    out.is_as_encoded = canonical == text;
    return out;
}

} // namespace

auto decode_plan(std::string_view text) -> result<session_plan> {
    GLOVE_TRY(auto read, read_plan_text(text));
    return std::move(read.data);
}

auto check_form(const session_plan& plan) -> result<> {
    GLOVE_CHECK(check_orders(plan));
    return plan.schema_version == second_version ? wire::check_object(plan, plan_v2_fields, {})
                                                 : wire::check_object(plan, plan_v1_fields, {});
}

auto canonical_text(const session_plan& plan) -> result<std::string> {
    GLOVE_CHECK(check_orders(plan));
    return plan.schema_version == second_version ? wire::encode(plan, plan_v2_fields)
                                                 : wire::encode(plan, plan_v1_fields);
}

auto refinement_context_digest(const session_plan& plan) -> result<std::string> {
    if (!plan.refinement)
        return fail(errc::invalid_input, "plan.refinement", "$.refinement is missing");
    wire::digest_encoder out;
    out.str("glove.refinement-plan-context").u8(1);
    out.str(plan.runtime_id).str(plan.runtime_template_id).str(plan.adapter_command_digest);
    out.str(to_string(plan.sandbox_backend)).str(plan.egress_policy_id).str(plan.tool_policy_id);
    out.list(plan.secret_handles);
    const auto& limits = plan.limits;
    out.u64(limits.cpu_time_ms).u64(limits.memory_bytes).u32(limits.pids);
    out.u64(limits.wall_time_ms).u64(limits.disk_bytes).u64(limits.terminal_output_bytes);
    out.u64(plan.policy_revision);
    put(out, plan.refinement->base);
    put(out, plan.refinement->candidate);
    return out.sha256_hex();
}

namespace {

[[nodiscard]] auto check_controller_digest(const std::string& digest) -> result<> {
    if (wire::conforms(wire::grammar::hex64, digest)) return {};
    return fail(errc::invalid_input, "plan.controller_digest",
                "controller_plan_digest is not 64 lower-case hexadecimal digits");
}

[[nodiscard]] auto sealed(session_plan plan, std::string canonical, std::string controller_digest)
    -> result<sealed_plan> {
    GLOVE_CHECK(check_controller_digest(controller_digest));
    GLOVE_TRY(auto content, wire::sha256_hex(canonical));
    return sealed_plan{
        std::move(plan), std::move(canonical), {std::move(controller_digest), std::move(content)}};
}

} // namespace

auto seal(session_plan plan, std::string controller_digest) -> result<sealed_plan> {
    GLOVE_TRY(auto text, canonical_text(plan));
    return sealed(std::move(plan), std::move(text), std::move(controller_digest));
}

auto seal_text(std::string_view text, std::string controller_digest) -> result<sealed_plan> {
    GLOVE_TRY(auto read, read_plan_text(text));
    if (!read.is_as_encoded) return seal(std::move(read.data), std::move(controller_digest));
    return sealed(std::move(read.data), std::string{text}, std::move(controller_digest));
}

auto unseal(std::string_view text, const plan_digests& recorded) -> result<sealed_plan> {
    GLOVE_TRY(auto read, read_plan_text(text));
    if (!read.is_as_encoded)
        return fail(errc::corrupt, "plan.canonical", "the recorded plan is not in canonical form");
    GLOVE_TRY(auto out, sealed(std::move(read.data), std::string{text}, recorded.controller));
    GLOVE_CHECK(require_same(recorded, out.digests));
    return out;
}

auto require_same(const plan_digests& bound, const plan_digests& offered) -> result<> {
    if (bound.controller != offered.controller)
        return fail(errc::conflict, "plan.controller_digest",
                    "controller_plan_digest is not the one that the session is bound to");
    if (bound.content != offered.content)
        return fail(errc::conflict, "plan.content_digest",
                    "plan_content_digest is not the one that the session is bound to");
    return {};
}

} // namespace glove::supervisor
