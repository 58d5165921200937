// Fixtures: their rules, the digest of what is matched, and whether one belongs to a plan.
#include "control/fixture_fields.hpp"
#include "supervisor/refusal.hpp"
#include <glove/wire/digest.hpp>

namespace glove::control {

using supervisor::element_of;
using supervisor::member_of;
using supervisor::refuse;

namespace {

[[nodiscard]] auto check_sorted(const std::vector<std::string>& list, const wire::place& at)
    -> result<> {
    if (const auto i = supervisor::first_out_of_order(
            list, [](const std::string& s) -> const std::string& { return s; });
        i < list.size())
        return refuse(errc::invalid_input, "fixture.order", element_of(at, i),
                      "does not come after the one before it");
    return {};
}

[[nodiscard]] auto bytes_of(const std::vector<std::string>& list) -> std::size_t {
    std::size_t out = 0;
    for (const auto& one : list) out += one.size();
    return out;
}

[[nodiscard]] auto check_rules(const fixture_module& of, const wire::place& at) -> result<> {
    GLOVE_CHECK(check_sorted(of.include_paths, member_of(at, "include_paths")));
    GLOVE_CHECK(check_sorted(of.exclude_paths, member_of(at, "exclude_paths")));
    GLOVE_CHECK(check_sorted(of.languages, member_of(at, "languages")));
    GLOVE_CHECK(check_sorted(of.frameworks, member_of(at, "frameworks")));
    return check_sorted(of.package_managers, member_of(at, "package_managers"));
}

void put(wire::digest_encoder& out, const fixture_model& model) {
    out.opt_str(model.provider).str(model.model_id).opt_str(model.model_family);
    out.opt_str(model.model_revision).str(model.tier).u32(model.normalizer_version);
}
void put(wire::digest_encoder& out, const std::optional<fixture_module>& module) {
    out.boolean(module.has_value());
    if (!module) return;
    out.str(module->repository_id).str(module->repository_tree).str(module->module_id);
    out.str(module->label);
    for (const auto* list : {&module->include_paths, &module->exclude_paths, &module->languages,
                             &module->frameworks, &module->package_managers})
        out.list(*list);
    out.u32(module->detector_version);
}
void put(wire::digest_encoder& out, const fixture_assertions& expected) {
    out.str(to_string(expected.expected_termination));
    out.boolean(expected.expected_exit_code.has_value());
    if (expected.expected_exit_code) out.u32(*expected.expected_exit_code);
    out.list(expected.required_transcript_literals).list(expected.forbidden_transcript_literals);
    out.boolean(expected.max_latency_ms.has_value());
    if (expected.max_latency_ms) out.u64(*expected.max_latency_ms);
}

} // namespace

auto check_rules(const fixture_assertions& of, const wire::place& at) -> result<> {
    if ((of.expected_termination == termination_cause::exited) != of.expected_exit_code.has_value())
        return refuse(errc::invalid_input, "fixture.exit", member_of(at, "expected_exit_code"),
                      "goes with the termination exited, and only with it");
    const auto required = member_of(at, "required_transcript_literals");
    const auto forbidden = member_of(at, "forbidden_transcript_literals");
    GLOVE_CHECK(check_sorted(of.required_transcript_literals, required));
    GLOVE_CHECK(check_sorted(of.forbidden_transcript_literals, forbidden));
    if (bytes_of(of.required_transcript_literals) + bytes_of(of.forbidden_transcript_literals) >
        most_bytes_of_literals)
        return refuse(errc::limit_exceeded, "fixture.literals", at,
                      "has literals of more than 65536 bytes together");
    return {};
}

auto check_rules(const refinement_fixture& of, const wire::place& at) -> result<> {
    if (of.module) GLOVE_CHECK(check_rules(*of.module, member_of(at, "module")));
    return check_rules(of.assertions, member_of(at, "assertions"));
}

auto encode(const refinement_fixture& what) -> result<std::string> {
    GLOVE_TRY(auto out, checked_text(what, fixture_fields));
    if (out.size() > most_fixture_bytes)
        return fail(errc::limit_exceeded, "fixture.form", "a fixture has at most 262144 bytes");
    return out;
}

auto decode_refinement_fixture(std::string_view text) -> result<refinement_fixture> {
    GLOVE_TRY(auto out, wire::decode_text(text, fixture_fields, {.bytes = most_fixture_bytes}));
    GLOVE_CHECK(check_rules(out, wire::place{}));
    GLOVE_TRY(const auto canonical, encode(out));
    if (canonical != text)
        return fail(errc::invalid_input, "fixture.form",
                    "the fixture is not in its canonical form");
    return out;
}

auto matched_context_digest(const refinement_fixture& of, std::string_view plan_context_digest)
    -> result<std::string> {
    wire::digest_encoder out;
    out.str("glove.refinement-matched-context").u8(1).str(plan_context_digest).str(of.schema);
    out.str(of.evaluation_run_id).str(of.pair_id).str(of.proposal_digest);
    out.str(of.base_projection_digest).str(of.candidate_projection_digest).str(of.fixture_id);
    out.str(of.fixture_digest).str(of.dataset_ref).str(of.dataset_fingerprint).u64(of.seed);
    put(out, of.model);
    out.str(of.harness);
    put(out, of.module);
    put(out, of.assertions);
    return out.sha256_hex();
}

auto fixture_for(std::string_view bytes, std::string_view session_id,
                 const supervisor::session_plan& plan) -> result<refinement_fixture> {
    const wire::place root;
    if (!plan.refinement)
        return fail(errc::invalid_input, "fixture.match", "the plan is no refinement");
    const auto& wanted = *plan.refinement;
    GLOVE_TRY(auto out, decode_refinement_fixture(bytes));
    GLOVE_TRY(const auto content, wire::sha256(bytes));
    GLOVE_TRY(const auto of_plan, supervisor::refinement_context_digest(plan));
    GLOVE_TRY(const auto context, matched_context_digest(out, of_plan));
    struct row {
        std::string_view member, has, wants;
    };
    const auto hash = wire::to_hex(content);
    const auto variant = [](supervisor::refinement_variant of) -> std::string_view {
        return of == supervisor::refinement_variant::base ? "base" : "candidate";
    };
    for (const auto& [member, has, wants] :
         {row{"session_id", out.session_id, session_id},
          row{"variant", variant(out.variant), variant(wanted.variant)},
          row{"base_projection_digest", out.base_projection_digest, wanted.base.content_digest},
          row{"candidate_projection_digest", out.candidate_projection_digest,
              wanted.candidate.content_digest},
          row{"skill_projection_id", out.skill_projection_id, wanted.selected().projection_id},
          row{"skill_projection_digest", out.skill_projection_digest,
              wanted.selected().content_digest},
          row{"matched_context_digest", out.matched_context_digest, wanted.matched_context_digest},
          row{"matched_context_digest", context, wanted.matched_context_digest}})
        if (has != wants)
            return refuse(errc::conflict, "fixture.match", member_of(root, member),
                          "is not that of the plan");
    if (hash != wanted.fixture.content_digest)
        return refuse(errc::conflict, "fixture.match", root,
                      "does not have the digest that the plan names");
    return out;
}

} // namespace glove::control
