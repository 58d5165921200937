// Any sequence of requests, restarts and rotations against a model of a few lines.
#include "session_scene.hpp"
#include <rapidcheck/gtest.h>

namespace {

using namespace glove;
using namespace glove::test;

struct model_intent {
    std::uint64_t expires = 0;
    std::optional<intent_disposition> decided{};
    intent_item item{};
};
struct model_session {
    session_state state{};
    std::map<int, model_intent> intents{};
};

struct gone final : process_observer {
    auto observe(const session_record&) -> observed_process override {
        return observed_process::gone;
    }
};

class world {
public:
    world() {
        scene_.how.records = 90;
        scene_.how.most_kept = 2;
        scene_.how.intents_per_session = 3;
    }
    void act(int what, int which, int more) {
        const auto id = "s" + std::to_string(which);
        switch (what) {
        case 0: create(id); break;
        case 1: step(id, life_event::reserve_start); break;
        case 2: step(id, life_event::mark_starting); break;
        case 3: step(id, life_event::mark_running); break;
        case 4: step(id, life_event::mark_stopping); break;
        case 5: step(id, life_event::mark_exited); break;
        case 6: step(id, life_event::mark_failed); break;
        case 7: say(id, more); break;
        case 8: decide(id, more); break;
        case 9: restart(); break;
        case 10: others(); break;
        default: scene_.clock.add(static_cast<std::uint64_t>(more) * 90); break;
        }
        compare();
    }

private:
    static auto text() -> std::string { return plan_text(1'000'000'000); }
    auto key() -> std::string { return "key-" + std::to_string(keys_++); }

    void create(const std::string& id) {
        const auto done = scene_->create("create-" + id, {id, digits('c'), text()},
                                         sessions_.contains(id) ? judge_none : judge_all);
        RC_ASSERT(code_of(done) == "");
        RC_ASSERT(done->state == created);
        sessions_.try_emplace(id, model_session{created});
    }
    void step(const std::string& id, life_event on) {
        const auto known = sessions_.find(id);
        const auto made = key();
        const auto done = [&]() -> answer<session_view> {
            switch (on) {
            case life_event::reserve_start: {
                const auto now = scene_.clock.ms();
                return scene_->reserve_start(made, {1, "approval", id, digits('c'),
                                                    wire::to_hex(*wire::sha256(text())), now,
                                                    now + 120'000});
            }
            case life_event::mark_starting: return scene_->mark_starting(made, id, some_binding());
            case life_event::mark_running: return scene_->mark_running(made, id, some_process());
            case life_event::mark_stopping: return scene_->mark_stopping(made, id);
            case life_event::mark_exited: {
                const auto now = scene_->record(id);
                const auto ran = now ? now->running_at_ms : 0;
                return scene_->mark_exited(made, id,
                                           receipt_at(ran, std::max(ran, scene_.clock.ms())));
            }
            default: {
                const bool early = known != sessions_.end() && known->second.state == preparing;
                return scene_->mark_failed(made, id, early ? "launch_failed" : "supervisor_error");
            }
            }
        }();
        if (known == sessions_.end()) {
            RC_ASSERT(code_of(done) == "session_not_found");
        } else if (const auto to = next_state(known->second.state, on)) {
            RC_ASSERT(why_of(done) == "");
            known->second.state = *to;
        } else {
            RC_ASSERT(code_of(done) == "invalid_session_state");
        }
    }
    void say(const std::string& id, int which) {
        auto context = scene_.context(id);
        const auto done = scene_->enqueue(context, scene_.body("i" + std::to_string(which)));
        const auto known = sessions_.find(id);
        if (known == sessions_.end()) {
            RC_ASSERT(code_of(done) == "session_not_found");
            return;
        }
        auto& session = known->second;
        if (const auto there = session.intents.find(which); there != session.intents.end()) {
            if (is_terminal(session.state) && !done) return; // it may be forgotten
            RC_ASSERT(code_of(done) == "");
            RC_ASSERT(done->sequence == there->second.item.sequence);
        } else if (session.state != running) {
            RC_ASSERT(code_of(done) == "invalid_session_state");
        } else if (session.intents.size() == 3) {
            RC_ASSERT(code_of(done) == "observation_intent_capacity");
        } else {
            RC_ASSERT(why_of(done) == "");
            session.intents[which] = {context.expires_at_ms, std::nullopt, *done};
        }
    }
    void decide(const std::string& id, int which) {
        const auto known = sessions_.find(id);
        if (known == sessions_.end() || !known->second.intents.contains(which)) return;
        auto& kept = known->second.intents[which];
        const bool late = scene_.clock.ms() >= kept.expires;
        const auto as = which % 2 == 0 ? intent_disposition::accepted : intent_disposition::expired;
        const auto done = scene_.decide(kept.item, as);
        if (is_terminal(known->second.state) && code_of(done) == "observation_intent_not_found") {
            RC_ASSERT(kept.decided.has_value() || late);
            known->second.intents.erase(which);
            forgotten_.insert(kept.item.sequence);
        } else if (kept.decided) {
            RC_ASSERT(code_of(done) == (*kept.decided == as ? "" : "idempotency_conflict"));
        } else if (late == (as == intent_disposition::expired)) {
            RC_ASSERT(why_of(done) == "");
            kept.decided = as;
        } else {
            RC_ASSERT(code_of(done) == "invalid_observation_intent_state");
        }
    }
    void restart() {
        RC_ASSERT(scene_.open());
        gone nobody;
        RC_ASSERT(scene_->recover({}, nobody)->empty());
        for (auto& [id, one] : sessions_)
            if (one.state == starting || one.state == running || one.state == stopping)
                one.state = failed;
    }
    // Whole lives that nobody asks for again, so that the file is begun anew.
    void others() {
        for (int i = 0; i < 5; ++i) {
            const auto id = "other-" + std::to_string(keys_++);
            const auto soon = plan_text(scene_.clock.ms() + 10);
            RC_ASSERT(why_of(scene_.create(id, soon)) == "");
            RC_ASSERT(why_of(scene_.reserve(id, 5)) == "");
            RC_ASSERT(why_of(scene_.fail(id, "launch_failed")) == "");
            scene_.clock.add(10);
        }
    }
    void compare() {
        for (const auto& [id, one] : sessions_) {
            const auto now = scene_->status(id);
            RC_ASSERT(now.has_value());
            RC_ASSERT(now->state == one.state);
        }
        std::set<std::uint64_t> waiting;
        for (const auto& item : scene_->pending(0, 256).items) waiting.insert(item.sequence);
        for (const auto& [id, one] : sessions_)
            for (const auto& [which, kept] : one.intents) {
                const bool open = waiting.erase(kept.item.sequence) == 1;
                const bool late = scene_.clock.ms() >= kept.expires;
                if (kept.decided) RC_ASSERT(!open);
                else if (!is_terminal(one.state) || !late) RC_ASSERT(open);
            }
        RC_ASSERT(waiting.empty());
    }

    registry_scene scene_;
    std::map<std::string, model_session> sessions_;
    std::set<std::uint64_t> forgotten_;
    int keys_ = 0;
};

RC_GTEST_PROP(SessionModel, AgreesWithTheRegistry, ()) {
    const auto acts = *rc::gen::container<std::vector<std::tuple<int, int, int>>>(
        rc::gen::tuple(rc::gen::weightedElement<int>({{4, 0},
                                                      {4, 1},
                                                      {4, 2},
                                                      {4, 3},
                                                      {1, 4},
                                                      {1, 5},
                                                      {1, 6},
                                                      {6, 7},
                                                      {4, 8},
                                                      {1, 9},
                                                      {2, 10},
                                                      {2, 11}}),
                       rc::gen::inRange(0, 3), rc::gen::inRange(0, 4)));
    world now;
    for (const auto& [what, which, more] : acts) now.act(what, which, more);
}

} // namespace
