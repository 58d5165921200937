// Intents as the book judges and keeps them. One whose schema is not admitted any more is kept as
// metadata: it is never shown as pending, and nothing is done about it.
#include "control/session_book.hpp"
#include "control/session_digests.hpp"
#include "control/session_fields.hpp"

namespace glove::control {

namespace {

[[nodiscard]] auto refuse(const session_record& what, std::string why) {
    return fail(errc::corrupt, "registry.intent",
                what.operation + " of session " + what.session_id + ": " + std::move(why));
}

[[nodiscard]] auto item_of(const session_record& of) -> intent_item {
    const auto& what = *of.intent;
    return {.sequence = of.sequence,
            .body = body_of(what),
            .context = {.session_id = of.session_id,
                        .controller_plan_digest = of.controller_plan_digest,
                        .profile_digest = what.profile_digest,
                        .runtime_id = what.runtime_id,
                        .projection_digest = what.projection_digest,
                        .policy_revision = of.policy_revision,
                        .channel_id = what.channel_id,
                        .channel_generation = what.channel_generation,
                        .issued_at_ms = what.issued_at_ms,
                        .expires_at_ms = what.expires_at_ms},
            .intent_digest = what.intent_digest,
            .disposition = what.disposition,
            .decided_at_ms = what.decided_at_ms};
}

// All but what a decision changes.
[[nodiscard]] auto same_intent(const intent_item& a, const intent_item& b) -> bool {
    const auto& x = a.context;
    const auto& y = b.context;
    return a.body == b.body && x.profile_digest == y.profile_digest &&
           x.runtime_id == y.runtime_id && x.projection_digest == y.projection_digest &&
           x.channel_id == y.channel_id && x.issued_at_ms == y.issued_at_ms &&
           x.expires_at_ms == y.expires_at_ms;
}

// The record holds the session as it stood. Its state, the time from which it ran and the revision
// are those of the moment, and are not compared.
[[nodiscard]] auto same_session(session_record what, const session_record& now) -> bool {
    what.sequence = now.sequence;
    what.operation = now.operation;
    what.idempotency_key = now.idempotency_key;
    what.request_digest = now.request_digest;
    what.previous_hash = now.previous_hash;
    what.this_hash = now.this_hash;
    what.state = now.state;
    what.running_at_ms = now.running_at_ms;
    what.policy_revision = now.policy_revision;
    what.intent.reset();
    return what == now;
}

} // namespace

auto identity_of(const session_record& of) -> intent_identity {
    return {of.session_id, of.intent->channel_generation, of.intent->intent_id};
}

auto why_inadmissible(const channel_host* channels, const adapters::guest_body& body)
    -> std::optional<inadmissible> {
    const auto* known = channels == nullptr ? nullptr : channels->find(body.schema);
    if (known == nullptr)
        return inadmissible{closed_reason::schema_unavailable, "its schema is not admitted"};
    const auto no = [](std::string why) {
        return inadmissible{closed_reason::schema_incompatible, std::move(why)};
    };
    const auto text = wire::encode(body, body_fields);
    if (!text) return no(text.error().detail);
    if (body.item_count < 1 || body.item_count > known->bounds.max_items)
        return no("its item_count is not 1 to " + std::to_string(known->bounds.max_items));
    if (text->size() > known->bounds.max_body_bytes)
        return no("it is longer than " + std::to_string(known->bounds.max_body_bytes) + " bytes");
    if (const auto why = known->body_validator(body); !why.empty()) return no(std::string{why});
    return std::nullopt;
}

auto session_book::judge_intent(const session_record& what) const -> result<verdict> {
    const auto* known = session(what.session_id);
    if (known == nullptr) return refuse(what, "there is no such session");
    if (!same_session(what, known->now)) return refuse(what, "it shows another session");
    if (what.intent->runtime_id != known->plan.runtime_id)
        return refuse(what, "it is of another runtime than the plan's");
    const auto* before = intent(identity_of(what));
    if (what.operation != enqueue_operation) {
        if (before == nullptr) return refuse(what, "there is no such intent");
        if (before->decision != 0) return refuse(what, "it is decided already");
        if (!same_intent(before->item, item_of(what))) return refuse(what, "it is another intent");
        return verdict{};
    }
    if (before != nullptr) return refuse(what, "it is there already");
    verdict out;
    if (const auto no = why_inadmissible(channels_, body_of(*what.intent))) {
        out.closed = no->reason;
    } else if (const auto* schema = channels_->find(what.intent->schema);
               what.intent->expires_at_ms - what.intent->issued_at_ms > schema->bounds.max_ttl_ms) {
        out.closed = closed_reason::schema_incompatible;
    }
    return out;
}

void session_book::note_intent(const session_record& what, const verdict& how) {
    const auto identity = identity_of(what);
    if (what.operation == enqueue_operation) {
        intents_.emplace(what.sequence, kept_intent{item_of(what), 0, how.closed});
        by_identity_.emplace(identity, what.sequence);
        (how.closed ? closed_ : open_).insert(what.sequence);
        sessions_.find(what.session_id)->second.intents += 1;
        return;
    }
    const auto sequence = by_identity_.find(identity)->second;
    auto& kept = intents_.find(sequence)->second;
    kept.item.disposition = what.intent->disposition;
    kept.item.decided_at_ms = what.intent->decided_at_ms;
    kept.decision = what.sequence;
    open_.erase(sequence);
}

auto session_book::intent(const intent_identity& of) const -> const kept_intent* {
    const auto found = by_identity_.find(of);
    return found == by_identity_.end() ? nullptr : &intents_.find(found->second)->second;
}

auto session_book::pending(std::uint64_t after, std::size_t limit) const -> intent_page {
    intent_page out;
    for (auto at = open_.upper_bound(after); at != open_.end(); ++at) {
        if (out.items.size() == limit) {
            out.next_after_sequence = out.items.back().sequence;
            break;
        }
        out.items.push_back(intents_.find(*at)->second.item);
    }
    return out;
}

auto session_book::quarantined(std::uint64_t after, std::size_t limit) const
    -> std::vector<quarantined_intent> {
    std::vector<quarantined_intent> out;
    for (auto at = closed_.upper_bound(after); at != closed_.end() && out.size() < limit; ++at) {
        const auto& kept = intents_.find(*at)->second;
        out.push_back({.sequence = *at,
                       .session_id = kept.item.context.session_id,
                       .schema_id = kept.item.body.schema,
                       .intent_id = kept.item.body.intent_id,
                       .channel_generation = kept.item.context.channel_generation,
                       .reason = *kept.closed});
    }
    return out;
}

} // namespace glove::control
