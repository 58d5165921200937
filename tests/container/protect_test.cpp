#include <algorithm>
#include <glove/container/manifest.hpp>
#include <glove/container/run_files.hpp>
#include <glove/container/tree_walk.hpp>
#include <gmock/gmock.h>
#include <support/folder.hpp>
#include <sys/stat.h>

namespace {

using namespace glove;
using namespace glove::container;
using test::folder;
using testing::ElementsAre;
using testing::IsEmpty;

// --- the walk

TEST(TreeWalk, ARepositoryIsFoundByItsNameOrByWhatItHolds) {
    const folder place;
    place.directory("w/a/.git");
    place.file("w/b/.git");
    place.file("w/bare/HEAD");
    place.directory("w/bare/objects");
    place.directory("w/bare/refs");
    place.directory("w/none/objects");
    place.directory("w/none/refs");
    const auto seen = walk_trees({place / "w"}, 100);
    EXPECT_THAT(seen.with_git, testing::UnorderedElementsAre(place / "w/a", place / "w/b"));
    EXPECT_THAT(seen.bare, ElementsAre(place / "w/bare"));
    EXPECT_TRUE(seen.repositories_complete);
}

TEST(TreeWalk, TheInsidesOfARepositoryComeLastAndDoNotHideAnother) {
    const folder place;
    for (int i = 0; i < 50; ++i) place.file("w/.git/objects/" + std::to_string(i));
    place.directory("w/x/y/.git");
    const auto seen = walk_trees({place / "w"}, 10);
    EXPECT_THAT(seen.with_git, testing::UnorderedElementsAre(place / "w", place / "w/x/y"));
    EXPECT_TRUE(seen.repositories_complete);
    EXPECT_FALSE(seen.complete);
}

TEST(TreeWalk, ABoundThatIsHitIsSaid) {
    const folder place;
    for (int i = 0; i < 10; ++i) place.file("w/" + std::to_string(i));
    place.directory("w/x/.git");
    EXPECT_TRUE(walk_trees({place / "w"}, 12).repositories_complete);
    EXPECT_FALSE(walk_trees({place / "w"}, 11).repositories_complete);
}

TEST(TreeWalk, ALinkIsNotFollowed) {
    const folder place;
    place.directory("outside/repo/.git");
    place.directory("w");
    place.link("w/link", "../outside");
    EXPECT_THAT(walk_trees({place / "w"}, 100).with_git, IsEmpty());
}

TEST(TreeWalk, NamesThatSomeFileSystemTakesForGit) {
    for (const auto* name :
         {".git", ".GIT", ".Git", "git~1", ".g\xe2\x80\x8cit", "\xe2\x80\x8c.git"})
        EXPECT_TRUE(may_mean_git(name)) << name;
    for (const auto* name :
         {"git", ".gi", ".gitt", ".github", "git~2", "", "x.git", "\xe2\x80\x8c"})
        EXPECT_FALSE(may_mean_git(name)) << name;
}

// --- manifests

[[nodiscard]] auto manifest() -> run_manifest {
    return {.run = "0123456789abcdef0123456789abcdef",
            .complete = false,
            .grants = {{.path = "/w/\xff %\n",
                        .device = 1,
                        .inode = ~0ULL,
                        .present = {{".git/config", 2, 3}},
                        .absent = {".env\x80rc"},
                        .repositories = {""}}}};
}

TEST(Manifest, ComesBackAsItWasWithAnyBytesInItsNames) {
    const auto text = manifest_text(manifest());
    ASSERT_TRUE(text);
    const auto back = read_manifest(*text);
    ASSERT_TRUE(back) << back.error().step << back.error().detail;
    EXPECT_EQ(back->run, manifest().run);
    EXPECT_FALSE(back->complete);
    ASSERT_EQ(back->grants.size(), 1U);
    EXPECT_EQ(back->grants[0].path, manifest().grants[0].path);
    EXPECT_EQ(back->grants[0].inode, ~0ULL);
    EXPECT_EQ(back->grants[0].present[0].path, ".git/config");
    EXPECT_EQ(back->grants[0].absent, manifest().grants[0].absent);
    EXPECT_THAT(back->grants[0].repositories, ElementsAre(""));
}

TEST(Manifest, APathThatLeadsElsewhereIsRefused) {
    const auto with = [](const std::string& grant, const std::string& absent) {
        return read_manifest(R"({"run":"r","complete":true,"grants":[{"path":")" + grant +
                             R"(","device":1,"inode":1,"present":[],"absent":[")" + absent +
                             R"("],"repositories":[]}]})")
            .has_value();
    };
    EXPECT_TRUE(with("/w", ".envrc"));
    for (const auto* bad : {"../x", "/x", "a/../b", "a//b", "a/", "%", "%2", "%zz", "a%00b", "."})
        EXPECT_FALSE(with("/w", bad)) << bad;
    for (const auto* bad : {"w", "", "/w/..", "/w//x"}) EXPECT_FALSE(with(bad, "a")) << bad;
}

