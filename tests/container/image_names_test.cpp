// Names of images: what one function makes, the other reads, and nothing else.
#include "container/image/image_names.hpp"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace {

using namespace glove::container;

constexpr image_name kinds[] = {image_name::image, image_name::quarantined, image_name::record};

TEST(ImageNames, AreTheOnesThatArePromised) {
    EXPECT_EQ(name_of(image_name::image, "s-1", "work"), "glove-mat-s3-s-1-a4-work");
    EXPECT_EQ(name_of(image_name::record, "s-1", "work"),
              "glove-retained-meta-s3-s-1-a4-work.json");
    EXPECT_EQ(name_of(image_name::quarantined, "s-1", "work"), "glove-quarantine-s3-s-1-a4-work");
}

// The lengths tell where the one ends: these two would have one name without them.
TEST(ImageNames, NoTwoAreTheSame) {
    EXPECT_NE(name_of(image_name::image, "a-a1-b", "c"), name_of(image_name::image, "a", "b-a1-c"));
    const auto read = subject_of(image_name::image, "glove-mat-s6-a-a1-b-a1-c");
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, (image_subject{"a-a1-b", "c"}));
}

TEST(ImageNames, NothingElseIsRead) {
    for (const auto* const bad : {"",
                                  "glove-mat-",
                                  "glove-mat-s",
                                  "glove-mat-s1",
                                  "glove-mat-s1-a",
                                  "glove-mat-s1-a-a",
                                  "glove-mat-s1-a-a1",
                                  "glove-mat-s1-a-a1-",
                                  "glove-mat-s1-a-a1-bc",
                                  "glove-mat-s1-a-a2-b",
                                  "glove-mat-s01-a-a1-b",
                                  "glove-mat-s1-a-a01-b",
                                  "glove-mat-s0--a1-b",
                                  "glove-mat-s1-a-a0-",
                                  "glove-mat-s-1-a-a1-b",
                                  "glove-mat-s1-/-a1-b",
                                  "glove-mat-s1-a-a1-\n",
                                  "glove-mat-s1-a-a1-b.json",
                                  "xglove-mat-s1-a-a1-b",
                                  "glove-mat-s99999999999999999999999-a-a1-b",
                                  "glove-quarantine-s1-a-a1-b"})
        EXPECT_FALSE(subject_of(image_name::image, bad)) << bad;
    EXPECT_TRUE(subject_of(image_name::image, "glove-mat-s1-a-a1-b"));
}

TEST(ImageNames, AreRefusedWhereTheyWouldBeTooLong) {
    const std::string longest(128, 'a');
    EXPECT_TRUE(is_good(std::string(91, 'x'), longest));
    EXPECT_FALSE(is_good(std::string(92, 'x'), longest));
    EXPECT_LE(name_of(image_name::record, std::string(91, 'x'), longest).size(), 255U);
    for (const auto* const bad : {"", "a/b", "a b", "\xc3\xa4", "a\n"}) {
        EXPECT_FALSE(is_good(bad, "b"));
        EXPECT_FALSE(is_good("b", bad));
    }
}

RC_GTEST_PROP(ImageNames, ReadAsTheyWereMade,
              (const std::string& seed_a, const std::string& seed_b)) {
    const auto word = [](const std::string& seed) {
        constexpr std::string_view letters = "abcxyzABCXYZ0123456789-_:.";
        std::string out = "s";
        for (const auto c : seed.substr(0, 60))
            out += letters[static_cast<unsigned char>(c) % letters.size()];
        return out;
    };
    const auto session_id = word(seed_a), alias = word(seed_b);
    for (const auto kind : kinds) {
        const auto name = name_of(kind, session_id, alias);
        for (const auto other : kinds)
            RC_ASSERT(subject_of(other, name).has_value() == (other == kind));
        RC_ASSERT(*subject_of(kind, name) == (image_subject{session_id, alias}));
    }
}

} // namespace
