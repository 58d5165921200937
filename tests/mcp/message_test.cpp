#include <glove/mcp/framing.hpp>
#include <glove/mcp/message.hpp>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

namespace {

using namespace glove;
using namespace glove::mcp;
using testing::HasSubstr;
using testing::Not;

// The kind with the id, or the code with the id: "request 1", "-32600 null".
auto outcome(std::string_view line) -> std::string {
    message_reader reader;
    const auto read = reader.read(line);
    if (!read) return std::to_string(static_cast<int>(read.error().number)) + " " + read.error().id;
    constexpr std::array kinds{"request ", "notification ", "answer ", "failure "};
    return kinds[static_cast<std::size_t>(read->kind)] + std::string{read->id};
}

auto with_id(std::string_view id) -> std::string {
    return R"({"jsonrpc":"2.0","id":)" + std::string{id} + R"(,"method":"ping"})";
}

TEST(Message, FourKinds) {
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","id":1,"method":"ping"})"), "request 1");
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","method":"ping"})"), "notification ");
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","id":1,"result":{}})"), "answer 1");
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}})"),
              "failure 1");
    EXPECT_EQ(outcome("  {\t\"result\" : { } , \"id\" : \"a\" , \"jsonrpc\" : \"2.0\" } "),
              "answer \"a\"");
}

TEST(Message, GivesItsParts) {
    message_reader reader;
    const std::string line =
        R"({"method":"tools\/call","params":{"name":"e\u0063ho","arguments": {"a":[1, 2]} },"jsonrpc":"2.0","id":7,"extra":{"name":1}})";
    const auto read = reader.read(line);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->method, "tools/call");
    EXPECT_EQ(read->id, "7");
    EXPECT_EQ(read->result, nullptr);
    EXPECT_EQ(read->error, nullptr);
    ASSERT_NE(read->params, nullptr);
    EXPECT_EQ(reader.member(read->params, "arguments")->text, R"({"a":[1, 2]})");
    EXPECT_EQ(wire::json::decoded_string(reader.member(read->params, "name")->text), "echo");
    EXPECT_EQ(reader.member(read->params, "Name"), nullptr);
    EXPECT_EQ(reader.member(read->params, "_meta"), nullptr);
    EXPECT_EQ(reader.member(nullptr, "name"), nullptr);
}

TEST(Message, MembersOfWhatIsNoObjectAreNone) {
    message_reader reader;
    const auto read = reader.read(R"({"jsonrpc":"2.0","id":1,"method":"m","params":["name"]})");
    ASSERT_TRUE(read);
    EXPECT_EQ(reader.member(read->params, "name"), nullptr);
}

TEST(Message, AnIdIsAStringOrAnIntegerAndKeepsItsToken) {
    for (const auto* id : {"0", "1", "-1", "\"1\"", "\"\"", "\"\\u0031\"", "9007199254740993",
                           "18446744073709551615", "184467440737095516150", "-9223372036854775809",
                           "\"\xe2\x80\xa8\""})
        EXPECT_EQ(outcome(with_id(id)), std::string{"request "} + id);
    for (const auto* id : {"null", "1.5", "1.0", "1e3", "1E2", "true", "[1]", "{}", "-1.0"})
        EXPECT_EQ(outcome(with_id(id)), "-32600 null") << id;
    for (const auto* id : {"01", "+1", ".5", "-", "nul", "'1'", "\"\\x\""})
        EXPECT_EQ(outcome(with_id(id)), "-32700 null") << id;
}

TEST(Message, AnIdIsBounded) {
    const std::string text(1022, 'i');
    EXPECT_EQ(outcome(with_id('"' + text + '"')), "request \"" + text + '"');
    EXPECT_EQ(outcome(with_id('"' + text + "i\"")), "-32600 null");
    const std::string digits(1024, '9');
    EXPECT_EQ(outcome(with_id(digits)), "request " + digits);
    EXPECT_EQ(outcome(with_id(digits + "9")), "-32600 null");
}

TEST(Message, ABatchIsRefusedByName) {
    message_reader reader;
    for (const auto* line : {"[]", R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])", " [1"}) {
        const auto read = reader.read(line);
        ASSERT_FALSE(read);
        EXPECT_EQ(read.error().number, code::invalid_request);
        EXPECT_EQ(read.error().id, "null");
        EXPECT_THAT(read.error().words, HasSubstr("batch"));
    }
}

