// No process of the host is in sight, Glove's init cannot be touched or read, and no privilege is
// left or to be gained.
#include "agents/scene.hpp"
#include <sys/resource.h>

namespace glove::test {
namespace {

class HostProcesses : public Scene {};

TEST_F(HostProcesses, are_not_in_sight) {
    started other{{.argv = {hostile_binary, "wait_long", "a-host-process"}, .environment = {}}};
    ASSERT_TRUE(other.says("here"));
    EXPECT_TRUE(denied(inside({"find_process", "a-host-process"}), "not there"));
    EXPECT_TRUE(worked(bare({"find_process", "wait_long"})));
    EXPECT_TRUE(worked(inside({"find_process", "glove-init"})));
    const auto number = std::to_string(other.pid());
    EXPECT_TRUE(denied(inside({"signal", number}), "ESRCH"));
    EXPECT_TRUE(denied(inside({"trace", number})));
    EXPECT_TRUE(worked(bare({"signal", number})));
    EXPECT_TRUE(worked(inside({"signal", "child"})));
}

class Init : public Scene {};

TEST_F(Init, is_not_the_agent) {
    EXPECT_TRUE(denied(inside({"is_process_one"})));
    EXPECT_TRUE(worked(judged(run({.argv = {"unshare", "-Urpf", hostile_binary, "is_process_one"},
                                   .environment = environment_in(home)}))));
}

TEST_F(Init, cannot_be_traced_written_to_or_robbed) {
    for (const std::string way :
         {"trace", "seize", "write_memory", "read_memory", "take_descriptor"}) {
        EXPECT_TRUE(denied(inside({way, "1"}), "EPERM")) << way;
        EXPECT_TRUE(worked(inside({way, "child"}))) << way;
    }
}

TEST_F(Init, shows_nothing_of_itself_in_proc) {
    for (const std::string name :
         {"mem", "environ", "maps", "smaps", "auxv", "stack", "syscall", "pagemap", "personality",
          "io", "exe", "ns/net", "ns/user", "ns/mnt", "fd/0", "fd/3", "root", "cwd", "task/1/mem"})
        EXPECT_TRUE(denied(inside({"process_file", "1", name}))) << name;
    for (const std::string name :
         {"mem", "environ", "maps", "auxv", "mounts", "mountinfo", "exe", "root", "cwd"})
        EXPECT_TRUE(worked(inside({"process_file", "self", name}))) << name;
    for (const std::string name :
         {"mem", "comm", "attr/current", "setgroups", "uid_map", "gid_map"})
        EXPECT_TRUE(denied(inside({"process_file", "1", name, "1"}))) << name;
    // Bookkeeping that weakens only the sandbox itself: root owns these files, whoever runs.
    for (const std::string name : {"clear_refs", "oom_score_adj"}) {
        const auto seen = inside({"process_file", "1", name, "1"});
        EXPECT_TRUE(is_root() ? worked(seen) : denied(seen, "EACCES")) << name;
    }
    for (const std::string name : {"comm", "clear_refs"})
        EXPECT_TRUE(worked(inside({"process_file", "self", name, "1"}))) << name;
    for (const std::string name : {"exe", "root", "cwd", "ns/net", "fd/3"})
        EXPECT_TRUE(denied(inside({"process_link", "1", name}), "EACCES")) << name;
    EXPECT_TRUE(worked(inside({"process_link", "self", "exe"})));
    EXPECT_TRUE(denied(inside({"follow_descriptors", "1"}), "none"));
    EXPECT_TRUE(worked(inside({"follow_descriptors", "child"})));
}

TEST_F(Init, speaks_no_word_of_the_caller) {
    auto asked = inside_command({"spoken_words", "1", "s3cr3t"}, {"--env", "TOKEN=s3cr3t"});
    asked.environment["OTHER"] = "s3cr3t";
    EXPECT_TRUE(denied(judged(run(asked)), "not there"));
    EXPECT_TRUE(worked(bare({"spoken_words", "self", "s3cr3t"})));
    EXPECT_TRUE(worked(inside({"spoken_words", "1", "glove-init"})));
}

TEST_F(Init, survives_every_signal) {
    EXPECT_TRUE(denied(inside({"end", "1"}), "still there"));
    EXPECT_TRUE(worked(inside({"end", "child"})));
}

// -- privilege ------------------------------------------------------------------------------------

class Privilege : public Scene {};

TEST_F(Privilege, there_is_none_in_any_set) {
    EXPECT_TRUE(denied(inside({"capabilities"}), "none in any set"));
    EXPECT_TRUE(worked(bare({"capabilities"})));
    EXPECT_TRUE(denied(inside({"may_gain"}), "no way up"));
    EXPECT_TRUE(worked(bare({"may_gain"})));
}

TEST_F(Privilege, none_can_be_gained) {
    for (const std::string way : {"gain_capability", "loosen_securebits"}) {
        EXPECT_TRUE(denied(inside({way}), "EPERM")) << way;
        EXPECT_TRUE(worked(powerful({way}))) << way;
    }
    for (const std::string way : {"new_user_id", "new_group_id", "drop_groups"}) {
        EXPECT_TRUE(denied(inside({way}))) << way;
        if (is_root()) {
            EXPECT_TRUE(worked(bare({way}))) << way;
        }
    }
    EXPECT_TRUE(worked(inside({"signal", "self"})));
}

class Namespaces : public Scene {};

TEST_F(Namespaces, cannot_be_made) {
    EXPECT_TRUE(denied(inside({"namespace_by_unshare"}), "EPERM"));
    EXPECT_TRUE(denied(inside({"namespace_by_clone"}), "EPERM"));
    EXPECT_TRUE(denied(inside({"namespace_by_clone3"}), "ENOSYS"));
    for (const std::string way :
         {"namespace_by_unshare", "namespace_by_clone", "namespace_by_clone3"})
        EXPECT_TRUE(worked(bare({way}))) << way;
    EXPECT_TRUE(worked(inside({"end", "child"}))); // a process without a namespace
}

TEST_F(Namespaces, of_users_are_switched_off_below_the_filter_too) {
    EXPECT_TRUE(denied(inside({"namespace_count"}), "0"));
    EXPECT_TRUE(worked(bare({"namespace_count"})));
    EXPECT_TRUE(denied(inside({"namespace_by_count"})));
}

TEST_F(Namespaces, cannot_be_entered) {
    for (const std::string kind : {"net", "mnt", "pid", "user", "uts", "ipc", "cgroup"}) {
        EXPECT_TRUE(denied(inside({"join_namespace", "/proc/1/ns/" + kind}), "EACCES")) << kind;
        EXPECT_TRUE(denied(inside({"join_namespace", "/proc/self/ns/" + kind}), "EPERM")) << kind;
    }
    EXPECT_TRUE(worked(powerful({"join_namespace", "/proc/self/ns/uts"})) ||
                worked(powerful_after("true", {"join_namespace", "/proc/self/ns/mnt"})));
    EXPECT_TRUE(denied(inside({"control_group"}), "the root group"));
}

// -- kernel interfaces ----------------------------------------------------------------------------

class KernelInterfaces : public Scene {};

struct interface {
    words attack;
    std::string_view refusal;
    bool works_for_user; // bare
};

TEST_F(KernelInterfaces, with_a_history_are_closed) {
    put(workspace + "/file", "text");
    for (const auto& [attack, refusal, works_for_user] :
         std::vector<interface>{{{"bpf_map"}, "EPERM", false},
                                {{"perf"}, "EPERM", true},
                                {{"user_faults"}, "EPERM", true},
                                {{"io_ring"}, "ENOSYS", true},
                                {{"session_key"}, "EPERM", true},
                                {{"new_key"}, "EPERM", true},
                                {{"by_handle", workspace + "/file"}, "EPERM", false},
                                {{"kernel_log"}, "EPERM", false},
                                {{"other_personality"}, "EPERM", true},
                                {{"open_behind_pointer", workspace + "/file"}, "ENOSYS", true},
                                {{"host_name"}, "EPERM", false}}) {
        EXPECT_TRUE(denied(inside(attack), refusal)) << attack[0];
        if (attack[0] == "host_name") continue; // would rename this machine
        if (works_for_user || is_root()) {
            EXPECT_TRUE(worked(bare(attack))) << attack[0];
        }
    }
    EXPECT_TRUE(worked(judged(run({.argv = {"unshare", "-Uru", hostile_binary, "host_name"},
                                   .environment = environment_in(home)}))));
    EXPECT_TRUE(worked(inside({"read", workspace + "/file"})));
}

TEST_F(KernelInterfaces, have_one_door) {
    EXPECT_TRUE(denied(inside({"x32_door"}), "signal 31"));
    const auto bare_door = bare({"old_door"});
    if (bare_door.said != "no such door" && bare_door.said != "signal 11") {
        EXPECT_TRUE(worked(bare_door));
        EXPECT_TRUE(denied(inside({"old_door"}), "signal 31"));
    }
    EXPECT_NE(bare({"x32_door"}).said, "signal 31");
}

TEST_F(KernelInterfaces, keys_of_the_invoker_are_out_of_reach) {
    EXPECT_TRUE(denied(inside({"find_key", "hostile"}), "EPERM"));
    EXPECT_NE(bare({"find_key", "hostile"}).said, "EPERM"); // ENOKEY: it may ask
}

} // namespace
} // namespace glove::test
