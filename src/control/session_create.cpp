// Creating a session. A replay is answered before anything is judged: the plan may have expired
// since, and the answer is the same for good.
#include "control/session_fields.hpp"
#include "control/session_room.hpp"
#include "control/session_state.hpp"
#include <glove/wire/crypto.hpp>

namespace glove::control {

namespace {

// What can become the name of a control group and of directories, and be typed as an argument.
// Records of other writers may hold more (`wire::ident`); nothing is created with it.
[[nodiscard]] auto check_name(const std::string& id) -> result<> {
    GLOVE_CHECK(wire::svc_alias.check(id, {}));
    const auto first = id.front();
    if (is_lower(first) || is_upper(first) || is_digit(first)) return {};
    return fail(errc::invalid_input, "registry.session",
                "the id " + id + " begins neither with a letter nor with a digit");
}

[[nodiscard]] auto too_many(const session_book::living& alive) -> std::string {
    auto out = std::to_string(alive.count) + " sessions are not over";
    if (alive.first_over_at != std::numeric_limits<std::uint64_t>::max())
        out += "; the plan of one that was not started ends it at the time " +
               std::to_string(alive.first_over_at);
    return out;
}

} // namespace

auto session_registry::state::creation_replayed(std::string_view key, const create_session& what,
                                                std::string_view request_digest) const
    -> std::optional<answer<session_view>> {
    if (const auto* known = book.key(key)) {
        const auto* kept = book.session(known->session_id);
        if (known->operation == "create" && known->session_id == what.session_id &&
            kept->now.controller_plan_digest == what.controller_plan_digest &&
            known->request_digest == request_digest)
            return book.view_at(*known);
        return refuse(error_code::idempotency_conflict, errc::conflict, "registry.key",
                      "the key is that of " + known->operation + " of session " +
                          known->session_id);
    }
    if (book.session(what.session_id) != nullptr)
        return refuse(error_code::session_conflict, errc::conflict, "registry.session",
                      what.session_id + " was created under another key");
    return std::nullopt;
}

auto session_registry::create(std::string_view key, const create_session& what,
                              const plan_judge& judge) -> answer<session_view> {
    auto& s = *state_;
    GLOVE_TRY(const auto hash,
              or_refuse(wire::sha256(what.plan_text), error_code::session_control_failed));
    auto digest = wire::to_hex(hash);
    {
        const std::shared_lock lock{s.looking};
        if (auto known = s.creation_replayed(key, what, digest)) return *std::move(known);
    }
    GLOVE_CHECK(or_refuse(wire::ident.check(std::string{key}, {}), error_code::invalid_request));
    GLOVE_CHECK(or_refuse(check_name(what.session_id), error_code::invalid_request));
    GLOVE_CHECK(
        or_refuse(wire::hex64.check(what.controller_plan_digest, {}), error_code::invalid_request));
    GLOVE_TRY(const auto plan, judge(what)); // no lock is held: it may look at the host
    const std::scoped_lock lock{s.writing};
    if (auto known = s.creation_replayed(key, what, digest)) return *std::move(known);
    return s.create(key, what, std::move(digest), plan);
}

auto session_registry::state::create(std::string_view key, const create_session& what,
                                     std::string request_digest,
                                     const supervisor::sealed_plan& plan) -> answer<session_view> {
    // Those that are alive are counted where there may be too many of them, and not each time.
    if (book.sessions().size() >= how.most_live)
        if (const auto alive = book.alive(now_ms()); alive.count >= how.most_live)
            return refuse(error_code::session_capacity, errc::limit_exceeded, "registry.live",
                          too_many(alive));
    session_record next;
    next.operation = "create";
    next.idempotency_key = key;
    next.session_id = what.session_id;
    next.controller_plan_digest = what.controller_plan_digest;
    next.request_digest = std::move(request_digest);
    next.plan_content_digest = plan.digests.content;
    next.state = session_state::created;
    next.policy_revision = plan.plan.policy_revision;
    next.expires_at_ms = plan.plan.expires_at_ms;
    next.created_at_ms = now_ms();
    next.canonical_plan_json = plan.text;
    if (next.created_at_ms >= next.expires_at_ms)
        return refuse(error_code::invalid_plan, errc::timed_out, "registry.plan",
                      "the plan has expired");
    const auto longest = longest_record(next, facts_of(plan.plan));
    if (longest > most_session_record_bytes || plan.text.size() > most_plan_bytes)
        return refuse(error_code::invalid_plan, errc::limit_exceeded, "registry.plan",
                      "a record of it may need " + std::to_string(longest) + " bytes");
    auto room = reserve(1 + records_left(session_state::created), longest);
    if (!room) return refuse_write(std::move(room).error(), session_codes);
    const auto judged = book.judge(next, plan);
    GLOVE_TRY(auto out, put(std::move(next), judged, room->room));
    owed.insert_or_assign(out.session_id, *std::move(room));
    return out;
}

} // namespace glove::control
