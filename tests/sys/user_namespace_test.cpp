#include <glove/sys/user_namespace.hpp>
#include <gtest/gtest.h>

namespace glove::sys {
namespace {

TEST(UserNamespace, an_id_of_a_map_is_told_as_outside) {
    EXPECT_EQ(outer_id("         0       1000          1\n", 0), 1000U);
    EXPECT_EQ(outer_id("         0          0 4294967295\n", 1000), 1000U);
    const auto two = "0 1000 1\n1 100000 65536\n";
    EXPECT_EQ(outer_id(two, 0), 1000U);
    EXPECT_EQ(outer_id(two, 1), 100000U);
    EXPECT_EQ(outer_id(two, 65536), 165535U);
}

TEST(UserNamespace, an_id_that_is_not_in_the_map_stays) {
    EXPECT_EQ(outer_id("0 1000 1\n", 1), 1U);
    EXPECT_EQ(outer_id("0 1000 1\n", 65534), 65534U);
    EXPECT_EQ(outer_id("0 1000 0\n", 0), 0U);
    EXPECT_EQ(outer_id("5 1000 2\n", 4), 4U);
    EXPECT_EQ(outer_id("5 1000 2\n", 7), 7U);
    for (const auto* const broken : {"", "\n", "0", "0 1000", "x 1000 1\n", "-1 1000 1\n"})
        EXPECT_EQ(outer_id(broken, 0), 0U) << broken;
}

} // namespace
} // namespace glove::sys
