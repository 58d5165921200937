#include "policy/scene.hpp"
#include "support/folder.hpp"
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <glove/wire/json_writer.hpp>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

namespace {

using namespace glove;
using namespace glove::policy;
using namespace glove::policy::scene;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Engine, DeniesWhatNoRuleAllows) {
    const auto of = made({.allow = {"fs.read"}});
    EXPECT_TRUE(of.shows({"fs", "read"}).allowed);
    EXPECT_EQ(of.shows({"fs", "write"}).rule, "no rule allows fs.write");
    EXPECT_EQ(answer(of, {"fs", "read"}, "{}"), "ok");
    EXPECT_EQ(answer(of, {"fs", "write"}, "{}"), "no rule allows fs.write");
    for (const tool_name& other : {tool_name{"git", "read"},
                                   {"fs", "Read"},
                                   {"fs", "read "},
                                   {"fs", "rea"},
                                   {"fs", "read.x"},
                                   {"fs", ""},
                                   {"fs", "*"},
                                   {"FS", "read"},
                                   {"", "read"},
                                   {"other", "read"}}) {
        EXPECT_FALSE(of.shows(other).allowed) << other.upstream << "." << other.tool;
        EXPECT_FALSE(of.decides(other, nullptr).allowed) << other.upstream << "." << other.tool;
    }
    EXPECT_FALSE(made({}).shows({"fs", "read"}).allowed);
}

TEST(Engine, LetsADenialWin) {
    const auto one = made({.allow = {"fs.*"}, .deny = {"fs.write"}});
    EXPECT_TRUE(one.shows({"fs", "read"}).allowed);
    EXPECT_EQ(one.shows({"fs", "write"}).rule, "fs.write is denied");
    EXPECT_EQ(answer(one, {"fs", "write"}, "{}"), "fs.write is denied");
    EXPECT_FALSE(one.shows({"git", "read"}).allowed);
    const auto all = made({.allow = {"fs.read"}, .deny = {"fs.*"}});
    EXPECT_FALSE(all.shows({"fs", "read"}).allowed);
    // In whichever order, and whichever of the command line and the file says it.
    const auto mixed = made({.allow = {"fs.*"}}, "[tool.\"fs.write\"]\nallow = false\n");
    EXPECT_FALSE(mixed.shows({"fs", "write"}).allowed);
    EXPECT_TRUE(mixed.shows({"fs", "read"}).allowed);
    const auto other = made({.deny = {"fs.write"}}, "[tool.\"fs.*\"]\nallow = true\n");
    EXPECT_FALSE(other.shows({"fs", "write"}).allowed);
    EXPECT_TRUE(other.shows({"fs", "read"}).allowed);
}

TEST(Engine, TakesTheFirstDotAsTheSeparator) {
    const auto of = made({.allow = {"up.mcp.echo"}});
    EXPECT_TRUE(of.shows({"up", "mcp.echo"}).allowed);
    EXPECT_FALSE(of.shows({"up", "echo"}).allowed);
    EXPECT_THAT(of.named_tools(), ElementsAre("up.mcp.echo"));
}

TEST(Engine, TellsWhoseArgumentsItLooksAt) {
    const auto of = made({.allow = {"fs.*", "git.*"}, .allow_arg = {"git.log:path=a"}},
                         "[tool.\"up.t\"]\nallow = true\nforbidden = [\"/force\"]\n");
    EXPECT_TRUE(of.judges_arguments({"git", "log"}));
    EXPECT_TRUE(of.judges_arguments({"up", "t"}));
    EXPECT_FALSE(of.judges_arguments({"git", "show"}));
    EXPECT_FALSE(of.judges_arguments({"fs", "read"}));
    EXPECT_FALSE(of.judges_arguments({"nosuch", "t"})); // denied whatever they are
    EXPECT_EQ(answer(of, {"fs", "read"}, "{\"a\":1}"), "ok");
}

