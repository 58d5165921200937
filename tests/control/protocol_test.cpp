#include "control/literal_members.hpp"
#include "control/protocol_fields.hpp"
#include "support/malformed.hpp"
#include <glove/base/wipe.hpp>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

namespace glove::control {
namespace {

using std::string;
using std::string_view;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const string secret(64, 'a');

auto text_of(string_view params, string_view head = R"("jsonrpc":"2.0","id":"sage-1",)"
                                                    R"("method":"health")") -> string {
    return "{" + string{head} + ",\"params\":" + string{params} + "}";
}
auto good_params(string_view payload = "null") -> string {
    return R"({"schema_version":1,"bootstrap_secret":")" + secret +
           R"(","deadline_ms":1893456000000,"payload":)" + string{payload} + "}";
}
auto good_text(string_view payload = "null") -> string { return text_of(good_params(payload)); }

auto refused(string_view text) -> rejected_request {
    const auto out = decode_request(text);
    EXPECT_FALSE(out) << text;
    if (out) return {};
    EXPECT_EQ(out.error().why.code, error_code::invalid_request) << text;
    EXPECT_THAT(out.error().why.why.detail, Not(HasSubstr(secret)));
    return out.error();
}

TEST(Frame, a_length_is_four_bytes_big_endian) {
    EXPECT_EQ(frame_header(1), (std::array<char, 4>{0, 0, 0, 1}));
    EXPECT_EQ(frame_header(0x000a0b0c), (std::array<char, 4>{0, 0x0a, 0x0b, 0x0c}));
    EXPECT_EQ(frame_body_bytes(string{"\x00\x0a\x0b\x0c", 4}), 0x000a0b0cU);
    EXPECT_EQ(frame_body_bytes(string{"\x00\x00\x00\xff", 4}), 0xffU);
}

TEST(Frame, its_body_has_one_byte_to_one_mebibyte) {
    EXPECT_TRUE(frame_header(1048576));
    EXPECT_EQ(frame_header(1048577).error().step, "frame.size");
    EXPECT_EQ(frame_header(0).error().step, "frame.size");
    EXPECT_EQ(frame_body_bytes(string{"\x00\x10\x00\x00", 4}), 1048576U);
    EXPECT_EQ(frame_body_bytes(string{"\x00\x10\x00\x01", 4}).error().step, "frame.size");
    EXPECT_EQ(frame_body_bytes(string(4, '\0')).error().step, "frame.size");
    EXPECT_EQ(frame_body_bytes("\xff\xff\xff\xff").error().step, "frame.size");
    EXPECT_EQ(frame_body_bytes("abc").error().step, "frame.header");
    EXPECT_EQ(frame_body_bytes("").error().step, "frame.header");
    EXPECT_EQ(frame_body_bytes("abcde").error().step, "frame.header");
}

TEST(Request, the_example_of_the_wire_is_read) {
    const auto out = decode_request(good_text(R"({"session_id":"session-1"})"));
    ASSERT_TRUE(out) << out.error().why.why.detail;
    EXPECT_EQ(out->id, "sage-1");
    EXPECT_EQ(out->method, "health");
    EXPECT_EQ(out->schema_version, 1);
    EXPECT_EQ(out->bootstrap_secret, secret);
    EXPECT_EQ(out->deadline_ms, 1893456000000U);
    EXPECT_EQ(out->idempotency_key, std::nullopt);
    EXPECT_EQ(out->payload, R"({"session_id":"session-1"})");
}

TEST(Request, its_text_is_the_one_of_the_wire) {
    request what{.id = "sage-1",
                 .method = "session_status",
                 .bootstrap_secret = secret,
                 .deadline_ms = 7,
                 .payload = R"({"session_id":"s"})"};
    EXPECT_EQ(encode(what), R"({"jsonrpc":"2.0","id":"sage-1","method":"session_status",)"
                            R"("params":{"schema_version":1,"bootstrap_secret":")" +
                                secret + R"(","deadline_ms":7,"payload":{"session_id":"s"}}})");
    what.idempotency_key = "key";
    EXPECT_THAT(*encode(what), HasSubstr(R"("deadline_ms":7,"idempotency_key":"key","payload":)"));
}

TEST(Request, what_a_method_takes_is_kept_as_it_came) {
    for (const string_view payload :
         {"null", "true", "12", R"("text")", "[1, 2]", R"({ "b" : 1,"a":"é" })", "{\n}"})
        EXPECT_EQ(decode_request(good_text(payload))->payload, payload);
    // White space around it is not part of it.
    EXPECT_EQ(decode_request(good_text(" \n{} "))->payload, "{}");
}

