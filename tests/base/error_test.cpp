#include <array>
#include <glove/base/error.hpp>
#include <gtest/gtest.h>
#include <set>
#include <type_traits>

namespace {

using namespace glove;

constexpr std::array all_codes{
    errc::invalid_input, errc::limit_exceeded, errc::not_permitted, errc::not_found, errc::conflict,
    errc::wrong_state,   errc::corrupt,        errc::unsupported,   errc::timed_out, errc::io};

TEST(Error, EveryCodeHasANameOfItsOwn) {
    std::set<std::string_view> names;
    for (const auto code : all_codes) names.insert(to_string(code));
    EXPECT_EQ(names.size(), all_codes.size());
    EXPECT_EQ(to_string(errc::not_permitted), "not_permitted");
    EXPECT_EQ(to_string(errc::io), "io");
}

struct classified {
    int os;
    errc code;
};

TEST(Error, AnErrnoIsPutIntoItsClass) {
    const classified rows[] = {
        {EPERM, errc::not_permitted},
        {EACCES, errc::not_permitted},
        {EROFS, errc::not_permitted},
        {ENOENT, errc::not_found},
        {ESRCH, errc::not_found},
        {ENOTDIR, errc::not_found},
        {EEXIST, errc::conflict},
        {EBUSY, errc::conflict},
        {ENOSYS, errc::unsupported},
        {EOPNOTSUPP, errc::unsupported},
        {EMFILE, errc::limit_exceeded},
        {ENFILE, errc::limit_exceeded},
        {ENOSPC, errc::limit_exceeded},
        {ENOMEM, errc::limit_exceeded},
        {EDQUOT, errc::limit_exceeded},
        {ELOOP, errc::invalid_input},
        {ENAMETOOLONG, errc::invalid_input},
        {EINVAL, errc::invalid_input},
    };
    for (const auto& row : rows) EXPECT_EQ(classify(row.os), row.code) << row.os;
}

TEST(Error, AnErrnoOfNoClassIsInputOutput) {
    for (const int os : {EIO, EPIPE, EINTR, 0, -1, 100'000})
        EXPECT_EQ(classify(os), errc::io) << os;
}

// A step is a string literal: it is read at compile time, so it cannot dangle.
static_assert(std::is_convertible_v<const char (&)[5], step_name>);
static_assert(!std::is_constructible_v<step_name, std::string>);
static_assert(!std::is_constructible_v<step_name, std::string_view>);
static_assert(step_name{"one.step"}.text == "one.step");

TEST(Error, AFailureHoldsWhatItIsGiven) {
    const result<int> problem = fail(errc::conflict, "some.step", "what", "mend");
    ASSERT_FALSE(problem.has_value());
    EXPECT_EQ(problem.error().code, errc::conflict);
    EXPECT_EQ(problem.error().step, "some.step");
    EXPECT_EQ(problem.error().os, 0);
    EXPECT_EQ(problem.error().detail, "what");
    EXPECT_EQ(problem.error().remedy, "mend");
}

TEST(Error, AFailureOfTheKernelTakesErrnoUnlessOneIsNamed) {
    errno = EACCES;
    const result<> implied = fail_os("some.step");
    EXPECT_EQ(implied.error().os, EACCES);
    EXPECT_EQ(implied.error().code, errc::not_permitted);
    errno = EACCES;
    const result<> named = fail_os("some.step", ENOENT, "a path");
    EXPECT_EQ(named.error().os, ENOENT);
    EXPECT_EQ(named.error().code, errc::not_found);
    EXPECT_EQ(named.error().detail, "a path");
    EXPECT_TRUE(named.error().remedy.empty());
}

auto doubled(const result<int>& from, int& evaluated) -> result<int> {
    GLOVE_TRY(const auto number, (++evaluated, from));
    return number * 2;
}

auto checked(const result<>& from, bool& reached) -> result<> {
    GLOVE_CHECK(from);
    reached = true;
    return {};
}

TEST(Error, TryHandsTheValueOnAndTheErrorBack) {
    int evaluated = 0;
    EXPECT_EQ(doubled(21, evaluated).value(), 42);
    EXPECT_EQ(evaluated, 1);
    const auto refused = doubled(fail(errc::timed_out, "inner.step"), evaluated);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().step, "inner.step");
}

TEST(Error, CheckStopsAtAnErrorOnly) {
    bool reached = false;
    EXPECT_TRUE(checked({}, reached).has_value());
    EXPECT_TRUE(reached);
    reached = false;
    EXPECT_EQ(checked(fail(errc::corrupt, "inner.step"), reached).error().code, errc::corrupt);
    EXPECT_FALSE(reached);
}

} // namespace