// --- what is kept in files

TEST(RunFiles, ARunThatGoesOnIsNotReviewedAndOneThatIsOverIs) {
    const folder place;
    const auto runs = place / "runs";
    std::vector<std::string> seen;
    const auto review = [&] {
        seen.clear();
        const auto done = review_runs(
            runs, {},
            [&](const past_run& past) {
                seen.push_back(past.manifest.run + (past.was_told ? " told" : ""));
                return verdict::keep;
            },
            [](const error& what) { ADD_FAILURE() << what.step << what.detail; });
        EXPECT_TRUE(done);
    };
    {
        auto own = own_manifest::write(runs, manifest());
        ASSERT_TRUE(own) << own.error().step << own.error().detail;
        struct ::stat facts{};
        ASSERT_EQ(::stat((runs + "/" + manifest().run + ".json").c_str(), &facts), 0);
        EXPECT_EQ(facts.st_mode & 07777U, 0600U);
        review();
        EXPECT_THAT(seen, IsEmpty());
    }
    review();
    EXPECT_THAT(seen, ElementsAre(manifest().run));
    review();
    EXPECT_THAT(seen, ElementsAre(manifest().run + " told"));
}

TEST(RunFiles, ACleanEndLeavesNothing) {
    const folder place;
    auto own = own_manifest::write(place / "runs", manifest());
    ASSERT_TRUE(own);
    ASSERT_TRUE(own->conclude(false));
    EXPECT_TRUE(std::filesystem::is_empty(place / "runs"));
}

TEST(RunFiles, TheFileIsTheOwnersWhateverTheUmask) {
    const folder place;
    const auto before = ::umask(0777);
    const auto own = own_manifest::write(place / "runs", manifest());
    (void)::umask(before);
    EXPECT_TRUE(own) << own.error().step << own.error().detail;
}

TEST(RunFiles, ADirectoryThatCannotBeLookedForIsNotAbsent) {
    const folder place;
    const auto look = [&](const std::string& name) {
        return review_runs(
            place / name, {}, [](const past_run&) { return verdict::keep; }, [](const error&) {});
    };
    EXPECT_TRUE(look("runs"));
    const auto unknown = look(std::string(300, 'x'));
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().os, ENAMETOOLONG);
}

TEST(RunFiles, WhoLooksHoldsUpNoRunThatStarts) {
    const folder place;
    const auto runs = place / "runs";
    auto first = manifest();
    {
        ASSERT_TRUE(own_manifest::write(runs, first));
    }
    bool started = false;
    ASSERT_TRUE(review_runs(
        runs, {},
        [&](const past_run&) {
            auto other = manifest();
            other.run = "other";
            started = own_manifest::write(runs, other).has_value();
            return verdict::keep;
        },
        [](const error& what) { ADD_FAILURE() << what.step << what.detail; }));
    EXPECT_TRUE(started);
}

