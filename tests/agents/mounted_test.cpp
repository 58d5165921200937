// What else is mounted on the host decides, too: the kernel's own file systems and Glove's own
// files are refused by whatever name, and nothing is made through a link of the host.
//
// Every mount is made in a mount namespace of the test's own.
#include "agents/scene.hpp"

namespace glove::test {
namespace {

class Mounted : public Scene {
protected:
    // As root of a mount namespace: a few lines of shell, then the command as "$@".
    [[nodiscard]] auto after(const std::string& script, const command& asked) const -> finished {
        return run({.argv = words{"unshare", is_root() ? "-m" : "-Urm", "sh", "-ec",
                                  script + "\nexec \"$@\"", "sh"} +
                            asked.argv,
                    .environment = asked.environment});
    }
    [[nodiscard]] auto after(const std::string& script, const words& options) const -> finished {
        return after(script, glove_exec(home, options, {"echo", "ran"}));
    }
};

void expect_refused(const finished& seen, const std::string& word) {
    EXPECT_EQ(seen.status(), 2) << seen;
    EXPECT_EQ(seen.output, "") << seen;
    EXPECT_NE(seen.errors.find(word), std::string::npos) << seen;
}

TEST_F(Mounted, views_of_the_kernel_are_not_granted_with_what_holds_them) {
    const auto below = place.make("desk/deep/below");
    for (const std::string kind : {"proc", "sys"}) {
        const auto mount = "mount --rbind /" + kind + " '" + below + "'";
        for (const std::string flag : {"--workspace", "--read", "--write"}) {
            const auto type = kind == "sys" ? std::string{"sysfs"} : kind;
            const auto named = flag + " " + workspace + ": would show the kernel's " + type;
            expect_refused(after(mount, {flag, workspace}), named + " at " + below);
        }
        expect_refused(after(mount, {"--read", below}), "the kernel's");
        expect_refused(after(mount, {"--read", below + "/fs"}), "the kernel's");
        EXPECT_EQ(after(mount, {"--read", elsewhere}).output, "ran\n");
    }
    const auto plain = "mount -t tmpfs none '" + below + "'";
    EXPECT_EQ(after(plain, {"--workspace", workspace}).output, "ran\n");
    EXPECT_EQ(after(plain, {"--read", below}).output, "ran\n");
}

TEST_F(Mounted, new_views_of_the_kernel_are_no_different) {
    if (!is_root()) return; // another may mount one only beside processes of its own
    expect_refused(after("mount -t proc proc '" + workspace + "'", {"--workspace", workspace}),
                   "the kernel's proc at " + workspace);
}

// A chroot below /opt, with a /proc in it.
TEST_F(Mounted, views_of_the_kernel_below_system_places_are_covered) {
    const std::string script = "mount -t tmpfs none /opt; mkdir -p /opt/tree/proc\n"
                               "echo plain > /opt/tree/file; mount --rbind /proc /opt/tree/proc";
    const std::string look = "cat /opt/tree/file; ls /opt/tree/proc";
    const auto bare = after(script, command{.argv = {"sh", "-c", look}});
    EXPECT_NE(bare.output.find("cmdline"), std::string::npos) << bare;
    const auto inside = after(script, glove_exec(home, {}, {"sh", "-c", look}));
    EXPECT_EQ(inside.output, "plain\n") << inside;
    EXPECT_NE(inside.errors.find("Permission denied"), std::string::npos) << inside;
}

TEST_F(Mounted, Gloves_own_files_are_the_same_by_another_name) {
    const auto state = place.make("home/.state/glove/audit");
    const auto alias = place.make("elsewhere/alias");
    const auto other = place.make("other");
    for (const std::string shown : {"/.state", "/.state/glove", "/.state/glove/audit"}) {
        const auto mount = "mount --bind '" + home + shown + "' '" + alias + "'";
        expect_refused(after(mount, {"--read", alias}), "Glove's own files at " + home);
        expect_refused(after(mount, {"--write", alias}), "Glove's own files at " + home);
        expect_refused(after(mount, {"--read", elsewhere}), "Glove's own files at " + home);
        EXPECT_EQ(after(mount, {"--read", other}).output, "ran\n");
    }
    const auto harmless = "mount --bind '" + other + "' '" + alias + "'";
    EXPECT_EQ(after(harmless, {"--read", alias}).output, "ran\n");
    EXPECT_EQ(after(harmless, {"--read", elsewhere}).output, "ran\n");
}

TEST_F(Mounted, Gloves_own_files_cannot_climb_out_of_a_directory_that_is_not_there) {
    const auto with_state = [&](const std::string& directory) {
        auto asked = glove_exec(home, {"--workspace", workspace}, {"echo", "ran"});
        asked.environment["XDG_STATE_HOME"] = directory;
        return run(asked);
    };
    for (const std::string name :
         {"/missing/../../desk", "/missing/../missing/..", "/missing/.."}) {
        const auto seen = with_state(home + name);
        expect_refused(seen, "\"..\" after a directory that does not exist leads nowhere");
        EXPECT_FALSE(std::filesystem::exists(home + "/missing"));
    }
    EXPECT_TRUE(std::filesystem::is_empty(workspace));
    expect_refused(with_state(elsewhere + "/../desk"), "Glove's own files");
    EXPECT_EQ(with_state(home + "/missing").output, "ran\n");
    EXPECT_EQ(with_state(elsewhere + "/../home/there").output, "ran\n");
}

// A machine made of this one's parts, of which /home is a link. Glove is started by a descriptor,
// because its own place may be in the other /home.
TEST_F(Mounted, nothing_is_made_behind_a_link_of_the_host) {
    const auto made_up = place.make("host");
    const auto on_it = [&](const std::string& link, const std::string& then) {
        const auto script = "exec 9<\"$1\"; cd '" + made_up + "'; mount -t tmpfs none .; cd '" +
                            made_up + "'\n" +
                            "for at in /*; do case $at in /home|/data|/old) continue ;; esac\n"
                            "if [ -L $at ]; then cp -P $at .$at\n"
                            "elif [ -d $at ]; then mkdir .$at; mount --rbind $at .$at; fi; done\n"
                            "mkdir -p old data/home/user/project; ln -s " +
                            link +
                            " home\n"
                            "pivot_root . old; cd /; umount -l /old; export HOME=/home/user\n" +
                            then + "\nfind /data | sort";
        return run({.argv = {"unshare", is_root() ? "-m" : "-Urm", "sh", "-ec", script, "sh",
                             glove_binary()},
                    .environment = {{"PATH", "/usr/bin:/bin:/usr/sbin:/sbin"},
                                    {"XDG_STATE_HOME", "/old/state"},
                                    {"XDG_CONFIG_HOME", "/old/configuration"}}});
    };
    const std::string untouched = "/data\n/data/home\n/data/home/user\n/data/home/user/project\n";
    for (const std::string link : {"/data/home", "data/home", "../data/./home"}) {
        const auto seen =
            on_it(link, "/proc/self/fd/9 exec --workspace /home/user/project -- sh -c "
                        "'echo $HOME; touch $HOME/mine; ls -A $HOME; ls $HOME/..'");
        EXPECT_EQ(seen.output, "/home/agent\nmine\nagent\nuser\n" + untouched) << link << seen;
        const auto wrote = on_it(link, "/proc/self/fd/9 exec --workspace /home/user/project -- "
                                       "touch /home/user/project/mine");
        EXPECT_EQ(wrote.output, untouched + "/data/home/user/project/mine\n") << link << wrote;
    }
    EXPECT_NE(on_it("/data/home", "mkdir /home/agent").output, untouched);
}

} // namespace
} // namespace glove::test
