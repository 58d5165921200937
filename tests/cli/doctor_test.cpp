// `glove doctor` on this machine, and on machines that are broken in a child's own namespaces or by
// a filter of its own. What it says is compared with what `glove exec` does there.
#include <chrono>
#include <fstream>
#include <glove/wire/json.hpp>
#include <gmock/gmock.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <support/on_terminal.hpp>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace {

using namespace glove;
using test::glove_program;
using test::ran;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

auto checks_of(const ran& got) -> std::map<std::string, wire::json::value> {
    std::map<std::string, wire::json::value> out;
    const auto parsed = wire::json::read(got.out);
    EXPECT_TRUE(parsed.has_value()) << got.out << got.err;
    if (!parsed) return out;
    EXPECT_EQ(parsed->find("healthy")->as_bool(), got.status == 0);
    for (const auto& each : *parsed->find("checks")->as_array())
        out.emplace(*each.find("code")->as_string(), each);
    return out;
}

auto member(const std::map<std::string, wire::json::value>& checks, const std::string& code,
            std::string_view name) -> std::string {
    const auto at = checks.find(code);
    return at == checks.end() ? "absent" : *at->second.find(name)->as_string();
}

// Runs the program in a child that `prepare` changed first; what it printed, and its status.
template<class Prepare>
auto run_after(const glove_program& glove, std::vector<std::string> words, Prepare prepare) -> ran {
    ran out;
    words.insert(words.begin(), glove.path());
    const auto said = test::said_by([&] {
        prepare();
        const auto got = test::run_program(words, {{"HOME", glove.place() / "home"}});
        return std::to_string(got.status) + "\n" + got.out;
    });
    out.status = std::atoi(said.c_str());
    out.out = said.substr(std::min(said.find('\n'), said.size() - 1) + 1);
    return out;
}

// Both verbs fail, doctor with 3, and it tells the cause and the mend.
template<class Prepare> void expect_unusable(const std::string& code, const std::string& message,
                                             const std::string& mend, Prepare prepare) {
    const glove_program glove;
    EXPECT_EQ(run_after(glove, {"exec", "--", "true"}, prepare).status, 125);
    const auto got = run_after(glove, {"doctor", "--json"}, prepare);
    EXPECT_EQ(got.status, 3) << got.out;
    const auto checks = checks_of(got);
    EXPECT_EQ(member(checks, "linux_perimeter", "status"), "failed");
    EXPECT_EQ(member(checks, code, "status"), "failed");
    EXPECT_THAT(member(checks, code, "message"), HasSubstr(message));
    EXPECT_THAT(member(checks, code, "recovery"), HasSubstr(mend));
    const auto text = run_after(glove, {"doctor"}, prepare);
    EXPECT_EQ(text.status, 3);
    EXPECT_THAT(text.out, AllOf(HasSubstr("missing   " + code), HasSubstr("does not work here")));
}

TEST(Doctor, ItSaysWhatExecDoes) {
    const glove_program glove;
    const auto exec = glove({"exec", "--", "true"});
    const auto got = glove({"doctor", "--json"});
    EXPECT_EQ(got.status == 0, exec.status == 0) << got.out << exec.err;
    EXPECT_THAT(got.err, IsEmpty());
    const auto checks = checks_of(got);
    EXPECT_EQ(member(checks, "linux_perimeter", "status"), exec.status == 0 ? "passed" : "failed");
    EXPECT_EQ(member(checks, "egress_proxy", "message"),
              glove.path() + "-egress is there"); // beside it in the build
}

// Far below the bound when the machine has time; the case must hold when it has none.
TEST(Doctor, ItIsQuick) {
    const glove_program glove;
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(glove({"doctor"}).status, 0);
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds{5});
}

TEST(Doctor, ItLeavesNothingBehind) {
    const glove_program glove;
    ASSERT_EQ(glove({"doctor"}).status, 0);
    EXPECT_TRUE(std::filesystem::is_empty(glove.place() / "home"));
    EXPECT_TRUE(std::filesystem::is_empty(glove.place() / "desk"));
}

TEST(Doctor, ItTellsWhichConfigurationWouldBeRead) {
    const glove_program glove;
    const auto path = [&](const test::variables& extra) {
        const auto parsed = wire::json::read(glove({"doctor", "--json"}, extra).out);
        return parsed ? *parsed->find("config_path")->as_string() : "";
    };
    EXPECT_EQ(path({}), (glove.place() / "home") + "/.config/glove/config.toml");
    EXPECT_EQ(path({{"XDG_CONFIG_HOME", "/elsewhere"}}), "/elsewhere/glove/config.toml");
    EXPECT_EQ(path({{"XDG_CONFIG_HOME", "relative"}}), "");
}

struct mode_row {
    ::mode_t state, audit;
    const char* line;
    bool works;
};

