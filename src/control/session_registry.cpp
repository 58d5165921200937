// Opening a registry, and looking at it.
#include "control/session_room.hpp"
#include "control/session_state.hpp"
#include <glove/wire/crypto.hpp>

namespace glove::control {

namespace {

[[nodiscard]] auto journal_settings(const registry_settings& how) -> journal::settings {
    journal::settings out{.form = journal::session_registry,
                          .file_bytes = how.file_bytes,
                          .records = how.records,
                          .missing = journal::absence::creates};
    const auto most = out.limit();
    out.quota.at(intent_records) = {.records =
                                        std::max<std::size_t>(1, most.records / intents_part),
                                    .bytes = most.file_bytes / intents_part};
    return out;
}

constexpr std::size_t most_of_a_page = 256;

} // namespace

auto session_codec::decode(std::string_view text) const -> result<session_record> {
    return decode_session_record(text);
}
auto session_codec::facts_of(const session_record& of) const -> journal::facts {
    return {of.sequence, of.previous_hash, of.this_hash, of.intent ? intent_records : life_records};
}
auto session_codec::seal(session_record& what, const journal::mark& last) const
    -> result<std::string> {
    what.sequence = last.sequence + 1;
    what.previous_hash = last.digest;
    GLOVE_TRY(what.this_hash, record_hash(what));
    return encode(what);
}
auto session_codec::authenticate(std::string_view bytes) const -> result<std::string> {
    GLOVE_TRY(const auto digest, wire::sha256(bytes));
    return wire::to_hex(digest);
}

auto refuse_write(error why, const write_codes& codes) -> std::unexpected<refusal> {
    if (journal::lacks_room(why)) return refuse(codes.full, std::move(why));
    if (why.code == errc::invalid_input && why.os == 0) return refuse(codes.form, std::move(why));
    return refuse(codes.disk, std::move(why));
}

session_registry::state::state(journal::storage& where, const registry_settings& settings,
                               const channel_host* admitted, const sys::clock& time)
    : how{settings}, form{journal_settings(settings)}, store{where}, channels{admitted},
      clock{time}, book{admitted} {}

auto session_registry::state::now_ms() const -> std::uint64_t { return sys::wall_ms(clock); }

auto session_registry::state::is_over(const kept_session& what) const -> bool {
    return now_ms() >= over_at(what.now);
}

auto session_registry::state::load() -> result<> {
    GLOVE_TRY(log, journal::typed_log<session_codec>::open(
                       store, form, {}, [this](session_record&& what, journal::origin) -> result<> {
                           GLOVE_TRY(const auto verdict, book.judge(what));
                           book.note(std::move(what), verdict);
                           return {};
                       }));
    using enum session_state;
    for (const auto& [id, kept] : book.sessions()) {
        const auto is = kept.now.state;
        if (is == starting || is == running || is == stopping) unsettled.insert(id);
    }
    // Ids first: what is owed may have to make room, which forgets sessions.
    std::vector<std::string> ids;
    for (const auto& [id, kept] : book.sessions())
        if (!is_over(kept)) ids.push_back(id);
    for (const auto& id : ids)
        if (const auto* kept = book.session(id)) GLOVE_CHECK(owe(*kept));
    std::vector<std::uint64_t> open;
    for (const auto& [sequence, kept] : book.intents())
        if (kept.decision == 0) open.push_back(sequence);
    for (const auto sequence : open)
        if (const auto at = book.intents().find(sequence); at != book.intents().end())
            GLOVE_CHECK(owe_decision(at->second));
    return {};
}

auto session_registry::open(journal::storage& store, const registry_settings& how,
                            const channel_host* channels, const sys::clock& clock)
    -> result<std::unique_ptr<session_registry>> {
    if (channels != nullptr && !channels->frozen())
        return fail(errc::wrong_state, "registry.channels",
                    "which schemas are admitted may still change", "freeze the host first");
    auto state = std::make_unique<session_registry::state>(store, how, channels, clock);
    GLOVE_CHECK(state->load());
    return std::unique_ptr<session_registry>{new session_registry{std::move(state)}};
}

session_registry::session_registry(std::unique_ptr<state> owned) : state_{std::move(owned)} {}
session_registry::~session_registry() = default;

auto session_registry::operational() const -> bool {
    auto& my = *state_;
    if (const std::unique_lock lock{my.writing, std::try_to_lock})
        my.works = !my.log->core().poisoned();
    return my.works;
}

auto session_registry::status(std::string_view session_id) const -> answer<session_view> {
    GLOVE_TRY(const auto now, record(session_id));
    return view_of(now);
}

auto session_registry::record(std::string_view session_id) const -> answer<session_record> {
    const std::shared_lock lock{state_->looking};
    const auto* kept = state_->book.session(session_id);
    if (kept == nullptr)
        return refuse(error_code::session_not_found, errc::not_found, "registry.session");
    return kept->now;
}

auto session_registry::list(std::string_view after, std::size_t limit) const -> session_list {
    const auto most = std::clamp<std::size_t>(limit, 1, most_of_a_page);
    session_list out;
    const std::shared_lock lock{state_->looking};
    const auto& all = state_->book.sessions();
    for (auto at = all.upper_bound(after); at != all.end(); ++at) {
        if (out.sessions.size() == most) {
            out.next_after = out.sessions.back().session_id;
            break;
        }
        out.sessions.push_back(view_of(at->second.now));
    }
    return out;
}

auto session_registry::replayed(std::string_view key) const -> std::optional<session_view> {
    const std::shared_lock lock{state_->looking};
    const auto* known = state_->book.key(key);
    if (known == nullptr) return std::nullopt;
    return state_->book.view_at(*known);
}

auto session_registry::pending(std::uint64_t after_sequence, std::size_t limit) const
    -> intent_page {
    const std::shared_lock lock{state_->looking};
    return state_->book.pending(after_sequence, std::clamp<std::size_t>(limit, 1, most_of_a_page));
}

auto session_registry::quarantined(std::uint64_t after_sequence, std::size_t limit) const
    -> std::vector<quarantined_intent> {
    const std::shared_lock lock{state_->looking};
    return state_->book.quarantined(after_sequence,
                                    std::clamp<std::size_t>(limit, 1, most_of_a_page));
}

} // namespace glove::control
