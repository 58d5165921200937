#include "policy/path_root.hpp"
#include "policy/scene.hpp"
#include "support/folder.hpp"
#include <filesystem>

namespace {

using namespace glove;
using namespace glove::policy;
using namespace std::string_literals;

// W stands for the folder that holds the root W/a.
auto in(const test::folder& place, std::string text) -> std::string {
    for (std::size_t at = 0; (at = text.find('W', at)) != std::string::npos;
         at += place.path().size())
        text.replace(at, 1, place.path());
    return text;
}

auto rooted(const std::string& path) -> path_root {
    auto out = path_root::pin(path);
    if (!out) throw std::runtime_error{policy::scene::told(out.error())};
    return *std::move(out);
}

struct world {
    test::folder place;
    world() {
        place.directory("a/sub/deep");
        place.directory("a-evil");
        place.directory("ab");
        place.directory("b");
        place.file("a/x");
        place.file("b/secret");
        place.file("a-evil/x");
    }
    [[nodiscard]] auto root() const -> path_root { return rooted(place / "a"); }
    [[nodiscard]] auto holds(const std::string& text) const -> bool {
        return root().holds(in(place, text));
    }
};

TEST(Paths, HoldsWhatIsBeneathHoweverItIsSpelled) {
    const world w;
    for (const auto& path :
         {"W/a"s, "W/a/"s, "W/a/x"s, "W/a/./x"s, "W/a//x"s, "/W/a/x"s, "W/a/../a/x"s,
          "W/a/sub/../x"s, "W/a/sub/deep/../../x"s, "W/./a/x"s, "W/b/../a/x"s, "W/a/sub/../../a"s,
          // Not there yet.
          "W/a/new"s, "W/a/new/er/est"s, "W/a/sub/new.txt"s, "W/a/.hidden"s, "W/a/..data"s,
          "W/a/..2024_01"s, "W/a/-dash"s, "W/a/a b"s, "W/a/ lead"s, "W/a/100%"s, "W/a/100%x"s,
          "W/a/$HOME"s, "W/a/~"s, "W/a/x:stream"s, "W/a/caf\u00e9"s, "W/a/\u00e4\u4e2d"s,
          "W/a/x;y"s, "W/a/a.b.c"s, "W/a/..a"s})
        EXPECT_TRUE(w.holds(path)) << path;
}

TEST(Paths, HoldsNothingElse) {
    const world w;
    for (const auto& path : {
             "W/a/../b"s,
             "W/a/../b/secret"s,
             "W/ab"s,
             "W/a-evil/x"s,
             "W/A/x"s,
             "W"s,
             "W/"s,
             "/"s,
             "W/b/secret"s,
             "W/a/../../etc/passwd"s,
             "W/a/.."s,
             "W/a/sub/../.."s,
             "W/a/new/../x"s,    // the kernel cannot walk it
             "W/a/new/../../b"s, // and folding leads out
             "W/a/x/../x"s,      // x is no directory
             "W/a/x/y"s,         // nor is it one here
             ""s,
             "a/x"s,
             "x"s,
             "./a/x"s,
             "../a/x"s,
             "~/x"s,
             "~"s,
             "$HOME/x"s,
             "file://W/a/x"s,
             "file:W/a/x"s,
             " W/a/x"s,
             "\tW/a/x"s,
             "\"W/a/x\""s,
             "C:\\x"s,
             "\\\\W\\a"s,
             // What some reader would decode, strip, fold or not see.
             "W/a/%2e%2e/b"s,
             "W/a/%252e%252e/b"s,
             "W/a/..%2fb"s,
             "W/a/%2E%2E/b"s,
             "W/a/x%00"s,
             "W/a/a%20b"s,
             "W/a/..;/b"s,
             "W/a/..;x"s,
             "W/a/..\\b"s,
             "W/a\\..\\b"s,
             "W/a/x\\y"s,
             "W/a/\uff0e\uff0e/b"s,
             "W/a/\u2025/b"s,
             "W/a/\u2024\u2024/b"s,
             "W/a/..\uff0fb"s,
             "W/a/..\u2215b"s,
             "W/a/\ufe52\ufe52/b"s,
             "W/a/x\0.png"s,
             "W/a/x\0"s,
             "\0W/a/x"s,
             "W/a/x "s,
             "W/a/x."s,
             "W/a/x\n"s,
             "W/a/x\r"s,
             "W/a/x\t"s,
             "W/a/x\x7f"s,
             "W/a/x\x01"s,
             "W/a/... /b"s,
             "W/a/.../b"s,
             "W/a/.. /b"s,
             "W/a/sub /x"s,
             "W/a/sub./x"s,
             "W/a/\u202ex"s,
             "W/a/x\u200d"s,
             "W/a/\u200bx"s,
             "W/a/\ufeffx"s,
             "W/a/\u2028x"s,
             "W/a/\u0085x"s,
             "W/a/x\u00ad"s,
             "W/a/\U000e0041x"s,
             "W/a/\u2066x"s,
             // Not UTF-8.
             "W/a/\xff"s,
             "W/a/\xc0\xae\xc0\xae/b"s,
             "W/a/\xed\xa0\x80"s,
             "W/a/\xe2\x80"s,
             // By the kernel's magic.
             "/proc/self/root/W/a/x"s,
             "/proc/self/root/W/b"s,
             "/proc/self/cwd"s,
             "/proc/self/cwd/x"s,
             "/dev/fd/3"s,
             "/dev/stdin"s,
             "/proc/1/root/W/a"s,
         })
        EXPECT_FALSE(w.holds(path)) << path;
}

TEST(Paths, ComparesNamesAsBytes) {
    const test::folder place;
    place.directory("caf\u00e9");
    place.directory("cafe\u0301");
    const auto root = rooted(place / "caf\u00e9");
    EXPECT_TRUE(root.holds(place / "caf\u00e9/x"));
    EXPECT_FALSE(root.holds(place / "cafe\u0301/x"));
    EXPECT_FALSE(root.holds(place / "CAF\u00c9/x"));
}

TEST(Paths, BoundsTheLengthOfAPathAndOfAName) {
    const world w;
    const auto root = w.root();
    const auto name = [&](std::size_t size) { return w.place / ("a/" + std::string(size, 'n')); };
    EXPECT_TRUE(root.holds(name(255)));
    EXPECT_FALSE(root.holds(name(256)));
    const auto path = [&](std::size_t size) {
        auto out = w.place / "a";
        while (out.size() < size) out += out.size() + 2 > size ? "/" : "/n";
        return out;
    };
    ASSERT_EQ(path(4095).size(), 4095U);
    EXPECT_TRUE(root.holds(path(4095)));
    ASSERT_EQ(path(4096).size(), 4096U);
    EXPECT_FALSE(root.holds(path(4096)));
    EXPECT_FALSE(root.holds(path(100'000)));
}

TEST(Paths, FollowsLinksOnlyAsFarAsTheyStayBeneath) {
    const world w;
    w.place.link("a/near", "sub/deep");
    w.place.link("a/sub/up", "../x");
    w.place.link("a/out", "../b");
    w.place.link("a/out_file", "../b/secret");
    w.place.link("a/absolute", w.place / "b");
    w.place.link("a/back", w.place / "a/sub"); // absolute, so it could be led elsewhere
    w.place.link("a/self", "self");
    w.place.link("a/nowhere", "../b/not-yet");
    w.place.link("a/nowhere_near", "not-yet");
    w.place.link("a/proc", "/proc/self/root");
    w.place.link("a/sub/around", "../../a/x"); // out and in again
    for (const auto& path :
         {"W/a/near"s, "W/a/near/x"s, "W/a/near/new"s, "W/a/sub/up"s, "W/a/near/../deep"s})
        EXPECT_TRUE(w.holds(path)) << path;
    for (const auto& path :
         {"W/a/out"s, "W/a/out/"s, "W/a/out/secret"s, "W/a/out/new"s, "W/a/out_file"s,
          "W/a/absolute/secret"s, "W/a/absolute"s, "W/a/back/x"s, "W/a/self"s, "W/a/nowhere"s,
          "W/a/nowhere/x"s, "W/a/nowhere_near"s, "W/a/proc/etc"s, "W/a/sub/around"s,
          "W/a/out/../x"s, "W/a/sub/../out/secret"s})
        EXPECT_FALSE(w.holds(path)) << path;
}

// One who folds ".." and one who walks must both stay inside.
TEST(Paths, HoldsDotsOnlyWhenBothReadingsStayBeneath) {
    const world w;
    w.place.directory("a/p/q/r/s");
    w.place.link("a/far", "p/q/r/s");
    // Walked, it is W/a/x; folded, it is above the root.
    EXPECT_FALSE(w.holds("W/a/far/../../../../x"));
    // Folded, it is W/a/x; walked, it is W/a/p/q/r/x, which does not exist but may.
    EXPECT_TRUE(w.holds("W/a/far/../x"));
    // Folded, it is W/a/x; walked, it leads out.
    w.place.link("a/p/leave", "../../b");
    EXPECT_FALSE(w.holds("W/a/p/leave/../a/x"));
    EXPECT_FALSE(w.holds("W/a/p/leave/../secret"));
    // By a link of somebody else's beside the root.
    w.place.link("b/in", "../a");
    EXPECT_FALSE(w.holds("W/b/in/x"));
    EXPECT_FALSE(w.holds("W/a/../b/in/x"));
    EXPECT_TRUE(w.holds("W/b/../a/x"));
}

TEST(Paths, HoldsARootByTheNameItWasGivenAndByItsOwn) {
    const world w;
    w.place.link("alias", "a");
    const auto root = rooted(w.place / "alias");
    EXPECT_TRUE(root.holds(w.place / "alias/x"));
    EXPECT_TRUE(root.holds(w.place / "alias/sub/../x"));
    EXPECT_TRUE(root.holds(w.place / "a/x"));
    EXPECT_FALSE(root.holds(w.place / "alias/../b/secret"));
    EXPECT_FALSE(root.holds(w.place / "alias/../a-evil/x"));
    // The name leads elsewhere now: a server would follow it there.
    std::filesystem::remove(w.place / "alias");
    w.place.link("alias", "b");
    EXPECT_FALSE(root.holds(w.place / "alias/secret"));
    EXPECT_TRUE(root.holds(w.place / "a/x"));
}

TEST(Paths, HoldsNothingWhenItsNameHasGone) {
    const world w;
    const auto root = w.root();
    EXPECT_TRUE(root.holds(w.place / "a/x"));
    std::filesystem::rename(w.place / "a", w.place / "moved");
    EXPECT_FALSE(root.holds(w.place / "a/x"));
    w.place.link("a", "b");
    EXPECT_FALSE(root.holds(w.place / "a/secret"));
    std::filesystem::remove(w.place / "a");
    w.place.directory("a");
    EXPECT_FALSE(root.holds(w.place / "a/x")) << "another directory of the same name";
    std::filesystem::remove(w.place / "a");
    std::filesystem::rename(w.place / "moved", w.place / "a");
    EXPECT_TRUE(root.holds(w.place / "a/x"));
}

TEST(Paths, HoldsASingleFile) {
    const world w;
    const auto root = rooted(w.place / "a/x");
    EXPECT_TRUE(root.holds(w.place / "a/x"));
    EXPECT_TRUE(root.holds(w.place / "a/sub/../x"));
    for (const auto* other : {"a", "a/x/y", "a/xy", "a/sub", "a/x/.."})
        EXPECT_FALSE(root.holds(w.place / other)) << other;
}

TEST(Paths, HoldsTheWholeTreeOfTheRoot) {
    const auto root = rooted("/");
    EXPECT_TRUE(root.holds("/"));
    EXPECT_TRUE(root.holds("/usr/bin"));
    EXPECT_TRUE(root.holds("/usr/../usr"));
    EXPECT_FALSE(root.holds("/.."));
    EXPECT_FALSE(root.holds("/proc/self/root"));
}

TEST(Paths, ReadsRelativePathsFromTheRootWhenTheRuleSaysSo) {
    const world w;
    w.place.link("a/out", "../b");
    const auto root = w.root();
    for (const auto* path : {"x", "sub/deep", "./x", "sub/../x", ".", "new/file", "..data"})
        EXPECT_TRUE(root.holds_relative(path)) << path;
    for (const auto* path :
         {"", "..", "../b", "../a/x", "sub/../../a/x", "/x", "~/x", "~", "$HOME", "-x", "--help",
          "C:/x", "file:///x", "a:b", "out/secret", "x\n", "..\\x", "%2e%2e/b"})
        EXPECT_FALSE(root.holds_relative(path)) << path;
    EXPECT_TRUE(root.holds_relative("sub/a:b"));
}

TEST(Paths, AreRelativeOnlyByAKeyOfTheRule) {
    const world w;
    const auto table = [&](const std::string& more) {
        return "[[tool.\"up.t\".argument]]\nat = \"/p\"\npath_under = [\"" + (w.place / "a") +
               "\"]\n" + more;
    };
    EXPECT_EQ(policy::scene::answer_of(table(""), R"({"p":"x"})"),
              "argument /p is not below a permitted directory");
    EXPECT_EQ(policy::scene::answer_of(table("relative = true\n"), R"({"p":"x"})"), "ok");
    EXPECT_EQ(policy::scene::answer_of(table("relative = true\n"),
                                       R"({"p":")" + (w.place / "a/x") + R"("})"),
              "ok");
    EXPECT_EQ(policy::scene::answer_of(table("relative = true\n"), R"({"p":"../b"})"),
              "argument /p is not below a permitted directory");
}

// A list of files is as good as its worst.
TEST(Paths, AreJudgedInEveryItemOfAnArray) {
    const world w;
    const auto table = "[[tool.\"up.t\".argument]]\nat = \"/files/*\"\npath_under = [\"" +
                       (w.place / "a") + "\", \"" + (w.place / "ab") + "\"]\n" +
                       "[[tool.\"up.t\".argument]]\nat = \"/edits/*/path\"\noptional = true\n"
                       "path_under = [\"" +
                       (w.place / "a") + "\"]\n";
    const auto ask = [&](const std::string& text) {
        return policy::scene::answer_of(table, in(w.place, text));
    };
    EXPECT_EQ(ask(R"({"files":["W/a/x","W/ab/y"]})"), "ok");
    EXPECT_EQ(ask(R"({"files":[]})"), "ok");
    EXPECT_EQ(ask(R"({"files":["W/a/x"],"edits":[{"path":"W/a/x"},{"path":"W/a/y"}]})"), "ok");
    EXPECT_EQ(ask(R"({"files":["W/a/x","../../../.kube/config"]})"),
              "argument /files/1 is not below a permitted directory");
    EXPECT_EQ(ask(R"({"files":["W/a/x","W/b/secret"]})"),
              "argument /files/1 is not below a permitted directory");
    EXPECT_EQ(ask(R"({"files":["W/a/x",["W/a/x"]]})"), "argument /files/1 is not a string");
    EXPECT_EQ(ask(R"({"files":["W/a/x",null]})"), "argument /files/1 is not a string");
    EXPECT_EQ(ask(R"({"files":"W/a/x"})"), "argument /files is not an array");
    EXPECT_EQ(ask(R"({"files":{"0":"W/a/x"}})"), "argument /files is not an array");
    EXPECT_EQ(ask(R"({})"), "argument /files is missing");
    EXPECT_EQ(ask(R"({"files":[],"edits":[{"path":"W/a/x"},{"path":"W/b/x"}]})"),
              "argument /edits/1/path is not below a permitted directory");
    EXPECT_EQ(ask(R"({"files":[],"edits":[{"path":"W/a/x","to":"/etc"}]})"),
              "argument /edits/0/to is not one that the rules of this tool speak of");
    EXPECT_EQ(ask(R"({"files":[],"edits":["W/a/x"]})"), "argument /edits/0 is not an object");
    // The name in another place is not the argument that the rule speaks of.
    EXPECT_EQ(ask(R"({"files":[],"options":{"files":["/etc"]}})"),
              "argument /options is not one that the rules of this tool speak of");
    for (const auto* other : {"Files", "FILES", "files "})
        EXPECT_EQ(ask(R"({"files":[],")" + std::string{other} + R"(":["/etc"]})"),
                  "argument /" + std::string{other} +
                      " is not one that the rules of this tool speak of");
}

} // namespace
