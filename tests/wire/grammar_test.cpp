// The grammars, byte by byte: for every one, which of the 256 bytes it accepts, and where.
#include <glove/wire/grammar.hpp>
#include <gtest/gtest.h>
#include <string>

namespace {

using namespace glove::wire;
using namespace std::string_view_literals;

// The bytes that `of` accepts after a plain letter.
auto accepted_inside(grammar of) -> std::string {
    std::string out;
    for (int c = 0; c < 256; ++c)
        if (conforms(of, std::string{"a"} + static_cast<char>(c))) out += static_cast<char>(c);
    return out;
}

auto accepted_first(grammar of) -> std::string {
    std::string out;
    for (int c = 0; c < 256; ++c)
        if (conforms(of, std::string{static_cast<char>(c)} + "a")) out += static_cast<char>(c);
    return out;
}

constexpr auto digits = "0123456789"sv;
constexpr auto upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"sv;
constexpr auto lower = "abcdefghijklmnopqrstuvwxyz"sv;

auto sorted(std::initializer_list<std::string_view> parts) -> std::string {
    std::string out;
    for (const auto part : parts) out += part;
    std::sort(out.begin(), out.end());
    return out;
}

TEST(Grammar, IdentifiersAcceptExactlyTheirBytes) {
    const auto word = sorted({digits, upper, lower, "-_"});
    EXPECT_EQ(accepted_inside(grammar::ident), sorted({digits, upper, lower, "-_:."}));
    EXPECT_EQ(accepted_first(grammar::ident), sorted({digits, upper, lower, "-_:."}));
    EXPECT_EQ(accepted_inside(grammar::alias), sorted({digits, upper, lower, "-_."}));
    EXPECT_EQ(accepted_first(grammar::alias), sorted({digits, upper, lower, "-_."}));
    EXPECT_EQ(accepted_inside(grammar::cli_ident), sorted({digits, upper, lower, "-_."}));
    EXPECT_EQ(accepted_first(grammar::cli_ident), sorted({digits, upper, lower, "_"}));
    EXPECT_EQ(accepted_inside(grammar::svc_alias), sorted({digits, upper, lower, "-_."}));
    EXPECT_EQ(accepted_inside(grammar::skill_key), word);
    EXPECT_EQ(accepted_first(grammar::skill_key), word);
    EXPECT_EQ(accepted_inside(grammar::svc_runtime), sorted({digits, lower, "-"}));
    EXPECT_EQ(accepted_first(grammar::svc_runtime), lower);
    EXPECT_EQ(accepted_inside(grammar::metric), sorted({digits, lower, "-_."}));
    EXPECT_EQ(accepted_first(grammar::metric), lower);
}

TEST(Grammar, TextsRefuseControlAndSeparatorBytes) {
    std::string printable;
    for (char c = ' '; c <= '~'; ++c) printable += c;
    EXPECT_EQ(accepted_inside(grammar::printable), printable);
    EXPECT_EQ(accepted_inside(grammar::token), printable);
    std::string label;
    for (const char c : printable)
        if (c != '/' && c != '\\') label += c;
    EXPECT_EQ(accepted_inside(grammar::label), label);
    EXPECT_EQ(accepted_inside(grammar::utf8).size(), 128U);
    EXPECT_EQ(accepted_inside(grammar::no_nul).size(), 127U);
    for (const auto of : {grammar::token, grammar::label, grammar::no_nul, grammar::utf8}) {
        EXPECT_TRUE(conforms(of, "caf\xc3\xa9"));
        EXPECT_FALSE(conforms(of, "caf\xc3"));
        EXPECT_FALSE(conforms(of, "\xed\xa0\x80"));
    }
    EXPECT_FALSE(conforms(grammar::printable, "caf\xc3\xa9"));
}

TEST(Grammar, Utf8EndsAtItsFirstAndLastCharacterOfEachLength) {
    for (const auto good : {"\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                            "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
        EXPECT_TRUE(is_utf8(good));
    for (const auto bad : {"\x80", "\xc1\xbf", "\xc2", "\xc2\xc0", "\xe0\x9f\xbf", "\xed\xa0\x80",
                           "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                           "\xf7\xbf\xbf\xbf", "\xff", "\xe2\x82", "\xe2\x82\x7f"})
        EXPECT_FALSE(is_utf8(bad));
}

TEST(Grammar, DotNamesAreNotServiceAliases) {
    EXPECT_FALSE(conforms(grammar::svc_alias, "."));
    EXPECT_FALSE(conforms(grammar::svc_alias, ".."));
    EXPECT_TRUE(conforms(grammar::svc_alias, "..."));
    EXPECT_TRUE(conforms(grammar::svc_alias, ".a"));
}

TEST(Grammar, DigestsAre64LowerHexDigits) {
    const std::string hex(64, 'f');
    EXPECT_TRUE(conforms(grammar::hex64, hex));
    EXPECT_TRUE(conforms(grammar::hex64, std::string(64, '0')));
    for (const char c : {'g', 'F', ' ', '/', ':', '`', '\0'}) {
        auto bad = hex;
        bad[63] = c;
        EXPECT_FALSE(conforms(grammar::hex64, bad)) << c;
    }
    EXPECT_FALSE(conforms(grammar::hex64, hex.substr(1)));
    EXPECT_FALSE(conforms(grammar::hex64, hex + "f"));
    EXPECT_FALSE(conforms(grammar::hex64, ""));
    EXPECT_TRUE(conforms(grammar::sha256_hex64, "sha256:" + hex));
    EXPECT_FALSE(conforms(grammar::sha256_hex64, hex));
    EXPECT_FALSE(conforms(grammar::sha256_hex64, "sha512:" + hex));
    EXPECT_FALSE(conforms(grammar::sha256_hex64, "SHA256:" + hex));
    EXPECT_FALSE(conforms(grammar::sha256_hex64, "sha256:" + hex + "0"));
}

TEST(Grammar, PathsAreAbsoluteAndNormal) {
    for (const auto good : {"/a"sv, "/a/b"sv, "/a.b/..c/.d"sv, "/a b/\xc3\xa9"sv, "/..."sv})
        EXPECT_TRUE(conforms(grammar::path, good)) << good;
    for (const auto bad :
         {""sv, "/"sv, "a"sv, "a/b"sv, "//"sv, "//a"sv, "/a/"sv, "/a//b"sv, "/."sv, "/a/."sv,
          "/./a"sv, "/.."sv, "/a/.."sv, "/a/../b"sv, "/a\0b"sv, "/a\xff"sv, "~/a"sv})
        EXPECT_FALSE(conforms(grammar::path, bad)) << bad;
}

TEST(Grammar, EveryGrammarHasItsOwnName) {
    for (int i = 0; i <= static_cast<int>(grammar::utf8); ++i)
        for (int j = 0; j < i; ++j)
            EXPECT_NE(to_string(static_cast<grammar>(i)), to_string(static_cast<grammar>(j)));
}

} // namespace
