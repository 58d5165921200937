#include "control/method_fields.hpp"
#include "methods_scene.hpp"
#include <functional>
#include <gmock/gmock.h>
#include <map>
#include <set>
#include <support/malformed.hpp>

namespace glove::control {
namespace {

using std::string;
using std::string_view;
using test::digits;
using test::whole_service;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

struct good_call {
    std::optional<string> key;
    string payload;
    string result; // begins so
};

// One for each method, in an order in which a fresh service takes them.
auto good_calls(const whole_service& s) -> std::vector<std::pair<string, good_call>> {
    const string one = R"({"session_id":"session-1"})";
    const auto ack = [](string_view id = "session-1") {
        return R"({"schema_version":1,"session_id":")" + string{id} + "\"}";
    };
    const string session =
        R"({"schema_version":1,"session_id":"session-1","controller_plan_digest":")" + digits('c');
    const string exposure = R"({"schema_version":1,"exposure":{"schema_version":1,)"
                            R"("exposure_id":"proj","generation":1,"scope_digest":")";
    const auto create = R"({"exposure_id":"proj","root_id":"projects","host_path":")" +
                        s.project() +
                        R"(","display_label":"demo","allowed_modes":[{"access":"read",)"
                        R"("materialization":"bind","max_bytes":0,"cleanup_policy":"retain"}],)"
                        R"("ttl_secs":3600,"allowed_runtime_template_ids":["codex-safe"]})";
    const auto authorization =
        R"({"authorization":{"schema_version":1,"authorization_id":"approval-1",)"
        R"("session_id":"session-1","controller_plan_digest":")" +
        digits('c') + R"(","plan_content_digest":")" + digits('c') +
        R"(","approved_at_ms":1001,"expires_at_ms":2001}})";
    return {
        {"health", {{}, "null", R"({"schema_version":1,"status":"ready"})"}},
        {"capabilities", {{}, "null", R"({"schema_version":1,"receipt_audit":{)"}},
        {"validate_plan", {{}, s.plan(), R"({"schema_version":1,"policy_revision":7})"}},
        {"create_session", {"create-1", s.creation(), session}},
        {"session_status", {{}, one, session}},
        {"list_sessions",
         {{}, R"({"after":"a","limit":1})", R"({"schema_version":1,"sessions":[)" + session}},
        {"verify_audit_chain",
         {{},
          R"({"sage_anchor":)" + s.genesis() + R"(,"limit":1000})",
          R"({"schema_version":1,"envelopes":[],"refinement_envelopes":[],"has_more":false,)"
          R"("local_anchor":)" +
              s.genesis() + "}"}},
        {"acknowledge_audit_chain",
         {"ack-1", R"({"anchor":)" + s.genesis() + "}",
          R"({"schema_version":1,"acknowledged_anchor":)" + s.genesis() + "}"}},
        {"start_session", {"start-1", authorization, session}},
        {"attach",
         {{},
          R"({"session_id":"session-1","cursor":4,"max_bytes":65536})",
          R"({"schema_version":1,"session_id":"session-1","oldest_cursor":1,"next_cursor":7,)"
          R"("truncated":false,"eof":true,"bytes":[0,127,255]})"}},
        {"write_stdin", {"input-1", R"({"session_id":"session-1","bytes":[104,105]})", ack()}},
        {"resize", {"size-1", R"({"session_id":"session-1","rows":1,"columns":4096})", ack()}},
        {"signal", {"signal-1", R"({"session_id":"session-1","signal":"hangup"})", ack()}},
        {"detach",
         {"detach-1", R"({"session_id":"session-1","transcript_cursor":9})",
          R"({"schema_version":1,"session_id":"session-1","transcript_cursor":9})"}},
        {"stop_session", {"stop-1", one, session}},
        {"cleanup_session", {"cleanup-1", one, ack()}},
        {"create_path_exposure", {"expose-1", create, exposure}},
        {"list_path_exposures", {{}, "null", R"({"schema_version":1,"exposures":[{)"}},
        {"revoke_path_exposure",
         {"revoke-1", R"({"exposure_id":"proj","generation":1})", exposure}},
        {"inspect_retained_changes",
         {{},
          R"({"session_id":"session-1","exposure_id":"proj","offset":3,"limit":256})",
          R"("session-1 proj 3 256")"}},
        {"page_observation_intents",
         {{}, R"({"after_sequence":0,"limit":256})", R"({"schema_version":1,"items":[]})"}},
        {"set_observation_intent_disposition",
         {"decide-1",
          R"({"session_id":"session-1","channel_generation":1,"intent_id":"intent-1",)"
          R"("intent_digest":")" +
              digits('a') + R"(","disposition":"accepted","decided_at_ms":0})",
          "observation_intent_not_found"}},
    };
}
auto good_call_of(const whole_service& s, string_view method) -> good_call {
    for (auto& [name, what] : good_calls(s))
        if (name == method) return what;
    ADD_FAILURE() << method;
    return {};
}