struct bad_word {
    wish what;
    std::string_view says;
};
TEST(Engine, NamesTheFlagTheWordAndTheMendOfAMistake) {
    const bad_word cases[] = {
        {{.allow = {"nosuch.read"}},
         "--allow 'nosuch.read': there is no upstream 'nosuch' | the "
         "upstreams are fs, git, up"},
        {{.deny = {"nosuch.*"}},
         "--deny 'nosuch.*': there is no upstream 'nosuch' | the upstreams"},
        {{.allow = {"read"}},
         "--allow 'read': 'read' has no dot between an upstream and a tool | "
         "write UPSTREAM.TOOL"},
        {{.allow = {""}}, "--allow '': '' has no dot"},
        {{.allow = {".read"}}, "names no upstream"},
        {{.allow = {"fs."}}, "names no tool"},
        {{.allow = {"fs.read_*"}},
         "has a '*' that does not stand for a whole name | name each "
         "tool, or all of the upstream's with fs.*"},
        {{.allow = {"fs.**"}}, "has a '*'"},
        {{.allow = {"*"}}, "has no dot"},
        {{.allow = {"*.*"}}, "there is no upstream '*'"},
        {{.allow = {"fs.re\nad"}}, "'fs.re\\x0aad' holds no name that a tool can have"},
        {{.allow = {"fs. read"}}, "holds no name"},
        {{.allow = {"fs.read "}}, "holds no name"},
        {{.allow = {"fs." + std::string(257, 'a')}}, "holds no name"},
        {{.deny = {"fs"}}, "--deny 'fs'"},
        {{.allow = {"fs.read"}, .allow_arg = {"fs.read"}},
         "--allow-arg 'fs.read': is not "
         "TOOL:FIELD=PREFIX | write"},
        {{.allow = {"fs.read"}, .allow_arg = {"fs.read:path"}}, "is not TOOL:FIELD=PREFIX"},
        {{.allow = {"fs.read"}, .allow_arg = {"fs.read=path:x"}}, "is not TOOL:FIELD=PREFIX"},
        {{.allow = {"fs.read"}, .allow_arg = {"fs.read:=x"}}, "names no field"},
        {{.allow = {"fs.read"}, .allow_arg = {"fs.read:path="}}, "has an empty prefix"},
        {{.allow = {"fs.read"}, .allow_arg = {"nosuch.read:path=x"}}, "there is no upstream"},
        {{.allow = {"fs.read"}, .allow_arg = {"fs.write:path=x"}},
         "--allow-arg 'fs.write:path=x': has no effect: no rule allows fs.write | allow it as "
         "well: --allow fs.write"},
        {{.allow = {"fs.read"}, .deny = {"fs.read"}, .allow_arg = {"fs.read:path=x"}},
         "has no effect: fs.read is denied"},
        {{.allow = {"git.log"}, .allow_arg = {"fs.*:path=x"}}, "no rule allows fs.*"},
        {{.allow = {"fs.read"}, .allow_arg = {"fs.read:path=~other/x"}},
         "names the home of "
         "another user"},
        {{.allow = {"fs.read"}, .allow_arg = {"fs.read:path=$HOME/x"}},
         "variables are not "
         "replaced"},
        {{.allow = {"fs.read"}, .allow_arg = {"fs.read:uri=file:///srv"}},
         "a file URI is not "
         "compared as a path"},
        {{.allow = {"fs.read"}, .allow_arg = {"fs.read:path=out/"}},
         "a path that begins neither by '/' nor by './' is not compared as one | write ./out/, or"},
        {{.allow = {"fs.read"}, .allow_arg = {"fs.read:path=a/b"}}, "write ./a/b"},
        {{.allow = {"fs.read"}, .allow_arg = {"fs.read:path=.hidden/b"}}, "write ./.hidden/b"},
        {{.allow = {"fs.read"}, .allow_arg = {"fs.read:url=https://a.example"}},
         "the host of the URL has no end | end it by '/'"},
        {{.allow = {"fs.read"}, .allow_arg = {"fs.read:path=/nosuch/glove/place"}},
         "the path '/nosuch/glove/place' cannot be used: No such file or directory | make it"},
    };
    for (const auto& each : cases) {
        const auto problem = problem_of(each.what);
        EXPECT_THAT(problem, HasSubstr(each.says));
        EXPECT_THAT(problem, HasSubstr("policy.rule"));
    }
    const auto none = engine::parse({.allow = {"fs.x"}}, {}, {}, nowhere);
    ASSERT_FALSE(none);
    EXPECT_THAT(none.error().remedy, HasSubstr("--upstream"));
    EXPECT_EQ(problem_of({.allow = {"fs." + std::string(256, 'a')}}), "");
}

