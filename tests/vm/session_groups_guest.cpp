// The control groups of sessions, with the kernel's own. Runs as the only process of a group that
// was delegated: tests/vm/groups_test.py starts it.
//
//   session_groups_guest open     says how that went, and nothing else
//   session_groups_guest [GOOGLETEST ARGUMENTS...]
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <glove/container/session_groups.hpp>
#include <glove/control/session_meter.hpp>
#include <glove/control/session_processes.hpp>
#include <glove/sys/process_facts.hpp>
#include <glove/wire/crypto.hpp>
#include <gtest/gtest.h>
#include <iostream>
#include <optional>
#include <sched.h>
#include <support/folder.hpp>
#include <support/forked.hpp>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>

namespace glove::container {
namespace {

using std::string;
using namespace std::chrono_literals;

constexpr std::uint64_t mib = 1UL << 20;
const session_group_limits usual{64 * mib, 16};
const sys::system_clock real_time;

[[nodiscard]] auto soon() -> std::chrono::nanoseconds { return real_time.monotonic() + 60s; }

[[nodiscard]] auto own_path() -> string {
    const auto table = test::content_of("/proc/self/cgroup");
    return string{sys::unified_group_in(table).value_or("")};
}
[[nodiscard]] auto parent_place() -> string {
    return "/sys/fs/cgroup" + std::filesystem::path{own_path()}.parent_path().string();
}
[[nodiscard]] auto place_of(const string& id) -> string {
    return parent_place() + "/glove-session-" + id;
}
[[nodiscard]] auto value(const string& path) -> string {
    auto out = test::content_of(path);
    if (out.ends_with('\n')) out.pop_back();
    return out;
}
[[nodiscard]] auto put(const string& path, const string& text) -> bool {
    const sys::unique_fd file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
    return file &&
           ::write(file.get(), text.data(), text.size()) == static_cast<::ssize_t>(text.size());
}

// A process that goes into the group by its entry and then does something. Reaped with the object.
class member {
public:
    member(
        const session_group& group, const std::function<int()>& body,
        const std::function<void()>& before = [] {}) {
        test::pipe_ends ready;
        pid_ = ::fork();
        test::prepared(pid_ >= 0, "fork");
        if (pid_ == 0) {
            before();
            if (::write(group.entry().get(), "0", 1) != 1) ::_exit(120);
            test::say(ready.write, "in");
            ready.write = {};
            ::_exit(body());
        }
        ready.write = {};
        test::prepared(test::hear(ready.read) == "in", "a member that went in");
    }
    member(const member&) = delete;
    auto operator=(const member&) -> member& = delete;
    ~member() {
        if (pid_ <= 0) return;
        (void)::kill(pid_, SIGKILL);
        (void)ended();
    }
    [[nodiscard]] auto pid() const -> ::pid_t { return pid_; }
    [[nodiscard]] auto ended() -> int {
        int status = -1;
        while (pid_ > 0 && ::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        pid_ = 0;
        return status;
    }
    [[nodiscard]] auto was_killed() -> bool {
        const auto how = ended();
        return WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL;
    }
    [[nodiscard]] auto status() -> int {
        const auto how = ended();
        return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
    }

private:
    ::pid_t pid_ = 0;
};

auto sleeps() -> int {
    for (;;) ::pause();
}
// How many children there can be beside itself, all at once.
auto children_up_to(int most) -> int {
    int made = 0;
    for (; made < most; ++made) {
        const auto child = ::fork();
        if (child < 0) break;
        if (child == 0) sleeps();
    }
    return made;
}
[[noreturn]] void multiplies() {
    for (;;)
        if (::fork() < 0) ::sched_yield();
}
auto touches(std::uint64_t bytes) -> int {
    auto* const at = static_cast<volatile char*>(
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (at == MAP_FAILED) return 1;
    for (std::uint64_t i = 0; i < bytes; i += 4096) at[i] = 1;
    return 0;
}

struct SessionGroups : testing::Test {
    SessionGroups() {
        auto opened = session_groups::open();
        test::prepared(opened.has_value(), opened ? "" : opened.error().detail);
        groups.emplace(*std::move(opened));
    }
    auto make(const string& id, session_group_limits limits = usual) -> session_group {
        auto out = groups->make(id, limits);
        test::prepared(out.has_value(), out ? "" : out.error().detail);
        return *std::move(out);
    }
    std::optional<session_groups> groups;
};

auto step_of(const auto& outcome) -> string {
    return outcome ? string{} : string{outcome.error().step};
}

TEST_F(SessionGroups, open_enables_what_is_needed_and_stays_where_it_is) {
    EXPECT_TRUE(own_path().ends_with("/glove-host")) << own_path();
    const auto enabled = " " + value(parent_place() + "/cgroup.subtree_control") + " ";
    for (const auto* one : {" cpu ", " memory ", " pids "})
        EXPECT_NE(enabled.find(one), string::npos) << enabled;
    EXPECT_EQ(value(parent_place() + "/cgroup.procs"), "");
    EXPECT_TRUE(session_groups::open().has_value()); // again
    EXPECT_GE(groups->processors(), std::thread::hardware_concurrency());
}

TEST_F(SessionGroups, a_group_has_its_limits_and_an_identity) {
    auto group = make("a", {64 * mib + 4095, 17});
    const auto at = place_of("a");
    EXPECT_EQ(value(at + "/memory.max"), std::to_string(64 * mib)); // whole pages
    EXPECT_EQ(value(at + "/memory.swap.max"), "0");
    EXPECT_EQ(value(at + "/memory.oom.group"), "1");
    EXPECT_EQ(value(at + "/pids.max"), "17");
    EXPECT_NE(::mkdir((at + "/below").c_str(), 0755), 0);
    struct ::stat facts{};
    ASSERT_EQ(::stat(at.c_str(), &facts), 0);
    const auto path = std::filesystem::path{own_path()}.parent_path() / "glove-session-a";
    EXPECT_EQ(group.identity(),
              (group_identity{
                  facts.st_dev, facts.st_ino,
                  wire::sha256_hex("glove.linux-cgroup-path:" + path.string()).value_or("")}));
    EXPECT_TRUE(group.is_empty().value());
    EXPECT_EQ(group.usage().value().processes_peak, 0U);
    EXPECT_TRUE(group.end(real_time, soon()).has_value());
    EXPECT_FALSE(std::filesystem::exists(at));
    // Of one that is gone.
    EXPECT_TRUE(group.end(real_time, soon()).has_value());
    EXPECT_TRUE(group.kill().has_value());
    EXPECT_TRUE(group.is_empty().value());
    EXPECT_FALSE(group.holds(::getpid()).value());
    EXPECT_FALSE(group.usage().has_value());
}

TEST_F(SessionGroups, names_and_limits_that_are_none) {
    for (const auto& id : {string{}, string(65, 'a'), string{"a:b"}, string{"a/b"}, string{"a b"},
                           string{"a\0b", 3}, string{".."} + "/x"})
        EXPECT_EQ(step_of(groups->make(id, usual)), "group.name") << id;
    for (const auto& id : {string(64, 'a'), string{"A-z_0.9"}, string{".."}, string{"-"}})
        EXPECT_EQ(step_of(groups->make(id, usual)), "") << id;
    for (const auto limits :
         {session_group_limits{4095, 1}, session_group_limits{mib, 0},
          session_group_limits{mib, UINT32_MAX}, session_group_limits{UINT64_MAX, 1}})
        EXPECT_EQ(step_of(groups->make("a", limits)), "group.limit")
            << limits.memory_bytes << ' ' << limits.processes;
    EXPECT_EQ(step_of(groups->make("a", {4096, 1})), "");
    EXPECT_EQ(groups->list().value(), std::vector<string>{}); // nothing is left of any
}

TEST_F(SessionGroups, one_that_is_there_is_a_conflict_and_stays) {
    const auto first = make("a");
    member one{first, sleeps};
    const auto second = groups->make("a", usual);
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error().code, errc::conflict);
    EXPECT_EQ(step_of(second), "group.name");
    EXPECT_TRUE(first.holds(one.pid()).value());
    EXPECT_EQ(groups->find("a").value()->identity(), first.identity());
}

TEST_F(SessionGroups, a_member_goes_in_by_the_entry_and_is_killed_with_the_group) {
    auto group = make("a");
    member one{group, sleeps};
    // As init does, which has a user namespace of its own and no right to the group.
    member two{group, sleeps, [] { test::prepared(::unshare(CLONE_NEWUSER) == 0, "unshare"); }};
    EXPECT_TRUE(group.holds(one.pid()).value());
    EXPECT_TRUE(group.holds(two.pid()).value());
    EXPECT_FALSE(group.holds(::getpid()).value());
    EXPECT_FALSE(group.is_empty().value());
    EXPECT_GE(group.usage().value().processes_peak, 2U);
    std::thread{[&] { EXPECT_TRUE(group.kill().has_value()); }}.join();
    EXPECT_TRUE(one.was_killed());
    EXPECT_TRUE(two.was_killed());
    EXPECT_FALSE(group.holds(one.pid()).value());
    EXPECT_TRUE(group.end(real_time, soon()).has_value());
    EXPECT_FALSE(std::filesystem::exists(place_of("a")));
}

TEST_F(SessionGroups, as_many_processes_as_the_limit_and_no_more) {
    auto group = make("a", {64 * mib, 5});
    member fits{group, [] { return children_up_to(4); }};
    EXPECT_EQ(fits.status(), 4);
    const auto fine = group.usage().value();
    EXPECT_EQ(fine.processes_peak, 5U);
    EXPECT_EQ(fine.processes_refused, 0U);
    EXPECT_TRUE(group.end(real_time, soon()).has_value());

    auto other = make("a", {64 * mib, 5});
    member more{other, [] { return children_up_to(5); }};
    EXPECT_EQ(more.status(), 4);
    const auto refused = other.usage().value();
    EXPECT_EQ(refused.processes_peak, 5U);
    EXPECT_EQ(refused.processes_refused, 1U);
    EXPECT_EQ(refused.out_of_memory, 0U);
}

TEST_F(SessionGroups, as_much_memory_as_the_limit_and_no_more) {
    auto group = make("a", {48 * mib, 16});
    member fits{group, [] { return touches(40 * mib); }};
    EXPECT_EQ(fits.status(), 0);
    const auto fine = group.usage().value();
    EXPECT_GT(fine.memory_peak, 40 * mib);
    EXPECT_LE(fine.memory_peak, 48 * mib);
    EXPECT_EQ(fine.out_of_memory, 0U);
    EXPECT_EQ(fine.memory_limit_met, 0U);

    // All processes of the group, whichever asked for it.
    member bystander{group, sleeps};
    member more{group, [] { return touches(49 * mib); }};
    EXPECT_TRUE(more.was_killed());
    EXPECT_TRUE(bystander.was_killed());
    const auto killed = group.usage().value();
    EXPECT_GE(killed.out_of_memory, 1U);
    EXPECT_GE(killed.memory_limit_met, 1U);
}

TEST_F(SessionGroups, a_kill_is_no_want_of_memory_and_pages_of_files_are_given_back) {
    const auto group = make("a", {24 * mib, 16});
    member one{group, sleeps};
    ASSERT_TRUE(group.kill().has_value());
    EXPECT_TRUE(one.was_killed());
    member writer{group, [] {
                      const auto* const path = "/var/tmp/glove-groups-test";
                      const sys::unique_fd file{::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
                      (void)::unlink(path);
                      const string some(mib, 'x');
                      for (int i = 0; i < 48; ++i)
                          if (::write(file.get(), some.data(), some.size()) !=
                              static_cast<::ssize_t>(some.size()))
                              return 1;
                      return 0;
                  }};
    EXPECT_EQ(writer.status(), 0);
    const auto used = group.usage().value();
    EXPECT_GT(used.memory_peak, 20 * mib);
    EXPECT_EQ(used.out_of_memory, 0U);
    EXPECT_EQ(used.memory_limit_met, 0U);
}

TEST_F(SessionGroups, want_of_memory_around_it_is_not_its_own) {
    const auto around = parent_place() + "/memory.max";
    const auto group = make("a", {256 * mib, 16});
    ASSERT_TRUE(put(around, std::to_string(64 * mib)));
    member one{group, [] { return touches(128 * mib); }};
    EXPECT_TRUE(one.was_killed());
    EXPECT_TRUE(put(around, "max"));
    const auto used = group.usage().value();
    EXPECT_GE(used.out_of_memory, 1U);
    EXPECT_EQ(used.memory_limit_met, 0U);
}

TEST_F(SessionGroups, processes_that_are_refused_around_it_are_not_its_own) {
    const auto around = parent_place() + "/pids.max";
    const auto now = std::stoi(value(parent_place() + "/pids.current"));
    const auto group = make("a", {64 * mib, 64});
    ASSERT_TRUE(put(around, std::to_string(now + 3)));
    member one{group, [] { return children_up_to(8); }};
    EXPECT_EQ(one.status(), 2);
    EXPECT_TRUE(put(around, "max"));
    EXPECT_EQ(group.usage().value().processes_refused, 0U);
}

TEST_F(SessionGroups, processor_time_is_that_of_all_and_never_less) {
    const auto group = make("a");
    const auto burns = [] { // some of it on the way into the group
        ::timespec used{};
        while (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0 &&
               used.tv_nsec < 220'000'000) {
        }
        return 0;
    };
    member one{group, burns};
    EXPECT_EQ(one.status(), 0);
    const auto first = group.cpu_us().value();
    EXPECT_GE(first, 200'000U);
    member two{group, burns};
    EXPECT_EQ(two.status(), 0);
    EXPECT_GE(group.usage().value().cpu_us, first + 200'000);
}

TEST_F(SessionGroups, what_multiplies_is_ended_at_once) {
    auto group = make("a", {64 * mib, 64});
    member one{group, [] {
                   multiplies();
                   return 0;
               }};
    while (group.usage().value().processes_refused == 0) ::usleep(1000);
    // Not all of them can have ended by then: nothing is left out, and it can be tried again.
    const auto early = group.end(real_time, real_time.monotonic());
    EXPECT_EQ(step_of(early), "group.busy");
    EXPECT_TRUE(group.end(real_time, soon()).has_value());
    EXPECT_TRUE(one.was_killed());
    EXPECT_FALSE(std::filesystem::exists(place_of("a")));
}

TEST_F(SessionGroups, a_group_that_was_made_goes_with_its_owner_and_a_found_one_does_not) {
    std::optional<session_group> group{make("a")};
    member one{*group, sleeps};
    {
        const auto found = groups->find("a").value();
    }
    EXPECT_TRUE(group->holds(one.pid()).value());
    group.reset();
    EXPECT_TRUE(one.was_killed());
    EXPECT_FALSE(std::filesystem::exists(place_of("a")));
}

TEST_F(SessionGroups, one_that_was_found_can_be_ended) {
    EXPECT_FALSE(groups->find("a").value().has_value());
    ASSERT_EQ(::mkdir(place_of("a").c_str(), 0700), 0); // as a service that was killed left it
    auto found = groups->find("a").value();
    ASSERT_TRUE(found.has_value());
    member one{*found, sleeps};
    EXPECT_TRUE(found->holds(one.pid()).value());
    EXPECT_TRUE(found->end(real_time, soon()).has_value());
    EXPECT_TRUE(one.was_killed());
    EXPECT_FALSE(groups->find("a").value().has_value());
}

TEST_F(SessionGroups, another_group_of_the_name_is_not_touched) {
    auto first = make("a");
    ASSERT_EQ(::rmdir(place_of("a").c_str()), 0);
    const auto second = make("a");
    EXPECT_NE(second.identity(), first.identity());
    EXPECT_EQ(second.identity().path_digest, first.identity().path_digest);
    member one{second, sleeps};
    EXPECT_FALSE(first.holds(one.pid()).value());
    EXPECT_TRUE(first.kill().has_value());
    EXPECT_TRUE(first.end(real_time, soon()).has_value());
    EXPECT_TRUE(second.holds(one.pid()).value());
    EXPECT_EQ(groups->find("a").value()->identity(), second.identity());
}

TEST_F(SessionGroups, a_limit_that_was_taken_away_is_found) {
    const auto group = make("a");
    const std::pair<const char*, const char*> changes[] = {{"memory.max", "max"},
                                                           {"memory.swap.max", "max"},
                                                           {"memory.oom.group", "0"},
                                                           {"pids.max", "17"},
                                                           {"cgroup.max.descendants", "1"}};
    for (const auto& [file, other] : changes) {
        const auto at = place_of("a") + "/" + file;
        const auto before = value(at);
        ASSERT_TRUE(put(at, other));
        EXPECT_EQ(step_of(group.usage()), "group.limit") << file;
        ASSERT_TRUE(put(at, before));
        EXPECT_EQ(step_of(group.usage()), "") << file;
    }
}

TEST_F(SessionGroups, what_is_in_the_way_of_a_removal_is_told) {
    auto group = make("a");
    ASSERT_TRUE(put(place_of("a") + "/cgroup.max.descendants", "1"));
    ASSERT_EQ(::mkdir((place_of("a") + "/below").c_str(), 0755), 0);
    EXPECT_EQ(step_of(group.end(real_time, real_time.monotonic())), "group.remove");
    ASSERT_EQ(::rmdir((place_of("a") + "/below").c_str()), 0);
    EXPECT_TRUE(group.end(real_time, soon()).has_value());
}

TEST_F(SessionGroups, the_list_has_sessions_and_nothing_else) {
    const auto b = make("b"), a = make("a");
    for (const auto* other : {"glove-session-", "glove-run-x", "glove-session-a:b"})
        ASSERT_EQ(::mkdir((parent_place() + "/" + other).c_str(), 0755), 0);
    EXPECT_EQ(groups->list().value(), (std::vector<string>{"a", "b"}));
    for (const auto* other : {"glove-session-", "glove-run-x", "glove-session-a:b"})
        EXPECT_EQ(::rmdir((parent_place() + "/" + other).c_str()), 0);
}

// What a service leaves that is killed: a group with a process in it.
struct left_behind {
    left_behind(session_groups& groups, const string& id) {
        test::pipe_ends channel;
        const auto service = ::fork();
        test::prepared(service >= 0, "fork");
        if (service == 0) {
            auto group = groups.make(id, usual);
            if (::fork() == 0) {
                if (::write(group->entry().get(), "0", 1) != 1) ::_exit(120);
                test::say(channel.write, std::to_string(::getpid()));
                channel.write = {};
                (void)sleeps();
            }
            channel.write = {};
            (void)sleeps();
        }
        channel.write = {};
        agent = std::stoi(test::hear(channel.read));
        (void)::kill(service, SIGKILL);
        (void)::waitpid(service, nullptr, 0);
    }
    ::pid_t agent = 0;
};
[[nodiscard]] auto is_alive(::pid_t process) -> bool { return ::kill(process, 0) == 0; }

struct Recovery : SessionGroups {
    [[nodiscard]] auto record_of(const string& id, ::pid_t agent) -> control::session_record {
        control::session_record out;
        out.session_id = id;
        const auto facts = sys::facts_of_process(agent);
        const auto group = groups->find(id);
        out.process = control::process_identity_of(static_cast<std::uint32_t>(agent),
                                                   facts.value().start_ticks,
                                                   group.value().value().identity())
                          .value();
        return out;
    }
    [[nodiscard]] auto observe(const control::session_record& of) -> control::observed_process {
        control::session_group_finder finder{*groups};
        return control::session_processes{{.groups = &finder, .clock = &real_time, .patience = 60s}}
            .observe(of);
    }
};

TEST_F(Recovery, what_a_killed_service_left_is_ended_once) {
    const left_behind session{*groups, "a"};
    ASSERT_TRUE(is_alive(session.agent));
    const auto record = record_of("a", session.agent);
    EXPECT_EQ(observe(record), control::observed_process::ended);
    EXPECT_FALSE(std::filesystem::exists(place_of("a")));
    EXPECT_EQ(observe(record), control::observed_process::gone);
}

TEST_F(Recovery, a_process_of_another_group_is_left_alone) {
    const left_behind session{*groups, "a"};
    const auto record = record_of("a", session.agent);
    auto other = record;
    ++other.process.cgroup_inode;
    EXPECT_EQ(observe(other), control::observed_process::unknown);
    EXPECT_TRUE(is_alive(session.agent));
    // Out of its group: into one that is not the session's.
    const auto elsewhere = make("b");
    ASSERT_TRUE(put(place_of("b") + "/cgroup.procs", std::to_string(session.agent)));
    EXPECT_EQ(observe(record), control::observed_process::unknown);
    EXPECT_TRUE(is_alive(session.agent));
    EXPECT_TRUE(std::filesystem::exists(place_of("a")));
    EXPECT_EQ(::rmdir(place_of("a").c_str()), 0);
    EXPECT_EQ(observe(record), control::observed_process::unknown);
    EXPECT_TRUE(is_alive(session.agent));
}

TEST_F(Recovery, groups_that_nobody_needs_are_swept) {
    const left_behind a{*groups, "a"}, b{*groups, "b"};
    control::session_group_finder finder{*groups};
    const auto swept = control::sweep_groups(
        finder, [](std::string_view id) { return id == "b"; }, real_time, soon());
    ASSERT_TRUE(swept.has_value());
    EXPECT_EQ(swept->removed, std::vector<string>{"a"});
    EXPECT_TRUE(swept->troubles.empty());
    EXPECT_EQ(groups->list().value(), std::vector<string>{"b"});
    EXPECT_TRUE(is_alive(b.agent));
    EXPECT_EQ(observe(record_of("b", b.agent)), control::observed_process::ended);
}

TEST_F(SessionGroups, the_meter_reads_its_group) {
    auto group = make("a", {32 * mib, 4});
    control::session_meter meter{group,
                                 [] { return result<filesystem_use>{filesystem_use{7, false}}; }};
    member more{group, [] { return children_up_to(4); }};
    EXPECT_EQ(more.status(), 3);
    member eats{group, [] { return touches(40 * mib); }};
    EXPECT_TRUE(eats.was_killed());
    const auto state = meter.state().value();
    EXPECT_TRUE(state.is_over_memory());
    EXPECT_EQ(state.peak_pids, 4U);
    EXPECT_EQ(state.pids_refused, 1U);
    EXPECT_GT(state.peak_memory_bytes, 24 * mib);
    EXPECT_EQ(state.disk_bytes, 7U);
    EXPECT_GT(meter.cpu_us().value(), 0U);
}

} // namespace
} // namespace glove::container

auto main(int count, char** words) -> int {
    if (count == 2 && std::strcmp(words[1], "open") == 0) {
        const auto opened = glove::container::session_groups::open();
        std::cout << (opened ? "opened" : opened.error().step) << '\n';
        if (!opened) std::cout << opened.error().detail << '\n' << opened.error().remedy << '\n';
        const auto below =
            glove::container::value(glove::container::parent_place() + "/cgroup.subtree_control");
        std::cout << "below: " << (below.empty() ? "none" : below) << '\n';
        return opened ? 0 : 1;
    }
    testing::InitGoogleTest(&count, words);
    return RUN_ALL_TESTS();
}
