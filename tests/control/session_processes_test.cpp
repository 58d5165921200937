// What recovery decides of groups that are made up: which one is ended, and when nobody is touched.
#include <algorithm>
#include <glove/control/session_processes.hpp>
#include <gtest/gtest.h>
#include <map>
#include <support/folder.hpp>

namespace glove::control {
namespace {

using namespace std::chrono_literals;
using enum observed_process;
using std::string;

const string boot = "01234567-89ab-cdef-0123-456789abcdef";
const container::group_identity recorded{26, 4711, string(64, 'a')};

class still_clock final : public sys::clock {
public:
    auto monotonic() const noexcept -> std::chrono::nanoseconds override { return 100s; }
    auto wall() const noexcept -> std::chrono::nanoseconds override { return 0s; }
};

// A group as the kernel would have it.
struct made_up {
    container::group_identity identity = recorded;
    std::vector<::pid_t> members;
    bool readable = true, can_end = true;
    std::vector<std::chrono::nanoseconds> ends = {}; // the deadlines
};

class groups_in_hand final : public group_finder {
public:
    auto find(std::string_view id) -> result<std::unique_ptr<left_group>> override {
        ++looks;
        if (broken) return fail(errc::io, "group.name", "broken");
        const auto at = all.find(string{id});
        if (at == all.end()) return nullptr;
        return std::make_unique<handle>(at->second);
    }
    auto list() -> result<std::vector<string>> override {
        if (broken) return fail(errc::io, "group.name", "broken");
        std::vector<string> out;
        for (const auto& [id, group] : all) out.push_back(id);
        for (const auto& id : vanished) out.push_back(id);
        return out;
    }
    std::map<string, made_up> all;
    std::vector<string> vanished; // after they were listed
    bool broken = false;
    int looks = 0;

private:
    class handle final : public left_group {
    public:
        explicit handle(made_up& of) : of_{&of} {}
        auto identity() const -> container::group_identity override { return of_->identity; }
        auto holds(::pid_t process) const -> result<bool> override {
            if (!of_->readable) return fail(errc::io, "group.usage", "broken");
            return std::ranges::find(of_->members, process) != of_->members.end();
        }
        auto is_empty() const -> result<bool> override {
            if (!of_->readable) return fail(errc::io, "group.usage", "broken");
            return of_->members.empty();
        }
        auto end(const sys::clock&, std::chrono::nanoseconds deadline) -> result<> override {
            of_->ends.push_back(deadline);
            if (!of_->can_end) return fail(errc::timed_out, "group.busy", "broken");
            of_->members.clear();
            return {};
        }

