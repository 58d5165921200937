#include "cli/control_process/attach_loop.hpp"
#include <deque>
#include <functional>
#include <gmock/gmock.h>
#include <vector>

namespace glove::cli {
namespace {

using namespace std::chrono_literals;
using control::remote_answer;
using control::remote_error;
using std::string;
using std::string_view;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using news = attached_screen::news;

// A session of which `bytes` are kept, from `oldest` on.
struct session {
    string bytes;
    std::uint64_t oldest = 0;
    bool over = false;
    std::vector<string> requests;
    std::deque<result<remote_answer>> says_first; // instead of carrying out

    [[nodiscard]] auto page(std::uint64_t cursor) const -> string {
        const auto from = std::max(cursor, oldest);
        const auto piece = bytes.substr(from - oldest, most_page_bytes);
        const auto next = from + piece.size();
        string list;
        for (const char c : piece)
            list += (list.empty() ? "" : ",") + std::to_string(static_cast<unsigned char>(c));
        return R"({"schema_version":1,"session_id":"s","oldest_cursor":)" + std::to_string(oldest) +
               R"(,"next_cursor":)" + std::to_string(next) + R"(,"truncated":)" +
               (cursor < oldest ? "true" : "false") + R"(,"eof":)" +
               (over && next == oldest + bytes.size() ? "true" : "false") + R"(,"bytes":[)" + list +
               "]}";
    }
    auto answer(string_view method, const string& payload) -> result<remote_answer> {
        requests.push_back(string{method} + " " + payload);
        if (!says_first.empty() && method != "attach") {
            auto out = std::move(says_first.front());
            says_first.pop_front();
            return out;
        }
        if (method != "attach") return R"({"schema_version":1,"session_id":"s"})";
        const auto at = payload.find("\"cursor\":") + 9;
        return page(std::stoull(payload.substr(at)));
    }
};

auto said_no(const char* code, const char* words) -> remote_answer {
    return std::unexpected(remote_error{code, words});
}

// Shows what it gets; at each wait the next of the things that happen.
struct screen final : attached_screen {
    std::deque<std::function<news()>> happens;
    string shown;
    std::vector<string> remarks;
    std::vector<milliseconds> waits;
    bool breaks = false;

