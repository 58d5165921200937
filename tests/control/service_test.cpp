#include "good_calls.hpp"
#include <gmock/gmock.h>

namespace glove::control {
namespace {

using std::string;
using std::string_view;
using test::digits;
using test::good_call_of;
using test::whole_service;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

TEST(Service, secret_then_version_then_deadline_then_method) {
    whole_service s;
    auto asked = s.request("no_such_method", "null", "key");
    asked.bootstrap_secret = digits('6');
    asked.schema_version = 2;
    asked.deadline_ms = 1;
    EXPECT_EQ(s.answer(asked), "unauthorized");
    for (const auto& wrong :
         {string{}, digits('5') + "5", digits('5').substr(1), digits('5') + "\n"}) {
        asked.bootstrap_secret = wrong;
        EXPECT_EQ(s.answer(asked), "unauthorized");
    }
    asked.bootstrap_secret = s.secret();
    EXPECT_EQ(s.answer(asked), "unsupported_schema");
    asked.schema_version = 0;
    EXPECT_EQ(s.answer(asked), "unsupported_schema");
    asked.schema_version = 1;
    EXPECT_EQ(s.answer(asked), "deadline_exceeded");
    asked.deadline_ms = s.now_ms();
    EXPECT_EQ(s.answer(asked), "method_not_found");
    asked.method = "health";
    EXPECT_EQ(s.answer(asked), "invalid_request"); // the key
    asked.idempotency_key.reset();
    EXPECT_THAT(s.answer(asked), HasSubstr("ready"));
}

TEST(Service, what_is_no_request_is_answered_all_the_same) {
    whole_service s;
    string text = "garbage";
    EXPECT_EQ(s.service().answer_to(text, s.now()),
              R"({"jsonrpc":"2.0","id":"","error":{"code":"invalid_request",)"
              R"("message":"request is not valid"}})");
    EXPECT_EQ(text, "");
    EXPECT_THAT(s.service().answer_to_no_frame({errc::limit_exceeded, "frame.size", 0, "", ""}),
                HasSubstr("invalid_request"));
}

TEST(Service, deadlines) {
    whole_service s;
    const auto with = [&](std::uint64_t deadline_ms) {
        auto asked = s.request("health");
        asked.deadline_ms = deadline_ms;
        return s.answer(asked);
    };
    const auto now = s.now_ms();
    EXPECT_EQ(with(0), "deadline_exceeded");
    EXPECT_EQ(with(now - 1), "deadline_exceeded");
    EXPECT_THAT(with(now), HasSubstr("ready"));
    EXPECT_THAT(with(UINT64_MAX), HasSubstr("ready"));
    // A request that waited for its turn: the wall clock plays no part any more.
    auto asked = s.request("health");
    auto text = *encode(asked);
    auto again = text;
    const auto arrived = s.now();
    s.clock.step_wall(-1h);
    s.clock.add(4999ms);
    EXPECT_THAT(s.service().answer_to(text, arrived), HasSubstr("ready"));
    s.clock.step_wall(-1h);
    s.clock.add(2ms);
    EXPECT_THAT(s.service().answer_to(again, arrived), HasSubstr("deadline_exceeded"));
}

TEST(Service, nothing_is_written_once_the_deadline_has_passed) {
    whole_service s;
    // Its twin, in time.
    EXPECT_THAT(s.ask("create_session", s.creation("in-time"), "k1"), HasSubstr("in-time"));
    for (const string_view method : {"create_session", "create_path_exposure", "verify_audit_chain",
                                     "acknowledge_audit_chain", "start_session", "write_stdin"}) {
        const auto call = good_call_of(s, method);
        auto text = *encode(s.request(method, call.payload, call.key));
        const auto arrived = s.now();
        s.clock.add(5001ms);
        EXPECT_THAT(s.service().answer_to(text, arrived), HasSubstr("deadline_exceeded")) << method;
    }
    EXPECT_TRUE(s.runtime.done.empty());
    EXPECT_EQ(s.ask("session_status", R"({"session_id":"session-1"})"), "session_not_found");
    EXPECT_EQ(s.ask("list_path_exposures"), R"({"schema_version":1,"exposures":[]})");
}

TEST(Service, a_session_is_created_once) {
    whole_service s;
    const auto first = s.ask("create_session", s.creation(), "k");
    EXPECT_THAT(first, HasSubstr(R"("state":"created")"));
    EXPECT_EQ(s.ask("create_session", s.creation(), "k"), first);
    EXPECT_EQ(s.ask("create_session", s.creation(), "another"), "session_conflict");
    EXPECT_EQ(s.ask("create_session", s.creation("session-2"), "k"), "idempotency_conflict");
    // The plan's bytes are part of the request.
    auto spaced = s.plan();
    spaced.insert(1, " ");
    EXPECT_EQ(s.ask("create_session", s.creation("session-1", spaced), "k"),
              "idempotency_conflict");
    // Long after the plan has expired the first answer still stands, and a new session does not.
    s.clock.add(120s);
    EXPECT_EQ(s.ask("create_session", s.creation(), "k"), first);
    EXPECT_EQ(s.ask("create_session", s.creation("session-3"), "k3"), "invalid_plan");
    EXPECT_EQ(s.ask("create_session", s.creation("session-3", "{}"), "k3"), "invalid_plan");
    EXPECT_EQ(s.ask("create_session", R"({"session_id":"s","plan":{}})", "k4"), "invalid_request");
    EXPECT_EQ(s.ask("create_session", "null", "k4"), "invalid_request");
}

TEST(Service, plans_are_judged_by_the_policy_of_now) {
    whole_service s;
    EXPECT_EQ(s.ask("validate_plan", s.plan()), R"({"schema_version":1,"policy_revision":7})");
    EXPECT_EQ(s.ask("validate_plan", s.plan(1000)), "invalid_plan"); // now
    EXPECT_EQ(s.ask("validate_plan", "{}"), "invalid_plan");
    EXPECT_EQ(s.ask("validate_plan", "null"), "invalid_plan");
    auto second = test::usual_plan();
    second.schema_version = 2;
    second.grants = std::vector<supervisor::exposure_grant>{};
    EXPECT_EQ(s.ask("validate_plan", *supervisor::canonical_text(second)),
              R"({"schema_version":2,"policy_revision":7})");
}

TEST(Service, sessions_are_listed_in_pages) {
    whole_service s;
    for (const string_view id : {"b", "a", "c"})
        EXPECT_THAT(s.ask("create_session", s.creation(id), "k-" + string{id}), HasSubstr(id));
    const auto ids = [&](string_view payload) {
        const auto tree = *wire::json::read(s.ask("list_sessions", payload));
        string out;
        for (const auto& one : *tree.find("sessions")->as_array())
            out += *one.find("session_id")->as_string();
        const auto* next = tree.find("next_after");
        return out + (next == nullptr ? "" : ">" + *next->as_string());
    };
    EXPECT_EQ(ids(R"({"limit":256})"), "abc");
    EXPECT_EQ(ids(R"({"limit":2})"), "ab>b");
    EXPECT_EQ(ids(R"({"after":"b","limit":2})"), "c");
    EXPECT_EQ(ids(R"({"after":"c","limit":2})"), "");
    EXPECT_EQ(ids(R"({"after":null,"limit":3})"), "abc");
    EXPECT_EQ(s.ask("list_sessions", R"({"limit":0})"), "invalid_request");
    EXPECT_EQ(s.ask("list_sessions", R"({"limit":257})"), "invalid_request");
}

TEST(Service, nothing_starts_before_a_controller_has_all_receipts) {
    whole_service s;
    const auto call = good_call_of(s, "start_session");
    EXPECT_EQ(s.ask("start_session", call.payload, "k"), "audit_reconciliation_required");
    const auto page = good_call_of(s, "verify_audit_chain");
    EXPECT_THAT(s.ask("verify_audit_chain", page.payload), HasSubstr("local_anchor"));
    EXPECT_EQ(s.ask("start_session", call.payload, "k"), "audit_reconciliation_required");
    EXPECT_TRUE(s.runtime.done.empty());
    const auto anchor = good_call_of(s, "acknowledge_audit_chain");
    auto wrong = anchor.payload;
    wrong.replace(wrong.find(digits('0')), 64, digits('7'));
    EXPECT_EQ(s.ask("acknowledge_audit_chain", wrong, "a1"), "audit_reconciliation_failed");
    EXPECT_THAT(s.ask("acknowledge_audit_chain", anchor.payload, "a1"), HasSubstr("acknowledged"));
    EXPECT_EQ(s.ask("acknowledge_audit_chain", wrong, "a1"), "idempotency_conflict");
    EXPECT_THAT(s.ask("start_session", call.payload, "k"), HasSubstr("session-1"));
    EXPECT_EQ(s.runtime.done.size(), 1U);
}

TEST(Service, a_key_is_one_request_whatever_its_spelling) {
    whole_service s;
    const string input = R"({"session_id":"s","bytes":[104,105]})";
    const auto first = s.ask("write_stdin", input, "k");
    EXPECT_EQ(s.ask("write_stdin", R"({ "bytes" : [104, 105], "session_id" : "s" })", "k"), first);
    EXPECT_EQ(s.runtime.done.size(), 1U);
    EXPECT_EQ(s.ask("write_stdin", R"({"session_id":"s","bytes":[104]})", "k"),
              "idempotency_conflict");
    EXPECT_EQ(s.ask("resize", R"({"session_id":"s","rows":1,"columns":1})", "k"),
              "idempotency_conflict");
    // The key of another session is another key.
    EXPECT_NE(s.ask("write_stdin", R"({"session_id":"t","bytes":[104,105]})", "k"), first);
    EXPECT_EQ(s.runtime.done.size(), 2U);
    // What failed is tried again.
    s.runtime.fails = true;
    EXPECT_EQ(s.ask("write_stdin", input, "k2"), "session_input_failed");
    s.runtime.fails = false;
    EXPECT_EQ(s.ask("write_stdin", input, "k2"), first);
    EXPECT_EQ(s.runtime.done.size(), 3U);
    // A session that is cleaned up takes its keys along, and its cleanup is still known.
    const auto cleaned = s.ask("cleanup_session", R"({"session_id":"s"})", "c");
    EXPECT_EQ(s.ask("cleanup_session", R"({"session_id":"s"})", "c"), cleaned);
    EXPECT_EQ(s.runtime.done.size(), 4U);
    EXPECT_EQ(s.ask("write_stdin", input, "k"), first);
    EXPECT_EQ(s.runtime.done.size(), 5U);
}

TEST(Service, more_keystrokes_than_keys_are_kept_are_all_taken) {
    whole_service s;
    for (int i = 0; i < 3000; ++i)
        ASSERT_THAT(
            s.ask("write_stdin", R"({"session_id":"s","bytes":[1]})", "k" + std::to_string(i)),
            StartsWith("{"));
    EXPECT_EQ(s.runtime.done.size(), 3000U);
}

TEST(Service, an_answer_that_does_not_fit_is_an_error_of_its_own) {
    whole_service s;
    EXPECT_EQ(s.ask("inspect_retained_changes",
                    R"({"session_id":"s","exposure_id":"e","offset":77,"limit":1})"),
              "response_too_large");
}

TEST(Service, exposures_are_made_shown_and_revoked) {
    whole_service s;
    const auto call = good_call_of(s, "create_path_exposure");
    const auto made = s.ask("create_path_exposure", call.payload, "k");
    EXPECT_THAT(made, HasSubstr(R"("state":"active")"));
    EXPECT_THAT(made, Not(HasSubstr(s.project())));
    EXPECT_EQ(s.ask("create_path_exposure", call.payload, "k"), made);
    EXPECT_EQ(s.ask("create_path_exposure", call.payload, "k2"), "path_exposure_rejected");
    EXPECT_THAT(s.ask("list_path_exposures"), HasSubstr("\"proj\""));
    const string revoke = R"({"exposure_id":"proj","generation":1})";
    EXPECT_THAT(s.ask("revoke_path_exposure", revoke, "r"), HasSubstr(R"("state":"revoked")"));
    EXPECT_EQ(s.ask("revoke_path_exposure", "{}", "r"), "invalid_request");
}

TEST(Service, intents_are_paged_and_decided) {
    whole_service s;
    EXPECT_EQ(s.ask("page_observation_intents", R"({"after_sequence":0,"limit":256})"),
              R"({"schema_version":1,"items":[]})");
    EXPECT_EQ(s.ask("page_observation_intents", R"({"after_sequence":0,"limit":257})"),
              "invalid_request");
    const auto call = good_call_of(s, "set_observation_intent_disposition");
    EXPECT_EQ(s.ask("set_observation_intent_disposition", call.payload, "k"),
              "observation_intent_not_found");
    auto pending = call.payload;
    pending.replace(pending.find("accepted"), 8, "pending");
    EXPECT_EQ(s.ask("set_observation_intent_disposition", pending, "k"), "invalid_request");
}

// A session that runs, without anything running.
void run_session(session_registry& of, string_view id) {
    const auto plan = *of.record(id);
    const string key{id};
    test::expect_code(of.reserve_start(key + ".reserve", {1, "approval-1", key, digits('c'),
                                                          plan.plan_content_digest, 1000, 2000}));
    const start_binding binding{digits('e'), cgroup_identity{1, 26, 4711},
                                filesystem_identity{1, 2 * test::mib, {}}, std::nullopt};
    test::expect_code(of.mark_starting(key + ".starting", key, binding));
    test::expect_code(of.mark_running(
        key + ".running", key,
        {1, 4242, "01234567-89ab-cdef-0123-456789abcdef", 987, 26, 4711, digits('9')}));
}

TEST(Service, what_a_guest_left_is_shown_and_decided) {
    whole_service s;
    EXPECT_THAT(s.ask("create_session", s.creation(), "k"), HasSubstr("created"));
    run_session(*s.has.sessions, "session-1");
    EXPECT_THAT(s.ask("session_status", R"({"session_id":"session-1"})"),
                HasSubstr(R"("profile_digest":")" + digits('e')));
    const auto left = s.has.sessions->enqueue(
        {"session-1", digits('c'), digits('e'), "codex", digits('d'), 7, "channel-1", 1, 1000,
         2000},
        {"sage.glove-observation.v1", "intent-1", "guest-capability-inventory", digits('a'), 4});
    test::expect_code(left);
    const auto item = R"({"sequence":)" + std::to_string(left->sequence) +
                      R"(,"body":{"schema":"sage.glove-observation.v1","intent_id":"intent-1",)"
                      R"("observation":"guest-capability-inventory","value_digest":")" +
                      digits('a') + R"(","item_count":4},"context":{"session_id":"session-1",)" +
                      R"("controller_plan_digest":")" + digits('c') + R"(","profile_digest":")" +
                      digits('e') + R"(","runtime_id":"codex","projection_digest":")" +
                      digits('d') +
                      R"(","policy_revision":7,"channel_id":"channel-1","channel_generation":1,)"
                      R"("issued_at_ms":1000,"expires_at_ms":2000},"intent_digest":)"
                      R"("3b6597eb187f1883063a3316272cb2622b1bf0bc5e33dc17253ba16fac145c2e",)";
    EXPECT_EQ(s.ask("page_observation_intents", R"({"after_sequence":0,"limit":1})"),
              R"({"schema_version":1,"items":[)" + item +
                  R"("disposition":"pending","decided_at_ms":0}]})");
    const auto decide = [&](string_view disposition, string_view key) {
        return s.ask("set_observation_intent_disposition",
                     R"({"session_id":"session-1","channel_generation":1,"intent_id":"intent-1",)"
                     R"("intent_digest":)"
                     R"("3b6597eb187f1883063a3316272cb2622b1bf0bc5e33dc17253ba16fac145c2e",)"
                     R"("disposition":")" +
                         string{disposition} + R"(","decided_at_ms":0})",
                     string{key});
    };
    const auto decided = decide("accepted", "d1");
    EXPECT_EQ(decided, R"({"schema_version":1,"item":)" + item +
                           R"("disposition":"accepted","decided_at_ms":1000}})");
    s.clock.add(50ms);
    EXPECT_EQ(decide("accepted", "d1"), decided);
    EXPECT_EQ(decide("accepted", "another"), decided);
    EXPECT_EQ(decide("rejected", "d1"), "idempotency_conflict");
    EXPECT_EQ(decide("rejected", "d2"), "idempotency_conflict");
    EXPECT_EQ(s.ask("page_observation_intents", R"({"after_sequence":0,"limit":256})"),
              R"({"schema_version":1,"items":[]})");
}

