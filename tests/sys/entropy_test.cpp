#include <algorithm>
#include <array>
#include <glove/sys/entropy.hpp>
#include <gtest/gtest.h>
#include <set>

namespace {

using namespace glove;

class counting final : public sys::entropy {
public:
    auto fill(std::span<std::byte> out) -> result<> override {
        for (auto& b : out) b = std::byte{next_++};
        return {};
    }

private:
    unsigned char next_ = 0xf8;
};

class failing final : public sys::entropy {
public:
    auto fill(std::span<std::byte>) -> result<> override { return fail_os("test.entropy", EIO); }
};

TEST(RandomId, EveryByteOfTheSourceBecomesTwoDigits) {
    counting source;
    EXPECT_EQ(sys::random_id(source).value(), "f8f9fafbfcfdfeff0001020304050607");
}

TEST(RandomId, TheSystemGivesAnotherOneEachTime) {
    sys::system_entropy source;
    std::set<std::string> seen;
    for (int i = 0; i < 100; ++i) {
        const auto id = sys::random_id(source).value();
        EXPECT_EQ(id.size(), 32U);
        EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos) << id;
        seen.insert(id);
    }
    EXPECT_EQ(seen.size(), 100U);
}

TEST(RandomId, AFailingSourceMakesNoName) {
    failing source;
    const auto id = sys::random_id(source);
    ASSERT_FALSE(id.has_value());
    EXPECT_EQ(id.error().step, "test.entropy");
}

TEST(SystemEntropy, EveryByteIsFilledHoweverMuchIsAskedFor) {
    sys::system_entropy source;
    std::string text(100'000, '\0');
    ASSERT_TRUE(source.fill(std::as_writable_bytes(std::span{text})).has_value());
    // 100,000 random bytes hold about 390 zeros; untouched ones would be thousands in a row.
    EXPECT_LT(std::ranges::count(text, '\0'), 1000);
    EXPECT_TRUE(source.fill({}).has_value());
}

} // namespace
