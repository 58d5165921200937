// Files that are not as they were written, and authentic records that cannot follow each other: all
// are refused, with the record's number.
#include "control/session_digests.hpp"
#include "control/session_state.hpp"
#include "session_scene.hpp"
#include <gmock/gmock.h>
#include <support/folder.hpp>

namespace {

using namespace glove;
using namespace glove::test;
using testing::HasSubstr;

auto seed(const std::string& name) -> std::string {
    return content_of(std::string{GLOVE_SOURCE} + "/fuzz/seeds/session_registry/" + name);
}

auto put_frame(std::string& out, const std::string& payload) {
    std::string length(4, '\0');
    for (int i = 0; i < 4; ++i)
        length[static_cast<std::size_t>(i)] = static_cast<char>(payload.size() >> (24 - 8 * i));
    out += length + payload + length;
}
struct span_of_frame {
    std::size_t begin = 0, end = 0;
};
auto frames_of(const std::string& file) -> std::vector<span_of_frame> {
    std::vector<span_of_frame> out;
    for (std::size_t at = 8; at < file.size();) {
        std::size_t length = 0;
        for (std::size_t i = 0; i < 4; ++i)
            length = length << 8 | static_cast<unsigned char>(file[at + i]);
        out.push_back({at, at + length + 8});
        at += length + 8;
    }
    return out;
}

struct opened {
    bool well = false;
    error why;
};
auto open_with(registry_scene& scene, const std::string& file, const std::string& witness = {})
    -> opened {
    scene.registry.reset();
    scene.disk = failing_disk{};
    scene.disk.put("file", file);
    if (!witness.empty()) scene.disk.put("head", witness);
    const bool well = scene.open();
    return {well, scene.why};
}
auto witness_of(const std::string& file) -> std::string {
    registry_scene scene;
    EXPECT_TRUE(open_with(scene, file).well);
    return scene.disk.content("head");
}

TEST(Damage, AByteThatChangedIsFoundAndItsRecordNamed) {
    for (const auto& [name, step] :
         std::vector<std::pair<std::string, std::size_t>>{{"two-sessions", 3}, {"intents", 17}}) {
        const auto file = seed(name);
        const auto frames = frames_of(file);
        registry_scene scene;
        for (std::size_t at = 0; at < file.size(); at += step) {
            auto broken = file;
            broken[at] = static_cast<char>(broken[at] ^ (1 << at % 8));
            const auto done = open_with(scene, broken);
            ASSERT_FALSE(done.well) << name << " " << at;
            if (at < 8) {
                EXPECT_EQ(done.why.step, "journal.header");
                continue;
            }
            std::size_t number = 1;
            while (frames[number - 1].end <= at) ++number;
            EXPECT_THAT(done.why.detail, HasSubstr("record " + std::to_string(number)))
                << name << " " << at << " " << done.why.step;
        }
    }
}

TEST(Damage, AFileThatIsCutAnywhereIsRefused) {
    const auto file = seed("two-sessions");
    const auto witness = witness_of(file);
    const auto frames = frames_of(file);
    registry_scene scene;
    for (std::size_t size = 1; size < file.size(); size += 5) {
        const auto done = open_with(scene, file.substr(0, size), witness);
        ASSERT_FALSE(done.well) << size;
    }
    for (const auto& one : frames) // between two records: the witness knows better
        EXPECT_EQ(open_with(scene, file.substr(0, one.begin), witness).why.step,
                  "journal.truncated");
    EXPECT_TRUE(open_with(scene, file, witness).well);
    // Longer by what is no record.
    for (const auto* more : {"x", "\1\1\1\1\1\1\1\1\1\1", "GLVSES05"})
        EXPECT_FALSE(open_with(scene, file + more, witness).well);
}

TEST(Damage, RecordsInAnotherOrderAreRefused) {
    const auto file = seed("intents");
    const auto frames = frames_of(file);
    const auto part = [&](std::size_t i) {
        return file.substr(frames[i].begin, frames[i].end - frames[i].begin);
    };
    registry_scene scene;
    for (std::size_t i = 0; i < frames.size(); ++i) {
        auto twice = file;
        twice.insert(frames[i].end, part(i));
        EXPECT_THAT(open_with(scene, twice).why.detail,
                    HasSubstr("record " + std::to_string(i + 2)));
        if (i + 1 == frames.size()) continue;
        auto without = file;
        without.erase(frames[i].begin, frames[i].end - frames[i].begin);
        EXPECT_THAT(open_with(scene, without).why.detail,
                    HasSubstr("record " + std::to_string(i + 1)));
        auto swapped = file.substr(0, frames[i].begin) + part(i + 1) + part(i) +
                       file.substr(frames[i + 1].end);
        EXPECT_THAT(open_with(scene, swapped).why.detail,
                    HasSubstr("record " + std::to_string(i + 1)));
    }
}

// Histories that a writer without the rules might have written: every hash is right.
class Forged : public testing::Test {
protected:
    registry_scene scene;
    std::vector<session_record> good; // create, reserve, starting, running, enqueue, decide, ...

