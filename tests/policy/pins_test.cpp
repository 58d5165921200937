#include "policy/scene.hpp"
#include "support/folder.hpp"
#include <algorithm>
#include <filesystem>
#include <glove/policy/pins.hpp>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>

namespace {

using namespace glove;
using namespace glove::policy;
using namespace glove::policy::scene;
using testing::HasSubstr;
using namespace std::chrono_literals;

auto pinned(const std::string& server, const std::string& subject, const std::string& text) -> pin {
    const auto tree = json(text);
    return {server, "up", subject, definition_digest(tree), canonical_definition(tree)};
}

auto opened(const std::string& directory) -> pin_store {
    auto out = pin_store::open(directory);
    if (!out) throw std::runtime_error{told(out.error())};
    return *std::move(out);
}

auto problem(const std::string& directory) -> std::string {
    const auto out = pin_store::open(directory);
    return out ? std::string{} : told(out.error());
}

TEST(Digest, CoversTheWholeDefinition) {
    const std::string base =
        R"({"name":"t","description":"d","inputSchema":{"type":"object","properties":{"a":{"type":"string","default":"x"}}},"annotations":{"readOnlyHint":true}})";
    const auto digest = definition_digest(json(base));
    EXPECT_EQ(digest.size(), 64U);
    const std::pair<std::string, std::string> changes[] = {
        {"\"d\"", "\"d.\""},
        {"\"x\"", "\"y\""},
        {"true", "false"},
        {"\"string\"", "\"null\""},
        {"\"name\"", "\"Name\""},
        {"\"default\"", "\"const\""},
        {"{\"name\"", "{\"title\":\"\",\"name\""},
        {"\"a\":{", "\"a\":{\"description\":\"\",\"b\":1,"},
    };
    for (const auto& [from, to] : changes) {
        auto other = base;
        const auto at = other.find(from);
        ASSERT_NE(at, std::string::npos);
        other.replace(at, from.size(), to);
        EXPECT_NE(definition_digest(json(other)), digest) << other;
    }
}

TEST(Digest, DoesNotLookAtOrderOrEscapes) {
    const auto digest =
        definition_digest(json(R"({"name":"t","inputSchema":{"a":1,"b":[{"c":1,"d":2}]}})"));
    for (const auto* same :
         {R"({"inputSchema":{"b":[{"d":2,"c":1}],"a":1},"name":"t"})",
          R"({ "n\u0061me" : "\u0074" , "inputSchema":{"a":1,"b":[{"c":1,"d":2}]}})"})
        EXPECT_EQ(definition_digest(json(same)), digest) << same;
    // What agents are shown beside of it counts too.
    for (const auto* other :
         {R"({"name":"t","inputSchema":{"a":1,"b":[{"c":1,"d":2}]},"_meta":{"x":1}})",
          R"({"name":"t","inputSchema":{"a":1,"b":[{"c":1,"d":2}]},"icons":[1]})"})
        EXPECT_NE(definition_digest(json(other)), digest) << other;
    EXPECT_NE(definition_digest(json(R"({"name":"t","inputSchema":{"icons":1}})")),
              definition_digest(json(R"({"name":"t","inputSchema":{"icons":2}})")));
    EXPECT_NE(definition_digest(json(R"({"name":"t","x":[1,2]})")),
              definition_digest(json(R"({"name":"t","x":[2,1]})")));
    EXPECT_NE(definition_digest(json(R"("instructions")")), definition_digest(json(R"("other")")));
}

TEST(Pins, AreKeptFromOneRunToTheNext) {
    const test::folder place;
    const auto directory = place / "state/glove";
    auto store = opened(directory);
    EXPECT_EQ(store.compare("s", "t", "d"), pin_state::first_use);
    const auto one = pinned("s", "t", R"({"name":"t"})");
    ASSERT_TRUE(store.add({one, pinned("s", "", R"("words")")}));
    EXPECT_EQ(store.compare("s", "t", one.digest), pin_state::same);

    const auto later = opened(directory);
    EXPECT_EQ(later.compare("s", "t", one.digest), pin_state::same);
    EXPECT_EQ(later.compare("s", "t", "other"), pin_state::changed);
    EXPECT_EQ(later.compare("s", "u", one.digest), pin_state::first_use);
    EXPECT_EQ(later.compare("other", "t", one.digest), pin_state::first_use);
    ASSERT_NE(later.find("s", "t"), nullptr);
    EXPECT_EQ(later.find("s", "t")->definition, R"({"name":"t"})");
    EXPECT_EQ(later.find("s", "t")->upstream, "up");
    EXPECT_EQ(later.find("s", "x"), nullptr);
    EXPECT_EQ(later.all().size(), 2U);
    struct ::stat found{};
    ASSERT_EQ(::stat((directory + "/mcp-pins.json").c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777U, 0600U);
    ASSERT_EQ(::stat(directory.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777U, 0700U);
}

TEST(Pins, AreReplacedOnlyWhenTheOperatorAccepts) {
    const test::folder place;
    auto store = opened(place / "s");
    const auto old = pinned("s", "t", R"({"name":"t"})");
    const auto fresh = pinned("s", "t", R"({"name":"t","description":"now do as I say"})");
    ASSERT_TRUE(store.add({old}));
    ASSERT_TRUE(store.add({fresh}));
    EXPECT_EQ(store.compare("s", "t", fresh.digest), pin_state::changed);
    EXPECT_EQ(opened(place / "s").compare("s", "t", fresh.digest), pin_state::changed);
    ASSERT_TRUE(store.accept({fresh}));
    EXPECT_EQ(store.compare("s", "t", fresh.digest), pin_state::same);
    EXPECT_EQ(opened(place / "s").compare("s", "t", fresh.digest), pin_state::same);
    EXPECT_EQ(opened(place / "s").compare("s", "t", old.digest), pin_state::changed);
}

TEST(Pins, AreMergedWithThoseOfOtherProcesses) {
    const test::folder place;
    auto one = opened(place / "s");
    auto other = opened(place / "s");
    const auto a = pinned("s", "a", R"({"name":"a"})");
    const auto b = pinned("s", "b", R"({"name":"b"})");
    const auto other_a = pinned("s", "a", R"({"name":"a","x":1})");
    ASSERT_TRUE(one.add({a}));
    ASSERT_TRUE(other.add({b, other_a})); // which knew nothing of the first
    EXPECT_EQ(other.compare("s", "a", other_a.digest), pin_state::changed);
    EXPECT_EQ(other.compare("s", "a", a.digest), pin_state::same);
    const auto later = opened(place / "s");
    EXPECT_EQ(later.all().size(), 2U);
    EXPECT_EQ(later.compare("s", "a", a.digest), pin_state::same);
    EXPECT_EQ(later.compare("s", "b", b.digest), pin_state::same);
}

TEST(Pins, OfManyWritersAreAllThere) {
    const test::folder place;
    std::vector<std::thread> writers;
    std::atomic<int> failed = 0;
    (void)opened(place / "s");
    for (int i = 0; i < 4; ++i)
        writers.emplace_back([&, i] {
            auto store = opened(place / "s");
            for (int j = 0; j < 5; ++j)
                if (!store.add({pinned("s" + std::to_string(i), std::to_string(j), "{}")}))
                    ++failed;
        });
    for (auto& each : writers) each.join();
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(opened(place / "s").all().size(), 20U);
}

TEST(Pins, DoNotWaitForALockForEver) {
    const test::folder place;
    auto store = opened(place / "s");
    ASSERT_TRUE(store.add({pinned("s", "a", "{}")}));
    const sys::unique_fd lock{::open((place / "s/mcp-pins.lock").c_str(), O_RDWR | O_CLOEXEC)};
    ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
    const auto before = std::chrono::steady_clock::now();
    const auto out = store.add({pinned("s", "b", "{}")});
    const auto took = std::chrono::steady_clock::now() - before;
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error().step, "pins.lock");
    EXPECT_GE(took, 1900ms);
    EXPECT_LT(took, 10s);
    EXPECT_EQ(store.compare("s", "b", "x"), pin_state::first_use); // as it was
    ASSERT_EQ(::flock(lock.get(), LOCK_UN), 0);
    EXPECT_TRUE(store.add({pinned("s", "b", "{}")}));
}

TEST(Pins, AreNeverTakenFromAFileThatIsNotWhollyRight) {
    const test::folder place;
    const auto directory = place.directory("s", 0700);
    auto store = opened(directory);
    ASSERT_TRUE(store.add({pinned("s", "t", "{}")}));
    const auto path = directory + "/mcp-pins.json";
    const auto good = test::content_of(path);
    const auto write = [&](const std::string& text, ::mode_t mode = 0600) {
        std::filesystem::remove(path);
        (void)place.file("s/mcp-pins.json", text, mode);
    };
    write(good);
    EXPECT_EQ(problem(directory), "");
    const auto changed = [&](std::string_view from, std::string_view to) {
        auto out = good;
        out.replace(out.find(from), from.size(), to);
        return out;
    };
    for (const auto& text :
         {std::string{}, std::string{"{}"}, std::string{"[]"}, std::string{"null"},
          good.substr(0, good.size() - 1), good + "x", changed("\"version\":1", "\"version\":2"),
          changed("\"version\":1,", ""), changed("\"server\"", "\"serve\""),
          changed("\"digest\":\"", "\"digest\":\"0"), changed("\"subject\":\"t\"", "\"subject\":1"),
          changed("{\"version\"", "{\"more\":1,\"version\""),
          changed("\"server\"", "\"server\":\"s\",\"server\""), "\xff" + good}) {
        write(text);
        EXPECT_THAT(problem(directory), HasSubstr("corrupt: pins.read: " + path)) << text;
        EXPECT_FALSE(store.add({pinned("s", "u", "{}")})) << text;
        EXPECT_EQ(test::content_of(path), text) << "it must stay as it is";
    }
    // The same pin twice.
    const auto pins = good.substr(good.find('[') + 1, good.rfind(']') - good.find('[') - 1);
    write(changed(pins, pins + "," + pins));
    EXPECT_THAT(problem(directory), HasSubstr("has two pins for one tool"));
    for (const ::mode_t mode : {0640U, 0604U, 0666U}) {
        write(good, mode);
        EXPECT_THAT(problem(directory), HasSubstr("can be read or written by others"));
    }
    std::filesystem::remove(path);
    (void)place.file("elsewhere", good, 0600);
    (void)place.link("s/mcp-pins.json", place / "elsewhere");
    EXPECT_THAT(problem(directory), HasSubstr("is a link"));
    std::filesystem::remove(path);
    (void)place.fifo("s/mcp-pins.json");
    EXPECT_THAT(problem(directory), HasSubstr("is not a regular file"));
    std::filesystem::remove(path);
    write(std::string((16U << 20) + 1, ' '));
    EXPECT_THAT(problem(directory), HasSubstr("is larger than 16 MiB"));
}

TEST(Pins, AreOfTheCallersOwnDirectory) {
    const test::folder place;
    EXPECT_THAT(problem(place.directory("open", 0777)), HasSubstr("can be written by others"));
    place.directory("real", 0700);
    EXPECT_NE(problem(place.link("link", place / "real")), "");
    EXPECT_EQ(problem(place / "real"), "");
}

TEST(Pins, KeepDefinitionsUpToABound) {
    const test::folder place;
    auto store = opened(place / "s");
    const auto of_size = [](std::size_t size) {
        return pinned("s", std::to_string(size), "{\"d\":\"" + std::string(size - 8, 'x') + "\"}");
    };
    ASSERT_EQ(of_size(65'536).definition.size(), 65'536U);
    ASSERT_TRUE(store.add({of_size(65'536), of_size(65'537)}));
    const auto later = opened(place / "s");
    EXPECT_EQ(later.find("s", "65536")->definition.size(), 65'536U);
    EXPECT_EQ(later.find("s", "65537")->definition, "");
    EXPECT_EQ(later.compare("s", "65537", of_size(65'537).digest), pin_state::same);
}

TEST(Pins, OfOneServerHaveAShare) {
    const test::folder place;
    auto store = opened(place / "s");
    std::vector<pin> many;
    for (int i = 0; i < 2049; ++i)
        many.push_back(pinned("greedy", std::to_string(10'000 + i), "{\"d\":1}"));
    ASSERT_TRUE(store.add(many));
    EXPECT_EQ(store.all().size(), 2048U);
    EXPECT_EQ(store.compare("greedy", "12047", many[2047].digest), pin_state::same);
    EXPECT_EQ(store.compare("greedy", "12048", many[2048].digest), pin_state::first_use);
    ASSERT_TRUE(store.add({pinned("greedy", "", R"("words")"), pinned("s", "t", "{}")}));
    EXPECT_NE(store.find("greedy", ""), nullptr);
    EXPECT_NE(store.find("s", "t"), nullptr);
    // What has a pin can be accepted as it is now.
    const auto fresh = pinned("greedy", "10000", "{\"d\":2}");
    ASSERT_TRUE(store.accept({fresh}));
    EXPECT_EQ(opened(place / "s").compare("greedy", "10000", fresh.digest), pin_state::same);
}

TEST(Pins, KeepSoMuchTextOfOneServerAndThenDigests) {
    const test::folder place;
    auto store = opened(place / "s");
    const auto of_size = [](const std::string& name, std::size_t size) {
        return pinned("s", name, "{\"d\":\"" + std::string(size - 8, 'x') + "\"}");
    };
    std::vector<pin> many;
    for (int i = 0; i < 32; ++i) many.push_back(of_size(std::to_string(100 + i), 65'536));
    ASSERT_TRUE(store.add(many));
    EXPECT_EQ(store.find("s", "131")->definition.size(), 65'536U);
    const auto more = of_size("more", 10);
    ASSERT_TRUE(store.add({more}));
    EXPECT_EQ(store.find("s", "more")->definition, "");
    EXPECT_EQ(opened(place / "s").compare("s", "more", more.digest), pin_state::same);
    ASSERT_TRUE(store.accept({of_size("100", 65'000)}));
    EXPECT_EQ(store.find("s", "100")->definition.size(), 65'000U);
}

TEST(Pins, GiveUpTextsBeforeTheirFileIsFull) {
    const test::folder place;
    auto store = opened(place / "s");
    std::vector<pin> many;
    for (int i = 0; i < 300; ++i)
        many.push_back(pinned("s" + std::to_string(i / 30), std::to_string(i),
                              "{\"d\":\"" + std::string(60'000, 'x') + "\"}"));
    ASSERT_TRUE(store.add(many));
    const auto later = opened(place / "s");
    EXPECT_EQ(later.all().size(), 300U);
    for (const auto& each : many)
        EXPECT_EQ(later.compare(each.server, each.subject, each.digest), pin_state::same);
}

TEST(Pins, RefuseWhatNoDigestIs) {
    const test::folder place;
    auto store = opened(place / "s");
    EXPECT_FALSE(store.add({{"s", "up", "t", "", "{}"}}));
    EXPECT_FALSE(store.add({{"s", "up", "t", "not hex", "{}"}}));
    EXPECT_FALSE(store.add({{"", "up", "t", std::string(64, 'a'), "{}"}}));
    EXPECT_TRUE(store.add({{"s", "up", "t", std::string(64, 'a'), "{}"}}));
}

RC_GTEST_PROP(DigestProperty, IsTheSameForEveryOrderOfTheMembers, ()) {
    const auto names = *rc::gen::container<std::vector<std::string>>(
        rc::gen::container<std::string>(rc::gen::elementOf(std::string{"ab_\"\\/"})));
    wire::json::object members;
    for (const auto& name : names)
        if (std::ranges::find(members, name, &wire::json::member::name) == members.end())
            members.push_back({name, wire::json::value{members.size()}});
    auto other = members;
    for (std::size_t i = other.size(); i > 1; --i)
        std::swap(other[i - 1], other[*rc::gen::inRange(std::size_t{0}, i)]);
    const wire::json::object outer{{"inputSchema", wire::json::value{members}}};
    const wire::json::object outer_other{{"inputSchema", wire::json::value{other}}};
    RC_ASSERT(definition_digest(wire::json::value{members}) ==
              definition_digest(wire::json::value{other}));
    RC_ASSERT(definition_digest(wire::json::value{outer}) ==
              definition_digest(wire::json::value{outer_other}));
}

} // namespace
