#include <fstream>
#include <glove/control/recorded_processes.hpp>
#include <gtest/gtest.h>
#include <support/folder.hpp>
#include <unistd.h>

namespace glove::control {
namespace {

using enum observed_process;
using std::string;

const string boot = "01234567-89ab-cdef-0123-456789abcdef";

struct scene {
    scene() {
        (void)proc.file("sys/kernel/random/boot_id", boot + "\n");
        process("42", "an agent) S 1 (", "987");
    }
    void process(const string& pid, const string& name, const string& ticks) const {
        string line = pid + " (" + name + ") S";
        for (int i = 0; i < 18; ++i) line += " " + std::to_string(i);
        (void)proc.file(pid + "/stat", line + " " + ticks + " 0 0\n");
    }
    auto observe(process_identity was, bool free = true) const -> observed_process {
        session_record record;
        record.process = std::move(was);
        const auto yes = [](std::uint32_t) { return true; };
        const auto no = [](std::uint32_t) { return false; };
        return (free ? recorded_processes{proc.path(), yes} : recorded_processes{proc.path(), no})
            .observe(record);
    }
    test::folder proc;
};

TEST(RecordedProcesses, one_that_may_still_be_it_is_left_alone) {
    const scene s;
    EXPECT_EQ(s.observe({1, 42, boot, 987, 1, 1, {}}), unknown);
}

TEST(RecordedProcesses, another_start_of_the_machine_or_of_the_process_means_that_it_is_gone) {
    const scene s;
    EXPECT_EQ(s.observe({1, 42, "11234567-89ab-cdef-0123-456789abcdef", 987, 1, 1, {}}), gone);
    EXPECT_EQ(s.observe({1, 42, boot, 986, 1, 1, {}}), gone);
    EXPECT_EQ(s.observe({1, 43, boot, 987, 1, 1, {}}), gone);
}

TEST(RecordedProcesses, one_that_has_ended_and_was_not_waited_for_is_gone) {
    const scene s;
    const string rest = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 ";
    (void)s.proc.file("46/stat", "46 (agent) Z" + rest + "1 0 987 0\n");
    EXPECT_EQ(s.observe({1, 46, boot, 987, 1, 1, {}}), gone);
    (void)s.proc.file("46/stat", "46 (agent) Z" + rest + "2 0 987 0\n"); // threads are left
    EXPECT_EQ(s.observe({1, 46, boot, 987, 1, 1, {}}), unknown);
}

// As with hidepid=2, for a process of another user.
TEST(RecordedProcesses, one_that_is_not_shown_is_not_gone) {
    const scene s;
    EXPECT_EQ(s.observe({1, 43, boot, 987, 1, 1, {}}, false), unknown);
    EXPECT_EQ(s.observe({1, 43, boot, 987, 1, 1, {}}, true), gone);
    EXPECT_FALSE(recorded_processes::kernel_says_free(static_cast<std::uint32_t>(::getpid())));
    EXPECT_FALSE(recorded_processes::kernel_says_free(1)); // root's
    EXPECT_FALSE(recorded_processes::kernel_says_free(0));
    EXPECT_FALSE(recorded_processes::kernel_says_free(UINT32_MAX)); // -1 is everybody
    EXPECT_TRUE(recorded_processes::kernel_says_free(1U << 30U));
}

TEST(RecordedProcesses, what_cannot_be_read_is_not_taken_for_gone) {
    const scene s;
    (void)s.proc.file("44/stat", "44 (no end");
    EXPECT_EQ(s.observe({1, 44, boot, 987, 1, 1, {}}), unknown);
    (void)s.proc.file("45/stat", "45 (short) S 1 2 3\n");
    EXPECT_EQ(s.observe({1, 45, boot, 987, 1, 1, {}}), unknown);
    EXPECT_EQ(s.observe({1, 0, boot, 987, 1, 1, {}}), unknown);
    session_record managed;
    managed.process = {1, 43, boot, 987, 1, 1, {}};
    managed.managed_runtime.emplace();
    EXPECT_EQ(recorded_processes{s.proc.path()}.observe(managed), unknown);
    std::filesystem::remove(s.proc / "sys/kernel/random/boot_id");
    EXPECT_EQ(s.observe({1, 43, boot, 987, 1, 1, {}}), unknown);
}

// Against the kernel's own files.
TEST(RecordedProcesses, this_very_process) {
    std::ifstream id{"/proc/sys/kernel/random/boot_id"};
    string now;
    id >> now;
    session_record record;
    record.process = {1, static_cast<std::uint32_t>(::getpid()), now, 1, 1, 1, {}};
    EXPECT_EQ(recorded_processes{}.observe(record), gone); // not the first tick since boot
    record.process.pid = 1U << 30U;
    EXPECT_EQ(recorded_processes{}.observe(record), gone);
}

} // namespace
} // namespace glove::control
