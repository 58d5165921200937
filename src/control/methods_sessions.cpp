// Plans and sessions as records: nothing here starts anything.
#include "control/handler.hpp"
#include "control/literal_members.hpp"
#include <glove/supervisor/validate.hpp>
#include <optional>

namespace glove::control {

namespace {

using supervisor::session_plan;

[[nodiscard]] auto judge(const service_state& of, const session_plan& plan) -> answer<> {
    auto valid = result<supervisor::accepted_plan>{};
    const auto ask = [&](const supervisor::exposures_now* exposures) {
        valid = supervisor::validate_plan(plan, of.has.policy->rules(), exposures, of.now_ms());
    };
    if (of.has.exposures != nullptr)
        of.has.exposures->with([&](const supervisor::exposures_now& now) { ask(&now); });
    else ask(nullptr);
    if (!valid) return refuse(error_code::invalid_plan, std::move(valid).error());
    return {};
}

[[nodiscard]] auto plan_in(const service_state& of, std::string_view text) -> answer<session_plan> {
    GLOVE_TRY(auto plan, or_refuse(supervisor::decode_plan(text), error_code::invalid_plan));
    GLOVE_CHECK(judge(of, plan));
    return plan;
}

// The plan as it came: its bytes are what a repeated request is known by.
[[nodiscard]] auto decode_creation(std::string_view payload) -> result<create_session> {
    constexpr std::array literal{std::string_view{"plan"}};
    wire::json::outline outline;
    GLOVE_CHECK(outline.read(payload, {}));
    GLOVE_TRY(const auto tree, small_members(outline.members(), literal));
    GLOVE_TRY(auto head, wire::decode(tree, creation_fields));
    return create_session{std::move(head.session_id), std::move(head.controller_plan_digest),
                          std::string{outline.find("plan")->text}};
}

[[nodiscard]] auto shown(const answer<session_view>& of) -> answer<std::string> {
    if (!of) return std::unexpected(of.error());
    return or_refuse(encode(*of), error_code::session_control_failed);
}

} // namespace

auto validate_plan(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_TRY(const auto plan, plan_in(of, what.asked.payload));
    std::string out;
    wire::json::writer to{out};
    to.begin_object();
    to.member("schema_version", plan.schema_version);
    to.member("policy_revision", of.has.policy->rules().revision);
    to.end_object();
    return out;
}

auto create_session_of(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_TRY(const auto asked,
              or_refuse(decode_creation(what.asked.payload), error_code::invalid_request));
    // Asked only when the request is no replay, and before anything is written.
    const auto judge_plan = [&](const create_session& wanted) -> answer<supervisor::sealed_plan> {
        GLOVE_TRY(auto sealed,
                  or_refuse(supervisor::seal_text(wanted.plan_text, wanted.controller_plan_digest),
                            error_code::invalid_plan));
        GLOVE_CHECK(judge(of, sealed.plan));
        GLOVE_CHECK(of.still_in_time(what));
        return sealed;
    };
    return shown(of.has.sessions->create(what.key(), asked, judge_plan));
}

auto session_status(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_TRY(const auto asked, taken(what, session_fields));
    return shown(of.has.sessions->status(asked.session_id));
}

auto list_sessions(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_TRY(const auto asked, taken(what, listing_fields));
    const auto found = of.has.sessions->list(asked.after.value_or(""), asked.limit);
    return result_of([&](auto& to) {
        to.begin_array("sessions");
        for (const auto& one : found.sessions) to.raw(*encode(one));
        to.end_array();
        to.member("next_after", found.next_after);
    });
}

} // namespace glove::control
