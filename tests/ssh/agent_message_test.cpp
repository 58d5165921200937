// The codec alone: what is understood, and every way in which it can be wrong.
#include "ssh/agent_message.hpp"
#include <gtest/gtest.h>

namespace glove::ssh {
namespace {

using namespace std::string_literals;

auto number(std::uint32_t value) -> std::string {
    std::string out;
    for (const auto shift : {24U, 16U, 8U, 0U}) out += static_cast<char>(value >> shift);
    return out;
}
auto text(const std::string& bytes) -> std::string {
    return number(static_cast<std::uint32_t>(bytes.size())) + bytes;
}
// Without its length.
auto message_of(const std::string& frame) -> std::string { return frame.substr(frame_head); }

TEST(Request, AListHasATypeAndNothingElse) {
    EXPECT_EQ(read_request("\x0b"s).kind, request_kind::list);
    EXPECT_EQ(read_request("\x0b\0"s).kind, request_kind::other);
}

TEST(Request, ASignRequestIsTakenApart) {
    const auto bytes = "\x0d" + text("key") + text("data") + number(4);
    const auto out = read_request(bytes);
    EXPECT_EQ(out.kind, request_kind::sign);
    EXPECT_EQ(out.key, "key");
    EXPECT_EQ(out.data, "data");
    EXPECT_EQ(out.flags, 4U);
}

TEST(Request, NoPartOfASignRequestIsOne) {
    const auto whole = "\x0d" + text("key") + text("data") + number(0);
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_EQ(read_request(std::string_view{whole}.substr(0, size)).kind, request_kind::other)
            << size;
    EXPECT_EQ(read_request(whole + '\0').kind, request_kind::other);
}

TEST(Request, ALengthThatDoesNotHoldIsNone) {
    for (const auto wrong : {0U, 2U, 4U, 100U, 0x7fff'ffffU, 0x8000'0000U, 0xffff'fffcU, ~0U}) {
        EXPECT_EQ(read_request("\x0d" + number(wrong) + "key" + text("d") + number(0)).kind,
                  request_kind::other)
            << wrong;
        EXPECT_EQ(read_request("\x0d" + text("key") + number(wrong) + "ddd" + number(0)).kind,
                  request_kind::other)
            << wrong;
    }
}

TEST(Request, EveryOtherTypeIsOther) {
    for (int type = 0; type < 256; ++type) {
        const std::string rest = text("key") + text("data") + number(0);
        const auto kind = read_request(static_cast<char>(type) + rest).kind;
        EXPECT_EQ(kind, type == 13 ? request_kind::sign : request_kind::other) << type;
        EXPECT_EQ(read_request(std::string(1, static_cast<char>(type))).kind,
                  type == 11 ? request_kind::list : request_kind::other)
            << type;
    }
    EXPECT_EQ(read_request("").kind, request_kind::other);
}

TEST(Frames, WhatIsMadeIsUnderstood) {
    EXPECT_EQ(list_frame(), "\0\0\0\x01\x0b"s);
    EXPECT_EQ(failure_frame(), "\0\0\0\x01\x05"s);
    const auto asked = message_of(sign_frame("k", "data", 2));
    EXPECT_EQ(asked, "\x0d" + text("k") + text("data") + number(2));
    const auto listed = read_identities(message_of(identities_frame({"k", "comment"})));
    ASSERT_TRUE(listed.has_value());
    ASSERT_EQ(listed->size(), 1U);
    EXPECT_EQ(listed->front().key, "k");
    EXPECT_EQ(listed->front().comment, "comment");
    EXPECT_EQ(read_signature(message_of(signature_frame("sig"))), "sig");
    EXPECT_TRUE(is_failure(message_of(failure_frame())));
}

TEST(Answers, NoPartOfAListIsOne) {
    const auto whole = "\x0c" + number(2) + text("a") + text("b") + text("c") + text("d");
    ASSERT_TRUE(read_identities(whole).has_value());
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_FALSE(read_identities(std::string_view{whole}.substr(0, size))) << size;
    EXPECT_FALSE(read_identities(whole + "x"));
    EXPECT_FALSE(read_identities("\x0c" + number(~0U)));
    EXPECT_TRUE(read_identities("\x0c" + number(0))->empty());
}

TEST(Answers, NoPartOfASignatureIsOne) {
    const auto whole = "\x0e" + text("signature");
    ASSERT_EQ(read_signature(whole), "signature");
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_FALSE(read_signature(std::string_view{whole}.substr(0, size))) << size;
    EXPECT_FALSE(read_signature(whole + "x"));
    EXPECT_FALSE(read_signature("\x0e" + text("")));
    EXPECT_FALSE(read_signature("\x0e" + text(std::string(longest_signature + 1, 's'))));
    EXPECT_FALSE(is_failure("\x05x"));
    EXPECT_FALSE(is_failure(""));
}

TEST(FrameReader, TakesWholeMessagesHoweverTheyCome) {
    frame_reader from;
    const auto bytes = text("one") + text("two");
    std::vector<std::string> got;
    for (const char c : bytes) {
        EXPECT_TRUE(from.is_sound());
        EXPECT_GE(from.wanted(), 1U);
        from.add({&c, 1});
        if (auto message = from.take()) got.push_back(*message);
    }
    EXPECT_EQ(got, (std::vector<std::string>{"one", "two"}));
    EXPECT_FALSE(from.has_part());
}

TEST(FrameReader, WantsNoMoreThanTheFrameAtHand) {
    frame_reader from;
    EXPECT_EQ(from.wanted(), frame_head);
    from.add(number(10));
    EXPECT_EQ(from.wanted(), 10U);
    from.add("123");
    EXPECT_EQ(from.wanted(), 7U);
    EXPECT_TRUE(from.has_part());
}

TEST(FrameReader, AnEmptyOrTooLongFrameIsTheEnd) {
    for (const auto size : {0U, static_cast<unsigned>(longest_message) + 1, 0x8000'0000U, ~0U}) {
        frame_reader from;
        from.add(number(size) + "some bytes");
        EXPECT_FALSE(from.is_sound()) << size;
        EXPECT_FALSE(from.take()) << size;
    }
    frame_reader largest;
    largest.add(text(std::string(longest_message, 'x')));
    EXPECT_TRUE(largest.is_sound());
    EXPECT_EQ(largest.take()->size(), longest_message);
}

} // namespace
} // namespace glove::ssh