TEST(Doctor, AStateDirectoryThatExecRefusesIsMissing) {
    const glove_program glove;
    for (const auto& [state, audit, line, works] :
         {mode_row{0700, 0700, "ok        state_directory", true},
          mode_row{0755, 0700, "degraded  state_directory", true},
          mode_row{0777, 0755, "degraded  state_directory", true},
          mode_row{0700, 0770, "missing   state_directory", false}}) {
        glove.place().directory("home/.local/state/glove/audit", audit);
        glove.place().directory("home/.local/state/glove", state);
        const auto got = glove({"doctor"});
        EXPECT_THAT(got.out, HasSubstr(line));
        EXPECT_EQ(got.status, works ? 0 : 3) << line;
        EXPECT_EQ(glove({"exec", "--", "true"}).status, works ? 0 : 125) << line;
    }
    const auto relative = glove({"doctor"}, {{"XDG_STATE_HOME", "here"}});
    EXPECT_EQ(relative.status, 3);
    EXPECT_THAT(relative.out, HasSubstr("missing   state_directory"));
    EXPECT_EQ(glove({"exec", "--", "true"}, {{"XDG_STATE_HOME", "here"}}).status, 125);
}

TEST(Doctor, AStateDirectoryThatCannotBeMadeIsMissing) {
    const glove_program glove;
    glove.place().file("home/.local", "in the way");
    const auto got = glove({"doctor"});
    EXPECT_EQ(got.status, 3);
    EXPECT_THAT(got.out, HasSubstr("missing   state_directory"));
    EXPECT_EQ(glove({"exec", "--", "true"}).status, 125);
}

// Namespaces of the child's own, as a container around this one would make them.
void enter_namespaces(int which) { test::enter_user_namespace(which, ::geteuid(), ::getegid()); }

TEST(Doctor, NamespacesThatAreSwitchedOffAreTold) {
    expect_unusable("linux_namespaces", "No space left", "user.max_user_namespaces=10000", [] {
        enter_namespaces(0);
        // The limit of this namespace, not of the machine.
        std::ofstream{"/proc/sys/user/max_user_namespaces"} << "0" << std::flush;
    });
}

TEST(Doctor, AProcThatAContainerCoversIsTold) {
    expect_unusable("linux_proc", "covered", "systempaths=unconfined", [] {
        enter_namespaces(CLONE_NEWNS);
        test::prepared(::mount("/dev/null", "/proc/version", nullptr, MS_BIND, nullptr) == 0,
                       "mount");
    });
}

// As the filter of a container engine would.
void forbid(long number, int os) {
    ::sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(::seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(os)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const ::sock_fprog code{std::size(program), program};
    test::prepared(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
    test::prepared(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &code) == 0, "seccomp");
}

TEST(Doctor, AFilterThatForbidsNamespacesIsTold) {
    expect_unusable("linux_namespaces", "Operation not permitted", "seccomp=unconfined",
                    [] { forbid(SYS_clone3, EPERM); });
    expect_unusable("linux_namespaces", "not implemented", "seccomp=unconfined",
                    [] { forbid(SYS_clone3, ENOSYS); });
}

TEST(Doctor, AFilterThatForbidsMountingIsTold) {
    expect_unusable("linux_mount_api", "move_mount", "seccomp=unconfined",
                    [] { forbid(SYS_move_mount, EPERM); });
    expect_unusable("linux_mount_api", "mount_setattr", "seccomp=unconfined",
                    [] { forbid(SYS_mount_setattr, ENOSYS); });
}

// A part that only the whole needs: every single check but the perimeter passes.
TEST(Doctor, WhatNoSingleCheckTriesTheWholeTells) {
    expect_unusable("linux_perimeter", "init.host_name", "seccomp=unconfined",
                    [] { forbid(SYS_sethostname, EPERM); });
}

TEST(Doctor, InsideOfGloveItSaysSo) {
    const glove_program glove;
    const auto folder = glove.path().substr(0, glove.path().rfind('/'));
    const auto got = glove({"exec", "--read", folder, "--", glove.path(), "doctor", "--json"});
    EXPECT_EQ(got.status, 3) << got.err;
    EXPECT_THAT(member(checks_of(got), "linux_perimeter", "recovery"),
                HasSubstr("inside a Glove sandbox"));
}

TEST(Doctor, ItTakesNoCommandAndNoWord) {
    const glove_program glove;
    for (const auto& words : {std::vector<std::string>{"doctor", "--", "true"},
                              std::vector<std::string>{"doctor", "word"},
                              std::vector<std::string>{"doctor", "--yaml"}}) {
        const auto got = glove(words);
        EXPECT_EQ(got.status, 2);
        EXPECT_THAT(got.out, IsEmpty());
        EXPECT_THAT(got.err, StartsWith("error[invalid_input]: usage: "));
    }
}

TEST(Doctor, ColoursAreForTerminals) {
    const glove_program glove;
    EXPECT_THAT(glove({"doctor"}, {{"TERM", "xterm-256color"}}).out, Not(HasSubstr("\033")));
    const auto shown = [&](const test::variables& extra) {
        auto all = extra;
        all.emplace_back("HOME", glove.place() / "home");
        return test::run_on_terminal({glove.path(), "doctor"}, all, "/", 80).out;
    };
    EXPECT_THAT(shown({}), AllOf(HasSubstr("\033[32mok"), HasSubstr("xterm-256color, 80 columns")));
    EXPECT_THAT(shown({{"NO_COLOR", "1"}}), Not(HasSubstr("\033")));
    EXPECT_THAT(shown({{"TERM", "dumb"}}),
                AllOf(Not(HasSubstr("\033")), HasSubstr("degraded  terminal")));
}

} // namespace
