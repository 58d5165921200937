// A grant shows exactly what the operator named: by every name it has, at every depth, against
// links, swaps, sockets and Glove's own files; and nothing is ever left in it.
#include "agents/racer.hpp"
#include "agents/scene.hpp"
#include <sys/socket.h>
#include <sys/un.h>

namespace glove::test {
namespace {

class Grants : public Scene {};

TEST_F(Grants, for_reading_can_be_read_only) {
    put(elsewhere + "/file", "text");
    const words read{"--read", elsewhere};
    EXPECT_EQ(inside({"read", elsewhere + "/file"}, read).said, "text");
    EXPECT_TRUE(denied(inside({"write", elsewhere + "/file"}, read), "EROFS"));
    EXPECT_TRUE(denied(inside({"create", elsewhere + "/new"}, read), "EROFS"));
    EXPECT_TRUE(denied(inside({"unlink", elsewhere + "/file"}, read), "EROFS"));
    EXPECT_TRUE(denied(inside({"same_mode", elsewhere + "/file"}, read), "EROFS"));
    EXPECT_TRUE(denied(inside({"link", elsewhere + "/file", workspace + "/link"}, read), "EXDEV"));
    EXPECT_TRUE(worked(inside({"write", elsewhere + "/file"}, {"--write", elsewhere})));
    EXPECT_EQ(contents(elsewhere + "/file"), "owned\n"); // four bytes became six
}

// The owner of a file may take one, and as that counts the agent's user.
TEST_F(Grants, can_be_locked_and_hold_no_lease_that_the_host_would_wait_for) {
    put(elsewhere + "/file", "text");
    put(workspace + "/file", "text");
    for (const auto& file : {elsewhere + "/file", workspace + "/file"}) {
        EXPECT_TRUE(denied(inside({"lease", file}, {"--read", elsewhere}), "EPERM"));
        EXPECT_TRUE(worked(inside({"lock", file}, {"--read", elsewhere})));
        EXPECT_TRUE(worked(bare({"lease", file})));
    }
}

TEST_F(Grants, are_whole_names_and_not_prefixes) {
    const auto evil = place.make("desk-evil");
    put(evil + "/file", "text");
    EXPECT_TRUE(denied(inside({"read", evil + "/file"}), "ENOENT"));
    EXPECT_TRUE(worked(inside({"create", workspace + "-other"}))); // in the private /tmp
    EXPECT_TRUE(denied(bare({"find", workspace + "-other"}), "ENOENT"));
    EXPECT_TRUE(worked(inside({"read", evil + "/file"}, {"--read", evil})));
    EXPECT_TRUE(worked(inside({"create", workspace + "/other"})));
}

TEST_F(Grants, of_a_file_show_no_neighbour) {
    const auto file = place.file("elsewhere/one", "1");
    put(elsewhere + "/two", "2");
    EXPECT_TRUE(worked(inside({"read", file}, {"--read", file})));
    EXPECT_TRUE(denied(inside({"read", elsewhere + "/two"}, {"--read", file}), "ENOENT"));
    EXPECT_EQ(inside({"list", elsewhere}, {"--read", file}).said, "one ");
}

TEST_F(Grants, through_links_keep_both_names) {
    put(elsewhere + "/file", "text");
    const auto link = place / "link";
    std::filesystem::create_symlink(elsewhere, link);
    for (const auto& name : {elsewhere, link})
        EXPECT_EQ(inside({"read", name + "/file"}, {"--read", link}).said, "text") << name;
    EXPECT_TRUE(denied(inside({"create", link + "/new"}, {"--read", link}), "EROFS"));
    EXPECT_TRUE(denied(inside({"find", place / "home"}, {"--read", link}), "ENOENT"));
}

TEST_F(Grants, do_not_follow_a_link_that_the_agent_left_in_its_workspace) {
    put(home + "/secret", "s");
    std::filesystem::create_symlink(home, workspace + "/way");
    std::filesystem::create_symlink("../home/secret", workspace + "/other-way");
    EXPECT_TRUE(denied(inside({"read", workspace + "/way/secret"}), "ENOENT"));
    EXPECT_TRUE(denied(inside({"read", workspace + "/other-way"}), "ENOENT"));
    EXPECT_TRUE(worked(bare({"read", workspace + "/way/secret"})));
    put(workspace + "/target", "t");
    std::filesystem::create_symlink("target", workspace + "/honest");
    EXPECT_TRUE(worked(inside({"read", workspace + "/honest"})));
}

TEST_F(Grants, cannot_be_the_root_or_what_glove_provides) {
    for (const std::string path :
         {"/", "/proc", "/proc/self", "/dev", "/dev/shm", "/usr", "/etc", "/tmp", "/run", "/home",
          "/var", "/proc/self/root", "//", "/..", "/home/agent"})
        for (const std::string flag : {"--read", "--write", "--workspace"}) {
            if (!std::filesystem::exists(path)) continue;
            const auto seen = run(glove_exec(home, {flag, path}, {"true"}));
            EXPECT_EQ(seen.status(), 2) << flag << " " << path << "\n" << seen;
            EXPECT_NE(seen.errors.find(flag + " " + path), std::string::npos) << seen;
        }
    EXPECT_EQ(run(glove_exec(home, {"--read", "/etc/passwd"}, {"true"})).status(), 0);
}

TEST_F(Grants, that_cannot_be_looked_up_are_refused_and_not_guessed) {
    std::filesystem::create_symlink("loop", place / "loop");
    const std::string long_name(5000, 'n');
    for (const auto& path : {place / "missing", place / "loop", place / long_name, std::string{}}) {
        const auto seen = run(glove_exec(home, {"--read", path}, {"true"}));
        EXPECT_EQ(seen.status(), 2) << seen;
    }
    if (!is_root()) {
        const auto closed = place.make("closed/inner");
        ASSERT_EQ(::chmod((place / "closed").c_str(), 0), 0);
        EXPECT_EQ(run(glove_exec(home, {"--read", closed}, {"true"})).status(), 2);
        ASSERT_EQ(::chmod((place / "closed").c_str(), 0700), 0);
    }
    EXPECT_EQ(run(glove_exec(home, {"--read", elsewhere}, {"true"})).status(), 0);
}

TEST_F(Grants, of_a_socket_a_fifo_or_a_device_are_refused) {
    ASSERT_EQ(::mkfifo((elsewhere + "/fifo").c_str(), 0600), 0);
    for (const auto& path : {elsewhere + "/fifo", std::string{"/dev/null"}})
        EXPECT_EQ(run(glove_exec(home, {"--read", path}, {"true"})).status(), 2) << path;
    EXPECT_EQ(run(glove_exec(home, {"--read", elsewhere}, {"true"})).status(), 0);
}

// -- what lies below ------------------------------------------------------------------------------

// As root in a mount namespace of its own, so that the test leaves no mount on the machine.
TEST_F(Grants, for_reading_hold_for_file_systems_mounted_below_them) {
    const auto below = place.make("elsewhere/below");
    const auto with_mount = [&](const std::string& flag, const words& attack) {
        const auto asked = inside_command(attack, {flag, elsewhere});
        return judged(
            run({.argv = words{"unshare", is_root() ? "-m" : "-Urm", "sh", "-ec",
                               "mount -t tmpfs none \"$0\"; echo text > \"$0/file\"; exec \"$@\"",
                               below} +
                         asked.argv,
                 .environment = asked.environment}));
    };
    EXPECT_EQ(with_mount("--read", {"read", below + "/file"}).said, "text");
    EXPECT_TRUE(denied(with_mount("--read", {"write", below + "/file"}), "EROFS"));
    EXPECT_TRUE(denied(with_mount("--read", {"create", below + "/new"}), "EROFS"));
    EXPECT_TRUE(worked(with_mount("--write", {"write", below + "/file"})));
    EXPECT_TRUE(denied(with_mount("--write", {"loose_mounts"}), "none"));
}

class Hidden : public Scene {
protected:
    Hidden() {
        put(workspace + "/.env", "secret");
        (void)place.make("desk/keys");
        put(workspace + "/keys/key", "secret");
        std::filesystem::create_symlink(".env", workspace + "/env-link");
    }
    words hide{"--hide", workspace + "/.env", "--hide", workspace + "/keys"};
};

TEST_F(Hidden, files_and_directories_cannot_be_read) {
    for (const std::string name : {"/.env", "/env-link"})
        EXPECT_TRUE(denied(inside({"read", workspace + name}, hide), "EACCES")) << name;
    EXPECT_TRUE(denied(inside({"list", workspace + "/keys"}, hide), "EACCES"));
    EXPECT_TRUE(denied(inside({"read", workspace + "/keys/key"}, hide)));
    for (const std::string name : {"/.env", "/env-link", "/keys/key"})
        EXPECT_EQ(inside({"read", workspace + name}).said, "secret") << name;
}

TEST_F(Hidden, files_stay_unreadable_whatever_is_renamed_or_linked) {
    const auto moved = [&](const words& first, const std::string& then) {
        // Both in one run: the second is asked whatever the first said.
        const auto script = [&] {
            std::string text;
            for (const auto& word : words{hostile_binary} + first) text += "'" + word + "' ";
            return text + "; cat '" + then + "'";
        }();
        return run(glove_exec(home,
                              words{"--workspace", workspace, "--read", hostile_binary} + hide,
                              {"sh", "-c", script}));
    };
    const std::string aside = workspace + "/aside";
    for (const auto& [first, then] : std::vector<std::pair<words, std::string>>{
             {{"link", workspace + "/.env", aside}, aside},
             {{"link_descriptor", workspace + "/.env", aside}, aside},
             {{"rename", workspace + "/.env", aside}, aside},
             {{"unlink", workspace + "/.env"}, workspace + "/.env"},
             {{"exchange", workspace + "/.env", workspace + "/env-link"}, workspace + "/env-link"},
             {{"rename", workspace + "/keys", aside}, aside + "/key"},
             {{"unmount", workspace + "/.env"}, workspace + "/.env"},
             {{"unmount", workspace + "/keys"}, workspace + "/keys/key"},
             {{"mount_bind", workspace, "/tmp"}, "/tmp/.env"}}) {
        const auto seen = moved(first, then);
        EXPECT_EQ(seen.output.find("secret"), std::string::npos) << first[0] << "\n" << seen;
        EXPECT_NE(seen.status(), 0) << first[0];
    }
    EXPECT_EQ(contents(workspace + "/.env"), "secret");
    EXPECT_EQ(contents(workspace + "/keys/key"), "secret");
    put(workspace + "/open", "s");
    EXPECT_TRUE(worked(inside({"rename", workspace + "/open", aside}, hide)));
}

TEST_F(Hidden, files_move_with_their_parent_and_stay_hidden) {
    (void)place.make("desk/outer/inner");
    put(workspace + "/outer/inner/key", "secret");
    const auto seen =
        run(glove_exec(home, {"--workspace", workspace, "--hide", workspace + "/outer/inner/key"},
                       {"sh", "-c", "mv outer moved && ls moved/inner && cat moved/inner/key"}));
    EXPECT_EQ(seen.output, "key\n") << seen;
    EXPECT_NE(seen.status(), 0);
    EXPECT_EQ(contents(workspace + "/moved/inner/key"), "secret");
}

// Stated residuals of hiding: a mask stands over one name of one file.
TEST_F(Hidden, residual_another_hard_link_of_the_file_still_shows_it) {
    std::filesystem::create_hard_link(workspace + "/.env", workspace + "/same");
    EXPECT_EQ(inside({"read", workspace + "/same"}, hide).said, "secret");
    EXPECT_TRUE(denied(inside({"read", workspace + "/.env"}, hide)));
}

TEST_F(Hidden, residual_a_file_that_the_host_replaces_during_the_run_is_seen) {
    const auto asked = glove_exec(
        home, words{"--workspace", workspace} + hide,
        {"sh", "-c", "cat .env; echo ready; while [ ! -e go ]; do sleep 0.02; done; cat .env"});
    started agent{asked};
    ASSERT_TRUE(agent.says("ready"));
    put(workspace + "/new", "replaced");
    ASSERT_EQ(::rename((workspace + "/new").c_str(), (workspace + "/.env").c_str()), 0);
    put(workspace + "/go", "");
    EXPECT_EQ(agent.finish(std::chrono::seconds{20}).output, "ready\nreplaced");
}

TEST_F(Hidden, paths_are_refused_where_hiding_would_mean_nothing) {
    put(elsewhere + "/file", "");
    for (const auto& path : {elsewhere + "/file", workspace, workspace + "/missing"}) {
        const auto seen =
            run(glove_exec(home, {"--workspace", workspace, "--hide", path}, {"true"}));
        EXPECT_EQ(seen.status(), 2) << seen;
        EXPECT_NE(seen.errors.find("--hide " + path), std::string::npos) << seen;
    }
    EXPECT_EQ(inside({"list", workspace}, hide).what, verdict::worked);
}

// -- sockets and FIFOs of the host ----------------------------------------------------------------

class HostServices : public Scene {
protected:
    // A listener of the host; closed with the test.
    class listener {
    public:
        listener(const std::string& name, int type = SOCK_STREAM, bool relative = false) {
            ::sockaddr_un at{};
            at.sun_family = AF_UNIX;
            const auto slash = name.rfind('/');
            const auto shown = relative ? name.substr(slash + 1) : name;
            shown.copy(at.sun_path, sizeof at.sun_path - 1);
            socket_ = ::socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
            const auto before = std::filesystem::current_path();
            if (relative) std::filesystem::current_path(name.substr(0, slash));
            EXPECT_EQ(::bind(socket_, reinterpret_cast<const ::sockaddr*>(&at), sizeof at), 0)
                << name;
            if (relative) std::filesystem::current_path(before);
            if (type == SOCK_STREAM) {
                EXPECT_EQ(::listen(socket_, 8), 0);
            }
        }
        listener(const listener&) = delete;
        auto operator=(const listener&) = delete;
        ~listener() { ::close(socket_); }