TEST(RunFiles, ARunThatEndsWhileOthersAreLookedAtIsOver) {
    const folder place;
    const auto runs = place / "runs";
    auto first = manifest();
    first.run = "a";
    {
        ASSERT_TRUE(own_manifest::write(runs, first));
    }
    auto second = manifest();
    second.run = "b";
    auto live = own_manifest::write(runs, second);
    ASSERT_TRUE(live);
    for (const bool keep : {true, false}) {
        std::vector<std::string> seen;
        ASSERT_TRUE(review_runs(
            runs, {},
            [&](const past_run& past) {
                seen.push_back(past.manifest.run);
                if (past.manifest.run == "a") {
                    EXPECT_TRUE(live->conclude(keep));
                }
                return verdict::keep;
            },
            [](const error& what) { ADD_FAILURE() << what.step << what.detail; }));
        EXPECT_THAT(seen, ElementsAre("a"));
        std::filesystem::remove(runs + "/b.found.json");
        second.run = "c";
        live = own_manifest::write(runs, second);
    }
}

TEST(RunFiles, AtTheirBoundItIsSaidAndToldOnesDoNotCountAtAStart) {
    const folder place;
    const auto runs = place / "runs";
    auto each = manifest();
    for (std::size_t i = 0; i <= most_manifests; ++i) {
        each.run = "a" + std::to_string(i);
        auto own = own_manifest::write(runs, each);
        ASSERT_TRUE(own && own->conclude(true));
    }
    each.run = "z";
    {
        ASSERT_TRUE(own_manifest::write(runs, each));
    }
    const auto look = [&](const review_choice& choice, std::size_t& problems) {
        std::size_t seen = 0;
        EXPECT_TRUE(review_runs(
            runs, choice,
            [&](const past_run&) {
                ++seen;
                return verdict::leave;
            },
            [&](const error& what) {
                EXPECT_EQ(what.code, errc::limit_exceeded);
                ++problems;
            }));
        return seen;
    };
    std::size_t problems = 0;
    EXPECT_EQ(look({.told = false}, problems), 1U);
    EXPECT_EQ(look({.only = "z"}, problems), 1U);
    EXPECT_EQ(problems, 0U);
    EXPECT_EQ(look({}, problems), most_manifests);
    EXPECT_EQ(problems, 1U);
}

TEST(RunFiles, AStartThatFailsNamesTheDirectory) {
    const folder place;
    const auto runs = place / "runs";
    const auto own = own_manifest::write(runs, manifest());
    ASSERT_TRUE(own);
    const auto again = own_manifest::write(runs, manifest()); // the name is taken
    ASSERT_FALSE(again);
    EXPECT_NE(again.error().detail.find(runs), std::string::npos) << again.error().detail;
}

// --- what became of it

TEST(FindChanges, WhatCannotBeLookedAtIsSaidAndIsNeitherAbsentNorReplaced) {
    const folder place;
    const auto path = place / "granted";
    std::filesystem::create_directory(path);
    const auto root = sys::pin(path, sys::follow::yes);
    ASSERT_TRUE(root);
    const auto facts = sys::inspect(*root);
    ASSERT_TRUE(facts);
    const std::string unknown(300, 'x');
    watched_grant grant{.path = path,
                        .device = facts->identity.device,
                        .inode = facts->identity.inode,
                        .present = {{unknown, 1, 1}, {"gone", 1, 1}},
                        .absent = {unknown, "none"},
                        .repositories = {}};
    std::vector<std::string> seen;
    for (const auto& each : find_changes({.run = "r", .complete = true, .grants = {grant}}))
        seen.push_back(std::string{to_string(each.kind)} + " " + each.path);
    EXPECT_THAT(seen,
                ElementsAre("unsearched " + unknown, "replaced gone", "unsearched " + unknown));
}

} // namespace