TEST(Message, WhatIsNoObjectIsNoRequestAndWhatIsNoJsonDoesNotParse) {
    for (const auto* line : {"1", "\"x\"", "null", " true "})
        EXPECT_EQ(outcome(line), "-32600 null");
    for (const auto* line :
         {"", " ", "Server started on stdio", "{", "{]",
          R"({"jsonrpc":"2.0","id":1,"method":"ping"}x)",
          R"({"jsonrpc":"2.0","id":1,"method":"ping",})", R"({"id":1,"a":"\ud800"})",
          "\xef\xbb\xbf{}", "{\"id\":1,\"a\":\"\xff\"}", "{\"id\":1,\"a\":\"\x01\"}",
          R"({"a":NaN})", R"({'id':1})"})
        EXPECT_EQ(outcome(line), "-32700 null") << line;
}

TEST(Message, VersionIsExact) {
    EXPECT_EQ(outcome(R"({"id":1,"method":"ping"})"), "-32600 1");
    for (const auto* version : {"2.0", "2", "\"2\"", "\"1.0\"", "\"2.00\"", "null", "[\"2.0\"]"})
        EXPECT_EQ(outcome(R"({"jsonrpc":)" + std::string{version} + R"(,"id":1,"method":"ping"})"),
                  "-32600 1")
            << version;
    EXPECT_EQ(outcome(R"({"jsonrpc":"2\u002e0","id":1,"method":"ping"})"), "request 1");
    EXPECT_EQ(outcome(R"({"JSONRPC":"2.0","id":1,"method":"ping"})"), "-32600 1");
}

TEST(Message, ParamsAreAnObjectOrAnArray) {
    const auto with = [](std::string_view params) {
        return outcome(R"({"jsonrpc":"2.0","id":"x","method":"m","params":)" + std::string{params} +
                       "}");
    };
    for (const auto* params : {"{}", "[]", "{\"a\":null}"})
        EXPECT_EQ(with(params), "request \"x\"");
    for (const auto* params : {"null", "1", "\"{}\"", "true"})
        EXPECT_EQ(with(params), "-32600 \"x\"");
    // Of an answer they mean nothing.
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","id":1,"result":{},"params":null})"), "answer 1");
}

TEST(Message, MethodIsAStringAndStandsAlone) {
    for (const auto* method : {"1", "null", "{}", "[\"ping\"]"})
        EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","id":1,"method":)" + std::string{method} + "}"),
                  "-32600 1");
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","id":1,"method":"m","result":{}})"), "-32600 1");
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","method":"m","error":{}})"), "-32600 null");
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","id":1})"), "-32600 1");
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","id":1,"Method":"m"})"), "-32600 1");
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","id":1,"method ":"m"})"), "-32600 1");
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","id":1,"method":"m","METHOD":"n"})"), "request 1");
}

TEST(Message, AnAnswerIsOneOfTwo) {
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","id":3,"result":{},"error":{"code":1,"message":"m"}})"),
              "-32600 3");
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","result":{}})"), "-32600 null");
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}})"),
              "-32600 null");
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","id":3,"result":null})"), "answer 3");
}

TEST(Message, AnErrorHasACodeAndWords) {
    const auto with = [](std::string_view error) {
        return outcome(R"({"jsonrpc":"2.0","id":3,"error":)" + std::string{error} + "}");
    };
    EXPECT_EQ(with(R"({"code":-32000,"message":"","data":[1]})"), "failure 3");
    for (const auto* error : {"null", "\"bad\"", "[]", "{}", R"({"code":1})", R"({"message":"m"})",
                              R"({"code":1.5,"message":"m"})", R"({"code":"1","message":"m"})",
                              R"({"code":1,"message":1})"})
        EXPECT_EQ(with(error), "-32600 3") << error;
}

TEST(Message, AMemberThatAppearsTwiceIsRefusedAtAnyDepth) {
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","id":1,"method":"a","method":"b"})"), "-32600 1");
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","id":1,"method":"a","\u006dethod":"b"})"), "-32600 null");
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","id":1,"method":"a","id":2})"), "-32600 null");
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","id":1,"method":"a","params":{"n":1,"n":1}})"),
              "-32600 1");
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","id":1,"method":"a","params":{"n":[{"p":1,"p":2}]}})"),
              "-32600 1");
    EXPECT_EQ(outcome(R"({"jsonrpc":"2.0","id":1,"method":"a","params":{"n":[{"p":1,"P":2}]}})"),
              "request 1");
}