TEST(Request, members_may_stand_in_any_order_and_be_spelled_with_escapes) {
    const auto out = decode_request(
        R"({"params":{"payload":{"x":1},"idempotency_key":null,"deadline_ms":9,)"
        R"("bootstrap_secret":"a\u0062c","schema_version":2},"m\u0065thod":"m","id":"i",)"
        R"("jsonrpc":"2.0"})");
    ASSERT_TRUE(out);
    EXPECT_EQ(out->bootstrap_secret, "abc");
    EXPECT_EQ(out->method, "m");
    EXPECT_EQ(out->schema_version, 2);
    EXPECT_EQ(out->idempotency_key, std::nullopt);
}

TEST(Request, every_way_of_breaking_the_envelope_is_refused_without_an_id) {
    const auto whole = *wire::json::read(good_text());
    const auto judge = [](string_view text) -> std::optional<error> {
        const auto out = decode_request(text);
        if (out) return std::nullopt;
        // The words themselves are looked at later, when the id is known.
        const auto step = out.error().why.why.step;
        if (step != "wire.grammar" && step != "wire.length" && step != "wire.choice") {
            EXPECT_EQ(out.error().id, "") << text;
        }
        return out.error().why.why;
    };
    for (const auto& way : test::ways_of_breaking(envelope_fields, whole, "")) {
        if (way.step.empty() || way.step == "wire.length" || way.what.starts_with("$.params"))
            continue;
        const auto problem = judge(way.text);
        // A NUL conforms to "any text", but not to the grammar of the three words.
        if (way.step == "wire.grammar") {
            EXPECT_TRUE(problem) << way.what;
        } else {
            EXPECT_EQ(problem ? problem->step : "", way.step) << way.what;
        }
    }
}

TEST(Request, every_way_of_breaking_the_parameters_is_refused_with_the_id) {
    auto whole = *wire::json::read(good_text("{}"));
    whole = test::with_member(whole, "params", "idempotency_key", "key");
    std::size_t tried = 0;
    for (const auto& way : test::ways_of_breaking(parameter_fields, whole, "params")) {
        if (way.step == "wire.grammar" || way.text.size() > most_frame_bytes) continue;
        if (way.what.starts_with("$.params.payload: ") && !way.what.ends_with("missing") &&
            !way.what.ends_with("twice"))
            continue;
        const auto out = decode_request(way.text);
        EXPECT_EQ(out ? "" : out.error().why.why.step, way.step) << way.what;
        if (!out && !way.step.starts_with("json.")) {
            EXPECT_EQ(out.error().id, "sage-1") << way.what;
        }
        ++tried;
    }
    EXPECT_GT(tried, 25U);
}

TEST(Request, the_first_failure_in_the_order_of_the_wire_is_told) {
    // A text that is none, before all.
    EXPECT_EQ(refused("{").why.why.step, "json.syntax");
    EXPECT_EQ(refused("[]").why.why.step, "json.syntax");
    EXPECT_EQ(refused("\xff").why.why.step, "json.syntax");
    // The envelope before its words.
    const auto unknown =
        refused(text_of("{}", R"("jsonrpc":"1.0","id":"i d","method":"","extra":1)"));
    EXPECT_EQ(unknown.why.why.step, "wire.unknown");
    EXPECT_EQ(unknown.id, "");
    // Its words before the parameters, in their order.
    const auto version = refused(text_of("{}", R"("jsonrpc":"1.0","id":"i d","method":"")"));
    EXPECT_THAT(version.why.why.detail, HasSubstr("$.jsonrpc"));
    EXPECT_EQ(version.id, "");
    const auto id = refused(text_of("{}", R"("jsonrpc":"2.0","id":"i d","method":"")"));
    EXPECT_THAT(id.why.why.detail, HasSubstr("$.id"));
    EXPECT_EQ(id.id, "");
    const auto method = refused(text_of("{}", R"("jsonrpc":"2.0","id":"i","method":"")"));
    EXPECT_THAT(method.why.why.detail, HasSubstr("$.method"));
    EXPECT_EQ(method.id, "i");
    const auto params = refused(text_of("{}"));
    EXPECT_THAT(params.why.why.detail, HasSubstr("$.params.schema_version"));
    EXPECT_EQ(params.id, "sage-1");
    EXPECT_THAT(refused(text_of("[]")).why.why.detail, HasSubstr("$.params"));
    EXPECT_EQ(refused(text_of("null")).why.why.step, "wire.type");
}

TEST(Request, words_of_the_envelope_are_bounded) {
    const auto with = [](string_view name, const wire::json::value& data) {
        return wire::json::to_text(
            test::with_member(*wire::json::read(good_text()), "", name, data));
    };
    for (const string_view name : {"id", "method"}) {
        EXPECT_TRUE(decode_request(with(name, string(128, 'x'))));
        EXPECT_EQ(refused(with(name, string(129, 'x'))).why.why.step, "wire.length");
        EXPECT_EQ(refused(with(name, "")).why.why.step, "wire.length");
        EXPECT_EQ(refused(with(name, "a b")).why.why.step, "wire.grammar");
        EXPECT_EQ(refused(with(name, 7)).why.why.step, "wire.type");
    }
}

