#include <algorithm>
#include <glove/container/plan.hpp>
#include <gmock/gmock.h>
#include <support/folder.hpp>
#include <support/forked.hpp>

namespace {

using namespace glove;
using container::find_rendezvous;
using test::bound_socket;
using test::folder;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::size_t plenty = 1000;
constexpr std::size_t no_walk = 0; // leaves the kernel's table alone

auto paths(const container::rendezvous_search& search) -> std::vector<std::string> {
    std::vector<std::string> out;
    for (const auto& found : search.found) out.push_back(found.path);
    return out;
}

TEST(Rendezvous, ASocketAndAFifoAreFoundAndOrdinaryFilesAreNot) {
    const folder place;
    place.file("file");
    place.link("link", "deep/fifo");
    const auto fifo = place.fifo("deep/fifo");
    const auto socket = bound_socket(place / "socket");
    const auto search = find_rendezvous({place.path()}, plenty);
    EXPECT_THAT(paths(search), ElementsAre(fifo, place / "socket"));
    EXPECT_FALSE(search.found.at(0).is_socket);
    EXPECT_TRUE(search.found.at(1).is_socket);
    EXPECT_TRUE(search.complete);
}

TEST(Rendezvous, WithoutARootNothingIsSearched) {
    const auto search = find_rendezvous({}, no_walk);
    EXPECT_THAT(search.found, IsEmpty());
    EXPECT_TRUE(search.complete);
}

TEST(Rendezvous, ASocketIsFoundHoweverDeepItLies) {
    const folder place;
    place.directory("a/b/c/d/e");
    const auto socket = bound_socket(place / "a/b/c/d/e/socket");
    EXPECT_THAT(paths(find_rendezvous({place.path()}, no_walk)),
                ElementsAre(place / "a/b/c/d/e/socket"));
}

TEST(Rendezvous, ASocketBoundThroughALinkIsFoundByItsRealName) {
    const folder place;
    place.directory("real");
    place.link("link", "real");
    const auto socket = bound_socket(place / "link/socket");
    EXPECT_THAT(paths(find_rendezvous({place / "real"}, no_walk)),
                ElementsAre(place / "real/socket"));
}

TEST(Rendezvous, OneThatIsOutsideIsNotFound) {
    const folder place;
    place.directory("desk");
    place.directory("desk-evil");
    const auto outside = bound_socket(place / "desk-evil/socket");
    EXPECT_THAT(paths(find_rendezvous({place / "desk"}, plenty)), IsEmpty());
    EXPECT_THAT(paths(find_rendezvous({place / "desk-evil"}, plenty)),
                ElementsAre(place / "desk-evil/socket"));
}

TEST(Rendezvous, AnAbstractNameIsNoPath) {
    const folder place;
    const auto abstract = bound_socket(std::string{"\0", 1} + (place / "socket"));
    EXPECT_THAT(paths(find_rendezvous({place.path()}, plenty)), IsEmpty());
}

TEST(Rendezvous, ANameThatIsNoSocketAnyMoreIsLeftOut) {
    const folder place;
    const auto socket = bound_socket(place / "socket");
    std::filesystem::remove(place / "socket");
    place.file("socket");
    EXPECT_THAT(paths(find_rendezvous({place.path()}, plenty)), IsEmpty());
}

// The kernel's table does not name it by a path, so only the walk can see it.
TEST(Rendezvous, ASocketBoundByARelativeNameIsFoundByTheWalk) {
    const folder place;
    EXPECT_EQ(test::said_by([&] {
                  test::prepared(::chdir(place.path().c_str()) == 0, "chdir");
                  const auto socket = bound_socket("relative");
                  const auto walked = find_rendezvous({place.path()}, plenty);
                  const auto table = find_rendezvous({place.path()}, no_walk);
                  return walked.found.at(0).path + (table.complete ? " silently" : " or told");
              }),
              (place / "relative") + " or told");
}

TEST(Rendezvous, ANameMayHoldSpaces) {
    const folder place;
    const auto one = bound_socket(place / "a b");
    const auto two = bound_socket(place / " c  d ");
    EXPECT_THAT(paths(find_rendezvous({place.path()}, no_walk)),
                UnorderedElementsAre(place / "a b", place / " c  d "));
}

TEST(Rendezvous, ANameWithNewlinesNeitherHidesNorInventsAnother) {
    const folder place;
    const auto plain = bound_socket(place / "plain");
    place.directory("x\n0: 1 2 3 4 5 6 ");
    place.file("forged");
    const auto lines = bound_socket(place / "x\n0: 1 2 3 4 5 6 /forged");
    const auto newline = bound_socket(place / "new\nline");
    const auto search = find_rendezvous({place.path()}, plenty);
    EXPECT_THAT(paths(search), UnorderedElementsAre(place / "plain", place / "new\nline",
                                                    place / "x\n0: 1 2 3 4 5 6 /forged"));
    EXPECT_THAT(paths(find_rendezvous({place.path()}, no_walk)), ElementsAre(place / "plain"));
}

TEST(Rendezvous, TheWalkIsCompleteAtItsBudgetAndTellsWhenItIsNot) {
    const folder place;
    place.directory("a");
    place.file("a/one");
    place.file("b");
    place.file("c"); // five entries, the FIFO included
    const auto fifo = place.fifo("a/z");
    const auto enough = find_rendezvous({place.path()}, 5);
    EXPECT_TRUE(enough.complete);
    EXPECT_THAT(paths(enough), ElementsAre(fifo));
    EXPECT_FALSE(find_rendezvous({place.path()}, 4).complete);
    EXPECT_FALSE(find_rendezvous({place.path()}, no_walk).complete);
}

TEST(Rendezvous, TheBudgetIsOneForAllRoots) {
    const folder place;
    place.file("a/one");
    place.file("b/two");
    EXPECT_TRUE(find_rendezvous({place / "a", place / "b"}, 2).complete);
    EXPECT_FALSE(find_rendezvous({place / "a", place / "b"}, 1).complete);
}

TEST(Rendezvous, WhatTwoRootsShareIsNamedOnce) {
    const folder place;
    const auto fifo = place.fifo("a/fifo");
    const auto socket = bound_socket(place / "a/socket");
    EXPECT_THAT(paths(find_rendezvous({place.path(), place / "a"}, plenty)),
                ElementsAre(fifo, place / "a/socket"));
}

TEST(Rendezvous, ALinkToADirectoryIsNotWalked) {
    const folder place;
    place.fifo("outside/fifo");
    place.directory("desk");
    place.link("desk/link", "../outside");
    const auto search = find_rendezvous({place / "desk"}, plenty);
    EXPECT_THAT(paths(search), IsEmpty());
    EXPECT_TRUE(search.complete);
}

} // namespace