    private:
        made_up* of_;
    };
};

struct scene {
    scene() {
        (void)proc.file("sys/kernel/random/boot_id", boot + "\n");
        of.session_id = "s";
        of.process = {1, 42, boot, 987, recorded.device, recorded.inode, recorded.path_digest};
        of.cgroup = cgroup_identity{1, recorded.device, recorded.inode};
    }
    // The process that is on record, or another one of its number.
    void process_there(const string& ticks = "987") const {
        string line = "42 (agent) S";
        for (int i = 0; i < 18; ++i) line += " " + std::to_string(i);
        (void)proc.file("42/stat", line + " " + ticks + " 0 0\n");
    }
    auto group(std::vector<::pid_t> members = {42, 43}) -> made_up& {
        return groups.all["s"] = made_up{.members = std::move(members)};
    }
    auto observe() -> observed_process {
        said.clear();
        session_processes observer{
            {.groups = &groups,
             .clock = &clock,
             .patience = 7s,
             .tell = [this](std::string_view id,
                            const error& why) { said = string{id} + " " + string{why.step}; },
             .proc = proc.path(),
             .is_free = [](std::uint32_t) { return true; }}};
        return observer.observe(of);
    }
    test::folder proc;
    still_clock clock;
    groups_in_hand groups;
    session_record of;
    string said;
};

TEST(SessionProcesses, what_is_alive_in_the_group_on_record_is_ended) {
    for (const bool first_is_there : {true, false}) {
        scene s;
        if (first_is_there) s.process_there();
        const auto& group = s.group(first_is_there ? std::vector{42, 43} : std::vector{43});
        EXPECT_EQ(s.observe(), ended);
        EXPECT_EQ(group.ends, std::vector<std::chrono::nanoseconds>{107s});
        EXPECT_EQ(s.said, "");
    }
}

TEST(SessionProcesses, an_empty_group_is_removed_and_its_session_gone) {
    scene s;
    const auto& group = s.group({});
    EXPECT_EQ(s.observe(), gone);
    EXPECT_EQ(group.ends.size(), 1U);
}

TEST(SessionProcesses, without_a_group_the_process_tells) {
    scene s;
    EXPECT_EQ(s.observe(), gone);
    s.process_there("988"); // another one
    EXPECT_EQ(s.observe(), gone);
    s.process_there();
    EXPECT_EQ(s.observe(), unknown);
    EXPECT_EQ(s.said, "s process.group");
}

TEST(SessionProcesses, another_group_of_the_name_is_left_alone) {
    const container::group_identity others[] = {{27, 4711, recorded.path_digest},
                                                {26, 4712, recorded.path_digest},
                                                {26, 4711, string(64, 'b')},
                                                {}};
    for (const auto& other : others) {
        scene s;
        s.process_there();
        auto& group = s.group();
        group.identity = other;
        EXPECT_EQ(s.observe(), unknown);
        EXPECT_TRUE(group.ends.empty());
        EXPECT_EQ(s.said, "s process.group");
    }
    // What was bound at the start must be the same.
    for (const auto& bound : {cgroup_identity{1, 27, 4711}, cgroup_identity{1, 26, 4712}}) {
        scene s;
        const auto& group = s.group();
        s.of.cgroup = bound;
        EXPECT_EQ(s.observe(), unknown);
        EXPECT_TRUE(group.ends.empty());
    }
    scene s;
    (void)s.group();
    s.of.cgroup.reset();
    EXPECT_EQ(s.observe(), ended);
}

TEST(SessionProcesses, a_process_outside_of_its_group_leaves_both_alone) {
    scene s;
    s.process_there();
    const auto& group = s.group({43});
    EXPECT_EQ(s.observe(), unknown);
    EXPECT_TRUE(group.ends.empty());
    EXPECT_EQ(s.said, "s process.group");
    s.process_there("988"); // its number belongs to somebody else
    EXPECT_EQ(s.observe(), ended);
}

TEST(SessionProcesses, after_another_start_of_the_machine_nobody_is_touched) {
    scene s;
    s.process_there();
    const auto& group = s.group();
    s.of.process.boot_id.front() = 'f';
    EXPECT_EQ(s.observe(), gone);
    EXPECT_EQ(s.groups.looks, 0);
    EXPECT_TRUE(group.ends.empty());
}

TEST(SessionProcesses, what_cannot_be_looked_at_is_unknown) {
    {
        scene s;
        s.groups.broken = true;
        EXPECT_EQ(s.observe(), unknown);
        EXPECT_EQ(s.said, "s group.name");
    }
    {
        scene s;
        auto& group = s.group();
        group.readable = false;
        EXPECT_EQ(s.observe(), unknown);
        s.process_there();
        EXPECT_EQ(s.observe(), unknown);
        EXPECT_TRUE(group.ends.empty());
        EXPECT_EQ(s.said, "s group.usage");
    }
    {
        scene s;
        s.group().can_end = false;
        EXPECT_EQ(s.observe(), unknown);
        EXPECT_EQ(s.said, "s group.busy");
    }
    for (const auto* id : {"", "no boot id\n", "01234567-89ab-cdef-0123-456789abcdeF\n"}) {
        scene s;
        const auto& group = s.group();
        (void)s.proc.file("sys/kernel/random/boot_id", id);
        EXPECT_EQ(s.observe(), unknown) << id;
        EXPECT_EQ(s.said, "s process.boot_id");
        EXPECT_TRUE(group.ends.empty());
    }
}

TEST(SessionProcesses, a_session_without_a_process_of_this_machine_is_unknown) {
    scene none, remote;
    const auto &first = none.group(), &second = remote.group();
    none.of.process = {.schema_version = 0};
    remote.of.managed_runtime.emplace();
    for (auto* s : {&none, &remote}) {
        EXPECT_EQ(s->observe(), unknown);
        EXPECT_EQ(s->said, "s process.identity");
    }
    EXPECT_TRUE(first.ends.empty() && second.ends.empty());
}

TEST(SessionProcesses, an_identity_for_the_record) {
    const scene s;
    const auto identity = process_identity_of(42, 987, recorded, s.proc.path());
    ASSERT_TRUE(identity.has_value()) << identity.error().detail;
    EXPECT_EQ(*identity, s.of.process);
    EXPECT_FALSE(process_identity_of(0, 987, recorded, s.proc.path()).has_value());
    EXPECT_FALSE(process_identity_of(UINT32_MAX, 987, recorded, s.proc.path()).has_value());
    EXPECT_FALSE(process_identity_of(42, 0, recorded, s.proc.path()).has_value());
    EXPECT_FALSE(process_identity_of(42, 987, {26, 4711, ""}, s.proc.path()).has_value());
    EXPECT_FALSE(process_identity_of(42, 987, recorded, s.proc / "no").has_value());
    EXPECT_TRUE(process_identity_of(42, 987, recorded).has_value()); // the kernel's own
}

TEST(SessionGroups, those_that_nobody_needs_are_swept) {
    groups_in_hand groups;
    for (const auto* id : {"a", "b", "c", "d"}) groups.all[id] = made_up{.members = {1}};
    groups.all["c"].can_end = false;
    groups.vanished = {"e"};
    const still_clock clock;
    const auto keep = [](std::string_view id) { return id == "b"; };
    const auto swept = sweep_groups(groups, keep, clock, 103s);
    ASSERT_TRUE(swept.has_value());
    EXPECT_EQ(swept->removed, (std::vector<string>{"a", "d"}));
    ASSERT_EQ(swept->troubles.size(), 1U);
    EXPECT_EQ(swept->troubles[0].session_id, "c");
    EXPECT_EQ(swept->troubles[0].why.step, "group.busy");
    EXPECT_TRUE(groups.all["b"].ends.empty());
    EXPECT_EQ(groups.all["d"].ends, std::vector<std::chrono::nanoseconds>{103s});
    groups.broken = true;
    EXPECT_FALSE(sweep_groups(groups, keep, clock, 103s).has_value());
}

} // namespace
} // namespace glove::control