TEST(Request, names_that_come_twice_are_refused_at_any_depth) {
    EXPECT_EQ(refused(good_text(R"({"a":{"b":1,"b":2}})")).why.why.step, "json.repeated");
    EXPECT_EQ(refused(good_text(R"({"a":1,"\u0061":2})")).why.why.step, "json.repeated");
    EXPECT_EQ(refused(text_of(good_params(), R"("jsonrpc":"2.0","id":"i","method":"m","id":"j")"))
                  .why.why.step,
              "json.repeated");
}

TEST(Request, a_payload_cannot_reach_out_of_its_place) {
    request what{.id = "i", .method = "m", .bootstrap_secret = secret};
    for (const string_view payload :
         {"", "null,\"idempotency_key\":\"k\"", "1}", "null} ,\"x\":{", "{", "1 2", "nul"}) {
        what.payload = payload;
        EXPECT_FALSE(encode(what)) << payload;
    }
    what.payload = R"({"a":[1,2,{"b":null}]})";
    EXPECT_TRUE(encode(what));
}

TEST(Request, one_that_fills_the_frame_is_written_and_read_and_one_byte_more_is_not) {
    request what{.id = "i", .method = "m", .bootstrap_secret = secret, .payload = "\"\""};
    const auto frame = encode(what)->size();
    what.payload = "\"" + string(most_frame_bytes - frame, 'x') + "\"";
    const auto full = encode(what);
    ASSERT_TRUE(full);
    EXPECT_EQ(full->size(), most_frame_bytes);
    EXPECT_EQ(decode_request(*full)->payload, what.payload);
    what.payload.insert(1, 1, 'x');
    EXPECT_EQ(encode(what).error().step, "frame.size");
    EXPECT_EQ(refused(*full + " ").why.why.step, "json.size");
}

RC_GTEST_PROP(Request, what_was_written_is_read_again, ()) {
    const auto word = [](std::size_t least, std::size_t most) {
        return rc::gen::mapcat(rc::gen::inRange(least, most + 1), [](std::size_t size) {
            return rc::gen::container<string>(size, rc::gen::elementOf(string{"aZ09-_.:"}));
        });
    };
    request what{.id = *word(1, 128),
                 .method = *word(1, 128),
                 .schema_version = *rc::gen::arbitrary<std::uint8_t>(),
                 .bootstrap_secret = *word(0, 80),
                 .deadline_ms = *rc::gen::arbitrary<std::uint64_t>()};
    if (*rc::gen::arbitrary<bool>()) what.idempotency_key = *word(0, 128);
    what.payload = *rc::gen::element<string>("null", "{}", R"({"a": [1,2]})", "-3", "\"\\u0041\"");
    const auto read = decode_request(*encode(what));
    RC_ASSERT(read.has_value());
    RC_ASSERT(read->id == what.id && read->method == what.method);
    RC_ASSERT(read->schema_version == what.schema_version);
    RC_ASSERT(read->bootstrap_secret == what.bootstrap_secret);
    RC_ASSERT(read->deadline_ms == what.deadline_ms && read->payload == what.payload);
    RC_ASSERT(read->idempotency_key == what.idempotency_key);
}

TEST(Response, its_text_is_the_one_of_the_wire) {
    EXPECT_EQ(encode(response{"sage-1", error_code::session_not_found}),
              R"({"jsonrpc":"2.0","id":"sage-1","error":{"code":"session_not_found",)"
              R"("message":"session was not found"}})");
    EXPECT_EQ(encode(response{"i", string{R"({"schema_version":1,"status":"ready"})"}}),
              R"({"jsonrpc":"2.0","id":"i","result":{"schema_version":1,"status":"ready"}})");
    EXPECT_EQ(encode(response{"", error_code::invalid_request}),
              R"({"jsonrpc":"2.0","id":"","error":{"code":"invalid_request",)"
              R"("message":"request is not valid"}})");
    EXPECT_FALSE(encode(response{"a b", string{"null"}}));
}

TEST(Response, a_result_fills_the_frame_and_not_more) {
    const auto around = encode(response{"i", string{"\"\""}})->size();
    string result = "\"" + string(most_frame_bytes - around, 'x') + "\"";
    EXPECT_EQ(encode(response{"i", result})->size(), most_frame_bytes);
    result.insert(1, 1, 'x');
    EXPECT_EQ(encode(response{"i", result}).error().step, "frame.size");
}