auto nested(std::size_t depth) -> std::string {
    return R"({"jsonrpc":"2.0","method":"m","params":)" + std::string(depth, '[') +
           std::string(depth, ']') + R"(,"id":5})";
}

TEST(Message, LimitsNameThemselvesAndKeepTheId) {
    EXPECT_EQ(outcome(nested(63)), "request 5");
    EXPECT_EQ(outcome(nested(64)), "-32600 5");
    EXPECT_EQ(outcome(nested(100'000)), "-32600 5");
    message_reader reader;
    EXPECT_THAT(reader.read(nested(64)).error().words, HasSubstr("64 levels"));
    const auto number = [](std::size_t digits) {
        return R"({"jsonrpc":"2.0","id":5,"method":"m","params":[)" + std::string(digits, '1') +
               "]}";
    };
    EXPECT_EQ(outcome(number(1024)), "request 5");
    EXPECT_EQ(outcome(number(1025)), "-32600 5");
}

TEST(Message, TheLongestIsTakenAndOneByteMoreIsNot) {
    const std::string head = R"({"jsonrpc":"2.0","id":5,"result":")";
    const auto text = head + std::string(longest_message - head.size() - 2, 'x') + "\"}";
    ASSERT_EQ(text.size(), longest_message);
    EXPECT_EQ(outcome(text), "answer 5");
    EXPECT_EQ(outcome(text + " "), "-31003 null");
}

TEST(Message, WordsHoldNothingOfTheMessage) {
    message_reader reader;
    for (const auto* line :
         {R"({"s3cret":1,"s3cret":2})", R"({"jsonrpc":"s3cret"})", R"({"jsonrpc":"2.0","s3cret":})",
          R"("s3cret")", R"({"jsonrpc":"2.0","method":["s3cret"]})", "s3cret"}) {
        const auto read = reader.read(line);
        ASSERT_FALSE(read);
        EXPECT_THAT(read.error().words, Not(HasSubstr("s3cret")));
        EXPECT_FALSE(read.error().words.empty());
    }
}

TEST(Message, AReaderForgetsTheMessageBefore) {
    message_reader reader;
    ASSERT_TRUE(reader.read(R"({"jsonrpc":"2.0","id":1,"method":"m","params":{}})"));
    EXPECT_FALSE(reader.read("nonsense"));
    const auto read = reader.read(R"({"jsonrpc":"2.0","method":"n"})");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->params, nullptr);
    EXPECT_EQ(read->id, "");
}

TEST(MadeOutId, OfWholeAndCutMessages) {
    EXPECT_EQ(made_out_id(R"({"id":5})"), "5");
    EXPECT_EQ(made_out_id(R"( { "a" : {"id":1,"b":["id",{"id":2}]} , "id" : "x" } )"), "\"x\"");
    EXPECT_EQ(made_out_id(R"({"jsonrpc":"2.0","id":12,"result":{"a":"cut)"), "12");
    EXPECT_EQ(made_out_id(R"({"a":"\"id\":1","id":-3,"b":1)"), "-3");
    EXPECT_EQ(made_out_id(R"({"a":"id","id":4})"), "4");
}

TEST(MadeOutId, IsNoneWhereItWouldBeAGuess) {
    for (const auto* line : {"",
                             "{",
                             "[1]",
                             "{\"id\"",
                             "{\"id\":",
                             "{\"id\":12",
                             "{\"id\":\"ab",
                             "{\"id\":1,\"id\":1}",
                             "{\"id\":1.5}",
                             "{\"id\":null}",
                             "{\"id\":-}",
                             "{\"id\":1-2}",
                             "{\"id\":01}",
                             "{\"id\":\"\xff\"}",
                             "{\"id\":\"\\q\"}",
                             "{\"i\\u0064\":1,\"id\":2}",
                             "{\"a\":{\"id\":1}}",
                             "{\"ID\":1}",
                             "{\"id\":{\"id\":1}}",
                             "{\"id\":[1]}",
                             "}{\"id\":1}",
                             "{\"a\":\"\\"})
        EXPECT_EQ(made_out_id(line), "null") << line;
}

TEST(MessageReader, ServersMayNestMoreDeeplyThanAgents) {
    const auto nested = [](std::size_t levels) {
        return R"({"jsonrpc":"2.0","id":1,"result":)" + std::string(levels - 1, '[') +
               std::string(levels - 1, ']') + "}";
    };
    message_reader agents;
    auto servers = message_reader::of_servers();
    EXPECT_TRUE(agents.read(nested(64)));
    EXPECT_TRUE(servers.read(nested(65)));
    EXPECT_TRUE(servers.read(nested(256)));
    const auto words = [](message_reader& of, const std::string& line) {
        const auto read = of.read(line);
        EXPECT_EQ(read.error().id, "1");
        return read.error().words;
    };
    EXPECT_EQ(words(agents, nested(65)), "nested more than 64 levels deep");
    EXPECT_EQ(words(servers, nested(257)), "nested more than 256 levels deep");
}

TEST(MadeOutId, OfTheEndOfAMessage) {
    const std::string head = R"({"result":{"content":[{"type":"text","text":"xxxx)";
    for (const auto& [tail, id] : {std::pair{R"(x"}]},"jsonrpc":"2.0","id":7})", "7"},
                                   {R"(x"}]},"id":-12,"jsonrpc":"2.0"})", "-12"},
                                   {R"(x"}]} , "id" : "a b" } )", "\"a b\""},
                                   {R"({"id":7})", "7"}})
        EXPECT_EQ(made_out_id(head, tail), id) << tail;
    // The beginning wins.
    EXPECT_EQ(made_out_id(R"({"id":3,"result":{"a":"x)", R"(","id":7})"), "3");
    for (const auto* tail : {"",
                             "}",
                             "7}",
                             ":7}",
                             "\"id\":7}",
                             "xid\":7}",
                             R"(x,"id":7)",
                             R"("x":{"id":7}})",
                             R"(,"id":7,"jsonrpc":"2.0","x":1})",
                             R"(,"id":7,"x":1})",
                             R"(,"id":1.5})",
                             R"(,"id":null})",
                             R"(,"id":[7]})",
                             R"(\"id":7})",
                             R"(,\"id\":7})",
                             R"(,"id":"\"7"})",
                             R"(,"id":"7\\"})",
                             R"(,"jsonrpc":"2.0","jsonrpc":"2.0","id":})",
                             R"(,"id":--7})",
                             R"(,"id":07})",
                             "\"}",
                             "\"\"}"})
        EXPECT_EQ(made_out_id(head, tail), "null") << tail;
    EXPECT_EQ(made_out_id(head, ",\"id\":\"" + std::string(1022, 'x') + "\"}"),
              "\"" + std::string(1022, 'x') + "\"");
    EXPECT_EQ(made_out_id(head, ",\"id\":\"" + std::string(1023, 'x') + "\"}"), "null");
}

