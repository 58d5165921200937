// Hashes against published values, and the exact bytes of the digest encoder.
#include <glove/wire/crypto.hpp>
#include <glove/wire/digest.hpp>
#include <gtest/gtest.h>

namespace {

using namespace glove;
using namespace std::string_view_literals;
using wire::digest_encoder;

auto hex_of(result<wire::digest256> digest) -> std::string {
    return digest ? wire::to_hex(*digest) : std::string{digest.error().step};
}

TEST(Crypto, Sha256GivesThePublishedValues) {
    EXPECT_EQ(hex_of(wire::sha256("")),
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(hex_of(wire::sha256("abc")),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(hex_of(wire::sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Crypto, HmacGivesThePublishedValues) {
    EXPECT_EQ(hex_of(wire::hmac_sha256(std::string(20, '\x0b'), "Hi There")),
              "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    EXPECT_EQ(hex_of(wire::hmac_sha256("Jefe", "what do ya want for nothing?")),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    EXPECT_EQ(hex_of(wire::hmac_sha256("", "")),
              "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
    // A key longer than a block is hashed first.
    EXPECT_EQ(hex_of(wire::hmac_sha256(std::string(131, '\xaa'),
                                       "Test Using Larger Than Block-Size Key - Hash Key First")),
              "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Crypto, BytesInPiecesGiveTheSameDigest) {
    const std::string text(1000, 'x');
    for (const std::size_t cut : {0UL, 1UL, 63UL, 64UL, 65UL, 1000UL}) {
        auto stream = wire::sha256_stream::start();
        ASSERT_TRUE(stream);
        ASSERT_TRUE(stream->update(std::string_view{text}.substr(0, cut)));
        ASSERT_TRUE(stream->update(std::string_view{text}.substr(cut)));
        EXPECT_EQ(hex_of(std::move(*stream).finish()), hex_of(wire::sha256(text)));
    }
}

TEST(Crypto, ComparisonSeesEveryByteAndTheLength) {
    const std::string a(64, 'a');
    EXPECT_TRUE(wire::equal_in_constant_time(a, std::string(64, 'a')));
    for (std::size_t i = 0; i < a.size(); ++i) {
        auto b = a;
        b[i] = 'b';
        EXPECT_FALSE(wire::equal_in_constant_time(a, b)) << i;
    }
    EXPECT_FALSE(wire::equal_in_constant_time(a, a.substr(1)));
    EXPECT_FALSE(wire::equal_in_constant_time(a, a + "a"));
    EXPECT_TRUE(wire::equal_in_constant_time("", ""));
}

TEST(DigestEncoder, AtomsHaveTheirBytes) {
    const auto bytes = [](digest_encoder& e) { return std::string{e.bytes().value()}; };
    digest_encoder integers;
    integers.u8(0xff).u32(0x01020304).u64(0x0102030405060708);
    EXPECT_EQ(bytes(integers), "\xff\x01\x02\x03\x04\x01\x02\x03\x04\x05\x06\x07\x08"sv);
    digest_encoder strings;
    strings.str("").str("a\0b"sv).boolean(true).boolean(false);
    EXPECT_EQ(bytes(strings), "\0\0\0\0\0\0\0\3a\0b\1\0"sv);
    digest_encoder optionals;
    optionals.opt_str(std::nullopt).opt_str("").opt_str("x");
    EXPECT_EQ(bytes(optionals), "\0\1\0\0\0\0\1\0\0\0\1x"sv);
    digest_encoder lists;
    lists.list({}).list({"a", "bc"}).list(std::vector<std::string>{"d"});
    EXPECT_EQ(bytes(lists), "\0\0\0\0\0\0\0\2\0\0\0\1a\0\0\0\2bc\0\0\0\1\0\0\0\1d"sv);
}

TEST(DigestEncoder, SplitStringsDoNotCollide) {
    digest_encoder a;
    digest_encoder b;
    EXPECT_NE(a.str("ab").str("c").sha256_hex().value(), b.str("a").str("bc").sha256_hex().value());
}

TEST(DigestEncoder, WhatDoesNotFitMakesEveryResultAnError) {
    const auto step = [](const digest_encoder& e) {
        const auto bytes = e.bytes();
        EXPECT_EQ(e.sha256_hex().has_value(), bytes.has_value());
        EXPECT_EQ(e.hmac_hex("k").has_value(), bytes.has_value());
        return bytes ? "accepted" : std::string{bytes.error().step};
    };
    EXPECT_EQ(step(digest_encoder{}.u8(255)), "accepted");
    EXPECT_EQ(step(digest_encoder{}.u8(256)), "digest.length");
    EXPECT_EQ(step(digest_encoder{}.u32(0xffff'ffff)), "accepted");
    EXPECT_EQ(step(digest_encoder{}.u32(0x1'0000'0000)), "digest.length");
    EXPECT_EQ(step(digest_encoder{}.count(0x1'0000'0000)), "digest.length");
    EXPECT_EQ(step(digest_encoder{}.u64(UINT64_MAX)), "accepted");
    // The size is judged before a byte is read, so the view need not be backed by memory.
    EXPECT_EQ(step(digest_encoder{}.str({"x", 0x1'0000'0000}).str("later")), "digest.length");
}

} // namespace
