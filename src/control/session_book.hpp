// What the registry knows: sessions, keys and intents, in memory. The live registry and the replay
// of its journal put records into the same book, and the book judges them by the same rules.
//
// Guarantees: what `judge` refuses is never on record; `note` of what it accepted cannot fail. It
// reads no clock and no file, and locks nothing.
#pragma once
#include <glove/control/lifecycle.hpp>
#include <glove/control/session_registry.hpp>
#include <map>
#include <set>
#include <tuple>

namespace glove::control {

// What is needed of a plan again and again.
struct plan_facts {
    std::string runtime_id;
    bool refinement = false;
    std::size_t most_partitions = 0; // that its file system may have
};
[[nodiscard]] auto facts_of(const supervisor::session_plan& plan) -> plan_facts;

struct kept_session {
    session_record now; // the newest of its life
    plan_facts plan;
    std::vector<std::uint64_t> records; // of its life, by sequence
    std::size_t intents = 0;            // that were admitted, whatever became of them
};
struct kept_key {
    std::string operation;
    std::string request_digest;
    std::string session_id;
    session_state state{}; // that it led to
    std::uint64_t sequence = 0;
};
struct kept_intent {
    intent_item item;
    std::uint64_t decision = 0;          // the sequence of that record
    std::optional<closed_reason> closed; // it is in quarantine
};
// Session, generation of the channel, id of the intent.
using intent_identity = std::tuple<std::string, std::uint64_t, std::string>;

// A session that is being prepared may still fail on record for so long after its plan expired.
inline constexpr std::uint64_t late_failure_ms = 600'000;
// From when on it is over: ended, or never started and too late for it then. The highest time while
// only a step can end it.
[[nodiscard]] auto over_at(const session_record& of) -> std::uint64_t;

// What a rotation keeps.
struct keeping {
    std::set<std::string, std::less<>> sessions;
    std::set<std::uint64_t> intents;      // by the sequence that admitted them
    std::vector<std::uint64_t> sequences; // of all records of both, ascending
};

class session_book {
public:
    explicit session_book(const channel_host* channels) : channels_{channels} {}

    struct verdict {
        plan_facts plan; // of a creation
        std::optional<closed_reason> closed;
    };
    // May this record follow? Steps: registry.key, registry.transition, registry.plan,
    // registry.session, registry.intent.
    [[nodiscard]] auto judge(const session_record& what) const -> result<verdict>;
    // The same of a creation whose plan was read, and sealed, already.
    [[nodiscard]] auto judge(const session_record& what, const supervisor::sealed_plan& plan) const
        -> result<verdict>;
    void note(session_record what, const verdict& how);
    void forget_but(const keeping& kept);

    [[nodiscard]] auto session(std::string_view id) const -> const kept_session*;
    [[nodiscard]] auto key(std::string_view key) const -> const kept_key*;
    [[nodiscard]] auto intent(const intent_identity& of) const -> const kept_intent*;
    [[nodiscard]] auto sessions() const noexcept
        -> const std::map<std::string, kept_session, std::less<>>& {
        return sessions_;
    }
    // By the sequence that admitted them.
    [[nodiscard]] auto intents() const noexcept -> const std::map<std::uint64_t, kept_intent>& {
        return intents_;
    }
    // Sessions that are not over, and when the first of them is without a step.
    struct living {
        std::size_t count = 0;
        std::uint64_t first_over_at = 0;
    };
    [[nodiscard]] auto alive(std::uint64_t now) const -> living;
    // What the record of a key said.
    [[nodiscard]] auto view_at(const kept_key& key) const -> session_view;
    [[nodiscard]] auto pending(std::uint64_t after, std::size_t limit) const -> intent_page;
    [[nodiscard]] auto quarantined(std::uint64_t after, std::size_t limit) const
        -> std::vector<quarantined_intent>;

private:
    [[nodiscard]] auto judge_key(const session_record& what) const -> result<>;
    [[nodiscard]] auto judge_transition(const session_record& what, life_event on) const
        -> result<>;
    [[nodiscard]] auto judge_step(const session_record& what, const operation& how) const
        -> result<verdict>;
    [[nodiscard]] auto judge_intent(const session_record& what) const -> result<verdict>;
    void note_intent(const session_record& what, const verdict& how);

    const channel_host* channels_;
    std::map<std::string, kept_session, std::less<>> sessions_;
    std::set<std::pair<std::uint64_t, std::string>> by_end_; // those that have not ended
    std::map<std::string, kept_key, std::less<>> keys_;
    std::map<std::uint64_t, kept_intent> intents_;
    std::map<intent_identity, std::uint64_t> by_identity_;
    std::set<std::uint64_t> open_, closed_; // pending ones; those in quarantine
};

[[nodiscard]] auto identity_of(const session_record& of) -> intent_identity;
// Why a body may not be acted upon: empty, or a sentence without its values.
struct inadmissible {
    closed_reason reason{};
    std::string why;
};
[[nodiscard]] auto why_inadmissible(const channel_host* channels, const adapters::guest_body& body)
    -> std::optional<inadmissible>;

} // namespace glove::control
