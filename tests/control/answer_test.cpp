#include <glove/control/answer.hpp>
#include <gmock/gmock.h>
#include <set>
#include <vector>

namespace glove::control {
namespace {

auto all() -> std::vector<error_code> {
    std::vector<error_code> out;
    for (auto i = 0; i <= static_cast<int>(error_code::observation_intent_control_failed); ++i)
        out.push_back(static_cast<error_code>(i));
    return out;
}

TEST(Answer, every_code_has_one_name_and_is_found_by_it) {
    std::set<std::string_view> names;
    for (const auto code : all()) {
        EXPECT_TRUE(names.insert(to_string(code)).second) << to_string(code);
        EXPECT_EQ(error_code_named(to_string(code)), code);
    }
    EXPECT_EQ(names.size(), 35U);
    EXPECT_EQ(error_code_named("ok"), std::nullopt);
    EXPECT_EQ(error_code_named(""), std::nullopt);
}

TEST(Answer, messages_hold_no_place_for_a_value) {
    for (const auto code : all()) {
        EXPECT_FALSE(message_of(code).empty()) << to_string(code);
        EXPECT_EQ(message_of(code).find_first_of("%{/\"'"), std::string_view::npos)
            << to_string(code);
    }
    EXPECT_EQ(message_of(error_code::session_not_found), "session was not found");
}

TEST(Answer, a_failure_below_takes_the_code_that_it_means_here) {
    const auto refused = or_refuse(result<int>{fail(errc::io, "journal.sync", "disk")},
                                   error_code::session_storage_failed);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, error_code::session_storage_failed);
    EXPECT_EQ(refused.error().why.step, "journal.sync");
    EXPECT_EQ(or_refuse(result<int>{7}, error_code::session_storage_failed).value(), 7);
    EXPECT_TRUE(or_refuse(result<>{}, error_code::session_storage_failed));
}

} // namespace
} // namespace glove::control