TEST(Engine, SplitsAnArgumentRuleAtItsFirstMarks) {
    const auto of = made({.allow = {"up.a.b"}, .allow_arg = {"up.a.b:key=a:b=c"}});
    EXPECT_EQ(answer(of, {"up", "a.b"}, R"({"key":"a:b=c/d"})"), "ok");
    EXPECT_EQ(answer(of, {"up", "a.b"}, R"({"key":"a:b=x"})"),
              "argument /key does not begin as permitted");
}

TEST(Engine, WantsEveryArgumentRuleOfATool) {
    const test::folder place;
    const auto a = place.directory("a");
    const auto of =
        made({.allow = {"fs.read"}, .allow_arg = {"fs.read:path=" + a, "fs.read:mode=r"}});
    const auto ask = [&](const std::string& text) { return answer(of, {"fs", "read"}, text); };
    EXPECT_EQ(ask(R"({"path":")" + a + R"(/x","mode":"ro"})"), "ok");
    EXPECT_EQ(ask(R"({"path":")" + a + R"(/x","mode":"w"})"),
              "argument /mode does not begin as permitted");
    EXPECT_EQ(ask(R"({"path":"/etc/passwd","mode":"ro"})"),
              "argument /path is not below a permitted directory");
    EXPECT_EQ(ask(R"({"path":")" + a + R"(/x"})"), "argument /mode is missing");
    EXPECT_EQ(ask(R"({"mode":"r"})"), "argument /path is missing");
    EXPECT_EQ(ask("{}"), "argument /mode is missing");
    EXPECT_EQ(ask(R"({"path":")" + a + R"(/x","mode":"r","head":1})"),
              "argument /head is not one that the rules of this tool speak of");
    EXPECT_EQ(of.decides({"fs", "read"}, nullptr).rule, "argument /mode is missing");
    // Other types are refused, never converted.
    for (const auto* other : {"1", "null", "true", "[\"x\"]", "{\"x\":1}", "1.5"})
        EXPECT_EQ(ask(R"({"mode":"r","path":)" + std::string{other} + "}"),
                  "argument /path is not a string");
    const auto same = made({.allow = {"fs.read"}, .allow_arg = {"fs.*:path=" + a}});
    EXPECT_EQ(answer(same, {"fs", "read"}, R"({"path":"/etc"})"),
              "argument /path is not below a permitted directory");
}

TEST(Engine, RefusesArgumentsThatAreNoObject) {
    const auto of = made({.allow = {"fs.read"}});
    for (const auto* other : {"null", "[]", "1", "\"x\"", "true"})
        EXPECT_EQ(answer(of, {"fs", "read"}, other), "the arguments are not an object");
    EXPECT_TRUE(of.decides({"fs", "read"}, nullptr).allowed);
}

TEST(Engine, ReadsRelativePathsOfRulesAsPaths) {
    const test::folder place;
    const auto work = place.directory("work");
    place.directory("work/data");
    place.directory("beside");
    ::setenv("HOME", work.c_str(), 1);
    const std::pair<std::string, std::string> cases[] = {
        {"./data", work + "/data"}, {".", work}, {"./", work}, {"../beside", place / "beside"},
        {"~/data", work + "/data"}, {"~", work},
    };
    for (const auto& [written, meant] : cases) {
        const auto of =
            made({.allow = {"fs.read"}, .allow_arg = {"fs.read:path=" + written}}, {}, work);
        EXPECT_EQ(answer(of, {"fs", "read"}, R"({"path":")" + meant + R"(/x"})"), "ok") << written;
        EXPECT_NE(answer(of, {"fs", "read"}, R"({"path":")" + meant + R"(-evil/x"})"), "ok");
        EXPECT_NE(answer(of, {"fs", "read"}, R"({"path":")" + written + R"(/x"})"), "ok");
    }
    ::unsetenv("HOME");
    EXPECT_THAT(problem_of({.allow = {"fs.read"}, .allow_arg = {"fs.read:path=~/x"}}),
                HasSubstr("HOME is no absolute path"));
}