    void SetUp() override {
        session_codec codec;
        const auto file = seed("intents");
        for (const auto& one : frames_of(file))
            good.push_back(
                codec.decode(file.substr(one.begin + 4, one.end - one.begin - 8)).value());
    }
    auto open(std::vector<session_record> records) -> error {
        std::string file{"GLVSES05"};
        journal::mark head;
        session_codec codec;
        for (auto& one : records) {
            const auto payload = codec.seal(one, head);
            if (!payload) return payload.error();
            put_frame(file, *payload);
            head = {one.sequence, one.this_hash};
        }
        const auto done = open_with(scene, file);
        return done.well ? error{.step = "", .detail = {}} : done.why;
    }
    void expect_refused(const std::vector<session_record>& records, const std::string& step) {
        const auto why = open(records);
        EXPECT_EQ(why.step, "journal.record") << why.detail;
        EXPECT_THAT(why.detail, HasSubstr(step));
        EXPECT_THAT(why.detail, HasSubstr("record " + std::to_string(records.size())));
    }
    auto first(std::size_t count) {
        return std::vector(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(count));
    }
    auto plus(std::size_t count, session_record more, auto change) {
        auto out = first(count);
        change(more);
        out.push_back(std::move(more));
        return out;
    }
};
using R = session_record;

TEST_F(Forged, TheWholeIsGood) { EXPECT_EQ(open(good).step, "") << open(good).detail; }

TEST_F(Forged, AKeyTwice) {
    expect_refused(plus(1, good[1], [](R& x) { x.idempotency_key = "create-session-1"; }),
                   "registry.key");
    expect_refused(plus(1, good[0], [](R& x) { x.session_id = "session-2"; }), "registry.key");
}

TEST_F(Forged, AStepFromElsewhere) {
    expect_refused({good[1]}, "registry.transition");
    expect_refused(plus(1, good[2], [](R&) {}), "registry.transition");
    expect_refused(plus(2, good[3], [](R&) {}), "registry.transition");
    expect_refused(plus(1, good[0], [](R& x) { x.idempotency_key = "other"; }),
                   "registry.transition");
}

TEST_F(Forged, ASessionThatChanges) {
    const auto no = [&](std::size_t at, auto change) {
        expect_refused(plus(at, good[at], change), "registry.session");
    };
    no(1, [](R& x) { x.controller_plan_digest = digits('d'); });
    no(1, [](R& x) { x.plan_content_digest = digits('d'); });
    no(1, [](R& x) { x.policy_revision = 8; });
    no(1, [](R& x) { x.expires_at_ms += 1; });
    no(1, [](R& x) { x.created_at_ms -= 1; });
    no(1, [](R& x) { x.canonical_plan_json += " "; });
    no(2, [](R& x) { x.authorization_id = "other"; });
    no(2, [](R& x) { x.authorization_expires_at_ms += 1; });
    no(3, [](R& x) { x.launch_profile_digest = digits('d'); });
    no(3, [](R& x) { x.cgroup.reset(); });
    no(3, [](R& x) { x.filesystem->disk_limit_bytes += 1; });
    no(3, [](R& x) { x.starting_at_ms += 1; });
}

TEST_F(Forged, APlanThatIsNotItsOwn) {
    const auto no = [&](auto change, const std::string& step) {
        auto one = good[0];
        change(one);
        expect_refused({one}, step);
    };
    no([](R& x) { x.plan_content_digest = digits('d'); }, "plan.content_digest");
    no([](R& x) { x.canonical_plan_json += " "; }, "plan.canonical");
    no([](R& x) { x.canonical_plan_json = "{}"; }, "wire.missing");
    no([](R& x) { x.policy_revision = 8; }, "registry.plan");
    no([](R& x) { x.expires_at_ms = 61'001; }, "registry.plan");
}

TEST_F(Forged, AnIntentThatCannotBe) {
    const auto asked = [](R& x, auto change) {
        change(x);
        x.intent->intent_digest = intent_digest(body_of(*x.intent)).value();
        x.request_digest = x.operation == enqueue_operation
                               ? enqueue_digest(x, *x.intent).value()
                               : disposition_digest(x, *x.intent).value();
        x.idempotency_key = intent_key(*x.intent, x.request_digest);
    };
    const auto no = [&](std::size_t after, std::size_t which, auto change) {
        expect_refused(plus(after, good[which], [&](R& x) { asked(x, change); }),
                       "registry.intent");
    };
    ASSERT_EQ(good[4].operation, enqueue_operation);
    ASSERT_EQ(good[5].operation, disposition_operation);
    no(3, 5, [](R&) {});                                    // nobody left it
    no(6, 5, [](R& x) { x.intent->decided_at_ms += 1; });   // decided already
    no(5, 4, [](R& x) { x.intent->expires_at_ms += 1; });   // left already
    no(5, 5, [](R& x) { x.intent->channel_id = "other"; }); // another one
    no(5, 5, [](R& x) { x.intent->item_count = 3; });
    no(4, 4, [](R& x) { x.session_id = "nobody"; });
    no(4, 4, [](R& x) { x.intent->runtime_id = "pi"; });
    no(4, 4, [](R& x) { x.created_at_ms -= 1; });
    // What is of the moment may differ.
    EXPECT_EQ(
        open(plus(4, good[4], [&](R& x) { asked(x, [](R& y) { y.policy_revision = 8; }); })).step,
        "");
}

TEST_F(Forged, AReceiptOfTheOtherKind) {
    auto life = first(4);
    auto last = good[3];
    last.operation = "mark_refinement_exited";
    last.idempotency_key = "k.exited";
    last.state = exited;
    last.finished_at_ms = 1400;
    last.receipt_started_at_ms = 1150;
    last.receipt_key_id = last.receipt_digest = last.receipt_hmac = digits('1');
    last.receipt_previous_hmac = digits('0');
    last.receipt_sequence = 1;
    last.termination_cause = "exited";
    last.exit_code = 0;
    life.push_back(last);
    expect_refused(life, "registry.plan");
    life.back().operation = "mark_exited";
    EXPECT_EQ(open(life).step, "");
}

} // namespace
