#include "policy/scene.hpp"
#include "support/folder.hpp"
#include <filesystem>
#include <gmock/gmock.h>
#include <sys/stat.h>

namespace {

using namespace glove;
using namespace glove::policy;
using namespace glove::policy::scene;
using testing::HasSubstr;

const std::string tool = "[tool.\"up.t\"]\nallow = true\n";
const std::string argument = tool + "[[tool.\"up.t\".argument]]\nat = \"/a\"\n";

struct bad_file {
    std::string text;
    std::string_view says;
};

TEST(PolicyFile, NamesTheLineAndTheMendOfEveryMistake) {
    const bad_file cases[] = {
        {"tools = 1\n", "policy:1: tools: there is no such key | the keys here are tool, roots, "
                        "resources, prompts"},
        {"\n\n[tol.\"up.t\"]\n", "policy:3: tol: there is no such key"},
        {"tool = 1\n", "policy:1: tool: is not a table"},
        {"[tool.up.t]\nallow = true\n",
         "[tool.\"up\"]: is not the table of a tool | write the name "
         "in quotes"},
        {"[tool.\"up\"]\nallow = true\n", "is not the table of a tool"},
        {"[tool]\n\"up.t\" = true\n", "is not the table of a tool"},
        {"[tool.\"nosuch.t\"]\nallow = true\n",
         "policy:1: [tool.\"nosuch.t\"]: there is no "
         "upstream 'nosuch' | the upstreams are fs, git, up"},
        {"[tool.\"up.t_*\"]\nallow = true\n", "has a '*'"},
        {"[tool.\"up.\"]\nallow = true\n", "names no tool"},
        {tool + "alow = true\n", "policy:3: [tool.\"up.t\"] alow: there is no such key | the keys "
                                 "here are allow, additional, timeout"},
        {"[tool.\"up.t\"]\nallow = \"yes\"\n", "policy:2: [tool.\"up.t\"] allow: is not true or "
                                               "false"},
        {"[tool.\"up.t\"]\nallow = 1\n", "is not true or false"},
        {"[tool.\"up.t\"]\ncalls = 1\n", "[tool.\"up.t\"]: has no effect: no rule allows up.t"},
        {tool + "additional = 1\n", "is not true or false"},
        {tool + "timeout = 30\n", "timeout: is not a string"},
        {tool + "timeout = \"30x\"\n", "timeout: '30x' is not a time such as 90s"},
        {tool + "timeout = \"0s\"\n", "is no time at all"},
        {tool + "result_bytes = \"1X\"\n", "is not a size"},
        {tool + "result_bytes = 0\n", "is not a size"},
        {tool + "result_bytes = -1\n", "is not a size"},
        {tool + "result_bytes = true\n", "is not a size"},
        {tool + "calls = 0\n", "calls: is not an integer from 1 to 1000000000"},
        {tool + "calls = 1000000001\n", "is not an integer from 1"},
        {tool + "calls = \"1\"\n", "is not an integer from 1"},
        {tool + "calls = 1.5\n", "is not an integer from 1"},
        {tool + "per_minute = 0\n", "per_minute: is not an integer from 1 to 60000"},
        {tool + "per_minute = 60001\n", "is not an integer from 1 to 60000"},
        {tool + "redact = \"x\"\n", "redact: is not an array"},
        {tool + "redact = []\n", "is an empty array"},
        {tool + "redact = [1]\n", "is not a string"},
        {tool + "redact = [\"(\"]\n", "the regular expression '(' cannot be used: missing )"},
        {tool + "redact = [\"a*\"]\n", "also matches an empty text"},
        {tool + "redact = ['(?=x)']\n", "cannot be used"},
        {tool + "required = [\"path\"]\n", "required: 'path' is not a place in the arguments | "
                                           "write a JSON Pointer"},
        {tool + "required = [\"\"]\n", "is not a place"},
        {tool + "required = [\"/*\"]\n", "is not a place"},
        {tool + "required = [\"/a~2\"]\n", "is not a place"},
        {tool + "required = [\"/a~\"]\n", "is not a place"},
        {tool + "required = [\"/a\"]\nforbidden = [\"/a\"]\n", "/a is forbidden, and another rule "
                                                               "wants it"},
        {tool + "argument = 1\n", "argument: is not a list of tables"},
        {tool + "argument = []\n", "is not a list of tables"},
        {tool + "[tool.\"up.t\".argument]\nat = \"/a\"\n", "is not a list of tables"},
        {argument, "policy:3: [tool.\"up.t\"] argument: says nothing about the value | add "
                   "path_under"},
        {argument + "at = \"/b\"\n", "policy:5"}, // a key may be given once
        {tool + "[[tool.\"up.t\".argument]]\nany = true\n", "says nothing about where it applies"},
        {argument + "any = false\n", "any: is false, which says nothing"},
        {argument + "any = 1\n", "is not true or false"},
        {argument + "not_leading_dash = false\n", "is false, which says nothing"},
        {argument + "optional = 1\nany = true\n", "is not true or false"},
        {argument + "match = 1\n", "is not a string"},
        {argument + "match = \"[\"\n", "cannot be used: missing ]"},
        {argument + "match = '(a)\\1'\n", "cannot be used"},
        {argument + "equals = [1]\n", "equals: is not a string, an integer, or true or false"},
        {argument + "equals = 1.5\n", "other numbers can be bounded with range"},
        {argument + "equals = 2020-01-01\n", "is not a string, an integer"},
        {argument + "in = 1\n", "in: is not an array"},
        {argument + "in = []\n", "is an empty array"},
        {argument + "in = [[1]]\n", "is not a string, an integer"},
        {argument + "range = [1]\n", "range: is not [LEAST, MOST] with two numbers"},
        {argument + "range = [2, 1]\n", "is not [LEAST, MOST]"},
        {argument + "range = [nan, 1]\n", "is not [LEAST, MOST]"},
        {argument + "range = [0, inf]\n", "is not [LEAST, MOST]"},
        {argument + "range = [\"0\", 1]\n", "is not [LEAST, MOST]"},
        {argument + "range = 1\n", "is not [LEAST, MOST]"},
        {argument + "length = [-1, 1]\n", "length: is not [LEAST, MOST] with two integers"},
        {argument + "length = [1.0, 2]\n", "is not [LEAST, MOST]"},
        {argument + "length = [2, 1]\n", "is not [LEAST, MOST]"},
        {argument + "path_under = \"/\"\n", "path_under: is not an array | write it in [ ]"},
        {argument + "path_under = [\"srv\"]\n", "'srv' is not a path | begin it by /"},
        {argument + "path_under = [\"/nosuch/glove\"]\n", "cannot be used: No such file or "
                                                          "directory | make it first"},
        {argument + "path_under = [\"/proc/self/root\"]\n", "cannot be used"},
        {argument + "path_under = [\"/\\u0000x\"]\n", "holds a NUL"},
        {argument + "path_under = [\"/\", \"/usr\"]\nrelative = true\n",
         "relative needs path_under "
         "with exactly one"},
        {argument + "relative = true\nany = true\n", "relative needs path_under"},
        {argument + "url_host = [\"https://a.example\"]\n", "is a URL or part of one, not a host"},
        {argument + "url_host = [\"*.a.example\"]\n", ".a.example stands for"},
        {argument + "schemes = [\"https\"]\nany = true\n", "schemes needs url_host"},
        {argument + "url_host = [\"a.example\"]\nschemes = [\"HTTPS\"]\n", "is not a scheme"},
        {argument + "url_host = [\"a.example\"]\nschemes = [\"https:\"]\n", "is not a scheme"},
        {argument + "any = true\nmach = \"x\"\n", "mach: there is no such key | the keys here are "
                                                  "at, path_under"},
        {argument + "any = true\n[[tool.\"up.t\".argument]]\nat = \"/a/b\"\nany = true\n"
                    "[[tool.\"up.t\".argument]]\nat = \"/a/*\"\nany = true\n",
         "rules speak of /a as an array and as an object"},
        {"[roots]\nnosuch = [\"/\"]\n", "roots nosuch: there is no upstream 'nosuch'"},
        {"[roots]\nup = \"/\"\n", "roots up: is not an array"},
        {"[roots]\nup = [\"/nosuch/glove\"]\n", "cannot be used"},
        {"[roots]\nup = [\"/etc/passwd\"]\n", "is not a directory"},
        {"roots = [\"/\"]\n", "roots: is not a table"},
        {"[resources.nosuch]\nallow = [\"x:\"]\n", "there is no upstream"},
        {"[resources.up]\n", "says nothing"},
        {"[resources.up]\nallow = [\"plain\"]\n", "is not the beginning of a URI"},
        {"[resources.up]\nallow = [\":x\"]\n", "is not the beginning of a URI"},
        {"[resources.up]\nallow = [\"file://host/x\"]\n", "is not a path"},
        {"[resources.up]\ndeny = [\"x:\"]\n", "deny: there is no such key | the keys here are "
                                              "allow"},
        {"[prompts.up]\nallow = [1]\n", "is not a string"},
        {"[prompts]\nup = [\"x\"]\n", "prompts up: is not a table"},
        {tool + tool, "policy:3"},
        {"[tool.\"up.t\"\n", "policy:1"},
        {"a = \"\xff\"\n", "policy:1"},
        {"\n\u017f = 1\n", "policy:2: a character beyond ASCII outside of quotes | put it in"},
        {"a =\u00a1 1\n", "policy:1: a character beyond ASCII outside"},
        {"a = \"\"\"\\\n\u00e9\"\"\"\n", "policy:2: a character beyond ASCII outside"},
        {"a = '''\u00e9'''\u00e9\n", "policy:1: a character beyond ASCII outside"},
        {"a = \"\\\"\"\u00e9\n", "policy:1: a character beyond ASCII outside"},
        {"a" + std::string(1025, '.'), "more than 1024 dots in one line"},
        {"x = " + std::string(300, '[') + "\n", "policy:1"},
    };
    for (const auto& each : cases) {
        const auto problem = problem_of({}, each.text);
        EXPECT_THAT(problem, HasSubstr(each.says)) << each.text;
        EXPECT_THAT(problem, HasSubstr("policy.file")) << each.text;
    }
}

TEST(PolicyFile, TakesOtherAlphabetsInQuotesAndComments) {
    const auto text =
        "# caf\u00e9 \"\n" + argument +
        "in = [\"caf\u00e9\", '\u00a1', '''\u017f''', \"\\\"\u00e9\", \"\"] # \u00e9\n";
    EXPECT_EQ(problem_of({}, text), "");
    EXPECT_EQ(answer(made({}, text), {"up", "t"}, "{\"a\":\"\u017f\"}"), "ok");
}

TEST(PolicyFile, BoundsItsSizeAndItsLists) {
    const std::string line = "# a comment\n";
    std::string text = tool;
    while (text.size() + line.size() <= (1U << 20)) text += line;
    text += std::string((1U << 20) - text.size(), '\n');
    EXPECT_EQ(problem_of({}, text), "");
    EXPECT_THAT(problem_of({}, text + "\n"), HasSubstr("policy is larger than 1 MiB"));

    const auto items = [](std::size_t count) {
        std::string out = argument + "in = [0";
        for (std::size_t i = 1; i < count; ++i) out += "," + std::to_string(i);
        return out + "]\n";
    };
    EXPECT_EQ(problem_of({}, items(1024)), "");
    EXPECT_THAT(problem_of({}, items(1025)), HasSubstr("holds more than 1024 items"));

    const auto arguments = [](std::size_t count) {
        std::string out = tool;
        for (std::size_t i = 0; i < count; ++i)
            out += "[[tool.\"up.t\".argument]]\nat = \"/a" + std::to_string(i) + "\"\nany = true\n";
        return out;
    };
    EXPECT_EQ(problem_of({}, arguments(256)), "");
    EXPECT_THAT(problem_of({}, arguments(257)), HasSubstr("there are more than 256"));

    const auto deep = [](int parts) {
        std::string out = tool + "required = [\"";
        for (int i = 0; i < parts; ++i) out += "/a";
        return out + "\"]\n";
    };
    EXPECT_EQ(problem_of({}, deep(16)), "");
    EXPECT_THAT(problem_of({}, deep(17)), HasSubstr("is not a place"));
}

TEST(PolicyFile, TellsServersTheirRoots) {
    const test::folder place;
    place.directory("a b");
    const auto of = made({}, "[roots]\nup = [\"" + (place / "a b") + "\", \"/\"]\n");
    const auto roots = of.roots("up");
    ASSERT_EQ(roots.size(), 2U);
    EXPECT_EQ(roots[0].uri, "file://" + place.path() + "/a%20b");
    EXPECT_EQ(roots[0].name, "a b");
    EXPECT_EQ(roots[1].uri, "file:///");
    EXPECT_TRUE(of.roots("fs").empty());
    EXPECT_TRUE(of.roots("nosuch").empty());
}

TEST(PolicyFile, NarrowsResourcesAndPrompts) {
    const test::folder place;
    place.directory("a");
    place.file("secret");
    const auto of =
        made({}, "[resources.up]\nallow = [\"memo://open\", \"db:\", \"file://" + (place / "a") +
                     "\"]\n[prompts.up]\nallow = [\"review\"]\n[resources.git]\nallow "
                     "= []\n[prompts.git]\nallow = []\n");
    for (const auto& uri :
         {std::string{"memo://open"}, std::string{"memo://open/x"}, std::string{"memo://open?x"},
          std::string{"db:table"}, "file://" + (place / "a/x"), "file://" + (place / "a")})
        EXPECT_TRUE(of.reads("up", uri).allowed) << uri;
    for (const auto& uri :
         {std::string{"memo://opened"}, std::string{"memo://ope"}, std::string{"MEMO://open"},
          std::string{"memo://open/../closed"}, std::string{"memo://open/%2e%2e/closed"},
          std::string{"memo://open/..%2fclosed"}, std::string{"memo://open/x y"},
          std::string{"memo://open/\n"}, std::string{"memo://open\\x"}, std::string{""},
          std::string{"http://x/"}, "file://" + (place / "a/../secret"),
          "file://" + (place / "secret"), "file://" + (place / "a/%2e%2e/secret"),
          "file://" + (place / "ab"), "file://localhost" + (place / "a/x"),
          "FILE://" + (place / "a/x")})
        EXPECT_EQ(of.reads("up", uri).rule, "no rule allows this resource") << uri;
    EXPECT_TRUE(of.prompts("up", "review").allowed);
    EXPECT_EQ(of.prompts("up", "Review").rule, "no rule allows this prompt");
    EXPECT_FALSE(of.reads("git", "memo://open").allowed);
    EXPECT_FALSE(of.prompts("git", "review").allowed);
    EXPECT_TRUE(of.reads("fs", "anything:").allowed); // what is not narrowed
    EXPECT_TRUE(of.prompts("fs", "anything").allowed);
    EXPECT_FALSE(of.reads("nosuch", "anything:").allowed);
    EXPECT_FALSE(of.prompts("nosuch", "anything").allowed);
}

TEST(PolicyFile, AddsToTheRulesOfTheCommandLine) {
    const auto of = made({.allow = {"up.t"}, .allow_arg = {"up.t:a=x"}},
                         "[[tool.\"up.t\".argument]]\nat = \"/a\"\nlength = [1, 3]\n");
    EXPECT_EQ(answer(of, {"up", "t"}, R"({"a":"xyz"})"), "ok");
    EXPECT_EQ(answer(of, {"up", "t"}, R"({"a":"xyzz"})"),
              "argument /a is not of a permitted length");
    EXPECT_EQ(answer(of, {"up", "t"}, R"({"a":"yz"})"), "argument /a does not begin as permitted");
}

// The file itself.

auto loaded(const std::string& path) -> std::string {
    const auto out =
        engine::load({.allow = {}, .deny = {}, .allow_arg = {}, .file = path}, upstreams, nowhere);
    return out ? out->describe() : told(out.error());
}

TEST(PolicyFile, IsTheOwnersAlone) {
    const test::folder place;
    for (const ::mode_t mode : {0600U, 0400U, 0700U}) {
        const auto path = place.file("policy" + std::to_string(mode), tool, mode);
        EXPECT_THAT(loaded(path), HasSubstr("up.t: allowed")) << std::oct << mode;
    }
    for (const ::mode_t mode : {0640U, 0604U, 0620U, 0602U, 0666U, 0644U}) {
        const auto path = place.file("open" + std::to_string(mode), tool, mode);
        EXPECT_THAT(loaded(path), HasSubstr(path + " can be read or written by others | use a file "
                                                   "of your own, with one name: chmod 600"))
            << std::oct << mode;
    }
}

TEST(PolicyFile, IsNoLinkAndHasOneName) {
    const test::folder place;
    const auto path = place.file("policy", tool, 0600);
    EXPECT_THAT(loaded(place.link("link", path)), HasSubstr("is a link"));
    EXPECT_THAT(loaded(place.link("dangling", place / "nothing")), HasSubstr("is a link"));
    EXPECT_THAT(loaded(path), HasSubstr("up.t: allowed"));
    ASSERT_EQ(::link(path.c_str(), (place / "second").c_str()), 0);
    EXPECT_THAT(loaded(path), HasSubstr("has more than one name"));
}

TEST(PolicyFile, IsARegularFileThatIsThere) {
    const test::folder place;
    EXPECT_THAT(loaded(place / "nothing"), HasSubstr("not_found: policy.file: " + place / ""));
    EXPECT_THAT(loaded(place.directory("directory", 0700)), HasSubstr("is not a regular file"));
    EXPECT_THAT(loaded(place.fifo("fifo")), HasSubstr("is not a regular file")); // does not wait
}

TEST(PolicyFile, BelongsToTheCaller) {
    const test::folder place;
    auto path = std::string{"/etc/passwd"}; // of root, for everybody else
    if (::geteuid() == 0) {
        path = place.file("policy", tool, 0600);
        ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
    }
    EXPECT_THAT(loaded(path), HasSubstr(path + " belongs to another user"));
}

TEST(PolicyFile, IsNotReadBeyondItsBound) {
    const test::folder place;
    const auto full = tool + std::string((1U << 20) - tool.size(), '\n');
    EXPECT_THAT(loaded(place.file("full", full, 0600)), HasSubstr("up.t: allowed"));
    EXPECT_THAT(loaded(place.file("over", full + "\n", 0600)),
                HasSubstr("limit_exceeded: policy.file"));
}

TEST(PolicyFile, IsNamedInItsErrors) {
    const test::folder place;
    const auto path = place.file("policy.toml", "\nx = 1\n", 0600);
    EXPECT_THAT(loaded(path), HasSubstr(path + ":2: x: there is no such key"));
}

} // namespace
