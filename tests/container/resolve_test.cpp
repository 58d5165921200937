#include <glove/container/plan.hpp>
#include <gtest/gtest.h>
#include <support/folder.hpp>
#include <support/forked.hpp>

namespace {

using namespace glove;
using container::resolve;
using test::folder;
using links = std::vector<std::pair<std::string, std::string>>;

TEST(Resolve, APlainPathIsItself) {
    const folder place;
    const auto file = place.file("a/b");
    const auto found = resolve(file);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->real, file);
    EXPECT_TRUE(found->links.empty());
    EXPECT_EQ(resolve("/").value().real, "/");
}

TEST(Resolve, DotsAndRepeatedSlashesVanish) {
    const folder place;
    const auto file = place.file("a/b");
    EXPECT_EQ(resolve(place / "/.//a/./b").value().real, file);
    EXPECT_EQ(resolve(place / "a/").value().real, place / "a");
    EXPECT_EQ(resolve(place / "a/.").value().real, place / "a");
}

TEST(Resolve, ALinkedParentIsRememberedAndItsTargetFollowed) {
    const folder place;
    place.file("real/file");
    place.link("link", "real");
    const auto found = resolve(place / "link/file");
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->real, place / "real/file");
    EXPECT_EQ(found->links, (links{{place / "link", "real"}}));
}

TEST(Resolve, AnAbsoluteTargetStartsAtTheRoot) {
    const folder place;
    const auto file = place.file("real/file");
    place.link("a/link", file);
    const auto found = resolve(place / "a/link");
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->real, file);
    EXPECT_EQ(found->links, (links{{place / "a/link", file}}));
}

TEST(Resolve, AChainIsRememberedLinkByLink) {
    const folder place;
    place.directory("real");
    place.link("third", "./real");
    place.link("second", place / "third");
    place.link("first", "second");
    const auto found = resolve(place / "first");
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->real, place / "real");
    EXPECT_EQ(found->links, (links{{place / "first", "second"},
                                   {place / "second", place / "third"},
                                   {place / "third", "./real"}}));
}

TEST(Resolve, ALinkIsNamedByItsCanonicalParent) {
    const folder place;
    place.file("real/target");
    place.link("real/inner", "target");
    place.link("outer", "real");
    const auto found = resolve(place / "outer/inner");
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->real, place / "real/target");
    EXPECT_EQ(found->links, (links{{place / "outer", "real"}, {place / "real/inner", "target"}}));
}

TEST(Resolve, DotDotGoesToTheParentOfTheTargetNotOfTheLink) {
    const folder place;
    place.file("a/b/c/file");
    place.file("a/b/wanted");
    place.file("wanted");
    place.link("link", "a/b/c");
    EXPECT_EQ(resolve(place / "link/../wanted").value().real, place / "a/b/wanted");
    EXPECT_EQ(resolve(place / "a/../wanted").value().real, place / "wanted");
    EXPECT_EQ(resolve("/../../.." + (place / "wanted")).value().real, place / "wanted");
}

TEST(Resolve, ATargetMayHoldDotDot) {
    const folder place;
    place.file("a/file");
    place.link("b/link", "../a/./file");
    EXPECT_EQ(resolve(place / "b/link").value().real, place / "a/file");
}

TEST(Resolve, DotDotThroughAFileIsRefusedAsTheKernelDoes) {
    const folder place;
    const auto file = place.file("file");
    place.link("link", "file");
    for (const auto& path : {file + "/..", file + "/../file", file + "/x", place / "link/.."}) {
        const auto refused = resolve(path);
        ASSERT_FALSE(refused.has_value()) << path;
        EXPECT_EQ(refused.error().os, ENOTDIR) << path;
    }
    EXPECT_EQ(resolve(place / "file").value().real, file);
}

TEST(Resolve, ALoopIsAnErrorThatNamesThePath) {
    const folder place;
    place.link("a", "b");
    place.link("b", "a");
    place.link("self", "self");
    for (const auto* name : {"a", "self", "self/below"}) {
        const auto refused = resolve(place / name);
        ASSERT_FALSE(refused.has_value()) << name;
        EXPECT_EQ(refused.error().os, ELOOP);
        EXPECT_EQ(refused.error().detail, place / name);
    }
}

TEST(Resolve, FortyLinksAreFollowedAndFortyOneAreNotLikeTheKernel) {
    const folder place;
    place.file("link0", "end");
    for (int i = 1; i <= 41; ++i)
        place.link("link" + std::to_string(i), "link" + std::to_string(i - 1));
    // Under load the kernel was seen to refuse the fortieth now and then, but never for long.
    const auto opens = [&](const char* name) {
        for (int attempt = 0; attempt < 100; ++attempt)
            if (sys::unique_fd{::open((place / name).c_str(), O_RDONLY | O_CLOEXEC)}) return true;
        return false;
    };
    EXPECT_TRUE(opens("link40"));
    EXPECT_EQ(resolve(place / "link40").value().real, place / "link0");
    EXPECT_EQ(resolve(place / "link40").value().links.size(), 40U);
    EXPECT_FALSE(opens("link41"));
    EXPECT_EQ(resolve(place / "link41").error().os, ELOOP);
}

TEST(Resolve, WhatIsMissingIsNamed) {
    const folder place;
    place.link("dangling", "nowhere");
    const auto missing = resolve(place / "a/b");
    ASSERT_FALSE(missing.has_value());
    EXPECT_EQ(missing.error().code, errc::not_found);
    EXPECT_EQ(missing.error().step, "grant.resolve");
    EXPECT_EQ(missing.error().detail, place / "a");
    EXPECT_EQ(resolve(place / "dangling").error().detail, place / "nowhere");
    EXPECT_EQ(resolve("").error().os, ENOENT);
}

TEST(Resolve, ARelativePathStartsWhereTheCallerIs) {
    const folder place;
    place.file("here/file");
    const auto in = [&](const std::string& directory, const std::string& path) {
        return test::said_by([&] {
            ::unsetenv("PWD");
            test::prepared(::chdir((place / directory).c_str()) == 0, directory);
            const auto found = resolve(path);
            return found ? found->real : std::string{found.error().step};
        });
    };
    EXPECT_EQ(in("here", "file"), place / "here/file");
    EXPECT_EQ(in("here", "."), place / "here");
    EXPECT_EQ(in("here", "../here/./file"), place / "here/file");
}

TEST(Resolve, ARelativePathKeepsTheNameByWhichTheCallerCame) {
    const folder place;
    place.file("real/file");
    place.link("link", "real");
    EXPECT_EQ(test::said_by([&] {
                  ::setenv("PWD", (place / "link").c_str(), 1);
                  test::prepared(::chdir((place / "link").c_str()) == 0, "chdir");
                  const auto found = resolve("file").value();
                  return found.real + " via " + found.links.at(0).first;
              }),
              (place / "real/file") + " via " + (place / "link"));
}

} // namespace