TEST(Methods, the_table_names_each_method_once_and_every_one_is_tried_here) {
    whole_service s;
    std::set<string_view> names, tried;
    for (const auto& row : methods()) {
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        EXPECT_EQ(find_method(row.name), &row);
        EXPECT_FALSE(row.payload.empty() || row.result.empty());
    }
    EXPECT_EQ(find_method("none"), nullptr);
    EXPECT_EQ(find_method(""), nullptr);
    for (const auto& [name, call] : good_calls(s)) tried.insert(find_method(name)->name);
    EXPECT_EQ(names, tried);
}

TEST(Methods, each_answers_what_it_is_there_for) {
    whole_service s;
    for (const auto& [name, call] : good_calls(s))
        EXPECT_THAT(s.ask(name, call.payload, call.key), StartsWith(call.result)) << name;
    EXPECT_EQ(s.runtime.done,
              (std::vector<string>{"start start-1 approval-1", "input session-1 hi",
                                   "resize session-1 1x4096", "signal session-1 hangup",
                                   "detach session-1 9", "stop stop-1", "cleanup session-1"}));
}

TEST(Methods, what_may_wait_for_a_disk_is_known_before_it_is_carried_out) {
    whole_service s;
    const std::set<string_view> looks{
        "health",        "capabilities", "validate_plan",       "session_status",
        "list_sessions", "attach",       "list_path_exposures", "page_observation_intents"};
    for (const auto& [name, call] : good_calls(s)) {
        EXPECT_EQ(find_method(name)->writes, !looks.contains(name)) << name;
        const auto seen =
            s.service().look_at(*encode(s.request(name, call.payload, call.key)), s.now());
        EXPECT_EQ(seen.writes, !looks.contains(name)) << name;
        if (seen.writes) {
            EXPECT_EQ(seen.until, s.clock.monotonic() + 5001ms) << name;
        }
    }
    // What is refused anyhow waits for nothing.
    auto late = s.request("create_session");
    late.deadline_ms = 1;
    for (const auto& text : {*encode(late), string{"{}"}, string{}, string{"[1]"},
                             string{R"({"method":1,"params":{}})"},
                             string{R"({"method":"create_session","params":{"deadline_ms":"1"}})"}})
        EXPECT_FALSE(s.service().look_at(text, s.now()).writes) << text;
}

TEST(Methods, a_key_is_demanded_or_not_taken) {
    for (const auto& row : methods()) {
        whole_service s;
        const auto call = good_call_of(s, row.name);
        EXPECT_EQ(call.key.has_value(), row.key != key_rule::none) << row.name;
        const auto with = [&](std::optional<string> key) {
            return s.ask(row.name, call.payload, std::move(key));
        };
        if (row.key == key_rule::none) {
            EXPECT_EQ(with("key"), "invalid_request") << row.name;
            EXPECT_EQ(with(""), "invalid_request") << row.name;
            continue;
        }
        EXPECT_EQ(with(std::nullopt), "invalid_request") << row.name;
        const std::size_t most = row.key == key_rule::ident112 ? 112 : 128;
        EXPECT_EQ(with(""), "invalid_request") << row.name;
        EXPECT_EQ(with("a key"), "invalid_request") << row.name;
        EXPECT_EQ(with(string(most + 1, 'k')), "invalid_request") << row.name;
        EXPECT_THAT(s.log.text(), HasSubstr("$.params.idempotency_key"));
        EXPECT_NE(with(string(most, 'k')), "invalid_request") << row.name;
    }
}

