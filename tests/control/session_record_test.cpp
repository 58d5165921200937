// Records against vectors that another implementation computed (fuzz/make_session_seeds.py
// --digests), every way of breaking one, and what each state must and must not hold.
#include "control/session_digests.hpp"
#include "control/session_fields.hpp"
#include "session_scene.hpp"
#include <gmock/gmock.h>
#include <set>
#include <support/malformed.hpp>
#include <wire/both_ways.hpp>

namespace {

using namespace glove;
using namespace glove::test;
using testing::HasSubstr;

auto sealed(session_record what) -> session_record {
    what.sequence = 1;
    what.previous_hash = digits('0');
    what.this_hash = record_hash(what).value();
    return what;
}

auto created_record() -> session_record {
    session_record out;
    out.operation = "create";
    out.idempotency_key = "create-session-1";
    out.session_id = "session-1";
    out.controller_plan_digest = digits('c');
    out.canonical_plan_json = plan_text();
    out.plan_content_digest = wire::to_hex(*wire::sha256(out.canonical_plan_json));
    out.request_digest = out.plan_content_digest;
    out.policy_revision = 7;
    out.expires_at_ms = 61'000;
    out.created_at_ms = 1000;
    return out;
}
auto preparing_record() -> session_record {
    auto out = created_record();
    out.operation = "reserve_start";
    out.state = preparing;
    out.authorization_id = "approval-1";
    out.authorized_at_ms = 1001;
    out.authorization_expires_at_ms = 2001;
    return out;
}
auto starting_record() -> session_record {
    auto out = preparing_record();
    out.operation = "mark_starting";
    out.state = starting;
    out.launch_profile_digest = digits('e');
    out.starting_at_ms = 1100;
    out.cgroup = some_binding().cgroup;
    out.filesystem = some_binding().filesystem;
    return out;
}
auto running_record() -> session_record {
    auto out = starting_record();
    out.operation = "mark_running";
    out.state = running;
    out.running_at_ms = 1200;
    out.process = some_process();
    return out;
}
auto stopping_record() -> session_record {
    auto out = running_record();
    out.operation = "mark_stopping";
    out.state = stopping;
    out.stopping_at_ms = 1300;
    return out;
}
auto exited_record() -> session_record {
    auto out = stopping_record();
    out.operation = "mark_exited";
    out.state = exited;
    out.finished_at_ms = 1400;
    out.receipt_started_at_ms = 1150;
    out.receipt_key_id = digits('1');
    out.receipt_sequence = 1;
    out.receipt_digest = digits('2');
    out.receipt_previous_hmac = digits('0');
    out.receipt_hmac = digits('3');
    out.termination_cause = "exited";
    out.exit_code = 0;
    return out;
}
auto failed_record() -> session_record {
    auto out = stopping_record();
    out.operation = "mark_failed";
    out.state = failed;
    out.failure_code = "supervisor_error";
    out.finished_at_ms = 1400;
    return out;
}
auto failed_early() -> session_record {
    auto out = preparing_record();
    out.operation = "mark_failed";
    out.state = failed;
    out.failure_code = "launch_failed";
    out.finished_at_ms = 1250;
    return out;
}
auto managed_record() -> session_record {
    auto out = stopping_record();
    out.operation = "mark_managed_stopping";
    out.cgroup.reset();
    out.filesystem.reset();
    out.process = {.schema_version = 0, .pid = 0};
    out.managed_runtime = managed_binding().managed_runtime;
    return out;
}
auto intent_record(bool decided = false) -> session_record {
    auto out = running_record();
    out.operation = decided ? disposition_operation : enqueue_operation;
    observation_intent what;
    what.schema = test_schema;
    what.intent_id = "intent-1";
    what.observation = "guest-capability-inventory";
    what.value_digest = digits('a');
    what.item_count = 4;
    what.intent_digest = intent_digest(body_of(what)).value();
    what.profile_digest = digits('e');
    what.runtime_id = "codex";
    what.projection_digest = digits('d');
    what.channel_id = "channel-1";
    what.channel_generation = 1;
    what.issued_at_ms = 1210;
    what.expires_at_ms = 11'210;
    if (decided) {
        what.disposition = intent_disposition::accepted;
        what.decided_at_ms = 1220;
    }
    out.intent = what;
    out.request_digest =
        (decided ? disposition_digest(out, what) : enqueue_digest(out, what)).value();
    out.idempotency_key = intent_key(what, out.request_digest);
    return out;
}

TEST(Record, HashesAreThoseOfTheWire) {
    EXPECT_EQ(sealed(created_record()).this_hash,
              "76d9de503ef95a1661cb0515986f02e640b890e4472f57102a8acdf913df3026");
    EXPECT_EQ(created_record().plan_content_digest,
              "22531fcb58eb4ca5d4a5cd924793dbe0543106eb9650bca1e3943a30154ba6cf");
}

TEST(Record, RequestDigestsAreThoseOfTheWire) {
    const auto content = created_record().plan_content_digest;
    const auto start =
        start_digest({1, "approval-1", "session-1", digits('c'), content, 1001, 2001});
    EXPECT_EQ(start.value(), "50ba043ddff4d734e0dfa36b58cf23748981203b4db5b2daa4585dd86ded9234");
    EXPECT_EQ(step_digest(preparing_record()).value(), start.value());
    EXPECT_EQ(step_digest(starting_record()).value(),
              "745ddfcc03ddbf04e9674f02f38edaa35461db480f093cfec921ce520ace8da6");
    EXPECT_EQ(step_digest(running_record()).value(),
              "985fad0c6b343ff4ae9f9a774453eb3c89d0f7de0260ad357b3f238667b00dde");
    EXPECT_EQ(step_digest(stopping_record()).value(),
              "ef4a8ddbc94c06edff8dd8a6eceab59c5de9d62e5aec5b70dc02f1c19039d891");
    EXPECT_EQ(step_digest(exited_record()).value(),
              "5ec8a89606388b2aaba956f48caf0c95d9ae3a0481a4975fa35823638ea5a7c2");
    EXPECT_FALSE(step_digest(created_record()).has_value());
    EXPECT_FALSE(step_digest(intent_record()).has_value());
}

TEST(Record, IntentDigestsAreThoseOfTheWire) {
    const auto body = [](const char* schema, const char* id, const char* observation,
                         std::uint64_t count) {
        return intent_digest({schema, id, observation, digits('a'), count}).value();
    };
    EXPECT_EQ(body("test.observation.v1", "intent-1", "guest-capability-inventory", 4),
              "9cbc0bb0de2ed9d104318e9b5a5c8641af770c672511e5102e0ba4b61549b6b2");
    EXPECT_EQ(body("test.proposal.v1", "proposal-1", "retired-proposal", 1),
              "1ec5cd4e47e46feb63e3b2cc9836e320c2fe6fa5fca6dd022275631ccc3a81f9");
    const auto sage =
        body("sage.glove-observation.v1", "intent-1", "guest-capability-inventory", 4);
    EXPECT_EQ(sage, "3b6597eb187f1883063a3316272cb2622b1bf0bc5e33dc17253ba16fac145c2e");

    auto session = running_record();
    auto what = *intent_record().intent;
    what.schema = "sage.glove-observation.v1";
    what.intent_digest = sage;
    what.runtime_id = "pi";
    what.issued_at_ms = 30'010;
    what.expires_at_ms = 30'110;
    const auto request = enqueue_digest(session, what).value();
    EXPECT_EQ(request, "e98ece9cc76924b00ac219583163c121a358db67442956cb245fd63ee4aad045");
    EXPECT_EQ(intent_key(what, request), "intent-enqueue:" + request);
    what.disposition = intent_disposition::accepted;
    what.decided_at_ms = 30'050;
    const auto decision = disposition_digest(session, what).value();
    EXPECT_EQ(decision, "30490944a247a4d8a78bd778902a4dc3c027428927a3d7a52d1cef62d701b235");
    EXPECT_EQ(intent_key(what, decision), "intent-disposition:" + decision);
}

auto all_records() -> std::vector<session_record> {
    return {created_record(),  preparing_record(), starting_record(),  running_record(),
            stopping_record(), exited_record(),    failed_record(),    failed_early(),
            managed_record(),  intent_record(),    intent_record(true)};
}

TEST(Record, EachStateIsWrittenAndReadBack) {
    for (const auto& one : all_records()) {
        const auto what = sealed(one);
        const auto text = encode(what);
        ASSERT_TRUE(text.has_value()) << to_string(what.state) << ": " << text.error().detail;
        EXPECT_EQ(decode_session_record(*text).value(), what);
    }
}

constexpr wire::json::limits record_limits{.bytes = most_session_record_bytes};

// By a tree, and by writing it again.
auto judged_by_tree(std::string_view text) -> result<session_record> {
    GLOVE_TRY(const auto tree, wire::json::read(text, record_limits));
    GLOVE_TRY(auto out, wire::decode(tree, session_fields));
    GLOVE_TRY(const auto canonical, encode(out));
    GLOVE_TRY(const auto hash, record_hash(out));
    if (canonical != text || hash != out.this_hash)
        return fail(errc::corrupt, "record.hash",
                    "record " + std::to_string(out.sequence) + " is not what its hash says");
    return out;
}

// What is taken from the text is what its tree says, and so is every complaint.
TEST(Record, IsReadFromItsTextAsFromATree) {
    const auto check = [](std::string_view text) {
        const auto mine = decode_session_record(text);
        const auto other = judged_by_tree(text);
        ASSERT_EQ(mine.has_value(), other.has_value()) << text;
        if (mine) EXPECT_EQ(*mine, *other) << text;
        else EXPECT_TRUE(same(mine.error(), other.error())) << text << mine.error().detail;
        EXPECT_EQ(disagreement(text, session_fields, record_limits), "") << text;
    };
    for (const auto& one : all_records()) {
        const auto text = encode(sealed(one)).value();
        const auto taken = wire::take_text(text, session_fields, record_limits);
        ASSERT_TRUE(taken && taken->is_as_encoded) << text;
        check(text);
        damaged(text, 5, check);
    }
}

TEST(Record, MembersStandInTheOrderOfTheWire) {
    auto what = sealed(intent_record());
    what.managed_runtime = managed_binding().managed_runtime;
    what.exit_code = 0;
    std::string text;
    wire::json::writer to{text};
    wire::write_object(to, what, session_fields);
    std::vector<std::string> names;
    const auto tree = wire::json::read(text).value();
    for (const auto& m : *tree.as_object()) names.push_back(m.name);
    EXPECT_THAT(names,
                testing::ElementsAre(
                    "schema_version", "sequence", "operation", "idempotency_key", "session_id",
                    "controller_plan_digest", "request_digest", "plan_content_digest", "state",
                    "policy_revision", "expires_at_ms", "created_at_ms", "authorization_id",
                    "authorized_at_ms", "authorization_expires_at_ms", "launch_profile_digest",
                    "starting_at_ms", "running_at_ms", "stopping_at_ms",
                    "process_identity_schema_version", "process_pid", "process_boot_id",
                    "process_start_time_ticks", "process_cgroup_device", "process_cgroup_inode",
                    "process_cgroup_path_digest", "cgroup_identity", "filesystem_identity",
                    "managed_runtime_identity", "failure_code", "finished_at_ms",
                    "receipt_started_at_ms", "receipt_key_id", "receipt_sequence", "receipt_digest",
                    "receipt_previous_hmac", "receipt_hmac", "termination_cause", "exit_code",
                    "canonical_plan_json", "previous_hash", "this_hash", "observation_intent"));
}

auto judge(const std::string& text) -> std::optional<error> {
    const auto read = decode_session_record(text);
    return read ? std::nullopt : std::optional{read.error()};
}

TEST(Record, EveryMemberIsReadStrictly) {
    auto what = sealed(intent_record());
    what.managed_runtime = managed_binding().managed_runtime;
    what.exit_code = 0;
    std::string text;
    wire::json::writer to{text};
    wire::write_object(to, what, session_fields);
    const auto tree = wire::json::read(text).value();
    expect_each_to_be_refused(session_fields, tree, "", judge);
    expect_each_to_be_refused(cgroup_fields, tree, "cgroup_identity", judge);
    expect_each_to_be_refused(filesystem_fields, tree, "filesystem_identity", judge);
    expect_each_to_be_refused(partition_fields, tree, "filesystem_identity/partitions/0", judge);
    expect_each_to_be_refused(managed_fields, tree, "managed_runtime_identity", judge);
    expect_each_to_be_refused(intent_fields, tree, "observation_intent", judge);
}

// No change of one member passes, whichever state it is in: not the rules, and then the hash.
TEST(Record, TheHashCoversWhatAStateHolds) {
    for (const auto& one : all_records()) {
        const auto text = encode(sealed(one)).value();
        const auto tree = wire::json::read(text).value();
        for (const auto& m : *tree.as_object()) {
            wire::json::value other;
            if (const auto number = m.data.as_unsigned()) other = *number + 1;
            else if (const auto* word = m.data.as_string()) {
                auto changed = *word;
                if (changed.empty()) changed = "supervisor_error";
                else changed.back() = changed.back() == '1' ? '2' : '1';
                other = changed;
            } else continue;
            const auto broken = wire::json::to_text(edited(tree, "", [&](auto& members) {
                for (auto& n : members)
                    if (n.name == m.name) n.data = other;
            }));
            // A version that no process has yet says nothing.
            if (m.name == "process_identity_schema_version" && one.process.pid == 0) continue;
            EXPECT_FALSE(decode_session_record(broken).has_value())
                << to_string(one.state) << " " << m.name;
        }
    }
}

TEST(Record, OnlyTheCanonicalTextIsARecord) {
    const auto text = encode(sealed(created_record())).value();
    EXPECT_FALSE(judge(text).has_value());
    EXPECT_EQ(judge(" " + text)->step, "record.hash");
    EXPECT_EQ(judge(text.substr(0, text.size() - 1) + ",\"exit_code\":null}")->step, "record.hash");
}

struct bad {
    const char* name;
    session_record what;
    const char* step;
};

template<class Change> auto with(session_record what, Change change) -> session_record {
    change(what);
    return what;
}

TEST(Record, AStateHoldsWhatItMustAndNothingElse) {
    using r = session_record;
    const std::vector<bad> all{
        {"authorization too early", with(created_record(), [](r& x) { x.authorization_id = "a"; }),
         "record.part"},
        {"authorization missing", with(preparing_record(), [](r& x) { x.authorization_id = ""; }),
         "record.part"},
        {"launch too early",
         with(preparing_record(), [](r& x) { x.launch_profile_digest = digits('e'); }),
         "record.part"},
        {"launch without its time", with(starting_record(), [](r& x) { x.starting_at_ms = 0; }),
         "record.part"},
        {"cgroup too early", with(preparing_record(), [](r& x) { x.cgroup.emplace(); }),
         "record.part"},
        {"process too early", with(starting_record(), [](r& x) { x.process = some_process(); }),
         "record.part"},
        {"no process",
         with(running_record(), [](r& x) { x.process = {.schema_version = 0, .pid = 0}; }),
         "record.process"},
        {"half a process", with(running_record(), [](r& x) { x.process.boot_id = ""; }),
         "record.part"},
        {"process without a version",
         with(running_record(), [](r& x) { x.process.schema_version = 0; }), "record.part"},
        {"boot id", with(running_record(), [](r& x) { x.process.boot_id[8] = '0'; }),
         "record.process"},
        {"boot id in capitals", with(running_record(), [](r& x) { x.process.boot_id[9] = 'A'; }),
         "record.process"},
        {"managed with a cgroup", with(managed_record(), [](r& x) { x.cgroup.emplace(); }),
         "record.part"},
        {"managed with a process", with(managed_record(), [](r& x) { x.process = some_process(); }),
         "record.process"},
        {"managed under the plain name",
         with(managed_record(), [](r& x) { x.operation = "mark_stopping"; }), "record.operation"},
        {"plain under the managed name",
         with(stopping_record(), [](r& x) { x.operation = "mark_managed_stopping"; }),
         "record.operation"},
        {"operation of another state",
         with(running_record(), [](r& x) { x.operation = "mark_starting"; }), "record.operation"},
        {"stop too early", with(running_record(), [](r& x) { x.stopping_at_ms = 1300; }),
         "record.part"},
        {"end too early", with(stopping_record(), [](r& x) { x.finished_at_ms = 1400; }),
         "record.part"},
        {"failure of an exit",
         with(exited_record(), [](r& x) { x.failure_code = "supervisor_error"; }), "record.part"},
        {"receipt of a failure", with(failed_record(), [](r& x) { x.receipt_sequence = 1; }),
         "record.part"},
        {"half a receipt", with(exited_record(), [](r& x) { x.receipt_hmac = ""; }), "record.part"},
        {"exit code of a signal",
         with(exited_record(), [](r& x) { x.termination_cause = "signaled"; }), "record.receipt"},
        {"exit without its code", with(exited_record(), [](r& x) { x.exit_code.reset(); }),
         "record.receipt"},
        {"failure that cannot be while preparing",
         with(failed_early(), [](r& x) { x.failure_code = "supervisor_error"; }), "record.failure"},
        {"failure that cannot be while running",
         with(failed_record(), [](r& x) { x.failure_code = "launch_failed"; }), "record.failure"},
        {"ran without a launch", with(failed_early(), [](r& x) { x.running_at_ms = 1200; }),
         "record.part"},
        {"stopped without running", with(failed_early(), [](r& x) { x.stopping_at_ms = 1200; }),
         "record.part"},
        {"a place without a launch", with(failed_early(), [](r& x) { x.cgroup.emplace(); }),
         "record.part"},
        {"partitions out of order",
         with(starting_record(), [](r& x) { x.filesystem->partitions[1].alias = "a"; }),
         "record.filesystem"},
        {"a partition twice",
         with(starting_record(), [](r& x) { x.filesystem->partitions[1].alias = "home"; }),
         "record.filesystem"},
        {"partitions as large as the disk",
         with(starting_record(), [](r& x) { x.filesystem->partitions[1].quota_bytes = mib; }),
         "record.filesystem"},
        {"partitions beyond all numbers",
         with(starting_record(),
              [](r& x) { x.filesystem->partitions[1].quota_bytes = UINT64_MAX; }),
         "record.filesystem"},
        {"created too late", with(created_record(), [](r& x) { x.created_at_ms = 61'000; }),
         "record.time"},
        {"authorized before", with(preparing_record(), [](r& x) { x.authorized_at_ms = 999; }),
         "record.time"},
        {"authorized for no time",
         with(preparing_record(), [](r& x) { x.authorization_expires_at_ms = 1001; }),
         "record.time"},
        {"authorized for longer than the plan",
         with(preparing_record(), [](r& x) { x.authorization_expires_at_ms = 61'001; }),
         "record.time"},
        {"started before", with(starting_record(), [](r& x) { x.starting_at_ms = 1000; }),
         "record.time"},
        {"started too late", with(starting_record(), [](r& x) { x.starting_at_ms = 2001; }),
         "record.time"},
        {"ran before", with(running_record(), [](r& x) { x.running_at_ms = 1099; }), "record.time"},
        {"ran too late", with(running_record(), [](r& x) { x.running_at_ms = 2001; }),
         "record.time"},
        {"stopped before", with(stopping_record(), [](r& x) { x.stopping_at_ms = 1199; }),
         "record.time"},
        {"receipt after it ran",
         with(exited_record(), [](r& x) { x.receipt_started_at_ms = 1201; }), "record.time"},
        {"finished before it ran", with(exited_record(), [](r& x) { x.finished_at_ms = 1199; }),
         "record.time"},
        {"intent of no operation",
         with(running_record(), [](r& x) { x.intent = intent_record().intent; }), "record.intent"},
        {"operation without its intent", with(intent_record(), [](r& x) { x.intent.reset(); }),
         "record.intent"},
        {"decided while it is left",
         with(intent_record(), [](r& x) { x.intent->disposition = intent_disposition::accepted; }),
         "record.intent"},
        {"a decision without its time",
         with(intent_record(true), [](r& x) { x.intent->decided_at_ms = 0; }), "record.intent"},
        {"accepted too late",
         with(intent_record(true), [](r& x) { x.intent->decided_at_ms = 11'210; }),
         "record.intent"},
        {"expired too early",
         with(intent_record(true),
              [](r& x) { x.intent->disposition = intent_disposition::expired; }),
         "record.intent"},
        {"decided before it was left",
         with(intent_record(true), [](r& x) { x.intent->decided_at_ms = 1209; }), "record.intent"},
        {"intent of another launch",
         with(intent_record(), [](r& x) { x.intent->profile_digest = digits('f'); }),
         "record.intent"},
        {"another body", with(intent_record(), [](r& x) { x.intent->item_count = 3; }),
         "record.intent"},
        {"another request", with(intent_record(), [](r& x) { x.intent->channel_id = "other"; }),
         "record.intent"},
        {"another key", with(intent_record(), [](r& x) { x.idempotency_key = "key"; }),
         "record.intent"},
    };
    for (const auto& one : all) {
        const auto out = encode(sealed(one.what));
        EXPECT_FALSE(out.has_value()) << one.name;
        if (out) continue;
        EXPECT_EQ(out.error().step, one.step) << one.name << ": " << out.error().detail;
    }
}

TEST(Record, WhatIsJustWithinTheRulesIsARecord) {
    using r = session_record;
    const std::vector<session_record> all{
        with(starting_record(), [](r& x) { x.starting_at_ms = 1001; }),
        with(starting_record(), [](r& x) { x.starting_at_ms = 2000; }),
        with(running_record(), [](r& x) { x.running_at_ms = 1100; }),
        with(running_record(), [](r& x) { x.running_at_ms = 2000; }),
        with(stopping_record(), [](r& x) { x.stopping_at_ms = 1200; }),
        with(exited_record(), [](r& x) { x.receipt_started_at_ms = x.finished_at_ms = 1200; }),
        with(exited_record(), [](r& x) { x.stopping_at_ms = 0; }),
        with(created_record(), [](r& x) { x.created_at_ms = 60'999; }),
        with(starting_record(), [](r& x) { x.filesystem->partitions[1].quota_bytes = mib - 1; }),
        with(starting_record(), [](r& x) { x.cgroup.reset(); }),
        with(starting_record(), [](r& x) { x.filesystem.reset(); }),
    };
    for (const auto& one : all) {
        const auto out = encode(sealed(one));
        EXPECT_TRUE(out.has_value()) << to_string(one.state) << ": " << out.error().detail;
    }
}

TEST(View, HasTheProfileFromStartingOn) {
    EXPECT_EQ(encode(view_of(preparing_record())).value(),
              R"({"schema_version":1,"session_id":"session-1","controller_plan_digest":")" +
                  digits('c') + R"(","plan_content_digest":")" +
                  created_record().plan_content_digest +
                  R"(","state":"preparing","policy_revision":7,"expires_at_ms":61000,)"
                  R"("created_at_ms":1000})");
    const auto text = encode(view_of(running_record())).value();
    EXPECT_THAT(text, HasSubstr(R"("profile_digest":")" + digits('e') + "\"}"));
    EXPECT_EQ(decode_session_view(text).value(), view_of(running_record()));
    const auto tree = wire::json::read(text).value();
    expect_each_to_be_refused(view_fields, tree, "", [](const std::string& in) {
        const auto read = decode_session_view(in);
        return read ? std::nullopt : std::optional{read.error()};
    });
}

TEST(Lifecycle, IsAsTheTablesSay) {
    std::set<std::string_view> names;
    for (const auto& one : operations) {
        EXPECT_TRUE(names.insert(one.name).second) << one.name;
        EXPECT_EQ(operation_named(one.name)->event, one.event);
        EXPECT_EQ(operation_name(one.event, one.kind), one.name);
    }
    EXPECT_EQ(operation_name(life_event::reserve_start, session_kind::managed), "reserve_start");
    EXPECT_EQ(operation_name(life_event::mark_failed, session_kind::refinement), "mark_failed");
    EXPECT_FALSE(operation_named(enqueue_operation).has_value());
    EXPECT_EQ(records_left(created), 5U);
    EXPECT_EQ(records_left(running), 2U);
    EXPECT_TRUE(may_fail(preparing, "launch_failed"));
    EXPECT_FALSE(may_fail(created, "launch_failed"));
    EXPECT_FALSE(may_fail(preparing, "recovered_without_process"));
    EXPECT_FALSE(may_fail(running, "authorization_expired"));
    EXPECT_TRUE(may_fail(stopping, "recovered_terminated"));
    EXPECT_FALSE(may_fail(exited, "supervisor_error"));
    EXPECT_FALSE(may_fail(running, "another"));
}

} // namespace