// A server may take for a path what the operator wrote as text, and an agent makes links.
TEST(Engine, PermitsNoLinkByAPrefixThatIsText) {
    const test::folder place;
    const auto work = place.directory("work"), other = place.directory("other");
    for (const auto& directory : {work, other}) {
        std::filesystem::create_directories(directory + "/out/deep");
        std::ofstream{directory + "/out/x"} << "x";
        std::filesystem::create_symlink("/etc", directory + "/out/link");
        std::filesystem::create_symlink("/etc/passwd", directory + "/outlink");
        std::filesystem::create_symlink("nowhere", directory + "/out/dangling");
    }
    const auto answers = [&](const std::string& from, std::vector<std::string> started_in) {
        const auto of = made({.allow = {"fs.read"},
                              .allow_arg = {"fs.read:path=out"},
                              .started_in = std::move(started_in)},
                             {}, from);
        for (const auto* const harmless : {"out", "out/x", "out/deep", "out/deep/new", "out/x/y",
                                           "outer", "out put/a", "out/", "out//x", "out\\n"})
            EXPECT_EQ(answer(of, {"fs", "read"}, R"({"path":")" + std::string{harmless} + R"("})"),
                      "ok")
                << harmless;
        for (const auto* const hostile :
             {"out/link", "out/link/", "out/link/passwd", "out//link/passwd", "out/./link/x",
              "out/deep/../link/x", "outlink", "out/dangling", "out/../outlink", "out/../../x",
              "out/%2e%2e/x", "outer/../../x", "out/..", "out\\u0000/x"})
            EXPECT_NE(answer(of, {"fs", "read"}, R"({"path":")" + std::string{hostile} + R"("})"),
                      "ok")
                << hostile;
    };
    answers(work, {});
    answers("/", {other, ""});
    answers("/nosuch/glove/place", {other, ""});
}

TEST(Engine, ComparesOtherPrefixesAsBytes) {
    const auto of = made({.allow = {"up.get", "up.repo"},
                          .allow_arg = {"up.get:url=https://a.example/v1/", "up.repo:name=own"}});
    const auto get = [&](const std::string& url) {
        return answer(of, {"up", "get"}, R"({"url":")" + url + R"("})");
    };
    EXPECT_EQ(get("https://a.example/v1/x?y=1#z"), "ok");
    EXPECT_EQ(get("https://a.example/v1/a..b/...x"), "ok");
    for (const auto* hostile :
         {"https://a.example.evil.test/v1/", "http://a.example/v1/", "https://a.example@evil/v1/",
          "HTTPS://a.example/v1/", "https://a.example/v2/", " https://a.example/v1/",
          "https://a.example/v1/../v2", "https://a.example/v1/%2e%2e/v2",
          "https://a.example/v1/.%2E/v2", "https://a.example/v1/%252e%252e/v2",
          "https://a.example/v1/..%2fv2", "https://a.example/v1/x\\\\..\\\\..\\\\v2",
          "https://a.example/v1/.\\t./v2", "https://a.example/v1/..", "https://a.example/v1/..?x",
          "https://a.example/v1/..;/v2"})
        EXPECT_NE(get(hostile), "ok") << hostile;
    EXPECT_EQ(answer(of, {"up", "repo"}, R"({"name":"owner\n\\.."})"), "ok");
    EXPECT_EQ(answer(of, {"up", "repo"}, R"({"name":"ow"})"),
              "argument /name does not begin as permitted");
}