TEST(Methods, a_payload_is_as_large_as_the_row_allows_and_not_larger) {
    for (const auto& row : methods()) {
        if (row.payload_bytes == most_frame_bytes) continue; // the frame is its bound
        whole_service s;
        const auto call = good_call_of(s, row.name);
        if (call.payload == "null") {
            EXPECT_EQ(row.payload_bytes, 4U);
            EXPECT_EQ(s.ask(row.name, "false", call.key), "invalid_request");
            EXPECT_EQ(s.ask(row.name, "{}", call.key), "invalid_request");
            continue;
        }
        const auto padded = [&](std::size_t size) {
            auto out = call.payload;
            return out.insert(1, size - out.size(), ' ');
        };
        ASSERT_GT(row.payload_bytes, call.payload.size()) << row.name;
        EXPECT_EQ(s.ask(row.name, padded(row.payload_bytes + 1), call.key), "invalid_request")
            << row.name;
        EXPECT_THAT(s.log.text(), HasSubstr("method.payload"));
        EXPECT_NE(s.ask(row.name, padded(row.payload_bytes), call.key), "invalid_request")
            << row.name;
    }
}

TEST(Methods, what_a_part_is_missing_for_is_not_found_whatever_is_asked) {
    const std::map<part, std::function<void(parts&)>> without{
        {part::session_policy, [](parts& p) { p.policy = nullptr; }},
        {part::session_store, [](parts& p) { p.sessions = nullptr; }},
        {part::operational_runtime, [](parts& p) { p.runtime = nullptr; }},
        {part::exposure_policy, [](parts& p) { p.exposures = nullptr; }},
        {part::materialization_root, [](parts& p) { p.retained = nullptr; }},
        {part::channel_catalog, [](parts& p) { p.channels = nullptr; }},
    };
    for (const auto& row : methods()) {
        if (row.needs == part::nothing) continue;
        whole_service s;
        without.at(row.needs)(s.has);
        const auto call = good_call_of(s, row.name);
        EXPECT_EQ(s.ask(row.name, call.payload, call.key), "method_not_found") << row.name;
        EXPECT_EQ(s.ask(row.name, "[]", call.key ? std::nullopt : std::optional{string{"k"}}),
                  "method_not_found")
            << row.name;
    }
    // A runtime that is there and does not work is as good as none.
    whole_service s;
    s.runtime.operational = false;
    EXPECT_EQ(s.ask("attach", "{}"), "method_not_found");
    EXPECT_EQ(s.ask("no_such_method"), "method_not_found");
}

template<class T, std::size_t N>
void expect_strict(string_view method, const wire::fields<T, N>& rows, string_view path = "",
                   std::set<string> but = {}) {
    whole_service s;
    const auto call = good_call_of(s, method);
    const auto whole = *wire::json::read(call.payload);
    int n = 0;
    for (const auto& way : test::ways_of_breaking(rows, whole, path)) {
        if (way.text.size() > find_method(method)->payload_bytes || but.contains(way.what))
            continue;
        auto asked = s.request(method, "null", call.key);
        if (asked.idempotency_key) *asked.idempotency_key += std::to_string(n++);
        // What no JSON text of this protocol is cannot be put into a request by our own hand.
        if (way.step.starts_with("json.")) continue;
        asked.payload = way.text;
        const auto said = s.answer(asked);
        if (way.step.empty()) EXPECT_NE(said, "invalid_request") << method << way.what;
        else EXPECT_EQ(said, "invalid_request") << method << way.what;
    }
}

TEST(Methods, payloads_are_read_strictly) {
    using namespace payloads;
    expect_strict("session_status", session_fields);
    expect_strict("list_sessions", listing_fields);
    expect_strict("attach", attach_fields);
    expect_strict("resize", resize_fields);
    expect_strict("signal", signal_fields);
    expect_strict("detach", detach_fields);
    expect_strict("stop_session", session_fields);
    expect_strict("cleanup_session", session_fields);
    expect_strict("verify_audit_chain", page_fields);
    expect_strict("verify_audit_chain", anchor_fields, "sage_anchor");
    expect_strict("acknowledge_audit_chain", acknowledgement_fields);
    expect_strict("acknowledge_audit_chain", anchor_fields, "anchor");
    expect_strict("inspect_retained_changes", retained_fields);
    expect_strict("page_observation_intents", intent_page_fields);
    expect_strict("set_observation_intent_disposition", decision_fields);
}

