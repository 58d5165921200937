// The mount tree cannot be changed, copied, uncovered or left from inside.
#include "agents/scene.hpp"

namespace glove::test {
namespace {

class MountTree : public Scene {
protected:
    MountTree() { put(elsewhere + "/file", "text"); }
    // A read-only mount at `elsewhere`, made by somebody with every capability.
    std::string read_only =
        "mount -t tmpfs none '" + elsewhere + "'; mount -o remount,bind,ro '" + elsewhere + "'";
    words granted{"--read", elsewhere};
};

TEST_F(MountTree, read_only_binds_cannot_be_made_writable) {
    for (const std::string way :
         {"remount", "remount_all", "clear_read_only", "reconfigure", "clone_tree"}) {
        EXPECT_TRUE(denied(inside({way, elsewhere}, granted), "EPERM")) << way;
        EXPECT_TRUE(denied(inside({way, "/usr"}, granted), "EPERM")) << way;
        EXPECT_TRUE(denied(inside({way, "/"}, granted), "EPERM")) << way;
        EXPECT_TRUE(denied(inside({way, "/proc/sys"}, granted), "EPERM")) << way;
        EXPECT_TRUE(worked(powerful_after(read_only, {way, elsewhere}))) << way;
    }
    EXPECT_TRUE(denied(inside({"write", elsewhere + "/file"}, granted), "EROFS"));
    EXPECT_TRUE(worked(inside({"create", workspace + "/mine"}, granted)));
}

TEST_F(MountTree, nothing_new_can_be_mounted_and_nothing_uncovered) {
    for (const auto& attack : std::vector<words>{
             {"mount_tmpfs", elsewhere}, {"mount_bind", "/usr", elsewhere}, {"new_filesystem"}}) {
        EXPECT_TRUE(denied(inside(attack, granted), "EPERM")) << attack[0];
        EXPECT_TRUE(worked(powerful(attack))) << attack[0];
    }
    for (const std::string mount :
         {"/proc/sys", "/proc/kcore", "/proc/keys", "/tmp", "/dev/null", "/"})
        EXPECT_TRUE(denied(inside({"unmount", mount}), "EPERM")) << mount;
    EXPECT_TRUE(
        worked(powerful_after("mount -t tmpfs none '" + elsewhere + "'", {"unmount", elsewhere})));
    EXPECT_TRUE(denied(inside({"mount_proc", workspace}), "EPERM"));
}

TEST_F(MountTree, the_root_cannot_be_changed_or_left) {
    for (const std::string way : {"change_root", "pivot"})
        EXPECT_TRUE(denied(inside({way, workspace}), "EPERM")) << way;
    EXPECT_TRUE(worked(powerful({"change_root", elsewhere})));
    EXPECT_TRUE(worked(
        powerful_after("mount -t tmpfs none '" + elsewhere + "'; mkdir '" + elsewhere + "/x'",
                       {"pivot", elsewhere})));
    EXPECT_TRUE(denied(inside({"old_root"}), "the same root"));
}

TEST_F(MountTree, no_mount_honours_set_id_bits_or_devices) {
    EXPECT_TRUE(denied(inside({"loose_mounts"}, granted), "none"));
    EXPECT_TRUE(denied(inside({"loose_mounts"}, {"--write", elsewhere}), "none"));
    EXPECT_TRUE(worked(bare({"loose_mounts"})));
}

TEST_F(MountTree, only_the_expected_places_are_writable) {
    const words expected{"writable_mounts", "/tmp",  "/var/tmp", "/run",   "/dev/shm",
                         "/home/agent",     "/proc", "/dev/pts", workspace};
    EXPECT_TRUE(denied(inside(expected, granted), "none"));
    EXPECT_TRUE(worked(inside(expected, {"--write", elsewhere})));
}

TEST_F(MountTree, later_mounts_of_the_host_do_not_appear) {
    EXPECT_TRUE(denied(inside({"shared_mounts"}), "none"));
    // Made shared in a namespace of its own, which most machines have from the start.
    const auto asked = inside_command({"shared_mounts"});
    const auto shared = [&](const words& agent) {
        return judged(run(
            {.argv = words{"unshare", is_root() ? "-m" : "-Urm", "--propagation", "shared"} + agent,
             .environment = asked.environment}));
    };
    EXPECT_TRUE(denied(shared(asked.argv), "none"));
    EXPECT_TRUE(worked(shared({hostile_binary, "shared_mounts"})));
}

} // namespace
} // namespace glove::test