TEST(Reply, a_result_is_kept_as_it_came) {
    const auto out = decode_reply(R"({"jsonrpc":"2.0","id":"i","result":{ "b":1, "a" :[] }})");
    ASSERT_TRUE(out);
    EXPECT_EQ(out->id, "i");
    EXPECT_EQ(out->outcome, R"({ "b":1, "a" :[] })");
    EXPECT_EQ(decode_reply(R"({"jsonrpc":"2.0","id":"i","result":null})")->outcome, "null");
}

TEST(Reply, every_code_comes_back) {
    for (auto i = 0; i <= static_cast<int>(error_code::observation_intent_control_failed); ++i) {
        const auto code = static_cast<error_code>(i);
        const auto out = decode_reply(*encode(response{"i", code}));
        ASSERT_TRUE(out && !out->outcome) << to_string(code);
        EXPECT_EQ(out->outcome.error().code, to_string(code));
        EXPECT_EQ(out->outcome.error().message, message_of(code));
    }
}

TEST(Reply, it_holds_a_result_or_an_error_and_not_both) {
    const auto step = [](string_view text) -> string {
        const auto out = decode_reply(text);
        return out ? "" : string{out.error().step};
    };
    EXPECT_EQ(step(R"({"jsonrpc":"2.0","id":"i"})"), "reply.outcome");
    EXPECT_EQ(step(R"({"jsonrpc":"2.0","id":"i","error":null})"), "reply.outcome");
    EXPECT_EQ(step(R"({"jsonrpc":"2.0","id":"i","result":1,"error":{"code":"c","message":"m"}})"),
              "reply.outcome");
    EXPECT_EQ(step(R"({"jsonrpc":"2.0","id":"i","result":null,)"
                   R"("error":{"code":"c","message":"m"}})"),
              "reply.outcome");
    EXPECT_EQ(step(R"({"jsonrpc":"2.0","id":"i","result":1,"error":null})"), "");
    EXPECT_EQ(step(R"({"jsonrpc":"2.1","id":"i","result":1})"), "wire.choice");
    EXPECT_EQ(step(R"({"jsonrpc":"2.0","id":1,"result":1})"), "wire.type");
    EXPECT_EQ(step(R"({"jsonrpc":"2.0","id":"a b","result":1})"), "wire.grammar");
    EXPECT_EQ(step(R"({"jsonrpc":"2.0","id":"i","result":1,"more":1})"), "wire.unknown");
    EXPECT_EQ(step("null"), "json.syntax");
}

TEST(Reply, its_words_cannot_draw_on_a_screen) {
    const auto with = [](string_view message) {
        string text = R"({"jsonrpc":"2.0","id":"i","error":{"code":"c","message":)";
        wire::json::append_quoted(text, message);
        return text + "}}";
    };
    EXPECT_TRUE(decode_reply(with("a message")));
    EXPECT_FALSE(decode_reply(with("a\x1b[2Jmessage")));
    EXPECT_TRUE(decode_reply(with(string(512, 'x'))));
    EXPECT_FALSE(decode_reply(with(string(513, 'x'))));
    EXPECT_FALSE(decode_reply(with("")));
}

// Of a text that an outline accepted, each member is what the reader makes of it.
TEST(LiteralMembers, the_small_ones_are_those_of_a_tree) {
    const string text =
        R"({"a":null,"b":true,"c":false,"d":"caf\u00e9 \"\\\/\u0000","e":18446744073709551615,)"
        R"("f":-9223372036854775808,"g":[1,{"x":2}],"h":{"y":"z"},"i":0,"":"","k":[ ], "l" : -1 })";
    wire::json::outline outline;
    ASSERT_TRUE(outline.read(text, {}));
    EXPECT_EQ(small_members(outline.members(), {}).value(), wire::json::read(text).value());
    constexpr std::array literal{string_view{"d"}, string_view{"e"}, string_view{"h"}};
    const auto with_stand_ins = small_members(outline.members(), literal).value();
    EXPECT_EQ(*with_stand_ins.find("d"), wire::json::value{""});
    EXPECT_EQ(*with_stand_ins.find("e"), wire::json::value{0});
    EXPECT_EQ(*with_stand_ins.find("h"), wire::json::value{wire::json::object{}});
    EXPECT_EQ(with_stand_ins.find("k")->as_array()->size(), 0U);
}

TEST(Wipe, nothing_of_the_secret_stays_in_its_place) {
    string text = secret;
    const auto* at = text.data();
    const auto size = text.size();
    {
        const wiped_at_end wiped{text};
    }
    EXPECT_TRUE(text.empty());
    EXPECT_GE(text.capacity(), size);
    EXPECT_EQ(string_view(at, size).find('a'), string_view::npos);
}

} // namespace
} // namespace glove::control