TEST(Methods, input_is_one_byte_to_sixty_four_kibibytes) {
    whole_service s;
    const auto bytes = [](std::size_t count, string_view each = "7") {
        string out = R"({"session_id":"s","bytes":[)";
        for (std::size_t i = 0; i < count; ++i) out.append(i == 0 ? "" : ",").append(each);
        return out + "]}";
    };
    EXPECT_EQ(s.ask("write_stdin", bytes(0), "k0"), "invalid_request");
    EXPECT_THAT(s.ask("write_stdin", bytes(1, "255"), "k1"), HasSubstr("session_id"));
    EXPECT_EQ(s.ask("write_stdin", bytes(1, "256"), "k2"), "invalid_request");
    EXPECT_EQ(s.ask("write_stdin", bytes(1, "-1"), "k3"), "invalid_request");
    EXPECT_THAT(s.ask("write_stdin", bytes(65'536, "255"), "k4"), HasSubstr("session_id"));
    EXPECT_EQ(s.runtime.done.back().size(), 65'536 + string_view{"input s "}.size());
}

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

TEST(Capabilities, with_everything) {
    whole_service s;
    const auto said = s.ask("capabilities");
    EXPECT_EQ(said,
              R"({"schema_version":1,"receipt_audit":{"envelope_schema_version":1,)"
              R"("algorithm":"hmac_sha256","key_id":")" +
                  s.key_id() +
                  R"("},"session_control":{"validate_plan":true,"create_session":true,)"
                  R"("start_session":true,"session_status":true,"attach":true,"resize":true,)"
                  R"("write_stdin":true,"signal":true,"detach":true,"stop_session":true,)"
                  R"("cleanup_session":true},"agent_runtime_adapter_schema_version":1,)"
                  R"("managed_runtime_ids":["codex","pi"],"path_exposure_admin_schema_version":1,)"
                  R"("path_exposure_catalog_schema_version":1,"retained_write_schema_version":1,)"
                  R"("change_manifest_schema_version":1,)"
                  R"("change_apply_authorization_schema_version":0,)"
                  R"("refinement_evaluation_protocol_schema_version":1,)"
                  R"("observation_intent_channel_schema_version":1,"backends":[)"
                  R"({"backend":"linux_production","resource_enforcement":{"cpu_time":"cgroup_v2",)"
                  R"("memory":"cgroup_v2","pids":"cgroup_v2","wall_time":"watchdog",)"
                  R"("disk":"filesystem_quota","terminal_output":"byte_counter",)"
                  R"("receipt_schema_version":1}},{"backend":"apple_container",)"
                  R"("resource_enforcement":{"cpu_time":"unavailable","memory":"unavailable",)"
                  R"("pids":"unavailable","wall_time":"unavailable","disk":"unavailable",)"
                  R"("terminal_output":"unavailable","receipt_schema_version":0}}]})");
}

// Each part on its own takes away what depends on it, and a runtime that does not work counts as
// none: nothing is concluded from a pointer.
// Nothing can be written any more; looking goes on.
TEST(Capabilities, what_cannot_be_written_is_not_advertised) {
    whole_service s;
    const auto call = [&](string_view method, string_view key) {
        return s.ask(method, good_call_of(s, method).payload, string{key});
    };
    EXPECT_THAT(call("create_session", "k1"), HasSubstr("session-1"));
    EXPECT_THAT(call("create_path_exposure", "e1"), HasSubstr("proj"));
    s.break_session_disk();
    EXPECT_EQ(s.ask("create_session", s.creation("session-2"), "k2"), "session_storage_failed");
    auto said = s.ask("capabilities");
    EXPECT_THAT(said, HasSubstr(R"("validate_plan":true,"create_session":false,)"
                                R"("start_session":false,"session_status":true,)"));
    EXPECT_THAT(said, HasSubstr(R"("agent_runtime_adapter_schema_version":0,)"
                                R"("managed_runtime_ids":[],)"
                                R"("path_exposure_admin_schema_version":1)"));
    EXPECT_THAT(s.ask("list_sessions", R"({"limit":9})"), HasSubstr("session-1"));
    EXPECT_THAT(s.ask("session_status", R"({"session_id":"session-1"})"), HasSubstr("created"));

    s.break_exposure_disk();
    EXPECT_EQ(s.ask("revoke_path_exposure", R"({"exposure_id":"proj","generation":1})", "r1"),
              "path_exposure_unavailable");
    EXPECT_THAT(s.ask("capabilities"), HasSubstr(R"("path_exposure_admin_schema_version":0,)"
                                                 R"("path_exposure_catalog_schema_version":0)"));
    EXPECT_THAT(s.ask("list_path_exposures"), HasSubstr("proj"));
}

// What is on record stays a fact when nothing more can be written: a request that is repeated is
// answered as it was, a new one is told that the disk failed, and what writes nothing goes on.
TEST(Service, after_a_journal_has_failed_what_is_on_record_is_still_answered) {
    whole_service s;
    const auto create = [&](string_view id, string_view key) {
        return s.ask("create_session", s.creation(id), string{key});
    };
    const auto expose = [&](string_view key) {
        return s.ask("create_path_exposure", good_call_of(s, "create_path_exposure").payload,
                     string{key});
    };
    const auto revoke = [&](string_view key) {
        return s.ask("revoke_path_exposure", R"({"exposure_id":"proj","generation":1})",
                     string{key});
    };
    const auto made = create("session-1", "k1");
    ASSERT_THAT(made, HasSubstr("created"));
    ASSERT_THAT(expose("e1"), HasSubstr("proj"));
    const auto revoked = revoke("r1");
    ASSERT_THAT(revoked, HasSubstr("revoked"));
    s.break_session_disk();
    s.break_exposure_disk();
    EXPECT_EQ(create("session-2", "k2"), "session_storage_failed"); // this one finds out
    EXPECT_EQ(expose("e2"), "path_exposure_unavailable");

    EXPECT_EQ(create("session-1", "k1"), made);
    EXPECT_EQ(create("session-2", "k1"), "idempotency_conflict");
    EXPECT_EQ(create("session-1", "k3"), "session_conflict");
    EXPECT_EQ(create("session-2", "k2"), "session_storage_failed");
    EXPECT_EQ(revoke("r1"), revoked);
    EXPECT_THAT(expose("e1"), HasSubstr(R"("generation":1)"));
    EXPECT_EQ(expose("e2"), "path_exposure_unavailable");
    for (const string_view method : {"write_stdin", "signal", "stop_session", "attach"}) {
        const auto call = good_call_of(s, method);
        EXPECT_THAT(s.ask(method, call.payload, call.key), HasSubstr("session")) << method;
    }
}

TEST(Capabilities, nothing_is_advertised_that_is_not_there) {
    whole_service s;
    s.runtime.operational = false;
    const auto idle = capability_document(s.has);
    EXPECT_THAT(idle, HasSubstr(R"("create_session":true,"start_session":false)"));
    for (const string_view none :
         {R"("agent_runtime_adapter_schema_version":0)", R"("managed_runtime_ids":[])",
          R"("retained_write_schema_version":0)", R"("change_manifest_schema_version":0)",
          R"("refinement_evaluation_protocol_schema_version":0)",
          R"("observation_intent_channel_schema_version":0)",
          R"("backend":"linux_production","resource_enforcement":{"cpu_time":"unavailable")"})
        EXPECT_THAT(idle, HasSubstr(none));
    s.runtime.operational = true;
    auto has = s.has;
    has.exposures = nullptr;
    EXPECT_THAT(capability_document(has), HasSubstr(R"("path_exposure_admin_schema_version":0)"));
    EXPECT_THAT(capability_document(has), HasSubstr(R"("retained_write_schema_version":0)"));
    has = s.has;
    has.channels = nullptr;
    EXPECT_THAT(capability_document(has),
                HasSubstr(R"("observation_intent_channel_schema_version":0)"));
    has = s.has;
    has.policy = nullptr;
    EXPECT_THAT(capability_document(has), Not(HasSubstr("_session\":true")));
    EXPECT_THAT(capability_document(has), HasSubstr(R"("validate_plan":false)"));
}

} // namespace
} // namespace glove::control
