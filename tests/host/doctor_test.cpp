// Judging, on made-up facts. What a real machine is said to be, tests/cli/doctor_test.cpp asks.
#include <algorithm>
#include <glove/host/doctor.hpp>
#include <glove/wire/json.hpp>
#include <gmock/gmock.h>

namespace {

using namespace glove;
using container::ability;
using host::check_status;
using host::facts;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A machine on which everything works.
auto good_machine() -> facts {
    facts out;
    out.uid = 1000;
    out.program = "/usr/local/bin/glove";
    out.kernel.release = "6.1.0";
    out.kernel.machine = "x86_64";
    out.kernel.landlock = 4;
    out.kernel.max_user_namespaces = "10000";
    out.kernel.apparmor_label = "unconfined";
    out.kernel.keys = 2;
    out.kernel.most_keys = 200;
    out.services.cgroup2_mounted = true;
    out.services.cgroup = "/sys/fs/cgroup/user.slice/a.scope";
    out.services.controllers = {"cpuset", "cpu", "memory", "pids"};
    out.services.cgroup_is_own = true;
    out.services.user_manager = true;
    out.services.user_name = "you";
    out.services.lingering = true;
    out.services.ext4_maker = "/usr/sbin/mke2fs";
    out.services.ext4_mender = "/usr/sbin/e2fsck";
    out.places.egress_program = "/usr/local/libexec/glove/glove-egress";
    out.places.state = {.path = "/home/you/.local/state/glove",
                        .problem = {},
                        .os = 0,
                        .is_directory = true,
                        .is_own = true,
                        .permissions = 0700,
                        .takes_files = true,
                        .can_be_made = false};
    out.places.audit = out.places.state;
    out.places.audit.path += "/audit";
    out.places.configuration = out.places.state;
    out.places.configuration.path = "/home/you/.config/glove";
    out.places.terminal = {
        .input = true, .output = true, .kind = "xterm-256color", .columns = 80, .rows = 24};
    return out;
}

void refuse(facts& at, ability which, int os) {
    at.kernel.can.answers[static_cast<std::size_t>(which)] = os;
    at.perimeter.refusal =
        error{.code = classify(os), .step = "launch.namespaces", .os = os, .detail = "clone3"};
}

auto found(const facts& machine, std::string_view code) -> host::check {
    const auto report = host::judge(machine);
    const auto at = std::ranges::find(report.checks, code, &host::check::code);
    EXPECT_NE(at, report.checks.end()) << code;
    return at == report.checks.end() ? host::check{} : *at;
}

void expect_check(const facts& machine, std::string_view code, check_status status,
                  const std::string& message, const std::string& recovery) {
    const auto got = found(machine, code);
    EXPECT_EQ(got.status, status) << code << ": " << got.message;
    EXPECT_THAT(got.message, HasSubstr(message)) << code;
    EXPECT_THAT(got.recovery, HasSubstr(recovery)) << code;
    EXPECT_EQ(got.status == check_status::passed, got.recovery.empty()) << code;
    EXPECT_EQ(got.status == check_status::passed, got.effect.empty()) << code;
}

TEST(Judge, WhereEverythingWorksEveryCheckPasses) {
    const auto report = host::judge(good_machine());
    EXPECT_TRUE(report.healthy());
    EXPECT_EQ(report.config_path, "/home/you/.config/glove/config.toml");
    for (const auto& each : report.checks) {
        EXPECT_EQ(each.status, check_status::passed) << each.code << ": " << each.message;
        EXPECT_THAT(each.message, Not(IsEmpty())) << each.code;
        EXPECT_THAT(each.recovery, IsEmpty()) << each.code;
    }
}

TEST(Judge, TheOldestCodesComeFirst) {
    const auto report = host::judge(good_machine());
    const std::string_view first[] = {"linux_cgroup_v2",      "linux_namespaces",
                                      "linux_seccomp",        "linux_systemd_user",
                                      "linux_user_lingering", "linux_retained_storage"};
    ASSERT_GE(report.checks.size(), std::size(first));
    for (std::size_t i = 0; i < std::size(first); ++i) EXPECT_EQ(report.checks[i].code, first[i]);
}

struct namespace_row {
    int os;
    void (*change)(facts&);
    const char* mend;
};

TEST(Judge, WhatKeepsNamespacesAwayIsTold) {
    const namespace_row rows[] = {
        {ENOSPC, [](facts& f) { f.kernel.max_user_namespaces = "0"; },
         "user.max_user_namespaces=10000"},
        {EPERM, [](facts& f) { f.kernel.unprivileged_userns_clone = "0"; },
         "kernel.unprivileged_userns_clone=1"},
        {EACCES, [](facts& f) { f.kernel.apparmor_restricts = "1"; }, "apparmor_parser"},
        {EPERM, [](facts& f) { f.kernel.under_filter = true; }, "seccomp=unconfined"},
        {ENOSYS, [](facts& f) { f.kernel.under_filter = true; }, "seccomp=unconfined"},
        {ENOSYS, [](facts& f) { f.kernel.inside_glove = f.kernel.under_filter = true; },
         "without glove"},
        {ENOSYS, [](facts&) {}, "5.12"},
        {ENOSPC, [](facts&) {}, "end other sandboxes"},
    };
    for (const auto& row : rows) {
        auto machine = good_machine();
        row.change(machine);
        EXPECT_TRUE(host::judge(machine).healthy() || row.os == 0) << row.mend;
        refuse(machine, ability::namespaces, row.os);
        expect_check(machine, "linux_namespaces", check_status::failed, "clone3", row.mend);
        EXPECT_FALSE(host::judge(machine).healthy());
    }
}

TEST(Judge, TheDebianSettingIsNotToBlameForRoot) {
    auto machine = good_machine();
    machine.uid = 0;
    machine.kernel.unprivileged_userns_clone = "0";
    refuse(machine, ability::namespaces, EPERM);
    EXPECT_THAT(found(machine, "linux_namespaces").recovery,
                Not(HasSubstr("unprivileged_userns_clone")));
}

TEST(Judge, AppArmorIsToldWithAndWithoutAProfile) {
    auto machine = good_machine();
    machine.kernel.apparmor_restricts = "1";
    expect_check(machine, "linux_apparmor", check_status::passed, "lets this program", "");
    machine.kernel.apparmor_label = "glove (enforce)";
    expect_check(machine, "linux_apparmor", check_status::passed, "profile glove", "");
    refuse(machine, ability::id_maps, EPERM);
    expect_check(machine, "linux_apparmor", check_status::failed, "profile glove", "`userns,`");
    machine.kernel.apparmor_label = "unconfined";
    expect_check(machine, "linux_apparmor", check_status::failed, "no profile",
                 "profile glove-copy /usr/local/bin/glove flags=(unconfined) { userns, }");
    machine.program = "/usr/bin/glove";
    expect_check(machine, "linux_apparmor", check_status::failed, "no profile",
                 "apparmor_parser -r /etc/apparmor.d/glove;");
    machine.uid = 0;
    expect_check(machine, "linux_apparmor", check_status::passed, "not those of root", "");
}

// The line is pasted into a shell of root.
TEST(Judge, AProfileIsPrintedForAPlainPathOnly) {
    auto machine = good_machine();
    machine.kernel.apparmor_restricts = "1";
    refuse(machine, ability::id_maps, EPERM);
    for (const auto* const path : {"/opt/a b/glove", "/opt/a'b/glove", "/opt/%s/glove",
                                   "/opt/a\nb/glove", "/opt/{a,b}/glove", "/opt/*/glove"}) {
        machine.program = path;
        const auto mend = found(machine, "linux_apparmor").recovery;
        EXPECT_THAT(mend, HasSubstr("/usr/local/bin/glove")) << path;
        EXPECT_THAT(mend, Not(HasSubstr(path)));
    }
    machine.program = "/opt/a-b_c+d.e/0/glove";
    EXPECT_THAT(found(machine, "linux_apparmor").recovery, HasSubstr(machine.program));
}

TEST(Judge, AppArmorIsNotBlamedForWhatItDidNotDo) {
    auto machine = good_machine();
    machine.kernel.apparmor_restricts = "1";
    refuse(machine, ability::namespaces, ENOSPC);
    EXPECT_EQ(found(machine, "linux_apparmor").status, check_status::warning);
}

// The whole is what counts: doctor and `glove exec` never disagree.
TEST(Judge, APartThatFailsIsAWarningWhereTheWholeWorks) {
    for (const auto which : {ability::namespaces, ability::mount_setattr, ability::proc,
                             ability::filter, ability::id_maps}) {
        auto machine = good_machine();
        refuse(machine, which, EPERM);
        EXPECT_FALSE(host::judge(machine).healthy());
        machine.perimeter.refusal.reset();
        EXPECT_TRUE(host::judge(machine).healthy());
    }
}

TEST(Judge, TheWholeIsMissingEvenWhenEveryPartIsThere) {
    auto machine = good_machine();
    machine.perimeter.refusal = error{.code = errc::limit_exceeded,
                                      .step = "init.keyring",
                                      .os = EDQUOT,
                                      .detail = "keyctl",
                                      .remedy = "raise kernel.keys.maxkeys"};
    EXPECT_FALSE(host::judge(machine).healthy());
    expect_check(machine, "linux_perimeter", check_status::failed,
                 "init.keyring: keyctl: Disk quota", "raise kernel.keys.maxkeys");
    machine.perimeter.refusal->remedy.clear();
    expect_check(machine, "linux_perimeter", check_status::failed, "init.keyring", "docs/exec.md");
}

TEST(Judge, ASystemWithoutTheProgramTrueIsFine) {
    auto machine = good_machine();
    machine.perimeter.has_true = false;
    expect_check(machine, "linux_perimeter", check_status::passed, "no `true`", "");
}

TEST(Judge, TheFirstMountCallThatFailsIsNamed) {
    auto machine = good_machine();
    refuse(machine, ability::move_mount, EPERM);
    machine.kernel.under_filter = true;
    expect_check(machine, "linux_mount_api", check_status::failed, "move_mount", "unconfined");
    refuse(machine, ability::new_filesystem, ENOSYS);
    machine.kernel.under_filter = false;
    expect_check(machine, "linux_mount_api", check_status::failed, "fsopen", "5.12");
    refuse(machine, ability::new_filesystem, container::not_tried);
    expect_check(machine, "linux_mount_api", check_status::failed, "could not be tried",
                 "linux_namespaces");
}

TEST(Judge, ACoveredProcIsTold) {
    auto machine = good_machine();
    machine.kernel.proc_covered = true; // no fault by itself
    expect_check(machine, "linux_proc", check_status::passed, "own", "");
    refuse(machine, ability::proc, EPERM);
    expect_check(machine, "linux_proc", check_status::failed, "covered", "systempaths=unconfined");
}

TEST(Judge, WhatExecDoesNotNeedIsAWarningAtMost) {
    auto machine = good_machine();
    machine.services = {};
    machine.services.loop_control = EACCES;
    machine.kernel.landlock = 0;
    machine.places.egress_program.clear();
    machine.places.egress_problem = error{.code = errc::not_found,
                                          .step = "egress.program",
                                          .detail = "/a and /b",
                                          .remedy = "install glove-egress"};
    const auto report = host::judge(machine);
    EXPECT_TRUE(report.healthy());
    for (const auto* const code : {"linux_cgroup_v2", "linux_systemd_user", "linux_user_lingering",
                                   "linux_retained_storage", "linux_landlock", "egress_proxy"})
        EXPECT_EQ(found(machine, code).status, check_status::warning) << code;
}

TEST(Judge, ControlGroupsNeedTheirControllersAndAnOwner) {
    auto machine = good_machine();
    machine.services.controllers = {"memory"};
    expect_check(machine, "linux_cgroup_v2", check_status::warning, "controllers cpu, pids",
                 "Delegate=cpu memory pids");
    machine.services.old_hierarchies = true;
    expect_check(machine, "linux_cgroup_v2", check_status::warning, "old hierarchies",
                 "unified_cgroup_hierarchy=1");
    machine = good_machine();
    machine.services.cgroup_is_own = false;
    expect_check(machine, "linux_cgroup_v2", check_status::warning, "not delegated", "systemd-run");
    machine.services.cgroup.clear();
    expect_check(machine, "linux_cgroup_v2", check_status::warning, "not below", "cgroup2");
    machine.services.cgroup = "/sys/fs/cgroup/user.slice/a.scope";
    machine.services.user_manager = true;
    machine.services.manager_controllers = {"memory", "pids"};
    expect_check(machine, "linux_cgroup_v2", check_status::warning, "not delegated", "systemd-run");
    machine.services.manager_controllers.emplace_back("cpu");
    expect_check(machine, "linux_cgroup_v2", check_status::passed, "service manager", "");
    machine.services.user_manager = false;
    expect_check(machine, "linux_cgroup_v2", check_status::warning, "not delegated", "systemd-run");
}

TEST(Judge, RetainedStorageNeedsItsProgramsAndOneOfTwoMeans) {
    auto machine = good_machine();
    expect_check(machine, "linux_retained_storage", check_status::passed, "loop devices", "");
    machine.services.loop_control = EACCES;
    expect_check(machine, "linux_retained_storage", check_status::warning, "no fuse2fs", "fuse2fs");
    machine.services.ext4_server = "/usr/bin/fuse2fs";
    expect_check(machine, "linux_retained_storage", check_status::passed, "/usr/bin/fuse2fs", "");
    machine.services.fuse = ENOENT;
    expect_check(machine, "linux_retained_storage", check_status::warning, "/dev/fuse",
                 "modprobe fuse");
    machine.services.loop_control = 0;
    machine.services.ext4_mender.clear();
    expect_check(machine, "linux_retained_storage", check_status::warning, "e2fsck", "e2fsprogs");
    machine.services.ext4_maker.clear();
    expect_check(machine, "linux_retained_storage", check_status::warning, "mke2fs", "e2fsprogs");
}

TEST(Judge, KeysAreToldBeforeTheyRunOut) {
    auto machine = good_machine();
    machine.kernel.keys = 192;
    expect_check(machine, "linux_key_quota", check_status::passed, "192 of 200", "");
    machine.kernel.keys = 193;
    expect_check(machine, "linux_key_quota", check_status::warning, "193 of 200",
                 "kernel.keys.maxkeys");
    machine.uid = 0;
    EXPECT_THAT(found(machine, "linux_key_quota").recovery, HasSubstr("root_maxkeys"));
}

TEST(Judge, TheDirectoryOfRecordsMustTakeThem) {
    auto machine = good_machine();
    auto& audit = machine.places.audit;
    audit.permissions = 0755;
    expect_check(machine, "state_directory", check_status::warning, "0755", "chmod 700");
    audit.permissions = 0720;
    expect_check(machine, "state_directory", check_status::failed, "others can change",
                 "chmod go-w");
    audit.permissions = 0500;
    expect_check(machine, "state_directory", check_status::failed, "0500", "chmod 700");
    audit.permissions = 0700;
    audit.takes_files = false;
    expect_check(machine, "state_directory", check_status::failed, "no files", "for writing");
    audit.is_own = false;
    expect_check(machine, "state_directory", check_status::failed, "another user", "chown");
    audit.is_directory = false;
    expect_check(machine, "state_directory", check_status::failed, "not a directory", "mv ");
    audit.os = ENOENT;
    expect_check(machine, "state_directory", check_status::failed, "cannot be made",
                 "XDG_STATE_HOME");
    audit.can_be_made = true;
    expect_check(machine, "state_directory", check_status::passed, "yours alone", "");
    audit.problem = error{.code = errc::invalid_input,
                          .step = "exec.directories",
                          .os = 0,
                          .detail = "XDG_STATE_HOME=x is not an absolute path",
                          .remedy = "unset it"};
    expect_check(machine, "state_directory", check_status::failed, "not an absolute", "unset");
}

// What stands above the directory of records keeps no run from being started.
TEST(Judge, TheStateDirectoryShouldBeTheUsersAlone) {
    auto machine = good_machine();
    auto& state = machine.places.state;
    state.permissions = 0750;
    expect_check(machine, "state_directory", check_status::warning, "0750", "chmod 700");
    state.is_own = false;
    expect_check(machine, "state_directory", check_status::warning, "another user", "chown");
    state.os = ENOENT;
    expect_check(machine, "state_directory", check_status::passed, "first run", "");
}

TEST(Judge, TheConfigurationDirectoryMayBeAbsent) {
    auto machine = good_machine();
    auto& place = machine.places.configuration;
    place.permissions = 0770;
    expect_check(machine, "configuration_directory", check_status::warning, "can change", "chmod");
    place.is_own = false;
    expect_check(machine, "configuration_directory", check_status::warning, "another user",
                 "chown");
    place.os = ENOENT;
    expect_check(machine, "configuration_directory", check_status::passed, "defaults", "");
    place.problem = error{.step = "exec.directories", .detail = "HOME", .remedy = "set HOME"};
    place.path.clear();
    expect_check(machine, "configuration_directory", check_status::failed, "HOME", "set HOME");
    EXPECT_EQ(host::judge(machine).config_path, "");
}

TEST(Judge, ATerminalNeedsAKindAndASize) {
    auto machine = good_machine();
    auto& terminal = machine.places.terminal;
    expect_check(machine, "terminal", check_status::passed, "xterm-256color, 80 columns", "");
    terminal.columns = 0;
    expect_check(machine, "terminal", check_status::warning, "without a size", "stty");
    terminal.kind = "dumb";
    expect_check(machine, "terminal", check_status::warning, "dumb", "TERM=");
    terminal.input = terminal.output = false;
    expect_check(machine, "terminal", check_status::passed, "neither", "");
}

// --- the two forms

TEST(Forms, TheJsonIsStrictAndComplete) {
    auto machine = good_machine();
    machine.kernel.landlock = 0;
    const auto report = host::judge(machine);
    const auto text = host::to_json(report);
    EXPECT_THAT(text, EndsWith("}\n"));
    const auto parsed = wire::json::read(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(parsed->find("schema_version")->as_unsigned(), 1U);
    EXPECT_EQ(parsed->find("healthy")->as_bool(), true);
    EXPECT_EQ(*parsed->find("config_path")->as_string(), report.config_path);
    const auto& checks = *parsed->find("checks")->as_array();
    ASSERT_EQ(checks.size(), report.checks.size());
    for (std::size_t i = 0; i < checks.size(); ++i) {
        ASSERT_EQ(checks[i].as_object()->size(), 4U);
        EXPECT_EQ(*checks[i].find("code")->as_string(), report.checks[i].code);
        EXPECT_EQ(*checks[i].find("status")->as_string(), to_string(report.checks[i].status));
        EXPECT_EQ(*checks[i].find("recovery")->as_string(), report.checks[i].recovery);
        EXPECT_THAT(*checks[i].find("message")->as_string(),
                    AllOf(HasSubstr(report.checks[i].message),
                          HasSubstr(std::string{report.checks[i].effect})));
    }
}

TEST(Forms, TheTextIsAlignedAndSaysWhatToDo) {
    auto machine = good_machine();
    machine.kernel.landlock = 0;
    const auto text = host::to_text(host::judge(machine), false);
    EXPECT_THAT(text, HasSubstr("ok        linux_namespaces         user, pid"));
    EXPECT_THAT(text, HasSubstr("\ndegraded  linux_landlock           the kernel"));
    EXPECT_THAT(text, HasSubstr("\n            Try: start Linux with `landlock`"));
    EXPECT_THAT(text, EndsWith("checks: 1 degraded. glove exec works here.\n"));
    EXPECT_THAT(text, Not(HasSubstr("\033")));
    refuse(machine, ability::namespaces, EPERM);
    EXPECT_THAT(host::to_text(host::judge(machine), false),
                AllOf(HasSubstr("\nmissing   linux_perimeter  "),
                      EndsWith("1 degraded. glove exec does not work here.\n")));
}

TEST(Forms, ColoursChangeNothingElse) {
    auto machine = good_machine();
    machine.kernel.landlock = 0;
    const auto report = host::judge(machine);
    auto coloured = host::to_text(report, true);
    EXPECT_THAT(coloured, AllOf(HasSubstr("\033[32mok"), HasSubstr("\033[33mdegraded")));
    for (std::size_t at = 0; (at = coloured.find('\033')) != std::string::npos;)
        coloured.erase(at, coloured.find('m', at) - at + 1);
    EXPECT_EQ(coloured, host::to_text(report, false));
}

// Names of the host cannot draw on the screen.
TEST(Forms, TextFromOutsideIsMadePrintable) {
    auto machine = good_machine();
    machine.places.state.path = "/home/\033[2J\nok";
    EXPECT_THAT(host::to_text(host::judge(machine), false),
                AllOf(HasSubstr("/home/\\x1b[2J\\x0aok"), Not(HasSubstr("\033"))));
    EXPECT_TRUE(wire::json::read(host::to_json(host::judge(machine))).has_value());
}

} // namespace
