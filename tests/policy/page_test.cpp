// The policy blocks of the page for users, held against the program.
#include "policy/scene.hpp"
#include "support/folder.hpp"
#include <gmock/gmock.h>

namespace {

using namespace glove;
using namespace glove::policy;
using namespace glove::policy::scene;

struct block {
    std::size_t line = 0;
    std::string text;
};

auto blocks_of(const std::string& page, std::string_view language) -> std::vector<block> {
    std::vector<block> out;
    std::istringstream in{test::content_of(page)};
    const auto fence = "```" + std::string{language};
    bool inside = false;
    std::string line;
    for (std::size_t number = 1; std::getline(in, line); ++number) {
        if (inside && line == "```") inside = false;
        else if (inside) (out.back().text += line) += '\n';
        else if (line == fence) {
            inside = true;
            out.push_back({number, {}});
        }
    }
    EXPECT_FALSE(inside) << page;
    return out;
}

// The page's directories stand for the reader's own.
auto with_own_places(std::string text, const test::folder& place) -> std::string {
    for (const std::string name : {"/srv/project", "/srv/notes"}) {
        const auto own = place.directory(name.substr(1));
        for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += own.size())
            text.replace(at, name.size(), own);
    }
    return text;
}

const std::string page = std::string{GLOVE_DOCS} + "/mcp-policy.md";
const std::vector<std::string> servers{"fs", "git", "fetch", "github", "memory"};

TEST(PolicyPage, HasBlocksThatAreAccepted) {
    const test::folder place;
    const auto blocks = blocks_of(page, "toml");
    EXPECT_GE(blocks.size(), 8U);
    for (const auto& each : blocks) {
        const auto out =
            engine::parse({}, with_own_places(each.text, place), servers, place.path());
        EXPECT_TRUE(out) << page << ":" << each.line << ": " << (out ? "" : told(out.error()));
    }
}

// "ARGUMENTS" lines of the cookbook: `TOOL JSON -> ok` or `-> the words of the denial`.
TEST(PolicyPage, DecidesItsExamplesAsItSays) {
    const test::folder place;
    place.directory("srv/project");
    std::string rules;
    for (const auto& each : blocks_of(page, "toml"))
        if (each.text.starts_with("# ")) rules += with_own_places(each.text, place);
    const auto of = engine::parse({}, rules, servers, place.path());
    ASSERT_TRUE(of) << told(of.error());
    std::size_t decided = 0;
    for (const auto& each : blocks_of(page, "calls")) {
        std::istringstream in{with_own_places(each.text, place)};
        std::string line;
        for (auto number = each.line + 1; std::getline(in, line); ++number, ++decided) {
            const auto space = line.find(' ');
            const auto arrow = line.rfind(" -> ");
            const auto dot = line.find('.');
            ASSERT_TRUE(space != line.npos && arrow != line.npos && dot < space) << number;
            EXPECT_EQ(answer(*of, {line.substr(0, dot), line.substr(dot + 1, space - dot - 1)},
                             line.substr(space + 1, arrow - space - 1)),
                      line.substr(arrow + 4))
                << page << ":" << number;
        }
    }
    EXPECT_GE(decided, 15U);
}

// The keys are told by the error for one that does not exist.
TEST(PolicyPage, DescribesEveryKey) {
    const auto text = test::content_of(page);
    const std::string table = "[tool.\"fs.t\"]\nallow = true\n";
    for (const auto& file : {std::string{"x = 1\n"}, table + "x = 1\n",
                             table + "[[tool.\"fs.t\".argument]]\nx = 1\n"}) {
        const auto problem = problem_of({}, file);
        const std::string begin = "the keys here are ";
        const auto at = problem.find(begin);
        ASSERT_NE(at, problem.npos) << problem;
        std::istringstream keys{problem.substr(at + begin.size())};
        std::size_t count = 0;
        for (std::string key; std::getline(keys >> std::ws, key, ','); ++count)
            EXPECT_THAT(text, testing::HasSubstr("\n| `" + key + "` |")) << key;
        EXPECT_GE(count, 4U);
    }
}

// What an agent is told, in the table of reasons.
TEST(PolicyPage, SpeaksOfArgumentsInTheProgramsWords) {
    const auto text = test::content_of(page);
    const std::string rule = "[[tool.\"up.t\".argument]]\nat = \"/";
    for (const auto& said :
         {answer_of(rule + "path\"\npath_under = [\"/usr\"]\n", R"({"path":"/etc"})"),
          answer_of(rule + "head\"\nany = true\n", "{}"),
          answer_of(rule + "x\"\nany = true\n", R"({"x":1,"head":1})"),
          answer_of(rule + "options\"\nlength = [1, 2]\n", R"({"options":["x"]})")})
        EXPECT_THAT(text, testing::HasSubstr("\n| `" + said + "` |"));
}

} // namespace
