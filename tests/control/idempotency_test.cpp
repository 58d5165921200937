#include <atomic>
#include <glove/control/idempotency.hpp>
#include <gtest/gtest.h>
#include <stdexcept>
#include <thread>
#include <vector>

namespace glove::control {
namespace {

using std::string;

auto code_of(const answer<string>& what) -> string {
    return what ? *what : string{to_string(what.error().code)};
}

TEST(Idempotency, the_first_answer_is_kept) {
    idempotency_table table;
    int runs = 0;
    const auto act = [&]() -> answer<string> { return std::to_string(++runs); };
    EXPECT_EQ(code_of(table.once("s", "k", "r", act)), "1");
    EXPECT_EQ(code_of(table.once("s", "k", "r", act)), "1");
    EXPECT_EQ(code_of(table.once("s", "k", "other", act)), "idempotency_conflict");
    EXPECT_EQ(code_of(table.once("t", "k", "other", act)), "2");
    EXPECT_EQ(table.kept(), 2U);
    table.forget("s");
    EXPECT_EQ(table.kept(), 1U);
    EXPECT_EQ(code_of(table.once("s", "k", "other", act)), "3");
}

TEST(Idempotency, what_failed_or_threw_is_not_kept) {
    idempotency_table table;
    const auto fails = [&]() -> answer<string> {
        return refuse(error_code::session_input_failed, errc::io, "test.io");
    };
    EXPECT_EQ(code_of(table.once("s", "k", "r", fails)), "session_input_failed");
    EXPECT_THROW(
        (void)table.once("s", "k", "r", []() -> answer<string> { throw std::runtime_error{"x"}; }),
        std::runtime_error);
    EXPECT_EQ(table.kept(), 0U);
    EXPECT_EQ(code_of(table.once("s", "k", "r", [] { return answer<string>{"done"}; })), "done");
}

TEST(Idempotency, the_newest_keys_of_a_subject_and_the_newest_subjects_stay) {
    idempotency_table table{{.subjects = 2, .keys = 2}};
    int runs = 0;
    const auto once = [&](const char* subject, const char* key) {
        return code_of(table.once(subject, key, "r",
                                  [&]() -> answer<string> { return std::to_string(++runs); }));
    };
    EXPECT_EQ(once("a", "1"), "1");
    EXPECT_EQ(once("a", "2"), "2");
    EXPECT_EQ(once("a", "1"), "1"); // used again
    EXPECT_EQ(once("a", "3"), "3"); // and so "2" goes
    EXPECT_EQ(once("a", "1"), "1");
    EXPECT_EQ(once("a", "2"), "4");
    EXPECT_EQ(once("b", "1"), "5");
    EXPECT_EQ(once("a", "2"), "4");
    EXPECT_EQ(once("c", "1"), "6"); // "b" goes
    EXPECT_EQ(once("a", "2"), "4");
    EXPECT_EQ(once("b", "1"), "7");
    EXPECT_LE(table.kept(), 4U);
}

// Requests that fail, of subjects that do not exist, take nothing from those that do.
TEST(Idempotency, a_failure_leaves_no_subject_behind) {
    idempotency_table table{{.subjects = 2, .keys = 2}};
    int runs = 0;
    const auto good = [&]() -> answer<string> { return std::to_string(++runs); };
    const auto fails = []() -> answer<string> {
        return refuse(error_code::session_not_found, errc::not_found, "test.none");
    };
    EXPECT_EQ(code_of(table.once("living", "k", "r", good)), "1");
    for (int i = 0; i < 10; ++i)
        EXPECT_EQ(code_of(table.once("none-" + std::to_string(i), "k", "r", fails)),
                  "session_not_found");
    EXPECT_EQ(code_of(table.once("living", "k", "r", good)), "1");
    // Nor when the table is full; what succeeds takes the place of the one that was used longest
    // ago.
    EXPECT_EQ(code_of(table.once("other", "k", "r", good)), "2");
    for (int i = 0; i < 10; ++i)
        EXPECT_EQ(code_of(table.once("none-" + std::to_string(i), "k", "r", fails)),
                  "session_not_found");
    EXPECT_EQ(code_of(table.once("living", "k", "r", good)), "1");
    EXPECT_EQ(code_of(table.once("other", "k", "r", good)), "2");
    EXPECT_EQ(code_of(table.once("third", "k", "r", good)), "3");
    EXPECT_EQ(table.kept(), 2U);
    EXPECT_EQ(code_of(table.once("other", "k", "r", good)), "2");
}

TEST(Idempotency, answers_are_bounded_in_bytes) {
    // A key, a request and an answer of 10 bytes together.
    idempotency_table table{{.subjects = 9, .keys = 9, .bytes = 30}};
    int runs = 0;
    const auto once = [&](const char* subject, const char* key) {
        return code_of(table.once(subject, key, "r", [&]() -> answer<string> {
            return "answer-" + std::to_string(++runs);
        }));
    };
    EXPECT_EQ(once("a", "1"), "answer-1");
    EXPECT_EQ(once("b", "1"), "answer-2");
    EXPECT_EQ(once("b", "2"), "answer-3");
    EXPECT_EQ(once("a", "1"), "answer-1"); // three fit
    EXPECT_EQ(once("a", "2"), "answer-4"); // "b" goes
    EXPECT_EQ(table.kept(), 2U);
    EXPECT_EQ(once("a", "3"), "answer-5");
    EXPECT_EQ(once("a", "4"), "answer-6"); // and now the oldest of "a"
    EXPECT_EQ(once("a", "4"), "answer-6");
    EXPECT_EQ(table.kept(), 3U);
    EXPECT_EQ(once("a", "1"), "answer-7");
}

TEST(Idempotency, what_runs_is_neither_run_twice_nor_forgotten) {
    idempotency_table table{{.subjects = 1, .keys = 1}};
    std::atomic<int> runs = 0;
    std::atomic<bool> held = true;
    const auto slow = [&]() -> answer<string> {
        ++runs;
        while (held) std::this_thread::yield();
        return string{"slow"};
    };
    std::vector<std::thread> same;
    std::atomic<int> right = 0;
    for (int i = 0; i < 8; ++i)
        same.emplace_back([&] { right += code_of(table.once("s", "k", "r", slow)) == "slow"; });
    while (runs == 0) std::this_thread::yield();
    EXPECT_EQ(code_of(table.once("s", "k", "other", slow)), "idempotency_conflict");
    EXPECT_EQ(code_of(table.once("s", "k2", "r", slow)), "idempotency_capacity");
    EXPECT_EQ(code_of(table.once("t", "k", "r", slow)), "idempotency_capacity");
    table.forget("s");
    EXPECT_EQ(table.kept(), 1U);
    held = false;
    for (auto& one : same) one.join();
    EXPECT_EQ(right, 8);
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(code_of(table.once("t", "k", "r", slow)), "slow");
}

} // namespace
} // namespace glove::control