    auto wait(milliseconds most) -> result<news> override {
        waits.push_back(most);
        if (happens.empty()) return news{.signal = 15};
        auto out = happens.front()();
        happens.pop_front();
        return out;
    }
    auto show(const shown_page& page, string_view) -> result<> override {
        if (breaks) return fail(errc::io, "output", "it broke");
        shown += page.bytes;
        return {};
    }
    void remark(string_view words) override { remarks.emplace_back(words); }
    void happen(news what) {
        happens.emplace_back([what = std::move(what)] { return what; });
    }
};

class AttachLoop : public testing::Test {
protected:
    auto run(attach_wish wish = {.session_id = "s"}) -> result<attach_end> {
        const auto ask = [this](string_view method, const string& payload) {
            return session_.answer(method, payload);
        };
        return attach_loop{std::move(wish), {ask, ask}, screen_}.run();
    }
    session session_;
    screen screen_;
};

TEST_F(AttachLoop, ShowsEverythingInOrderUntilTheEnd) {
    for (int i = 0; session_.bytes.size() < 3 * most_page_bytes; ++i)
        session_.bytes += std::to_string(i) + "\n";
    session_.over = true;
    for (int i = 0; i < 9; ++i) screen_.happen({});
    const auto end = run();
    ASSERT_TRUE(end) << end.error().detail;
    EXPECT_EQ(end->how, attach_outcome::ended);
    EXPECT_EQ(end->cursor, session_.bytes.size());
    EXPECT_TRUE(screen_.shown == session_.bytes);
    EXPECT_THAT(screen_.waits, testing::Each(0ms)); // there was more
    EXPECT_THAT(screen_.remarks, IsEmpty());
}

TEST_F(AttachLoop, AsksLessOftenWhileNothingComesAndSoonWhenSomethingDoes) {
    session_.bytes = "a";
    for (int i = 0; i < 40; ++i) screen_.happen({});
    screen_.happens.emplace_back([this] {
        session_.bytes += "b";
        return news{};
    });
    ASSERT_TRUE(run());
    ASSERT_EQ(screen_.waits.size(), 42U);
    EXPECT_EQ(screen_.waits.front(), attach_loop::quickest);
    EXPECT_TRUE(std::ranges::is_sorted(screen_.waits.begin(), screen_.waits.end() - 1));
    EXPECT_EQ(screen_.waits[40], attach_loop::slowest);
    EXPECT_EQ(screen_.waits[41], attach_loop::quickest);
}

TEST_F(AttachLoop, PassesOnWhatIsTypedInPiecesAndInOrder) {
    screen_.happen({.typed = "xy"});
    screen_.happen({.typed = string(most_input_piece + 1, '\xff')});
    ASSERT_TRUE(run());
    ASSERT_EQ(session_.requests.size(), 6U);
    EXPECT_EQ(session_.requests[1], R"(write_stdin {"session_id":"s","bytes":[120,121]})");
    EXPECT_EQ(std::ranges::count(session_.requests[3], ','), most_input_piece);
    EXPECT_EQ(session_.requests[4], R"(write_stdin {"session_id":"s","bytes":[255]})");
    EXPECT_EQ(screen_.waits[1], attach_loop::quickest);
}

TEST_F(AttachLoop, TellsSizes) {
    screen_.happen({.typed = "x", .size = window_size{24, 80}});
    ASSERT_TRUE(run());
    EXPECT_EQ(session_.requests[1], R"(resize {"session_id":"s","rows":24,"columns":80})");
    EXPECT_THAT(session_.requests[2], HasSubstr("write_stdin"));
}

TEST_F(AttachLoop, LeavesWithTheCursorOfWhatComesNext) {
    session_.bytes = "12345";
    session_.oldest = 7;
    screen_.happen({.typed = "x", .detaches = true});
    const auto end = run({.session_id = "s", .cursor = 8});
    ASSERT_TRUE(end);
    EXPECT_EQ(end->how, attach_outcome::detached);
    EXPECT_EQ(end->cursor, 12U);
    EXPECT_EQ(screen_.shown, "2345");
    EXPECT_THAT(session_.requests.back(), HasSubstr("write_stdin")); // typed before the key
}

TEST_F(AttachLoop, EndsWhenNobodyIsThere) {
    screen_.happen({.hung_up = true});
    EXPECT_EQ(run()->how, attach_outcome::hung_up);
    const auto end = run(); // nothing happens but a signal
    EXPECT_EQ(end->how, attach_outcome::signaled);
    EXPECT_EQ(end->signal, 15);
}

TEST_F(AttachLoop, TellsWhatIsNoLongerKept) {
    session_.bytes = "12345";
    session_.oldest = 7;
    ASSERT_TRUE(run({.session_id = "s", .cursor = 3}));
    EXPECT_THAT(screen_.remarks, ElementsAre("4 bytes before this are no longer kept"));
    EXPECT_EQ(screen_.shown, "12345");
}

TEST_F(AttachLoop, PassesOverWhatIsKept) {
    session_.bytes = string(most_page_bytes, 'o') + "old";
    session_.oldest = 5;
    screen_.happen({});
    screen_.happens.emplace_back([this] {
        session_.bytes += "new";
        return news{};
    });
    ASSERT_TRUE(run({.session_id = "s", .cursor = 0, .from_end = true}));
    EXPECT_EQ(screen_.shown, "new");
    EXPECT_THAT(screen_.remarks, IsEmpty());
}

TEST_F(AttachLoop, OutlivesInputThatIsNotTakenAndTellsItOnce) {
    for (int i = 0; i < 3; ++i) screen_.happen({.typed = "x"});
    screen_.happen({.size = window_size{1, 1}});
    for (const auto* code : {"session_input_failed", "session_input_failed"})
        session_.says_first.emplace_back(said_no(code, "words\x1b"));
    session_.says_first.emplace_back("{}");
    session_.says_first.emplace_back(said_no("session_resize_failed", "no"));
    EXPECT_EQ(run()->how, attach_outcome::signaled);
    EXPECT_THAT(screen_.remarks,
                ElementsAre("what was typed may not have arrived: words\\x1b",
                            "the session's terminal does not have the size of this window: no"));
}

TEST_F(AttachLoop, EndsWithAnyOtherRefusal) {
    screen_.happen({.typed = "x"});
    session_.says_first.emplace_back(said_no("unauthorized", "no"));
    const auto end = run();
    EXPECT_EQ(end->how, attach_outcome::refused);
    EXPECT_EQ(end->refusal.code, "unauthorized");
    EXPECT_EQ(end->method, "write_stdin");
}

TEST_F(AttachLoop, EndsWithAnError) {
    screen_.happen({.typed = "x"});
    screen_.happen({});
    session_.says_first.emplace_back(fail(errc::not_found, "client.socket", "it is gone"));
    const auto end = run();
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().step, "client.socket");
}

// What was given up for a signal's sake is no failure.
TEST_F(AttachLoop, IsEndedByASignalWhereverItIs) {
    session_.bytes = "x";
    screen_.breaks = true;
    const auto end = run();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->how, attach_outcome::signaled);
    screen_.happen({});
    const auto broken = run();
    ASSERT_FALSE(broken);
    EXPECT_EQ(broken.error().step, "output");
}

TEST_F(AttachLoop, BelievesNoPageThatDoesNotFit) {
    const string head = R"({"schema_version":1,"session_id":"s","oldest_cursor":)";
    for (const auto* const rest :
         {R"(0,"next_cursor":6,"truncated":false,"eof":false,"bytes":[1]})",
          R"(0,"next_cursor":0,"truncated":false,"eof":false,"bytes":[1]})",
          R"(6,"next_cursor":6,"truncated":false,"eof":false,"bytes":[]})",
          R"(6,"next_cursor":8,"truncated":true,"eof":false,"bytes":[1]})",
          R"(5,"next_cursor":6,"truncated":true,"eof":false,"bytes":[1]})",
          R"(0,"next_cursor":6,"truncated":false,"eof":false,"bytes":[1],"more":1})",
          R"(0,"next_cursor":5,"truncated":false,"eof":0,"bytes":[]})"})
        EXPECT_EQ(decode_page(head + rest, "s", 5).has_value(),
                  string_view{rest}.starts_with(R"(0,"next_cursor":6)") &&
                      !string_view{rest}.contains("more"))
            << rest;
    EXPECT_FALSE(decode_page(session_.page(0), "other", 0));
    session_.bytes = string(most_page_bytes, '\xff');
    EXPECT_EQ(decode_page(session_.page(0), "s", 0)->bytes, session_.bytes);
    auto longer = session_.page(0);
    longer.replace(longer.find("\"bytes\":["), 9, "\"bytes\":[1,");
    EXPECT_FALSE(decode_page(longer, "s", 0));
}

TEST(SizeNamed, IsRowsByColumns) {
    EXPECT_EQ(size_named("1x4096"), (window_size{1, 4096}));
    for (const auto* bad : {"", "x", "1x", "x1", "0x1", "1x0", "1x4097", "4097x1", "1x1x1", "+1x1",
                            "1 x1", "01x1", "1X1"})
        EXPECT_FALSE(size_named(bad)) << bad;
}

} // namespace
} // namespace glove::cli
