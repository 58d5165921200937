#include "service_scene.hpp"
#include <atomic>
#include <gmock/gmock.h>
#include <support/forked.hpp>

namespace glove::control {
namespace {

using namespace std::chrono_literals;
using std::string;
using std::string_view;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using clock = std::chrono::steady_clock;

// Gives back what it was asked, after as long as the first word says.
class echo final : public answerer {
public:
    auto look_at(string_view text, const arrival& when) -> glance override {
        if (text == "wait") return {true, false, when.monotonic + 60s};
        if (text == "wait long") return {true, true, when.monotonic + 60s};
        if (text == "stop") return {true, false, when.monotonic + 60s};
        if (text == "soon late") return {true, false, when.monotonic + 150ms};
        return {};
    }
    auto answer_to(string& text, const arrival&) -> string override {
        ++asked;
        if (text.starts_with("slow")) std::this_thread::sleep_for(400ms);
        if (text == "throw") throw std::runtime_error{"as it was asked"};
        if (text.starts_with("large:")) return string(most_frame_bytes, 'x');
        if (text == "wait" || text == "wait long")
            while (held) std::this_thread::sleep_for(1ms);
        if (text.size() > 100) return std::to_string(text.size());
        return "echo:" + text;
    }
    auto answer_to_no_frame(const error& why) -> string override {
        return "no frame:" + string{why.step};
    }
    std::atomic<int> asked = 0;
    std::atomic<bool> held = true;
};

TEST(Server, one_request_and_one_answer_on_a_connection) {
    echo by;
    test::running_server server{by};
    EXPECT_EQ(server.ask("one"), "echo:one");
    EXPECT_EQ(server.ask("two"), "echo:two");
    // What comes after the request is not looked at.
    const auto one = server.client();
    (void)test::put(one, test::framed("first") + test::framed("second"));
    EXPECT_EQ(test::answer_on(one), "echo:first");
    EXPECT_EQ(by.asked, 3);
}

TEST(Server, a_request_may_come_byte_by_byte_and_the_client_may_stop_sending) {
    echo by;
    test::running_server server{by};
    const auto one = server.client();
    for (const char c : test::framed("slowly")) {
        EXPECT_EQ(test::put(one, {&c, 1}), 1U);
        std::this_thread::sleep_for(2ms);
    }
    (void)::shutdown(one.get(), SHUT_WR);
    EXPECT_EQ(test::answer_on(one), "echo:slowly");
}

TEST(Server, the_largest_frame_goes_both_ways_and_a_larger_one_is_refused) {
    echo by;
    test::running_server server{by};
    EXPECT_EQ(server.ask(string(most_frame_bytes, 'a')), std::to_string(most_frame_bytes));
    EXPECT_EQ(server.ask("large:").size(), most_frame_bytes);
    const auto one = server.client();
    (void)test::put(one, string{"\x00\x10\x00\x01", 4});
    EXPECT_EQ(test::answer_on(one), "no frame:frame.size");
    const auto none = server.client();
    (void)test::put(none, string(4, '\0'));
    EXPECT_EQ(test::answer_on(none), "no frame:frame.size");
    const auto huge = server.client();
    (void)test::put(huge, "\xff\xff\xff\xff" + string(5000, 'x'));
    EXPECT_THAT(test::answer_on(huge), StartsWith("no frame:frame.size"));
    EXPECT_EQ(server.ask("still here"), "echo:still here");
}

TEST(Server, who_closes_early_ends_nothing_but_its_connection) {
    echo by;
    test::running_server server{by};
    {
        const auto nothing = server.client();
    }
    for (std::size_t size = 1; size < test::framed("half a frame").size(); ++size) {
        const auto one = server.client();
        (void)test::put(one, test::framed("half a frame").substr(0, size));
    }
    {
        const auto gone = server.client();
        (void)test::put(gone, test::framed("slow, and nobody waits"));
    }
    EXPECT_EQ(server.ask("next"), "echo:next");
    EXPECT_TRUE(test::becomes([&] { return by.asked == 2; }));
    EXPECT_THAT(server.log(), HasSubstr("closed in the middle"));
}

TEST(Server, one_deadline_for_an_exchange_that_no_byte_moves) {
    echo by;
    test::running_server server{by, {.exchange = 300ms}};
    const auto began = clock::now();
    const auto one = server.client();
    const auto bytes = test::framed(string(80, 'x'));
    std::size_t sent = 0;
    for (; sent < bytes.size(); ++sent) {
        if (test::put(one, {&bytes[sent], 1}) == 0) break;
        std::this_thread::sleep_for(20ms); // 1.7 seconds for all of them
    }
    EXPECT_LT(sent, bytes.size());
    EXPECT_EQ(test::all_of(one), "");
    EXPECT_GE(clock::now() - began, 290ms);
    EXPECT_LT(clock::now() - began, 1500ms);
    EXPECT_THAT(server.log(), HasSubstr("exchange.deadline"));
    // Its twin is fast enough, and idle ones end as well.
    EXPECT_EQ(server.ask("fast"), "echo:fast");
    const auto idle = server.client();
    EXPECT_EQ(test::all_of(idle, 2s), "");
}

TEST(Server, who_does_not_take_its_answer_is_dropped_at_the_deadline) {
    echo by;
    test::running_server server{by, {.exchange = 300ms}};
    const auto one = server.client();
    (void)test::put(one, test::framed("large:"));
    EXPECT_TRUE(test::becomes(
        [&] { return server.log().find("does not take its answer") != string::npos; }));
    EXPECT_LT(test::all_of(one).size(), most_frame_bytes);
    EXPECT_EQ(server.ask("next"), "echo:next");
}

TEST(Server, the_time_of_the_service_is_not_the_clients) {
    echo by;
    test::running_server server{by, {.exchange = 200ms}};
    EXPECT_EQ(server.ask("slow work"), "echo:slow work"); // 400 ms
}

TEST(Server, slow_work_holds_up_nobody_while_a_worker_is_free) {
    echo by;
    test::running_server server{by, {.workers = 2}};
    const auto waiting = server.client();
    (void)test::put(waiting, test::framed("wait"));
    for (int i = 0; i < 20; ++i) EXPECT_EQ(server.ask("quick"), "echo:quick");
    by.held = false;
    EXPECT_EQ(test::answer_on(waiting), "echo:wait");
}

TEST(Server, a_disk_that_hangs_leaves_one_worker_for_those_who_look) {
    echo by;
    test::running_server server{by, {.connections = 12, .workers = 3}};
    std::vector<sys::unique_fd> writing;
    for (int i = 0; i < 6; ++i) {
        writing.push_back(server.client());
        (void)test::put(writing.back(), test::framed("wait"));
    }
    EXPECT_TRUE(test::becomes([&] { return by.asked == 2; }));
    for (int i = 0; i < 5; ++i) {
        const auto one = server.client();
        (void)test::put(one, test::framed("quick"));
        EXPECT_EQ(test::answer_on(one, 2s), "echo:quick");
    }
    // What waits is answered when it is late, whatever the disk does: that it is refused then is
    // the answerer's part.
    const auto late = server.client();
    const auto began = clock::now();
    (void)test::put(late, test::framed("soon late"));
    EXPECT_EQ(test::answer_on(late, 2s), "echo:soon late");
    EXPECT_GE(clock::now() - began, 140ms);
    // Half of the places may wait, and no more: 4 do.
    for (int i = 0; i < 2; ++i) {
        writing.push_back(server.client());
        (void)test::put(writing.back(), test::framed("wait"));
    }
    const auto no_place = server.client();
    EXPECT_TRUE(test::becomes([&] { return server.ask("quick") == "echo:quick"; }));
    (void)test::put(no_place, test::framed("wait"));
    EXPECT_EQ(test::answer_on(no_place, 2s), "[no answer]");
    EXPECT_THAT(server.log(), HasSubstr("exchange.queue"));
    by.held = false;
    for (const auto& one : writing) EXPECT_EQ(test::answer_on(one), "echo:wait");
}

// As many starts as anybody asks for, each of which copies for as long as it may: what ends a
// session still finds a worker.
TEST(Server, what_takes_long_leaves_a_worker_for_what_writes) {
    echo by;
    test::running_server server{by, {.connections = 16, .workers = 4}};
    std::vector<sys::unique_fd> long_ones;
    const auto ask_long = [&] {
        long_ones.push_back(server.client());
        (void)test::put(long_ones.back(), test::framed("wait long"));
    };
    for (int i = 0; i < 6; ++i) ask_long();
    EXPECT_TRUE(test::becomes([&] { return by.asked == 2; }));
    for (int i = 0; i < 5; ++i) {
        const auto one = server.client();
        (void)test::put(one, test::framed("stop"));
        EXPECT_EQ(test::answer_on(one, 2s), "echo:stop");
    }
    EXPECT_EQ(by.asked, 7); // no third one began
    // A quarter of the places may wait, which are 4: all are taken.
    ask_long();
    EXPECT_EQ(test::answer_on(long_ones.back(), 2s), "[no answer]");
    long_ones.pop_back();
    by.held = false;
    for (const auto& one : long_ones) EXPECT_EQ(test::answer_on(one), "echo:wait long");
}

TEST(Server, a_worker_that_throws_is_no_end) {
    echo by;
    test::running_server server{by, {.workers = 1}};
    EXPECT_EQ(server.ask("throw"), "[no answer]");
    EXPECT_EQ(server.ask("next"), "echo:next");
    EXPECT_THAT(server.log(), HasSubstr("as it was asked"));
}

TEST(Server, more_clients_than_there_is_room_for_wait_their_turn) {
    echo by;
    test::running_server server{by, {.exchange = 400ms, .connections = 4}};
    std::vector<sys::unique_fd> idle;
    for (int i = 0; i < 4; ++i) idle.push_back(server.client());
    const auto began = clock::now();
    EXPECT_EQ(server.ask("after them"), "echo:after them");
    EXPECT_GE(clock::now() - began, 200ms);
    EXPECT_LT(clock::now() - began, 3s);
}

TEST(Server, who_is_slow_to_ask_yields_its_place_to_others) {
    echo by;
    test::running_server server{by, {.exchange = 60s, .connections = 4, .workers = 2}};
    std::vector<sys::unique_fd> slow;
    for (int i = 0; i < 12; ++i) {
        slow.push_back(server.client());
        (void)test::put(slow.back(), string_view{"\0", 1});
    }
    const auto began = clock::now();
    EXPECT_EQ(server.ask("in spite of them"), "echo:in spite of them");
    EXPECT_LT(clock::now() - began, 5s);
    EXPECT_THAT(server.log(), HasSubstr("exchange.yield"));
    EXPECT_EQ(test::all_of(slow.front(), 2s), ""); // the first was the first to go
}

// Who has asked is never the one that makes room.
TEST(Server, who_waits_for_its_answer_yields_nothing) {
    echo by;
    test::running_server server{by, {.exchange = 60s, .connections = 2, .workers = 2}};
    std::vector<sys::unique_fd> asked;
    for (int i = 0; i < 2; ++i) {
        asked.push_back(server.client());
        (void)test::put(asked.back(), test::framed("wait"));
    }
    const auto third = server.client();
    (void)test::put(third, test::framed("third"));
    std::this_thread::sleep_for(600ms);
    by.held = false;
    for (const auto& one : asked) EXPECT_EQ(test::answer_on(one), "echo:wait");
    EXPECT_EQ(test::answer_on(third), "echo:third");
}

TEST(Server, large_frames_wait_for_room_and_small_ones_do_not) {
    echo by;
    test::running_server server{by, {.exchange = 600ms, .large_frames = 2}};
    std::vector<sys::unique_fd> hogs;
    for (int i = 0; i < 2; ++i) {
        hogs.push_back(server.client());
        (void)test::put(hogs.back(), string{"\x00\x10\x00\x00", 4});
    }
    std::this_thread::sleep_for(50ms);
    const auto began = clock::now();
    EXPECT_EQ(server.ask("small"), "echo:small");
    EXPECT_EQ(server.ask(string(65'536, 'a')), "65536");
    EXPECT_LT(clock::now() - began, 300ms);
    EXPECT_EQ(server.ask(string(65'537, 'a')), "65537"); // when a hog has made room
    EXPECT_GE(clock::now() - began, 150ms);
}

TEST(Server, large_frames_that_do_not_come_make_room_for_those_that_do) {
    echo by;
    test::running_server server{by, {.exchange = 60s, .large_frames = 2}};
    std::vector<sys::unique_fd> hogs;
    for (int i = 0; i < 6; ++i) {
        hogs.push_back(server.client());
        (void)test::put(hogs.back(), string{"\x00\x10\x00\x00x", 5});
    }
    std::this_thread::sleep_for(50ms);
    const auto began = clock::now();
    EXPECT_EQ(server.ask(string(70'000, 'a')), "70000");
    EXPECT_LT(clock::now() - began, 10s);
    EXPECT_THAT(server.log(), HasSubstr("exchange.yield"));
}

// The time for which a large frame finds no room is not its client's.
TEST(Server, waiting_for_room_costs_no_time_of_the_client) {
    echo by;
    test::running_server server{by, {.exchange = 500ms, .large_frames = 1, .yields_after = 10s}};
    const auto hog = server.client();
    (void)test::put(hog, string{"\x00\x10\x00\x00", 4});
    std::this_thread::sleep_for(100ms);
    const auto one = server.client();
    const auto bytes = test::framed(string(70'000, 'a'));
    (void)test::put(one, string_view{bytes}.substr(0, 1000));
    std::this_thread::sleep_for(600ms); // the hog is gone after 500 ms
    (void)test::put(one, string_view{bytes}.substr(1000));
    EXPECT_EQ(test::answer_on(one), "70000");
}

TEST(Server, another_user_is_never_read_from) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to be somebody else";
    echo by;
    test::running_server server{by};
    ASSERT_EQ(::chmod(server.directory().c_str(), 0755), 0);
    ASSERT_EQ(::chmod(server.socket().c_str(), 0666), 0);
    const auto ask_as = [&](::uid_t user) {
        return test::said_by([&]() -> string {
            if (user != 0 && ::setresuid(user, user, user) != 0) return "no setuid";
            const auto one = test::connected(server.socket());
            if (!one) return "not connected";
            (void)test::put(one, test::framed("let me in"));
            return test::answer_on(one);
        });
    };
    EXPECT_EQ(ask_as(65534), "[no answer]");
    EXPECT_EQ(by.asked, 0);
    EXPECT_THAT(server.log(), HasSubstr("peer.user"));
    EXPECT_EQ(ask_as(0), "echo:let me in");
}

TEST(Server, it_ends_clean_after_what_was_received) {
    echo by;
    test::running_server server{by};
    const auto asking = server.client();
    (void)test::put(asking, test::framed("slow one"));
    const auto halfway = server.client();
    (void)test::put(halfway, test::framed("never whole").substr(0, 6));
    EXPECT_TRUE(test::becomes([&] { return by.asked == 1; }));
    EXPECT_EQ(server.stop(), ending::clean);
    EXPECT_EQ(test::answer_on(asking), "echo:slow one");
    EXPECT_EQ(test::all_of(halfway), "");
    EXPECT_FALSE(test::connected(server.socket()));
}

TEST(Server, an_end_does_not_wait_for_ever) {
    echo by;
    test::running_server server{by, {.grace = 100ms}};
    const auto stuck = server.client();
    (void)test::put(stuck, test::framed("wait"));
    EXPECT_TRUE(test::becomes([&] { return by.asked == 1; }));
    std::thread later{[&] {
        std::this_thread::sleep_for(400ms);
        by.held = false; // so that this process can go on
    }};
    EXPECT_EQ(server.stop(), ending::late);
    later.join();
}

TEST(Server, bounds_that_are_none_are_refused) {
    const auto step = [](const server_settings& how) {
        echo by;
        test::kept_log log;
        sys::system_clock time;
        const auto made = server::open({}, how, by, time, log);
        return made ? string{} : string{made.error().step};
    };
    EXPECT_EQ(step({.exchange = 0ms}), "server.settings");
    EXPECT_EQ(step({.exchange = 60'001ms}), "server.settings");
    EXPECT_EQ(step({.connections = 0}), "server.settings");
    EXPECT_EQ(step({.workers = 0}), "server.settings");
    EXPECT_NE(step({.exchange = 1ms}), "server.settings");
    EXPECT_NE(step({.exchange = 60'000ms}), "server.settings");
}

// Everything at once: nobody's answer is another's, and the server outlives all of it.
TEST(Server, sixty_four_clients_behave_well_and_badly_at_once) {
    echo by;
    test::running_server server{by, {.exchange = 2s}};
    std::atomic<int> good = 0;
    std::vector<std::thread> clients;
    for (int n = 0; n < 64; ++n)
        clients.emplace_back([&, n] {
            for (int i = 0; i < 20; ++i) {
                const auto body = std::to_string(n) + ":" + std::to_string(i);
                if (n % 8 == 7) {
                    const auto bad = server.client();
                    const auto bytes = test::framed(body + string(1000, 'g'));
                    (void)test::put(bad, i % 2 == 0 ? bytes.substr(0, bytes.size() / 2)
                                                    : string(3000, '\xff'));
                } else if (server.ask(body) == "echo:" + body) ++good;
            }
        });
    for (auto& one : clients) one.join();
    EXPECT_EQ(good, 56 * 20);
    EXPECT_EQ(server.ask("after all"), "echo:after all");
    EXPECT_EQ(server.stop(), ending::clean);
}

} // namespace
} // namespace glove::control
