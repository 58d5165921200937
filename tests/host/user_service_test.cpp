#include <chrono>
#include <glove/control/service_config.hpp>
#include <glove/host/user_service.hpp>
#include <gmock/gmock.h>
#include <support/folder.hpp>
#include <thread>

namespace glove::host {
namespace {

using std::string;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

// Does what systemctl does with one unit, and writes down what it was asked.
constexpr const char* stand_in = R"sh(#!/bin/sh
dir=${0%/*}
shift 3
echo "$*" >>"$dir/calls"
if [ -e "$dir/fail-$1" ]; then cat "$dir/fail-$1" >&2; exit 1; fi
case $1,$2 in
show,--property=Version) echo "Version=$(cat "$dir/version")" ;;
show,*) for name in LoadState ActiveState FragmentPath MainPID; do echo "$name=$(cat "$dir/$name")"; done ;;
start,* | restart,*) echo active >"$dir/ActiveState"; echo 42 >"$dir/MainPID" ;;
stop,*) echo inactive >"$dir/ActiveState"; echo 0 >"$dir/MainPID" ;;
esac
)sh";

auto step_of(const auto& outcome) -> string {
    return outcome ? string{} : string{outcome.error().step};
}

struct scene {
    scene() {
        systemctl("version", "257.13-1~deb13u1");
        systemctl("LoadState", "loaded");
        systemctl("ActiveState", "inactive");
        systemctl("FragmentPath", unit);
        systemctl("MainPID", "0");
        control::service_config settings;
        settings.runtime_directory = f / "state/runtime";
        settings.audit_key = f / "state/audit.key";
        settings.receipt_journal = f / "state/receipts.journal";
        configure(settings);
    }
    void configure(const control::service_config& settings) const {
        f.file("config.json", control::service_config_text(settings).value(), 0600);
        now = settings;
    }
    void systemctl(const string& name, const string& says) const {
        f.file("systemctl/" + name, says + "\n");
    }
    [[nodiscard]] auto manager() const -> service_manager {
        return service_manager{
            {.program = program, .runtime_directory = f.path(), .bus = "", .patience = 20s}};
    }
    [[nodiscard]] auto service() const -> user_service {
        return {{.unit_directory = f / "units",
                 .health = [this](const string& asked, std::chrono::milliseconds) -> result<> {
                     ++questions;
                     EXPECT_EQ(asked, config);
                     if (questions > silent) return {};
                     return fail(errc::not_found, "client.socket", "nobody is there");
                 },
                 .between = 1ms,
                 .patience = patience},
                manager()};
    }
    [[nodiscard]] auto install() const { return service().install(programs); }
    [[nodiscard]] auto calls() const { return test::content_of(f / "systemctl/calls"); }
    [[nodiscard]] auto status() const -> struct ::stat {
        struct ::stat out{};
        EXPECT_EQ(::lstat(unit.c_str(), &out), 0);
        return out;
    }

    test::folder f;
    string program = f.file("systemctl/systemctl", stand_in, 0755);
    string unit = f / "units/sage-gloved.service";
    string config = f / "config.json";
    service_programs programs{.gloved = f.file("bin/gloved", "", 0755),
                              .config = config,
                              .into_subgroup = f.file("libexec/glove-control", "", 0755)};
    mutable control::service_config now;
    mutable int questions = 0;
    int silent = 0; // questions before it answers
    std::chrono::milliseconds patience = 10s;
};

TEST(UserService, install_writes_the_unit_for_its_user_alone) {
    const scene s;
    const auto made = s.install();
    ASSERT_TRUE(made) << made.error().detail;
    EXPECT_TRUE(made->written && made->by_systemd);
    EXPECT_EQ(made->unit_path, s.unit);
    EXPECT_EQ(test::content_of(s.unit),
              systemd_unit_text({s.programs.gloved, s.config, ""}).value());
    EXPECT_EQ(s.status().st_mode, S_IFREG | 0600U);
    EXPECT_EQ(test::names_in(s.f / "units"), 1U);
    EXPECT_THAT(s.calls(), HasSubstr("daemon-reload\n"));
    EXPECT_THAT(s.calls(), Not(HasSubstr("enable")));
}

TEST(UserService, what_stands_already_is_not_written) {
    const scene s;
    ASSERT_TRUE(s.install());
    const auto before = s.status();
    EXPECT_FALSE(s.install().value().written);
    EXPECT_EQ(s.status().st_ino, before.st_ino);
    ASSERT_EQ(::chmod(s.unit.c_str(), 0644), 0);
    EXPECT_TRUE(s.install().value().written);
    EXPECT_EQ(s.status().st_mode, S_IFREG | 0600U);
    s.f.file("units/sage-gloved.service", test::content_of(s.unit) + "#", 0600);
    EXPECT_TRUE(s.install().value().written);
    EXPECT_FALSE(s.install().value().written);
}

TEST(UserService, an_older_manager_gets_the_other_way_into_the_subgroup) {
    const scene s;
    s.systemctl("version", "253.1");
    EXPECT_FALSE(s.install().value().by_systemd);
    EXPECT_EQ(test::content_of(s.unit), systemd_unit_text(s.programs).value());
    s.systemctl("version", "254");
    EXPECT_TRUE(s.install().value().by_systemd);
    EXPECT_THAT(test::content_of(s.unit), HasSubstr("DelegateSubgroup=glove-host\n"));
}

TEST(UserService, nothing_is_written_for_a_program_that_others_can_change) {
    const scene s;
    const auto refuses = [&](const char* step) {
        const auto made = s.install();
        EXPECT_EQ(step_of(made), step);
        EXPECT_FALSE(std::filesystem::exists(s.unit));
    };
    for (const ::mode_t mode : {0775U, 0757U, 0644U}) {
        ASSERT_EQ(::chmod(s.programs.gloved.c_str(), mode), 0);
        refuses("service.gloved");
    }
    ASSERT_EQ(::chmod(s.programs.gloved.c_str(), 0755), 0);
    for (const ::mode_t mode : {0775U, 0757U}) {
        ASSERT_EQ(::chmod((s.f / "bin").c_str(), mode), 0);
        refuses("service.gloved");
    }
    ASSERT_EQ(::chmod((s.f / "bin").c_str(), 0755), 0);
    EXPECT_EQ(step_of(s.service().install({s.f / "none", s.config, ""})), "service.gloved");
    EXPECT_EQ(step_of(s.service().install({s.f / "bin", s.config, ""})), "service.gloved");
    EXPECT_FALSE(std::filesystem::exists(s.unit));
    EXPECT_TRUE(s.install());
}

TEST(UserService, nothing_is_written_for_a_configuration_that_gloved_would_refuse) {
    const scene s;
    ASSERT_EQ(::chmod(s.config.c_str(), 0640), 0);
    EXPECT_FALSE(s.install());
    s.f.file("config.json", "{}", 0600);
    EXPECT_FALSE(s.install());
    EXPECT_EQ(step_of(s.service().install({s.programs.gloved, s.f / "none.json", ""})),
              "file.open");
    EXPECT_FALSE(std::filesystem::exists(s.unit));
    s.configure(s.now);
    EXPECT_TRUE(s.install());
}

TEST(UserService, a_path_that_says_more_is_refused_before_anything_is_written) {
    const scene s;
    const auto odd = s.f.file("a%b/gloved", "", 0755);
    EXPECT_EQ(step_of(s.service().install({odd, s.config, ""})), "service.path");
    EXPECT_FALSE(std::filesystem::exists(s.unit));
}

TEST(UserService, without_a_manager_nothing_is_written) {
    const scene s;
    s.systemctl("fail-show", "Failed to connect to bus: No medium found");
    const auto made = s.install();
    EXPECT_EQ(step_of(made), "service.manager");
    EXPECT_EQ(made.error().code, errc::unsupported);
    EXPECT_THAT(made.error().detail, EndsWith("Failed to connect to bus: No medium found"));
    EXPECT_THAT(made.error().remedy, HasSubstr("loginctl enable-linger"));
    EXPECT_FALSE(std::filesystem::exists(s.unit));
    for (const auto& outcome :
         {s.service().start(""), s.service().stop(""), s.service().restart("")})
        EXPECT_EQ(step_of(outcome), "service.unit"); // it is not installed
    EXPECT_EQ(step_of(s.service().status("")), "service.manager");
}

TEST(UserService, a_unit_that_somebody_else_made_is_left) {
    const scene s;
    s.f.link("units/sage-gloved.service", "/dev/null"); // masked
    const auto made = s.install();
    EXPECT_EQ(step_of(made), "service.unit");
    EXPECT_EQ(s.status().st_mode & S_IFMT, static_cast<::mode_t>(S_IFLNK));
}

TEST(UserService, a_directory_of_units_that_others_write_to_is_refused) {
    const scene s;
    s.f.directory("units", 0777);
    const auto made = s.install();
    EXPECT_EQ(step_of(made), "file.private_directory");
    EXPECT_EQ(made.error().remedy, "chmod go-w " + (s.f / "units"));
}

TEST(UserService, a_manager_that_reads_elsewhere_is_noticed) {
    const scene s;
    s.systemctl("LoadState", "not-found");
    EXPECT_EQ(step_of(s.install()), "service.unit");
    s.systemctl("LoadState", "loaded");
    s.systemctl("FragmentPath", s.f.file("other/sage-gloved.service"));
    EXPECT_EQ(step_of(s.install()), "service.unit");
    s.systemctl("FragmentPath", s.unit);
    EXPECT_TRUE(s.install());
    s.systemctl("LoadState", "\x1b[31m");
    EXPECT_EQ(step_of(s.install()), "service.unit");
}

TEST(UserService, a_persistent_service_is_enabled) {
    const scene s;
    s.now.persistent_service = true;
    s.configure(s.now);
    EXPECT_TRUE(s.install().value().persistent);
    EXPECT_THAT(s.calls(), HasSubstr("\nenable sage-gloved.service\n"));
}

TEST(UserService, start_returns_when_the_service_answers) {
    scene s;
    ASSERT_TRUE(s.install());
    s.silent = 3;
    const auto runs = s.service().start("");
    ASSERT_TRUE(runs) << runs.error().detail;
    EXPECT_TRUE(runs->healthy());
    EXPECT_EQ(runs->main_pid, 42U);
    EXPECT_EQ(s.questions, 4); // the first before it was started
    EXPECT_THAT(s.calls(), HasSubstr("\nstart sage-gloved.service\n"));
    EXPECT_THAT(s.calls(), Not(HasSubstr("reset-failed")));
}

TEST(UserService, a_service_that_failed_before_may_start_again) {
    scene s;
    ASSERT_TRUE(s.install());
    s.silent = 1;
    s.systemctl("ActiveState", "failed");
    ASSERT_TRUE(s.service().start(s.config));
    EXPECT_THAT(s.calls(), HasSubstr("\nreset-failed sage-gloved.service\nstart "));
}

TEST(UserService, a_service_that_does_not_answer_is_an_error_in_time) {
    scene s;
    ASSERT_TRUE(s.install());
    s.silent = INT_MAX;
    s.patience = 50ms;
    const auto runs = s.service().start("");
    EXPECT_EQ(step_of(runs), "service.health");
    EXPECT_EQ(runs.error().code, errc::timed_out);
    EXPECT_THAT(runs.error().detail, HasSubstr("does not answer"));
    EXPECT_THAT(runs.error().detail, EndsWith("the unit is active: nobody is there"));
    EXPECT_THAT(runs.error().remedy, HasSubstr("journalctl --user --unit=sage-gloved.service"));
}

TEST(UserService, the_answer_of_another_gloved_is_not_taken_for_the_services) {
    const scene s;
    ASSERT_TRUE(s.install());
    const auto runs = s.service().start("");
    EXPECT_EQ(step_of(runs), "service.other");
    EXPECT_THAT(s.calls(), Not(HasSubstr("start ")));
}

TEST(UserService, what_the_manager_refuses_is_told) {
    scene s;
    ASSERT_TRUE(s.install());
    s.silent = 1;
    s.systemctl("fail-start", "Job failed.\nSee \x1b[1mthere");
    const auto runs = s.service().start("");
    EXPECT_EQ(step_of(runs), "service.manager");
    EXPECT_EQ(runs.error().detail,
              "systemctl --user start sage-gloved.service: Job failed.; See \\x1b[1mthere");
}

TEST(UserService, restart_stop_and_status) {
    scene s;
    EXPECT_EQ(step_of(s.service().stop("")), "service.unit"); // not installed
    auto seen = s.service().status("").value();
    EXPECT_FALSE(seen.installed || seen.healthy());
    EXPECT_TRUE(seen.stopped());
    ASSERT_TRUE(s.install());
    s.silent = 1;
    ASSERT_TRUE(s.service().start(""));
    ASSERT_TRUE(s.service().restart(""));
    EXPECT_THAT(s.calls(), HasSubstr("\nrestart sage-gloved.service\n"));
    seen = s.service().status("").value();
    EXPECT_TRUE(seen.installed && seen.healthy() && !seen.stopped());
    EXPECT_EQ(seen.config, s.config);
    s.silent = INT_MAX;
    seen = s.service().status(s.config).value();
    EXPECT_FALSE(seen.healthy() || seen.stopped());
    EXPECT_EQ(seen.trouble->detail, "nobody is there");
    const auto stopped = s.service().stop("");
    ASSERT_TRUE(stopped);
    EXPECT_TRUE(stopped->stopped());
    EXPECT_TRUE(s.service().status("").value().stopped());
}

TEST(UserService, a_stop_that_does_not_stop_is_an_error) {
    scene s;
    ASSERT_TRUE(s.install());
    s.f.file("systemctl/systemctl",
             string{stand_in}.replace(string{stand_in}.find("echo inactive"), 13, "echo active  "),
             0755);
    EXPECT_EQ(step_of(s.service().stop("")), "service.unit");
}

TEST(UserService, another_configuration_or_an_edited_unit_is_an_error) {
    const scene s;
    ASSERT_TRUE(s.install());
    EXPECT_EQ(step_of(s.service().status("/other.json")), "service.config");
    s.f.file("units/sage-gloved.service", test::content_of(s.unit) + "Environment=A=b\n", 0600);
    for (const auto& outcome :
         {s.service().start(""), s.service().stop(""), s.service().status("")})
        EXPECT_EQ(step_of(outcome), "service.unit");
    ASSERT_TRUE(s.install());
    EXPECT_TRUE(s.service().status(""));
}

// --- the manager's program ---

struct words {
    explicit words(const string& script)
        : program{f.file("systemctl", "#!/bin/sh\n" + script, 0755)} {}
    [[nodiscard]] auto ask(std::chrono::milliseconds patience = 20s) const {
        return service_manager{{.program = program,
                                .runtime_directory = "/run/user/7",
                                .bus = "unix:path=/b",
                                .patience = patience}}
            .ask({"show", "a b", "$(c)"});
    }
    test::folder f;
    string program;
};

TEST(ServiceManager, it_gets_its_words_and_what_it_needs_and_nothing_else) {
    ::setenv("GLOVE_TEST_SECRET", "x", 1);
    const words w{"printf '%s\\n' \"$@\"; env | grep -v -e ^_= -e ^PWD= -e ^OLDPWD= -e ^SHLVL= | "
                  "sort; exit 7"};
    const auto answer = w.ask().value();
    EXPECT_EQ(answer.status, 7);
    EXPECT_EQ(answer.out,
              "--user\n--no-pager\n--no-ask-password\nshow\na b\n$(c)\n"
              "DBUS_SESSION_BUS_ADDRESS=unix:path=/b\nLC_ALL=C.UTF-8\nPATH=/usr/bin:/bin\n"
              "XDG_RUNTIME_DIR=/run/user/7\n");
    EXPECT_EQ(answer.complaint, "");
}

TEST(ServiceManager, what_it_prints_is_bounded) {
    for (const auto* const to : {"", " >&2"}) {
        const words most{"head -c 65536 /dev/zero" + string{to}};
        const auto answer = most.ask();
        ASSERT_TRUE(answer) << answer.error().detail;
        EXPECT_EQ(answer->out.size() + answer->complaint.size(), most_manager_bytes);
        const words more{"head -c 65537 /dev/zero" + string{to}};
        EXPECT_EQ(more.ask().error().code, errc::limit_exceeded);
    }
}

TEST(ServiceManager, it_is_ended_in_time_with_all_that_it_started) {
    const words w{"sleep 300 & echo $! >\"${0%/*}/pid\"; wait"};
    const auto began = std::chrono::steady_clock::now();
    const auto answer = w.ask(500ms);
    EXPECT_LT(std::chrono::steady_clock::now() - began, 60s);
    EXPECT_EQ(step_of(answer), "service.manager");
    EXPECT_EQ(answer.error().code, errc::timed_out);
    const auto left = test::content_of(w.f / "pid");
    ASSERT_FALSE(left.empty());
    const auto there = "/proc/" + left.substr(0, left.size() - 1) + "/status";
    bool alive = true; // until whoever adopted it has reaped it
    for (int i = 0; alive && i < 1000; ++i) {
        const auto said = test::content_of(there);
        alive = !said.empty() && said.find("\nState:\tZ") == string::npos;
        if (alive) std::this_thread::sleep_for(10ms);
    }
    EXPECT_FALSE(alive);
}

TEST(ServiceManager, what_it_leaves_running_is_not_waited_for) {
    const words w{"sleep 300 & echo done"};
    const auto answer = w.ask();
    ASSERT_TRUE(answer) << answer.error().detail;
    EXPECT_EQ(answer->out, "done\n");
}

TEST(ServiceManager, a_program_that_is_not_there_or_is_killed) {
    const service_manager none{
        {.program = "/nowhere/systemctl", .runtime_directory = "/", .bus = ""}};
    EXPECT_EQ(none.ask({"show"}).error().code, errc::not_found);
    EXPECT_EQ(words{"kill -9 $$"}.ask().value().status, 137);
}

// --- into the subgroup ---

struct groups {
    groups() {
        f.file("hierarchy/a/sage-gloved.service/cgroup.procs");
        f.file("hierarchy/a/sage-gloved.service/glove-host/cgroup.procs", "");
        belong("0::/a/sage-gloved.service\n");
    }
    void belong(const string& to) const { f.file("membership", to); }
    [[nodiscard]] auto enter() const { return enter_subgroup(f / "hierarchy", f / "membership"); }
    [[nodiscard]] auto moved() const {
        return test::content_of(f / "hierarchy/a/sage-gloved.service/glove-host/cgroup.procs");
    }
    test::folder f;
};

TEST(Subgroup, a_service_goes_below_its_own_group) {
    const groups g;
    const auto done = g.enter();
    EXPECT_TRUE(done) << done.error().detail;
    EXPECT_EQ(g.moved(), "0");
}

TEST(Subgroup, nobody_else_goes_anywhere) {
    const groups g;
    for (const auto* const other :
         {"0::/a\n", "0::/\n", "", "1:name=systemd:/a/sage-gloved.service\n",
          "0::/a/sage-gloved.service/glove-host\n", "0::/../a/sage-gloved.service\n",
          "0::/b/sage-gloved.service\n"}) {
        g.belong(other);
        EXPECT_FALSE(g.enter()) << other;
        EXPECT_EQ(g.moved(), "") << other;
    }
}

TEST(Subgroup, the_group_must_be_the_services_own) {
    const groups g;
    for (const auto* const name :
         {"other.service", "a-sage-gloved.service", "sage-gloved.service"}) {
        const auto at = "hierarchy/" + string{name};
        g.f.file(at + "/cgroup.procs");
        const auto inside = g.f.file(at + "/glove-host/cgroup.procs");
        g.belong("0::/" + string{name} + "\n");
        const bool is_own = string{name} == service_unit_name;
        EXPECT_EQ(step_of(g.enter()), is_own ? "" : "service.subgroup") << name;
        EXPECT_EQ(test::content_of(inside), is_own ? "0" : "") << name;
    }
}

TEST(Subgroup, a_group_that_was_not_given_to_this_user_is_left) {
    if (::geteuid() != 0) return; // only root gives directories away
    const groups g;
    ASSERT_EQ(::chown((g.f / "hierarchy/a/sage-gloved.service").c_str(), 65534, 65534), 0);
    EXPECT_EQ(step_of(g.enter()), "service.subgroup");
    EXPECT_EQ(g.moved(), "");
}

TEST(Subgroup, the_group_above_must_be_empty_then) {
    const groups g;
    g.f.file("hierarchy/a/sage-gloved.service/cgroup.procs", "17\n");
    EXPECT_EQ(step_of(g.enter()), "service.subgroup");
}

} // namespace
} // namespace glove::host