TEST(Engine, NeverTellsAnAgentWhereTheRulesAre) {
    const test::folder place;
    const auto secret = place.directory("secret-place");
    const auto of = made({.allow = {"fs.read"}, .allow_arg = {"fs.read:path=" + secret}});
    for (const auto* asked : {"/etc", "", "/nosuch", "~", "/proc/self/root"}) {
        const auto rule = answer(of, {"fs", "read"}, R"({"path":")" + std::string{asked} + R"("})");
        // The same words whether something is there or not.
        EXPECT_EQ(rule, "argument /path is not below a permitted directory");
    }
    EXPECT_THAT(of.describe(), HasSubstr(secret)); // the operator is told
}

TEST(Engine, TellsWhichToolsAreNamedAndWhatTheRulesAre) {
    const auto of = made({.allow = {"fs.read", "git.*"}, .deny = {"git.push"}},
                         "[tool.\"up.t\"]\nallow = true\ncalls = 3\nper_minute = 2\n"
                         "timeout = \"30s\"\nresult_bytes = \"1M\"\nredact = [\"sk-[a-z]+\"]\n"
                         "[[tool.\"up.t\".argument]]\nat = \"/x\"\nin = [\"a\", 1, true]\n");
    EXPECT_THAT(of.named_tools(), ElementsAre("fs.read", "git.push", "up.t"));
    EXPECT_EQ(of.describe(), "fs.read: allowed\n"
                             "git.*: allowed\n"
                             "git.push: denied\n"
                             "up.t: allowed\n"
                             "up.t: /x is one of \"a\", 1, true\n"
                             "up.t: ends after 30000 ms\n"
                             "up.t: a result has at most 1M bytes\n"
                             "up.t: at most 3 calls in a run\n"
                             "up.t: at most 2 calls a minute\n"
                             "up.t: results lose what matches 'sk-[a-z]+'\n");
    EXPECT_EQ(made({.allow = {"up.x"}}).describe(), "fs: no rule allows any of its tools\n"
                                                    "git: no rule allows any of its tools\n"
                                                    "up.x: allowed\n");
}

TEST(Engine, KeepsItsAnswersWhenItIsMoved) {
    auto one = made({.allow = {"fs.read"}});
    auto other = std::move(one);
    EXPECT_TRUE(other.shows({"fs", "read"}).allowed);
    other = made({.allow = {"fs.write"}});
    EXPECT_FALSE(other.shows({"fs", "read"}).allowed);
}

// A value, written with its members in another order and with escapes of every kind.

void put_shuffled(std::string& out, const wire::json::value& of, bool escapes);

void put_text(std::string& out, std::string_view text, bool escapes) {
    if (!escapes) return wire::json::append_quoted(out, text);
    out += '"';
    for (const char c : text) {
        constexpr std::string_view digits = "0123456789abcdefABCDEF";
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x80 || *rc::gen::inRange(0, 2) == 0) {
            if (byte < 0x20 || c == '"' || c == '\\') out += '\\', out += byte < 0x20 ? 'n' : c;
            else out += c;
            continue;
        }
        out += "\\u00";
        out += digits[byte >> 4U];
        auto low = static_cast<std::size_t>(byte & 15U);
        if (low >= 10 && *rc::gen::inRange(0, 2) == 0) low += 6;
        out += digits[low];
    }
    out += '"';
}

void put_shuffled(std::string& out, const wire::json::value& of, bool escapes) {
    if (const auto* const text = of.as_string()) return put_text(out, *text, escapes);
    if (const auto* const items = of.as_array()) {
        out += '[';
        for (std::size_t i = 0; i < items->size(); ++i) {
            if (i > 0) out += " , ";
            put_shuffled(out, (*items)[i], escapes);
        }
        out += ']';
        return;
    }
    if (of.as_object() == nullptr) {
        out += wire::json::to_text(of);
        return;
    }
    auto members = *of.as_object();
    for (std::size_t i = members.size(); i > 1; --i)
        std::swap(members[i - 1], members[*rc::gen::inRange(std::size_t{0}, i)]);
    out += '{';
    for (std::size_t i = 0; i < members.size(); ++i) {
        if (i > 0) out += ',';
        put_text(out, members[i].name, escapes);
        out += ':';
        put_shuffled(out, members[i].data, escapes);
    }
    out += '}';
}

