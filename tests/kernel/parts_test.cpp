// The small parts: text that is passed on, templates, the table of calls.
#include "kernel/call_table.hpp"
#include "kernel/texts.hpp"
#include "kernel/uri_template.hpp"
#include "kernel/visible_text.hpp"
#include <glove/wire/json_writer.hpp>
#include <gtest/gtest.h>

namespace glove::kernel {

namespace {

using namespace std::chrono_literals;

TEST(Texts, OnlyOtherLineBreaksChange) {
    EXPECT_EQ(safe(R"({"a":1})"), R"({"a":1})");
    EXPECT_EQ(safe("{\r\"a\":\r\r1}\r"), R"({"a":1})");
    EXPECT_EQ(safe("\"\xe2\x80\xa8\""), R"("\u2028")");
    EXPECT_EQ(safe("\"\xe2\x80\xa9\xe2\x80\xa8\""), R"("\u2029\u2028")");
    EXPECT_EQ(safe("\"\xe2\x80\xa7\xe2\x82\xac\""), "\"\xe2\x80\xa7\xe2\x82\xac\"");
    // Many of one kind and none of the other: no search begins anew each time.
    std::string many;
    for (int i = 0; i < 300'000; ++i) many += "\xe2\x80\xa8";
    EXPECT_EQ(safe(many).size(), 6 * 300'000U);
}

TEST(Texts, IdsAreThoseThatGloveGives) {
    EXPECT_EQ(read_id("17").number, 17U);
    EXPECT_FALSE(read_id("17").quoted);
    EXPECT_EQ(read_id("\"17\"").number, 17U);
    EXPECT_TRUE(read_id("\"17\"").quoted);
    for (const char* wrong :
         {"0", "-1", "01", "1.0", "1e2", "\"\"", "\"1x\"", "null", "", "99999999999999999999999"})
        EXPECT_EQ(read_id(wrong).number, 0U) << wrong;
    std::string id(16, '-');
    put_hexadecimal(id.data(), 0x0123456789abcdef);
    EXPECT_EQ(id, "0123456789abcdef");
}

TEST(VisibleText, KeepsWhatIsSeen) {
    EXPECT_EQ(visible_text("plain \xc3\xa9 \xe6\x97\xa5\n\ttext"),
              "plain \xc3\xa9 \xe6\x97\xa5\n\ttext");
    EXPECT_EQ(visible_text("a\x1b[1;31mb\x1b[0mc"), "abc");
    EXPECT_EQ(visible_text("a\x1b]8;;http://x\x07link\x1b]8;;\x07z"), "alinkz");
    EXPECT_EQ(visible_text("a\x1b]no end"), "ano end");
    EXPECT_EQ(visible_text("a\x1b"), "a");
    EXPECT_EQ(visible_text("a\x1b["), "a");
    EXPECT_EQ(visible_text(std::string("\0\x01\x7f\xc2\x9b", 5)), "");
    EXPECT_EQ(visible_text("\xf3\xa0\x81\x81x\xf3\xa0\x84\x80"), "x"); // tags, variations
    EXPECT_EQ(visible_text("\xe2\x80\x8b\xe2\x80\xae\xef\xbb\xbf\xe2\x81\xa6y"), "y");
}

TEST(VisibleText, NamesThatBecomeOneStayOne) {
    const auto tree = wire::json::read("{\"a\":1,\"a\\u200b\":2,\"b\":[\"\\u0007\"]}").value();
    EXPECT_EQ(wire::json::to_text(visible_tree(tree)), R"({"a":1,"b":[""]})");
}

TEST(VisibleText, ManyMembersAreNoSearchForEach) {
    wire::json::object many;
    for (int i = 0; i < 200'000; ++i) many.push_back({"member" + std::to_string(i), i});
    many.push_back({"member7\xe2\x80\x8b", "second"});
    const auto began = std::chrono::steady_clock::now();
    const auto seen = visible_tree(wire::json::value{std::move(many)});
    EXPECT_EQ(seen.as_object()->size(), 200'000U);
    EXPECT_EQ(*seen.find("member7"), wire::json::value{7});
    EXPECT_LT(std::chrono::steady_clock::now() - began, 20s); // each with each takes minutes
}

TEST(VisibleText, WideObjectsAreFoundAtAnyDepth) {
    const auto wide = [](int members) {
        wire::json::object made;
        for (int i = 0; i < members; ++i) made.push_back({std::to_string(i), i});
        return wire::json::value{
            wire::json::array{1, wire::json::object{{"deep", wire::json::value{std::move(made)}}}}};
    };
    EXPECT_FALSE(has_wide_object(wide(10), 10));
    EXPECT_TRUE(has_wide_object(wide(11), 10));
}

[[nodiscard]] auto fits(std::string_view uri, std::string_view pattern) -> bool {
    std::size_t steps = 1'000'000;
    return fits_template(uri, pattern, steps);
}

TEST(Template, FitsWhatItMayHaveMade) {
    EXPECT_TRUE(fits("x:1", "x:{id}"));
    EXPECT_TRUE(fits("x:1/data", "x:{id}/data"));
    EXPECT_TRUE(fits("x:a/b", "x:{+path}"));
    EXPECT_TRUE(fits("x:", "x:{id}"));
    EXPECT_FALSE(fits("x:a/b", "x:{id}"));
    EXPECT_FALSE(fits("y:1", "x:{id}"));
    EXPECT_FALSE(fits("x:1/other", "x:{id}/data"));
    EXPECT_FALSE(fits("x:1", "x:{id"));
    EXPECT_FALSE(fits("x:1", "x:{"));
    // No blow-up.
    EXPECT_FALSE(fits(std::string(5000, 'a'), "{+a}a{+b}a{+c}a{+d}a{+e}b"));
}

TEST(Template, TakesSoManyStepsAndNoMore) {
    std::size_t steps = 4; // three characters, and that nothing follows
    EXPECT_TRUE(fits_template("x:1", "x:1", steps));
    EXPECT_EQ(steps, 0U);
    EXPECT_FALSE(fits_template("x:1", "x:1", steps));
    steps = 1'000'000;
    const std::string many(100'000, 'a');
    EXPECT_FALSE(fits_template(many, "{+a}" + many + "b", steps));
    EXPECT_EQ(steps, 0U);
}

TEST(CallTable, KeepsSlotsForWhatMayHaveThem) {
    call_table table;
    for (std::size_t i = 0; i < call_table::capacity - 512; ++i)
        ASSERT_NE(table.open(0ns, 1s, 512), nullptr);
    EXPECT_FALSE(table.has_room(512));
    EXPECT_EQ(table.open(0ns, 1s, 512), nullptr);
    EXPECT_NE(table.open(0ns, 1s), nullptr);
}

TEST(CallTable, GivesLongTextsBack) {
    call_table table;
    auto* made = table.open(0ns, 1s);
    made->uri = std::string(1'000'000, 'u');
    made->subject = std::string(1'000'000, 's');
    table.close(*made);
    EXPECT_LT(made->uri.capacity(), 1000U);
    EXPECT_LT(made->subject.capacity(), 1000U);
}

TEST(CallTable, HasItsCapacityAndNoMore) {
    call_table table;
    std::vector<std::uint64_t> ids;
    for (std::size_t i = 0; i < call_table::capacity; ++i) {
        auto* made = table.open(0ns, 1s);
        ASSERT_NE(made, nullptr);
        EXPECT_TRUE(ids.empty() || made->id > ids.back());
        ids.push_back(made->id);
    }
    EXPECT_EQ(table.open(0ns, 1s), nullptr);
    table.close(*table.find(ids[5]));
    EXPECT_EQ(table.find(ids[5]), nullptr);
    auto* again = table.open(0ns, 1s);
    ASSERT_NE(again, nullptr);
    EXPECT_GT(again->id, ids.back());
    EXPECT_EQ(table.find(ids[5]), nullptr);
    EXPECT_EQ(table.find(0), nullptr);
}

TEST(CallTable, DeadlinesComeInTheirOrder) {
    call_table table;
    auto& slow = *table.open(0ns, 10s);
    auto& quick = *table.open(0ns, 1s);
    auto& second = *table.open(500ms, 1s);
    EXPECT_EQ(table.first_due(), &quick);
    table.close(quick);
    EXPECT_EQ(table.first_due(), &second);
    auto& third = *table.open(600ms, 1s);
    table.close(second);
    EXPECT_EQ(table.first_due(), &third);
    table.close(third);
    EXPECT_EQ(table.first_due(), &slow);
    table.close(slow);
    EXPECT_EQ(table.first_due(), nullptr);
    EXPECT_EQ(table.size(), 0U);
}

} // namespace

} // namespace glove::kernel