TEST(Service, refusals_are_told_in_one_line_without_a_secret_or_a_payload) {
    whole_service s;
    EXPECT_EQ(s.ask("validate_plan", R"({"schema_version":1,"secret_handles":"hush-hush"})"),
              "invalid_plan");
    auto wrong = s.request("health");
    wrong.bootstrap_secret = digits('6');
    EXPECT_EQ(s.answer(wrong), "unauthorized");
    const auto said = s.log.text();
    EXPECT_EQ(std::ranges::count(said, '\n'), 2);
    EXPECT_THAT(said, HasSubstr(R"("event":"request.refused","method":"validate_plan")"));
    EXPECT_THAT(said, HasSubstr(R"("code":"unauthorized","step":"request.secret")"));
    for (const auto& secret : {digits('5'), digits('6'), string{"hush"}})
        EXPECT_THAT(said, Not(HasSubstr(secret)));
    // What went well is not told.
    EXPECT_THAT(s.ask("health"), HasSubstr("ready"));
    EXPECT_EQ(s.log.text(), said);
}

TEST(ServiceLog, a_line_is_short_enough_to_be_written_whole) {
    const error why{errc::io, "test.step", EIO, string(5000, '\n'), "mend"};
    const auto line =
        line_of({.name = "request.refused", .code = "c", .why = &why, .text = "t"}, 7);
    EXPECT_EQ(line, R"({"time_ms":7,"event":"request.refused","code":"c","step":"test.step",)"
                    R"("error":"io","errno":5,"detail":"too long for a line"})"
                    "\n");
    EXPECT_EQ(line_of({.name = "e", .text = "a\nb"}, 7),
              "{\"time_ms\":7,\"event\":\"e\",\"text\":\"a\\nb\"}\n");
}

} // namespace
} // namespace glove::control