auto some_value(int depth) -> wire::json::value {
    static const std::vector<std::string> words{
        "a", "b", "path", "/etc", "/", "-x", "\n", "q\"", "https://a.example/", "c"};
    switch (*rc::gen::inRange(0, depth > 0 ? 7 : 4)) {
    case 0: return wire::json::value{*rc::gen::elementOf(words)};
    case 1: return wire::json::value{*rc::gen::inRange(-3, 12)};
    case 2: return wire::json::value{*rc::gen::arbitrary<bool>()};
    case 3: return {};
    case 4: {
        wire::json::array out;
        for (int i = *rc::gen::inRange(0, 3); i > 0; --i) out.push_back(some_value(depth - 1));
        return wire::json::value{std::move(out)};
    }
    default: {
        wire::json::object out;
        for (const auto* name : {"a", "b", "path", "extra"})
            if (*rc::gen::inRange(0, 2) == 0) out.push_back({name, some_value(depth - 1)});
        return wire::json::value{std::move(out)};
    }
    }
}

RC_GTEST_PROP(EngineProperty, LooksAtValuesNotAtHowTheyAreWritten, ()) {
    static const auto of = made({.deny = {"up.denied"}}, R"(
[tool."up.*"]
allow = true
[tool."up.t"]
[[tool."up.t".argument]]
at = "/a"
in = ["a", "b", 3]
[[tool."up.t".argument]]
at = "/b/*/path"
path_under = ["/etc"]
optional = true
[[tool."up.t".argument]]
at = "/path/a"
match = "[a-z/]+"
optional = true
)");
    // Right members mostly, so that many calls are allowed.
    const auto right = [] { return *rc::gen::inRange(0, 8) != 0; };
    wire::json::object members;
    members.push_back({"a", right() ? json(*rc::gen::element<std::string>("\"a\"", "\"b\"", "3"))
                                    : some_value(2)});
    if (right())
        members.push_back(
            {"b", right() ? json(R"([{"path":"/etc/x"},{},{"path":"/etc"}])") : some_value(3)});
    if (right()) members.push_back({"path", right() ? json(R"({"a":"a/b"})") : some_value(2)});
    if (!right()) members.push_back({"extra", some_value(1)});
    const wire::json::value plain{std::move(members)};
    std::string text;
    put_shuffled(text, plain, true);
    const auto read = wire::json::read(text, {.form = wire::json::numbers::any});
    RC_ASSERT(read.has_value());
    const auto one = of.decides({"up", "t"}, &plain);
    const auto other = of.decides({"up", "t"}, &*read);
    RC_CLASSIFY(one.allowed);
    RC_ASSERT(one.allowed == other.allowed);
    RC_ASSERT(one.rule == other.rule);
    RC_ASSERT(!of.decides({"up", "denied"}, &*read).allowed);
}

RC_GTEST_PROP(EngineProperty, DeniesWhateverTheOrderOfTheRules, ()) {
    const std::vector<std::string> tools{"fs.a", "fs.b", "git.a", "fs.*", "git.*"};
    const auto some = rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(tools));
    const auto allow = *some;
    const auto refuse = *some;
    const auto of = made({.allow = allow, .deny = refuse});
    const auto says = [](const std::vector<std::string>& rules, std::string_view up,
                         std::string_view tool) {
        return std::ranges::count(rules, std::string{up} + "." + std::string{tool}) +
                   std::ranges::count(rules, std::string{up} + ".*") >
               0;
    };
    for (const auto* up : {"fs", "git"})
        for (const auto* tool : {"a", "b", "c"})
            RC_ASSERT(of.shows({up, tool}).allowed ==
                      (says(allow, up, tool) && !says(refuse, up, tool)));
}

} // namespace
