// Receipts, exposures and what guests left for the controller.
#include "control/handler.hpp"
#include <glove/supervisor/exposure.hpp>

namespace glove::control {

namespace {

[[nodiscard]] auto shown(const answer<supervisor::catalog_entry>& of) -> answer<std::string> {
    if (!of) return std::unexpected(of.error());
    return result_of([&](auto& to) { put(to, "exposure", supervisor::encode(*of)); });
}

void put_item(wire::json::writer& to, const intent_item& item) {
    to.begin_object();
    to.member("sequence", item.sequence);
    to.begin_object("body");
    to.member("schema", item.body.schema);
    to.member("intent_id", item.body.intent_id);
    to.member("observation", item.body.observation);
    to.member("value_digest", item.body.value_digest);
    to.member("item_count", item.body.item_count);
    to.end_object();
    const auto& from = item.context;
    to.begin_object("context");
    to.member("session_id", from.session_id);
    to.member("controller_plan_digest", from.controller_plan_digest);
    to.member("profile_digest", from.profile_digest);
    to.member("runtime_id", from.runtime_id);
    to.member("projection_digest", from.projection_digest);
    to.member("policy_revision", from.policy_revision);
    to.member("channel_id", from.channel_id);
    to.member("channel_generation", from.channel_generation);
    to.member("issued_at_ms", from.issued_at_ms);
    to.member("expires_at_ms", from.expires_at_ms);
    to.end_object();
    to.member("intent_digest", item.intent_digest);
    to.member("disposition", to_string(item.disposition));
    to.member("decided_at_ms", item.decided_at_ms);
    to.end_object();
}

} // namespace

auto verify_audit_chain(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_TRY(const auto asked, taken(what, page_fields));
    GLOVE_CHECK(of.still_in_time(what)); // the first page may make a journal
    GLOVE_TRY(const auto page, of.has.receipts->page(asked.sage_anchor, asked.limit));
    of.try_to_recover();
    return or_refuse(encode(page), error_code::audit_reconciliation_failed);
}

auto acknowledge_audit_chain(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_TRY(const auto asked, taken(what, acknowledgement_fields));
    const auto carry_out = [&]() -> answer<std::string> {
        GLOVE_CHECK(of.still_in_time(what));
        GLOVE_TRY(const auto anchor, of.has.receipts->acknowledge(asked.anchor));
        of.try_to_recover();
        return result_of(
            [&](auto& to) { put(to, "acknowledged_anchor", wire::encode(anchor, anchor_fields)); });
    };
    return of.keys.once(service_keys, what.key(), meaning(what, asked, acknowledgement_fields),
                        carry_out);
}

auto create_path_exposure(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_TRY(auto asked, or_refuse(supervisor::decode_create(what.asked.payload),
                                    error_code::invalid_request));
    GLOVE_CHECK(of.still_in_time(what));
    return shown(of.has.exposures->create(what.key(), std::move(asked)));
}

auto list_path_exposures(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_CHECK(require_nothing(what));
    const auto found = of.has.exposures->list();
    return result_of([&](auto& to) {
        to.begin_array("exposures");
        for (const auto& one : found) to.raw(*supervisor::encode(one));
        to.end_array();
    });
}

auto revoke_path_exposure(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_TRY(const auto asked, or_refuse(supervisor::decode_revoke(what.asked.payload),
                                          error_code::invalid_request));
    GLOVE_CHECK(of.still_in_time(what));
    return shown(of.has.exposures->revoke(what.key(), asked));
}

auto page_intents(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_TRY(const auto asked, taken(what, intent_page_fields));
    const auto page = of.has.sessions->pending(asked.after_sequence, asked.limit);
    return result_of([&](auto& to) {
        to.begin_array("items");
        for (const auto& item : page.items) put_item(to, item);
        to.end_array();
        to.member("next_after_sequence", page.next_after_sequence);
    });
}

auto decide_intent(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_TRY(auto asked, taken(what, decision_fields));
    asked.decided_at_ms = 0; // the clock of this service counts, and the same decision may repeat
    const auto carry_out = [&]() -> answer<std::string> {
        GLOVE_CHECK(of.still_in_time(what));
        GLOVE_TRY(const auto item, of.has.sessions->decide(
                                       {asked.session_id, asked.channel_generation, asked.intent_id,
                                        asked.intent_digest, asked.disposition}));
        return result_of([&](auto& to) {
            to.key("item");
            put_item(to, item);
        });
    };
    return of.keys.once(asked.session_id, what.key(), meaning(what, asked, decision_fields),
                        carry_out);
}

} // namespace glove::control
