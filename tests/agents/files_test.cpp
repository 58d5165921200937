// Files of the host that were not granted do not exist inside; those that were can be used and no
// more; nothing in /proc or /dev changes the host.
#include "agents/scene.hpp"
#include <regex>
#include <sys/sysinfo.h>

namespace glove::test {
namespace {

class HomeSecrets : public Scene {};

TEST_F(HomeSecrets, are_not_there) {
    std::filesystem::create_directories(home + "/.ssh");
    put(home + "/.ssh/id_ed25519", "a private key");
    for (const auto& path :
         {home + "/.ssh/id_ed25519", home, home + "/.state", std::string{"/root"}}) {
        EXPECT_TRUE(denied(inside({"find", path}), "ENOENT")) << path;
        EXPECT_TRUE(worked(bare({"find", path}))) << path;
    }
}

TEST_F(HomeSecrets, are_not_there_by_another_way_to_the_root) {
    put(home + "/secret", "s");
    for (const std::string way : {"/proc/self/root", "/proc/thread-self/root",
                                  "/proc/self/cwd/../../..", "/../..", "/dev/fd/../root"}) {
        EXPECT_TRUE(denied(inside({"read", way + home + "/secret"}), "ENOENT")) << way;
    }
    EXPECT_TRUE(worked(bare({"read", "/proc/self/root" + home + "/secret"})));
    EXPECT_TRUE(worked(inside({"list", "/proc/self/root" + workspace})));
}

TEST_F(HomeSecrets, are_replaced_by_a_private_and_empty_home) {
    put(home + "/secret", "s");
    EXPECT_TRUE(denied(inside({"list_something", "/home/agent"}), "empty"));
    EXPECT_TRUE(worked(inside({"create", "/home/agent/mine"})));
    EXPECT_TRUE(denied(inside({"find", "/home/agent/mine"}), "ENOENT"));
    EXPECT_TRUE(worked(bare({"list_something", home})));
}

class HostPlaces : public Scene {};

TEST_F(HostPlaces, temporary_files_and_runtime_directories_are_fresh) {
    const temporary_directory other;
    other.file("theirs", "t");
    EXPECT_TRUE(denied(inside({"find", other / "theirs"}), "ENOENT"));
    EXPECT_TRUE(worked(bare({"find", other / "theirs"})));
    for (const std::string place_inside : {"/run", "/var/tmp", "/dev/shm"}) {
        EXPECT_TRUE(denied(inside({"list_something", place_inside}), "empty")) << place_inside;
        EXPECT_TRUE(worked(inside({"create", place_inside + "/mine"}))) << place_inside;
    }
    const auto mine = place.path() + "-inside";
    EXPECT_TRUE(worked(inside({"create", mine})));
    EXPECT_TRUE(denied(bare({"find", mine}), "ENOENT"));
}

TEST_F(HostPlaces, machine_identity_users_and_secrets_of_etc_are_absent) {
    for (const std::string path : {"/etc/machine-id",
                                   "/var/lib/dbus/machine-id",
                                   "/etc/shadow",
                                   "/etc/gshadow",
                                   "/etc/sudoers",
                                   "/etc/ssh",
                                   "/etc/ssl/private",
                                   "/var/lib",
                                   "/var/log",
                                   "/boot",
                                   "/srv",
                                   "/media",
                                   "/mnt",
                                   "/dev/kmsg",
                                   "/dev/mem",
                                   "/dev/kvm",
                                   "/dev/fuse",
                                   "/dev/vsock",
                                   "/dev/net",
                                   "/dev/mqueue",
                                   "/dev/console",
                                   "/dev/log",
                                   "/lost+found"})
        EXPECT_TRUE(denied(inside({"find", path}), "ENOENT")) << path;
    EXPECT_TRUE(worked(bare({"find", "/etc/shadow"})));
    EXPECT_TRUE(worked(inside({"read", "/etc/passwd"})));
    EXPECT_EQ(inside({"read", "/etc/passwd"}).said.find("glove-test"), std::string::npos);
}

TEST_F(HostPlaces, the_names_of_this_machine_are_synthesised) {
    EXPECT_EQ(inside({"read", "/etc/hostname"}).said, "glove");
    EXPECT_EQ(inside({"read", "/proc/sys/kernel/hostname"}).said, "glove");
    const auto servers = inside({"read", "/etc/resolv.conf"});
    EXPECT_EQ(servers.said.find("nameserver"), std::string::npos) << servers;
    EXPECT_NE(inside({"read", "/etc/hosts"}).said.find("127.0.0.1\tlocalhost"), std::string::npos);
    EXPECT_NE(inside({"read", "/etc/nsswitch.conf"}).said.find("hosts: files"), std::string::npos);
    EXPECT_NE(bare({"read", "/proc/sys/kernel/hostname"}).said, "glove");
}

TEST_F(HostPlaces, sys_is_absent_and_read_only_when_asked_for) {
    EXPECT_TRUE(denied(inside({"find", "/sys"}), "ENOENT"));
    EXPECT_TRUE(worked(inside({"list_something", "/sys/kernel"}, {"--read", "/sys"})));
    const auto made = inside({"make_directory", "/sys/fs/cgroup/owned"}, {"--read", "/sys"});
    EXPECT_TRUE(denied(made));
    EXPECT_TRUE(
        denied(inside({"open_for_writing", "/sys/kernel/uevent_helper"}, {"--read", "/sys"})));
    EXPECT_EQ(run(glove_exec(home, {"--write", "/sys"}, {"true"})).status(), 2);
    if (is_root()) {
        EXPECT_TRUE(worked(bare({"make_directory", "/sys/fs/cgroup/glove-agents-twin"})));
    }
}

TEST_F(HostPlaces, the_system_is_read_only) {
    for (const std::string path : {"/owned", "/usr/owned", "/etc/owned", "/usr/bin/owned",
                                   "/dev/owned", "/dev/pts/owned", "/home/owned", "/opt/owned"})
        EXPECT_TRUE(denied(inside({"appear", path}))) << path;
    for (const std::string path : {"/etc/passwd", "/etc/hosts", "/usr/bin/env", "/etc/ld.so.cache"})
        EXPECT_TRUE(denied(inside({"open_for_writing", path}))) << path;
    EXPECT_TRUE(worked(inside({"appear", workspace + "/passing"})));
    EXPECT_TRUE(worked(inside({"create", workspace + "/mine"})));
    EXPECT_TRUE(worked(bare({"find", workspace + "/mine"})));
}

TEST_F(HostPlaces, one_private_file_system_does_not_leak_into_its_read_only_part) {
    // /tmp and /etc are one tmpfs, mounted writable and read-only.
    EXPECT_TRUE(denied(inside({"link", "/etc/passwd", "/tmp/passwd"}), "EXDEV"));
    EXPECT_TRUE(denied(inside({"rename", "/tmp", "/tmp2"})));
    EXPECT_TRUE(denied(inside({"link_descriptor", "/etc/passwd", "/tmp/passwd"}), "EXDEV"));
    EXPECT_TRUE(worked(bare({"create", workspace + "/a"})));
    EXPECT_TRUE(worked(inside({"link", workspace + "/a", workspace + "/b"})));
}

// -- /proc and /dev -------------------------------------------------------------------------------

class KernelFiles : public Scene {};

TEST_F(KernelFiles, none_that_is_not_a_processs_can_be_opened_for_writing_or_changed) {
    EXPECT_TRUE(denied(inside({"kernel_files"})));
    EXPECT_TRUE(worked(bare({"kernel_files"})));
    EXPECT_TRUE(worked(inside({"process_file", "self", "oom_score_adj", "500"})));
}

TEST_F(KernelFiles, settings_and_triggers_refuse) {
    for (const std::string path :
         {"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/drop_caches",
          "/proc/sys/kernel/hostname", "/proc/sys/net/ipv4/ip_forward", "/proc/sysrq-trigger",
          "/proc/irq/default_smp_affinity"}) {
        EXPECT_TRUE(denied(inside({"open_for_writing", path}))) << path;
        if (is_root() && std::filesystem::exists(path)) {
            EXPECT_TRUE(worked(bare({"open_for_writing", path}))) << path;
        }
    }
    EXPECT_TRUE(worked(inside({"read", "/proc/sys/kernel/core_pattern"})));
    EXPECT_TRUE(worked(inside({"read", "/proc/cpuinfo"})));
}

TEST_F(KernelFiles, views_of_memory_and_keys_are_masked) {
    EXPECT_TRUE(denied(inside({"kernel_memory_views"})));
    if (is_root()) {
        EXPECT_TRUE(worked(bare({"kernel_memory_views"})));
    }
    EXPECT_TRUE(denied(inside({"unmount", "/proc/kcore"}), "EPERM"));
}

TEST_F(KernelFiles, the_hosts_device_nodes_cannot_be_changed) {
    for (const std::string node : {"/dev/null", "/dev/zero", "/dev/urandom", "/dev/tty"}) {
        EXPECT_TRUE(denied(inside({"same_mode", node}))) << node;
        EXPECT_TRUE(denied(inside({"same_owner", node}))) << node;
        EXPECT_TRUE(denied(inside({"unlink", node}))) << node;
        if (is_root()) {
            EXPECT_TRUE(worked(bare({"same_mode", node}))) << node;
        }
    }
    EXPECT_TRUE(worked(inside({"write", "/dev/null"})));
    put(workspace + "/mine", "");
    EXPECT_TRUE(worked(inside({"same_mode", workspace + "/mine"})));
}

TEST_F(KernelFiles, devices_can_neither_be_made_nor_used_from_a_grant) {
    EXPECT_TRUE(denied(inside({"device_node", workspace + "/node"}), "EPERM"));
    EXPECT_TRUE(denied(inside({"device_node", "/tmp/node"}), "EPERM"));
    EXPECT_TRUE(worked(inside({"fifo_node", workspace + "/fifo"})));
    if (!is_root()) return;
    EXPECT_TRUE(worked(bare({"device_node", workspace + "/node"})));
    ASSERT_EQ(::mknod((workspace + "/zero").c_str(), S_IFCHR | 0666, (1 << 8) | 5), 0);
    EXPECT_TRUE(denied(inside({"read", workspace + "/zero"}), "EACCES"));
    EXPECT_TRUE(worked(bare({"read", workspace + "/zero"})));
}

// -- modes ----------------------------------------------------------------------------------------

class SetIdBits : public Scene {};

TEST_F(SetIdBits, are_refused_by_every_call_that_takes_a_mode) {
    for (const auto& where : {workspace, std::string{"/tmp"}}) {
        EXPECT_TRUE(denied(inside({"set_id_modes", where}))) << where;
        EXPECT_TRUE(worked(inside({"plain_modes", where}))) << where;
    }
    EXPECT_TRUE(worked(bare({"set_id_modes", workspace})));
}

TEST_F(SetIdBits, of_a_granted_program_give_nothing) {
    auto program = std::string{"/usr/bin/su"};
    if (is_root()) {
        program = workspace + "/program";
        std::filesystem::copy_file(hostile_binary, program);
        ASSERT_EQ(::chown(program.c_str(), 65534, 65534), 0);
        ASSERT_EQ(::chmod(program.c_str(), 04755), 0);
        for (const auto& open : {place.path(), workspace})
            ASSERT_EQ(::chmod(open.c_str(), 0755), 0);
    }
    EXPECT_TRUE(denied(inside({"set_id_program", program, "wait_for_input"}), "same identity"));
    EXPECT_TRUE(worked(bare({"set_id_program", program, "wait_for_input"})));
}

TEST_F(SetIdBits, files_cannot_be_given_away) {
    put(workspace + "/mine", "");
    EXPECT_TRUE(denied(inside({"give_away", workspace + "/mine"})));
    EXPECT_TRUE(worked(inside({"same_owner", workspace + "/mine"})));
    if (is_root()) {
        EXPECT_TRUE(worked(bare({"give_away", workspace + "/mine"})));
    }
}

// -- room -----------------------------------------------------------------------------------------

class PrivateRoom : public Scene {};

TEST_F(PrivateRoom, ends_at_its_bound_whatever_is_filled) {
    const std::string limit = std::to_string(64 << 20);
    EXPECT_TRUE(
        denied(inside({"fill", limit, "/tmp", "/var/tmp", "/run", "/dev/shm", "/home/agent"},
                      {"--scratch-bytes", "16MiB"})));
    EXPECT_TRUE(worked(bare({"fill", limit, elsewhere})));
    // Every writable mount there is, not only those known here. The workspace is the operator's.
    const auto everything =
        judged(run(glove_exec(home, {"--read", hostile_binary, "--scratch-bytes", "16MiB"},
                              {hostile_binary, "fill", limit})));
    EXPECT_TRUE(denied(everything));
}

TEST_F(PrivateRoom, is_at_most_a_quarter_of_memory_by_default) {
    struct ::sysinfo machine{};
    ASSERT_EQ(::sysinfo(&machine), 0);
    const auto quarter =
        std::max<unsigned long>(machine.totalram * machine.mem_unit / 4, 64UL << 20);
    const auto seen =
        judged(run(glove_exec(home, {"--read", hostile_binary},
                              {hostile_binary, "unbounded_room", std::to_string(quarter)})));
    EXPECT_TRUE(denied(seen));
    EXPECT_TRUE(worked(bare({"unbounded_room", "1000000", elsewhere})));
    const auto explained = run(glove_exec(home, {"--explain", "--json"}, {"true"})).output;
    std::smatch bytes, inodes;
    ASSERT_TRUE(std::regex_search(explained, bytes, std::regex{R"("scratch_bytes":\s*(\d+))"}));
    ASSERT_TRUE(std::regex_search(explained, inodes, std::regex{R"("scratch_inodes":\s*(\d+))"}));
    EXPECT_LE(std::stoull(bytes[1]) + std::stoull(inodes[1]) * 1536, quarter);
    EXPECT_GT(std::stoull(bytes[1]), 0U);
    EXPECT_GT(std::stoull(inodes[1]), 0U);
}

TEST_F(PrivateRoom, ends_at_a_number_of_names_too) {
    EXPECT_TRUE(worked(bare({"fill_names", "1000", elsewhere})));
    if (is_root()) return; // the same file system: one long run is enough
    struct ::sysinfo machine{};
    ASSERT_EQ(::sysinfo(&machine), 0);
    const auto most = std::to_string(machine.totalram * machine.mem_unit / 16 / 1536 + 100'000);
    auto asked =
        glove_exec(home, {"--read", hostile_binary}, {hostile_binary, "fill_names", most, "/tmp"});
    asked.patience = std::chrono::minutes{3};
    EXPECT_TRUE(denied(judged(run(asked))));
    EXPECT_TRUE(worked(inside({"create", "/tmp/mine"}))); // and nothing of it is left
}

// -- programs -------------------------------------------------------------------------------------

class Programs : public Scene {};

TEST_F(Programs, cannot_be_read_by_the_loader_where_they_are_not_granted) {
    const std::string copy = elsewhere + "/true";
    std::filesystem::copy_file("/usr/bin/true", copy);
    std::string loader = "/lib64/ld-linux-x86-64.so.2";
    if (!std::filesystem::exists(loader)) loader = "/lib/ld-linux-aarch64.so.1";
    EXPECT_TRUE(denied(inside({"run", loader, copy})));
    EXPECT_TRUE(worked(bare({"run", loader, copy})));
    EXPECT_TRUE(worked(inside({"run", loader, "/usr/bin/true"})));
    EXPECT_TRUE(denied(inside({"run", copy})));
    EXPECT_TRUE(worked(inside({"run", copy}, {"--read", elsewhere})));
}

TEST_F(Programs, that_run_cannot_be_overwritten) {
    EXPECT_TRUE(denied(inside({"overwrite_programs"})));
    // A writable copy is only protected while it runs.
    const std::string copy = elsewhere + "/hostile";
    std::filesystem::copy_file(hostile_binary, copy);
    EXPECT_TRUE(worked(judged(run({.argv = {copy, "overwrite_programs"}, .environment = {}}))));
}

} // namespace
} // namespace glove::test