    private:
        int socket_;
    };
    [[nodiscard]] auto report_of(const words& options) const -> std::string {
        const auto file = home + "/report.json";
        const auto seen = run(glove_exec(home, options + words{"--report", file}, {"true"}));
        EXPECT_EQ(seen.status(), 0) << seen;
        return contents(file);
    }
};

TEST_F(HostServices, that_are_not_granted_cannot_be_reached_by_path) {
    const listener docker{elsewhere + "/docker.sock"};
    EXPECT_TRUE(denied(inside({"connect_unix", elsewhere + "/docker.sock"}), "ENOENT"));
    EXPECT_TRUE(worked(bare({"connect_unix", elsewhere + "/docker.sock"})));
    EXPECT_TRUE(worked(inside({"own_unix", workspace + "/own.sock"})));
    EXPECT_TRUE(worked(inside({"own_unix", "/run/own.sock"})));
}

TEST_F(HostServices, inside_a_grant_are_masked_and_reported) {
    const auto deep = place.make("elsewhere/a/b");
    const listener stream{elsewhere + "/stream.sock"};
    const listener datagram{deep + "/datagram.sock", SOCK_DGRAM};
    ASSERT_EQ(::mkfifo((elsewhere + "/fifo").c_str(), 0600), 0);
    const int reader = ::open((elsewhere + "/fifo").c_str(), O_RDWR | O_CLOEXEC);
    for (const std::string flag : {"--read", "--write"}) {
        const words grant{flag, elsewhere};
        for (const auto& name : {elsewhere + "/stream.sock", deep + "/datagram.sock"}) {
            EXPECT_TRUE(denied(inside({"connect_unix", name}, grant))) << name;
            EXPECT_TRUE(denied(inside({"send_unix", name}, grant))) << name;
        }
        EXPECT_TRUE(denied(inside({"write_fifo", elsewhere + "/fifo"}, grant)));
        EXPECT_TRUE(denied(inside({"read", elsewhere + "/fifo"}, grant)));
        const auto report = report_of(grant);
        for (const auto& name :
             {elsewhere + "/stream.sock", deep + "/datagram.sock", elsewhere + "/fifo"})
            EXPECT_NE(
                report.find("{\"path\":\"" + name + "\",\"kind\":\"mask\",\"origin\":\"guarded\""),
                std::string::npos)
                << report;
    }
    EXPECT_TRUE(worked(bare({"connect_unix", elsewhere + "/stream.sock"})));
    EXPECT_TRUE(worked(bare({"send_unix", deep + "/datagram.sock"})));
    EXPECT_TRUE(worked(bare({"write_fifo", elsewhere + "/fifo"})));
    ::close(reader);
}

TEST_F(HostServices, are_found_behind_any_number_of_files) {
    const auto crowd = place.make("elsewhere/crowd");
    for (int i = 0; i < 1500; ++i) put(crowd + "/" + std::to_string(i), "");
    const auto deep = place.make("elsewhere/crowd/z");
    const listener far{deep + "/far.sock"};
    std::filesystem::create_symlink(deep, place / "by-link");
    const listener by_link{place / "by-link/linked.sock"};
    for (const auto& name : {deep + "/far.sock", deep + "/linked.sock"}) {
        EXPECT_TRUE(denied(inside({"connect_unix", name}, {"--read", elsewhere}))) << name;
        EXPECT_TRUE(worked(bare({"connect_unix", name}))) << name;
    }
}

TEST_F(HostServices, in_the_system_places_are_masked_too) {
    // In a mount namespace of its own: nobody may write to the machine's /opt.
    const auto with_service = [&](const std::string& script) {
        const auto asked = inside_command({"connect_unix", "/opt/service/s.sock"});
        return judged(
            run({.argv = words{"unshare", is_root() ? "-m" : "-Urm", "sh", "-ec",
                               "mount -t tmpfs none /opt; mkdir /opt/service\n"
                               "'" +
                                   hostile_binary +
                                   "' serve_unix /opt/service/s.sock & \n"
                                   "while [ ! -e /opt/service/s.sock ]; do sleep 0.02; done\n" +
                                   script + "\nended=$?; kill $!; exit $ended",
                               "sh"} +
                         asked.argv,
                 .environment = asked.environment}));
    };
    EXPECT_TRUE(denied(with_service("set +e; \"$@\"")));
    EXPECT_TRUE(
        worked(with_service("set +e; '" + hostile_binary + "' connect_unix /opt/service/s.sock")));
}

// Stated residuals: what appears later, and what neither the table of bound names nor the bounded
// walk can tell.
TEST_F(HostServices, residual_a_socket_that_appears_later_in_a_grant_is_reachable) {
    started agent{
        glove_exec(home, {"--read", elsewhere, "--read", hostile_binary},
                   {"sh", "-c",
                    "echo ready; while [ ! -e " + elsewhere + "/go ]; do sleep 0.02; done; " +
                        hostile_binary + " connect_unix " + elsewhere + "/late.sock"})};
    ASSERT_TRUE(agent.says("ready"));
    const listener late{elsewhere + "/late.sock"};
    put(elsewhere + "/go", "");
    EXPECT_EQ(agent.finish(std::chrono::seconds{20}).status(), 0);
}

TEST_F(HostServices,
       residual_one_bound_by_a_relative_name_in_a_crowd_is_reachable_and_the_report_says_so) {
    const auto crowd = place.make("elsewhere/crowd");
    for (int i = 0; i < 1500; ++i) put(crowd + "/" + std::to_string(i), "");
    const auto deep = place.make("elsewhere/crowd/z");
    const listener relative{deep + "/relative.sock", SOCK_STREAM, true};
    EXPECT_TRUE(worked(inside({"connect_unix", deep + "/relative.sock"}, {"--read", elsewhere})));
    EXPECT_NE(report_of({"--read", elsewhere}).find("\"guard_search_complete\":false"),
              std::string::npos);
    EXPECT_NE(report_of({"--read", deep}).find("\"guard_search_complete\":true"),
              std::string::npos);
    EXPECT_TRUE(denied(inside({"connect_unix", deep + "/relative.sock"}, {"--read", deep})));
}

// -- swaps ----------------------------------------------------------------------------------------

class Swaps : public Scene {
protected:
    // 200 runs while two names change places. What was read must be what the report says was
    // pinned; anything else must have been refused.
    void race(const std::string& granted, const std::string& other,
              const std::map<std::string, std::string>& directories) {
        int refused = 0;
        const racer swap{granted, other};
        for (int i = 0; i < 200; ++i) {
            const auto report = home + "/report.json";
            const auto seen = run(glove_exec(home, {"--read", granted, "--report", report},
                                             {"cat", granted + "/name"}));
            if (seen.status() != 0) {
                ++refused;
                EXPECT_TRUE(seen.status() == 125 || seen.status() == 2) << seen;
                EXPECT_TRUE(seen.errors.find(" mount.tree: ") != std::string::npos ||
                            seen.errors.find(" grant.") != std::string::npos)
                    << seen;
                continue;
            }
            struct ::stat pinned{};
            ASSERT_TRUE(directories.contains(seen.output)) << seen;
            ASSERT_EQ(::stat(directories.at(seen.output).c_str(), &pinned), 0);
            EXPECT_NE(contents(report).find("\"inode\":" + std::to_string(pinned.st_ino) + "}"),
                      std::string::npos)
                << contents(report);
        }
        std::cout << "refused " << refused << " of 200\n";
    }
};

// The files are reached by names that stay: the racer moves only the directories' names.
TEST_F(Swaps, of_two_directories_show_the_pinned_one_or_refuse) {
    const auto granted = place.make("swap/granted");
    const auto other = place.make("swap/other");
    put(granted + "/name", "granted");
    put(other + "/name", "other");
    const auto first =
        "/proc/self/fd/" + std::to_string(::open(granted.c_str(), O_PATH | O_CLOEXEC));
    const auto second =
        "/proc/self/fd/" + std::to_string(::open(other.c_str(), O_PATH | O_CLOEXEC));
    race(granted, other, {{"granted", first}, {"other", second}});
    EXPECT_EQ(run(glove_exec(home, {"--read", granted}, {"cat", granted + "/name"})).status(), 0);
}

TEST_F(Swaps, of_a_directory_and_a_link_show_the_pinned_one_or_refuse) {
    const auto granted = place.make("swap/granted");
    const auto other = place.make("other");
    put(granted + "/name", "granted");
    put(other + "/name", "other");
    std::filesystem::create_symlink(other, place / "swap/link");
    const auto first =
        "/proc/self/fd/" + std::to_string(::open(granted.c_str(), O_PATH | O_CLOEXEC));
    race(granted, place / "swap/link", {{"granted", first}, {"other", other}});
    EXPECT_EQ(run(glove_exec(home, {"--read", other}, {"cat", other + "/name"})).status(), 0);
}

// -- Glove's own files ----------------------------------------------------------------------------

class ControlFiles : public Scene {};

TEST_F(ControlFiles, cannot_lie_in_a_grant_nor_hold_one) {
    std::filesystem::create_symlink(workspace, place / "to-work");
    (void)place.make("home/.state/glove/inner");
    (void)place.make("home/.config/glove");
    for (const auto& options :
         std::vector<words>{{"--audit-log", workspace + "/audit.jsonl"},
                            {"--audit-log", place / "to-work/audit.jsonl"},
                            {"--audit-log", workspace + "/not/there/yet.jsonl"},
                            {"--audit-log", elsewhere + "/../desk/audit.jsonl"},
                            {"--report", workspace + "/report.json"},
                            {"--report", place / "to-work/report.json"},
                            {"--read", home},
                            {"--read", home + "/.state"},
                            {"--read", home + "/.state/glove"},
                            {"--read", home + "/.state/glove/inner"},
                            {"--write", home + "/.config/glove"},
                            {"--read", place.path()}}) {
        const auto seen =
            run(glove_exec(home, words{"--workspace", workspace} + options, {"true"}));
        EXPECT_EQ(seen.status(), 2) << options[0] << " " << options[1] << "\n" << seen;
    }
    EXPECT_FALSE(std::filesystem::exists(workspace + "/audit.jsonl"));
    EXPECT_FALSE(std::filesystem::exists(workspace + "/report.json"));
    const auto good =
        run(glove_exec(home,
                       {"--workspace", workspace, "--audit-log", elsewhere + "/audit.jsonl",
                        "--report", elsewhere + "/report.json"},
                       {"true"}));
    EXPECT_EQ(good.status(), 0) << good;
    EXPECT_TRUE(std::filesystem::exists(elsewhere + "/audit.jsonl"));
}

TEST_F(ControlFiles, are_not_written_through_a_link_or_a_second_name) {
    put(workspace + "/victim", "");
    std::filesystem::create_symlink(workspace + "/victim", elsewhere + "/link.jsonl");
    put(elsewhere + "/one.jsonl", "");
    ASSERT_EQ(::chmod((elsewhere + "/one.jsonl").c_str(), 0600), 0);
    std::filesystem::create_hard_link(elsewhere + "/one.jsonl", elsewhere + "/two.jsonl");
    for (const std::string name : {"/link.jsonl", "/one.jsonl"}) {
        const auto seen =
            run(glove_exec(home, {"--audit-log", elsewhere + name}, {"touch", workspace + "/ran"}));
        EXPECT_EQ(seen.status(), 125) << seen;
    }
    EXPECT_EQ(contents(workspace + "/victim"), "");
    std::filesystem::remove(elsewhere + "/two.jsonl");
    EXPECT_EQ(run(glove_exec(home, {"--audit-log", elsewhere + "/one.jsonl"}, {"true"})).status(),
              0);
}

TEST_F(ControlFiles, are_never_read_from_the_working_directory) {
    for (const std::string name : {"glove.toml", ".glove", ".env", "profile", ".glove.json"})
        put(workspace + "/" + name, "--read /");
    auto asked = inside_command({"find", home});
    asked.directory = workspace;
    EXPECT_TRUE(denied(judged(run(asked)), "ENOENT"));
    EXPECT_TRUE(worked(bare({"find", home})));
}

TEST_F(ControlFiles, the_working_directory_of_the_caller_grants_nothing) {
    put(elsewhere + "/file", "text");
    auto asked =
        glove_exec(home, {"--read", hostile_binary}, {hostile_binary, "read", elsewhere + "/file"});
    asked.directory = elsewhere;
    EXPECT_TRUE(denied(judged(run(asked)), "ENOENT"));
    asked = glove_exec(home, {"--workspace", ".", "--read", hostile_binary},
                       {hostile_binary, "read", elsewhere + "/file"});
    asked.directory = elsewhere;
    EXPECT_TRUE(worked(judged(run(asked))));
}

// -- nothing left behind --------------------------------------------------------------------------

class Workspace : public Scene {
protected:
    // Every name, kind, mode, time and inode below `directory`.
    [[nodiscard]] static auto inventory(const std::string& directory) -> std::string {
        return run({.argv = {"find", directory, "-printf", "%P %y %m %n %i %s %T@ %C@\n"},
                    .environment = {{"PATH", "/usr/bin:/bin"}}})
            .output;
    }
    [[nodiscard]] auto git(const words& what) const -> std::string {
        return run({.argv = words{"git", "-C", workspace} + what,
                    .environment = {{"PATH", "/usr/bin:/bin"}, {"HOME", home}}})
            .output;
    }
};

TEST_F(Workspace, has_no_placeholder_during_or_after_a_run_nor_when_everything_is_killed) {
    (void)git({"init", "-q"});
    put(workspace + "/.env", "secret");
    (void)place.make("desk/a/b");
    ASSERT_EQ(::mkfifo((workspace + "/a/fifo").c_str(), 0600), 0);
    std::filesystem::create_symlink("b", workspace + "/a/link");
    const auto status = git({"status", "--porcelain"});
    const auto before = inventory(workspace);
    const words options{"--workspace",       workspace, "--hide",
                        workspace + "/.env", "--hide",  workspace + "/a/b"};
    started agent{glove_exec(home, options, {"sh", "-c", "echo here; sleep 60"})};
    ASSERT_TRUE(agent.says("here"));
    EXPECT_EQ(inventory(workspace), before);
    ASSERT_EQ(::kill(agent.pid(), SIGKILL), 0);
    EXPECT_EQ(agent.finish(std::chrono::seconds{20}).status(), 128 + SIGKILL);
    EXPECT_EQ(inventory(workspace), before);
    EXPECT_EQ(run(glove_exec(home, options, {"true"})).status(), 0);
    EXPECT_EQ(inventory(workspace), before);
    EXPECT_EQ(git({"status", "--porcelain"}), status);
    EXPECT_TRUE(worked(inside({"create", workspace + "/mine"})));
    EXPECT_NE(inventory(workspace), before);
}

TEST_F(Workspace, is_the_only_place_of_the_host_that_a_run_touches) {
    // In a mount namespace of its own, with fresh shared places, so that nobody else's files count.
    const auto left = [&](const std::string& agent) {
        return run(
            {.argv =
                 {"unshare", is_root() ? "-m" : "-Urm", "sh", "-ec",
                  "exec 9<\"$1\"\n"
                  "for place in /tmp /var/tmp /run /dev/shm; do mount -t tmpfs none $place; done\n"
                  "rm -rf /run/mount; mkdir /tmp/desk /var/tmp/home; export HOME=/var/tmp/home\n" +
                      agent +
                      "\nfind /tmp /var/tmp /run /dev/shm -mindepth 1 -not -path '/var/tmp/home*'",
                  "sh", glove_binary()},
             .environment = {{"PATH", "/usr/bin:/bin"}}});
    };
    const std::string exec = "/proc/self/fd/9 exec --workspace /tmp/desk -- ";
    EXPECT_EQ(left(exec + "true").output, "/tmp/desk\n");
    EXPECT_EQ(left(exec + "sleep 60 & sleep 0.5; kill -9 $!; sleep 0.2").output, "/tmp/desk\n");
    EXPECT_EQ(left(exec + "touch mine").output, "/tmp/desk\n/tmp/desk/mine\n");
}

} // namespace
} // namespace glove::test
