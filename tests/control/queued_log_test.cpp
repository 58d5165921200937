#include <atomic>
#include <condition_variable>
#include <glove/control/service_log.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mutex>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace glove::control {
namespace {

using namespace std::chrono_literals;
using std::string;
using std::string_view;
using testing::ElementsAre;

// What became of the lines; it outlives the sink, and so whatever a thread still does.
struct paper {
    std::mutex lock;
    std::condition_variable changed;
    std::vector<string> lines;
    bool hangs = false; // as a disk does
    bool full = false;  // as a pipe is that nobody reads
    std::size_t asked = 0;

    void let_go() {
        const std::lock_guard held{lock};
        hangs = false;
        changed.notify_all();
    }
    [[nodiscard]] auto is_asked(std::size_t times) -> bool {
        std::unique_lock held{lock};
        return changed.wait_for(held, 10s, [&] { return asked >= times; });
    }
    // The texts alone.
    [[nodiscard]] auto texts() -> std::vector<string> {
        const std::lock_guard held{lock};
        std::vector<string> out;
        for (const auto& line : lines) {
            const auto at = line.find("\"text\":\"") + 8;
            out.push_back(line.substr(at, line.rfind('"') - at));
        }
        return out;
    }
};

class sink final : public log_sink {
public:
    explicit sink(std::shared_ptr<paper> on) : on_{std::move(on)} {}
    auto put(string_view line) -> bool override {
        std::unique_lock held{on_->lock};
        ++on_->asked;
        on_->changed.notify_all();
        on_->changed.wait(held, [&] { return !on_->hangs; });
        if (on_->full) return false;
        on_->lines.emplace_back(line);
        return true;
    }

private:
    std::shared_ptr<paper> on_;
};

struct scene {
    std::shared_ptr<paper> on = std::make_shared<paper>();
    std::unique_ptr<queued_log> log;
    explicit scene(log_bounds most = {})
        : log{std::make_unique<queued_log>(std::make_unique<sink>(on), most)} {}
    void say(const string& text) const { log->write({.name = "test", .text = text}); }
};

auto since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::steady_clock::now() - begin;
}

TEST(QueuedLog, lines_come_out_whole_in_order_and_all_of_them_at_the_end) {
    scene s;
    for (int i = 0; i < 500; ++i) s.say(std::to_string(i));
    s.log.reset();
    const auto texts = s.on->texts();
    ASSERT_EQ(texts.size(), 500U);
    for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(texts[i], std::to_string(i));
    EXPECT_TRUE(s.on->lines.front().ends_with("\"}\n"));
}

TEST(QueuedLog, a_disk_that_hangs_holds_nobody_up_and_what_was_dropped_is_counted) {
    scene s{{.lines = 3, .at_the_end = 50ms}};
    s.on->hangs = true;
    s.say("first");
    ASSERT_TRUE(s.on->is_asked(1)); // and does not come back
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 100; ++i) s.say(std::to_string(i));
    EXPECT_LT(since(begin), 5s);
    EXPECT_FALSE(s.log->flush());
    s.on->let_go();
    ASSERT_TRUE(s.on->is_asked(5));
    EXPECT_TRUE(s.log->flush());
    s.say("last");
    s.log.reset();
    // Three found room, and it is told where the others would have stood.
    EXPECT_THAT(s.on->texts(),
                ElementsAre("first", "0", "1", "2", "97 lines found no room", "last"));
}

TEST(QueuedLog, as_many_as_find_room_are_lost_by_none) {
    scene s{{.lines = 3}};
    s.on->hangs = true;
    s.say("first");
    ASSERT_TRUE(s.on->is_asked(1));
    for (const auto* text : {"a", "b", "c"}) s.say(text);
    s.on->let_go();
    s.log.reset();
    EXPECT_THAT(s.on->texts(), ElementsAre("first", "a", "b", "c"));
}

TEST(QueuedLog, an_end_waits_for_a_disk_that_hangs_only_so_long) {
    scene s{{.at_the_end = 50ms}};
    s.on->hangs = true;
    s.say("never out");
    ASSERT_TRUE(s.on->is_asked(1));
    const auto begin = std::chrono::steady_clock::now();
    s.log.reset();
    EXPECT_GE(since(begin), 50ms);
    EXPECT_LT(since(begin), 5s);
    s.on->let_go(); // the thread that was left behind has all that it needs
    for (int i = 0; i < 1000 && s.on->texts().empty(); ++i) std::this_thread::sleep_for(5ms);
    EXPECT_THAT(s.on->texts(), ElementsAre("never out"));
}

TEST(QueuedLog, what_a_reader_did_not_take_is_told_when_it_reads_again) {
    scene s;
    s.on->full = true;
    for (int i = 0; i < 10; ++i) s.say("lost");
    EXPECT_TRUE(s.log->flush());
    {
        const std::lock_guard held{s.on->lock};
        s.on->full = false;
    }
    s.say("seen");
    s.log.reset();
    EXPECT_THAT(s.on->texts(), ElementsAre("10 lines found no room", "seen"));
}

// It has a copy of the queue and its lock, whoever held that, and no thread.
TEST(QueuedLog, a_process_that_was_forked_off_tells_by_itself_and_waits_for_nobody) {
    scene s{{.at_the_end = 10s}};
    s.on->hangs = true;
    s.say("of the parent");
    ASSERT_TRUE(s.on->is_asked(1));
    const auto child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        ::alarm(10);
        s.on->hangs = false; // its own copy
        s.say("of the child");
        const bool told = s.on->lines.size() == 1;
        const bool flushed = s.log->flush();
        s.log.reset();
        ::_exit(told && flushed ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    s.on->let_go();
    s.log.reset();
    EXPECT_THAT(s.on->texts(), ElementsAre("of the parent"));
}

TEST(QueuedLog, many_threads_lose_no_line_while_there_is_room) {
    scene s{{.lines = 10'000}};
    std::vector<std::thread> all;
    for (int i = 0; i < 8; ++i)
        all.emplace_back([&] {
            for (int k = 0; k < 200; ++k) s.say("x");
        });
    for (auto& one : all) one.join();
    s.log.reset();
    EXPECT_EQ(s.on->texts().size(), 1600U);
}

} // namespace
} // namespace glove::control
