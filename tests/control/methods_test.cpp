#include "control/method_fields.hpp"
#include "good_calls.hpp"
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
using test::good_call_of;
using test::good_calls;
using test::whole_service;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

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

} // namespace
} // namespace glove::control
