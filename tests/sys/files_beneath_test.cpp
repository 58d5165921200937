// What is done in directories that somebody else may have prepared.
#include <glove/sys/files.hpp>
#include <gtest/gtest.h>
#include <support/folder.hpp>
#include <support/forked.hpp>

namespace {

using namespace glove;
using test::content_of;
using test::folder;

class Beneath : public testing::Test {
protected:
    Beneath() {
        outside.file("secret", "secret");
        top_ = sys::unique_fd{::open(place.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    }
    [[nodiscard]] auto refusal(const std::string& path) const -> int {
        const auto got = sys::open_beneath(top_, path, O_RDONLY | O_NONBLOCK);
        return got ? 0 : got.error().os;
    }
    folder place, outside;
    sys::unique_fd top_;
};

TEST_F(Beneath, APlainPathIsOpened) {
    place.file("a/b", "text");
    const auto got = sys::open_beneath(top_, "a/b", O_RDONLY);
    ASSERT_TRUE(got);
    EXPECT_EQ(sys::read_all(*got, 10).value_or(""), "text");
    EXPECT_TRUE(sys::open_beneath(top_, "a", O_PATH | O_DIRECTORY | O_NOFOLLOW));
    EXPECT_EQ(refusal("a/none"), ENOENT);
}

TEST_F(Beneath, NoLinkIsFollowedAndNothingLeadsOut) {
    place.link("last", outside / "secret");
    place.link("way", outside.path());
    place.file("real/file");
    place.link("inner", "real");
    place.link("magic", "/proc/self/root");
    EXPECT_EQ(refusal("last"), ELOOP);
    EXPECT_EQ(refusal("way/secret"), ELOOP);
    EXPECT_EQ(refusal("inner/file"), ELOOP);
    EXPECT_EQ(refusal("magic/etc/passwd"), ELOOP);
    EXPECT_EQ(refusal("../" + outside.path().substr(outside.path().rfind('/') + 1) + "/secret"),
              EXDEV);
    EXPECT_EQ(refusal(outside / "secret"), EXDEV);
}

TEST_F(Beneath, AnotherFileSystemIsNotEntered) {
    const sys::unique_fd root{::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    const auto refused = sys::open_beneath(root, "proc/version", O_RDONLY);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().os, EXDEV);
    EXPECT_TRUE(sys::open_beneath(root, "proc", O_PATH | O_NOFOLLOW).error().os == EXDEV);
}

TEST_F(Beneath, ADirectoryIsMadeOnceAndForItsOwnerWhateverTheUmask) {
    EXPECT_EQ(test::said_by([&]() -> std::string {
                  (void)::umask(0777);
                  return sys::make_directory_in(top_, "made") ? "made" : "refused";
              }),
              "made");
    struct ::stat found{};
    ASSERT_EQ(::stat((place / "made").c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777U, 0700U);
    EXPECT_TRUE(sys::make_directory_in(top_, "made"));
    place.link("link", outside.path());
    place.file("file");
    EXPECT_EQ(sys::make_directory_in(top_, "link").error().os, ELOOP);
    EXPECT_EQ(sys::make_directory_in(top_, "file").error().os, ENOTDIR);
}

TEST_F(Beneath, AFileIsCreatedOnlyWhereNothingHasItsName) {
    ASSERT_TRUE(sys::create_private_file(top_, "new", "text"));
    EXPECT_EQ(content_of(place / "new"), "text");
    place.link("link", place / "not-there");
    for (const auto* taken : {"new", "link"})
        EXPECT_EQ(sys::create_private_file(top_, taken, "x").error().code, errc::conflict) << taken;
    EXPECT_EQ(content_of(place / "new"), "text");
    EXPECT_FALSE(sys::exists(place / "not-there"));
    EXPECT_EQ(test::names_in(place.path()), 2U); // nothing else is left
}

TEST_F(Beneath, AFileIsReplacedWithTheTimeThatWasGiven) {
    place.link("name", outside / "secret");
    constexpr std::int64_t when = 1'700'000'000'123'456'789;
    ASSERT_TRUE(sys::replace_durably(top_, "name", "text", when));
    EXPECT_EQ(content_of(place / "name"), "text");
    EXPECT_EQ(content_of(outside / "secret"), "secret");
    const auto file = sys::open_beneath(top_, "name", O_RDONLY);
    const auto facts = sys::inspect(*file).value();
    EXPECT_EQ(facts.written_ns, when);
    EXPECT_NE(facts.changed_ns, when);
    EXPECT_EQ(facts.permissions, 0600U);
}

TEST_F(Beneath, AReplacementThatCannotBeWrittenLeavesTheOldFileAlone) {
    place.file("name", "old");
    EXPECT_EQ(test::said_by([&]() -> std::string {
                  test::forbid_growth(4);
                  return sys::replace_durably(top_, "name", "longer than four", 0) ? "written"
                                                                                   : "refused";
              }),
              "refused");
    EXPECT_EQ(content_of(place / "name"), "old");
    EXPECT_EQ(test::names_in(place.path()), 1U);
}

} // namespace
