#include "cli/control_process/detach_key.hpp"
#include <gmock/gmock.h>

namespace glove::cli {
namespace {

using std::string;
using std::string_view;

auto key(string_view name) -> detach_key { return detach_key::named(name).value(); }

TEST(DetachKey, TakesNamesOfOneToEightKeys) {
    for (const auto* good : {"ctrl-]", "^]", "ctrl-p,ctrl-q", "^P,^q", "x", "~,.", "ctrl-@", "^_",
                             "none", "^", "a,b,c,d,e,f,g,h"})
        EXPECT_TRUE(detach_key::named(good)) << good;
    for (const auto* bad : {"", ",", "ctrl-", "ctrl-1", "ctrl-pp", "p,", ",p", "ab", " ", "\x7f",
                            "\xc3", "ctrl-`", "a,b,c,d,e,f,g,h,i"})
        EXPECT_FALSE(detach_key::named(bad)) << bad;
}

TEST(DetachKey, LeavesTheRestOfWhatWasTypedAlone) {
    auto one = key("^]");
    const auto got = one.take("before\x1d"
                              "after");
    EXPECT_TRUE(got.complete);
    EXPECT_EQ(got.passed, "before");
}

TEST(DetachKey, PassesEveryOtherByteOn) {
    string all;
    for (int c = 0; c < 256; ++c)
        if (c != 0x1d) all += static_cast<char>(c);
    auto one = key("ctrl-]");
    const auto got = one.take(all);
    EXPECT_FALSE(got.complete);
    EXPECT_EQ(got.passed, all);
    auto never = key("none");
    EXPECT_EQ(never.take("\x1d\x10\x11").passed, "\x1d\x10\x11");
}

TEST(DetachKey, HoldsBackOnlyWhatMayStillBecomeIt) {
    auto keys = key("a,a,b");
    string passed;
    for (const auto* typed : {"a", "a", "a", "c", "x", "a"}) {
        const auto got = keys.take(typed);
        EXPECT_FALSE(got.complete);
        passed += got.passed;
    }
    EXPECT_EQ(passed, "aaacx");
    EXPECT_EQ(keys.take("a").passed, "");
    const auto got = keys.take("ab");
    EXPECT_TRUE(got.complete);
    EXPECT_EQ(got.passed, "a");
}

TEST(DetachKey, NeverHoldsAnEscapeBack) {
    auto one = key("^]");
    for (const auto* typed : {"\x1b", "\x1b[", "\x1b[93;5", "\x1b[A", "\x1b[93;6u", "\x1b[93;5:3u",
                              "\x1b[94;5u", "\x1b[93u", "\x1b[;5u", "\x1b[93;0u"}) {
        const auto got = one.take(typed);
        EXPECT_FALSE(got.complete) << typed;
        EXPECT_EQ(got.passed, typed);
    }
}

TEST(DetachKey, KnowsAKeyThatIsToldAsANumber) {
    for (const auto* typed : {"\x1b[93;5u", "\x1b[93;5:1u", "\x1b[93;69u", "\x1b[93;133u"})
        EXPECT_TRUE(key("^]").take(typed).complete) << typed;
    auto two = key("ctrl-p,ctrl-q");
    EXPECT_EQ(two.take("\x1b[112;5u").passed, "");
    EXPECT_EQ(two.take("x").passed, "\x1b[112;5ux");
    EXPECT_TRUE(two.take("\x1b[112;5u\x1b[113;5u").complete);
}

} // namespace
} // namespace glove::cli