TEST(MessageText, IsWhatAReaderReads) {
    EXPECT_EQ(request_text("1", "ping", ""), R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
    EXPECT_EQ(request_text("\"a\"", "m", "{\"b\":1}"),
              R"({"jsonrpc":"2.0","id":"a","method":"m","params":{"b":1}})");
    EXPECT_EQ(notification_text("notifications/initialized", ""),
              R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
    EXPECT_EQ(answer_text("1", "{}"), R"({"jsonrpc":"2.0","id":1,"result":{}})");
    EXPECT_EQ(failure_text("1", code::method_not_found, "no \"x\"\n"),
              R"({"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no \"x\"\n"}})");
    EXPECT_EQ(failure_text("1", R"({"code":5,"message":"m","data":{}})"),
              R"({"jsonrpc":"2.0","id":1,"error":{"code":5,"message":"m","data":{}}})");
    EXPECT_EQ(
        tool_error_text("1", "policy denied: \xff"),
        R"({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"policy denied: )"
        "\xef\xbf\xbd"
        R"("}],"isError":true}})");
    EXPECT_EQ(failure_text("null", code::parse_error, "w"),
              R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"w"}})");
}

RC_GTEST_PROP(MessageText, AnyWordsComeBack, (std::string words)) {
    message_reader reader;
    const auto text = failure_text("5", code::internal_error, words);
    const auto read = reader.read(text);
    RC_ASSERT(read.has_value());
    RC_ASSERT(read->kind == message_kind::failure);
    RC_ASSERT(text.find('\n') == std::string::npos);
    const auto said = wire::json::decoded_string(reader.member(read->error, "message")->text);
    const bool ascii = std::ranges::all_of(words, [](char c) { return c >= 0; });
    RC_ASSERT(!ascii || said == words);
}

TEST(OwnCodes, AreOutsideOfTheReservedRange) {
    for (const auto own : {code::upstream_gone, code::timed_out, code::too_large,
                           code::refused_answer, code::too_many_calls}) {
        const auto number = static_cast<int>(own);
        EXPECT_TRUE(number < -32768 || number > -32000) << number;
    }
}

} // namespace
