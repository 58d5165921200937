// The rooms of a preparation, each with what it refuses and the twin that it takes. What needs
// control groups and a sandbox is tested in the guest.
#include "control/host_binding.hpp"
#include "control/host_images.hpp"
#include "control/host_own_files.hpp"
#include "control/host_session.hpp"
#include "supervisor/exposure_scene.hpp"
#include "supervisor/policy_scene.hpp"
#include <fcntl.h>
#include <functional>
#include <glove/audit/jsonl.hpp>
#include <glove/wire/crypto.hpp>
#include <gtest/gtest.h>
#include <sstream>
#include <support/folder.hpp>
#include <support/forked.hpp>
#include <support/memory_storage.hpp>
#include <sys/mount.h>

namespace {

using namespace glove;
using namespace glove::control;
using supervisor::access_kind;
using test::digits;
using test::mib;

template<class T> auto step_of(const result<T>& of) -> std::string {
    return of ? "none" : std::string{of.error().step};
}
auto opened(const std::string& path, int flags = O_PATH) -> sys::unique_fd {
    sys::unique_fd out{::open(path.c_str(), flags | O_CLOEXEC)};
    test::prepared(static_cast<bool>(out), path);
    return out;
}
auto facts_at(const std::string& path) -> sys::file_facts {
    const auto pin = opened(path);
    return sys::inspect(pin).value();
}
auto sha(std::string_view bytes) -> std::string { return wire::sha256_hex(bytes).value(); }
auto open_descriptors() -> std::size_t { return test::names_in("/proc/self/fd"); }

class still_clock final : public sys::clock {
public:
    [[nodiscard]] auto monotonic() const noexcept -> std::chrono::nanoseconds override {
        return {};
    }
    [[nodiscard]] auto wall() const noexcept -> std::chrono::nanoseconds override {
        return std::chrono::seconds{1};
    }
};

// --- grants ---

struct policy_scene {
    test::folder place;
    std::string project = place.directory("srv/project");
    std::string found = place.directory("harness");
    supervisor::session_rules rules = test::usual_rules(project);
    supervisor::session_plan plan = test::usual_plan();

    policy_scene() {
        test::look_in(rules, found);
        plan.adapter_command_digest = rules.runtime_templates[0].adapter_command_digest;
        plan.limits = rules.resource_profiles[1].limits();
        plan.library_projections.clear();
    }
    [[nodiscard]] auto judged(const exposure_store* exposures = nullptr) const
        -> result<judged_plan> {
        const auto policy = supervisor::session_policy::freeze(rules).value();
        auto out = judge_plan(plan, policy, exposures, 1'000, 1'000);
        if (out) out->chosen = nullptr; // ends with the policy
        return out;
    }
    [[nodiscard]] auto still_granted(const exposure_store* exposures) const -> result<> {
        return check_still_granted(plan, exposures, 1'000);
    }
    void grant(supervisor::alias_grant of) { plan.grants = std::vector{std::move(of)}; }
};

auto read_grant() -> supervisor::alias_grant {
    using namespace supervisor;
    return {"workspace", access_kind::read,   materialization_kind::bind, 0,
            60,          cleanup_kind::retain};
}

TEST(HostGrants, AreOpenedAsThePlanHasThem) {
    policy_scene scene;
    scene.grant(test::workspace_grant());
    const auto judged = scene.judged();
    ASSERT_TRUE(judged) << judged.error().step << judged.error().detail;
    const auto& grant = judged->grants.at(0);
    EXPECT_EQ(grant.alias, "workspace");
    EXPECT_EQ(grant.target, "/workspace");
    EXPECT_TRUE(grant.is_directory() && grant.is_written());
    EXPECT_EQ(grant.max_bytes, mib);
    const auto now = facts_at(scene.project);
    EXPECT_EQ(grant.facts.identity, now.identity);
    EXPECT_FALSE(grant.exposure);
}

TEST(HostGrants, WhatNothingHereCanDoIsRefusedByName) {
    using namespace supervisor;
    {
        policy_scene scene;
        scene.rules.runtime_templates[0].sandbox_backend = backend_kind::macos_experimental;
        scene.plan.sandbox_backend = backend_kind::macos_experimental;
        EXPECT_EQ(step_of(scene.judged()), "prepare.backend");
    }
    {
        policy_scene scene;
        scene.plan.runtime_template_id = "pi-safe";
        scene.plan.runtime_id = "pi";
        scene.plan.secret_handles.clear();
        EXPECT_EQ(step_of(scene.judged()), "prepare.adoption");
    }
    {
        policy_scene scene;
        scene.rules.path_aliases[0].access[0].materialization = materialization_kind::snapshot;
        auto grant = read_grant();
        grant.materialization = materialization_kind::snapshot;
        scene.grant(grant);
        EXPECT_EQ(step_of(scene.judged()), "prepare.materialization");
    }
    {
        policy_scene scene;
        scene.rules.path_aliases[0].alias = "__scratch";
        for (auto& one : scene.rules.runtime_templates) one.allowed_path_aliases = {"__scratch"};
        auto grant = read_grant();
        grant.alias = "__scratch";
        scene.grant(grant);
        EXPECT_EQ(step_of(scene.judged()), "prepare.alias");
    }
    {
        policy_scene scene;
        for (auto& one : scene.rules.runtime_templates) one.launch.reset();
        EXPECT_EQ(step_of(scene.judged()), "plan.start");
    }
    policy_scene twin;
    twin.grant(read_grant());
    EXPECT_EQ(step_of(twin.judged()), "none");
}

TEST(HostGrants, AnotherThingOfTheNameIsRefused) {
    policy_scene scene;
    scene.grant(read_grant());
    const auto policy = supervisor::session_policy::freeze(scene.rules).value();
    EXPECT_EQ(step_of(judge_plan(scene.plan, policy, nullptr, 1'000, 1'000)), "none");
    std::filesystem::rename(scene.project, scene.project + ".old");
    (void)scene.place.directory("srv/project");
    const auto before = open_descriptors();
    EXPECT_EQ(step_of(judge_plan(scene.plan, policy, nullptr, 1'000, 1'000)), "policy.alias");
    EXPECT_EQ(open_descriptors(), before);
}

TEST(HostGrants, AnExposureIsAskedAtTheMomentOfItsUse) {
    using namespace supervisor;
    policy_scene scene;
    (void)scene.place.directory("code/proj");
    const still_clock clock;
    test::memory_files disk;
    test::memory_storage file{disk};
    auto exposures =
        exposure_store::open(
            file, exposure_policy::freeze(test::usual_exposure_rules(scene.place / "code")).value(),
            clock)
            .value();
    ASSERT_TRUE(exposures->create("key-1", test::usual_create(scene.place / "code/proj")));
    const auto shown = exposures->list().at(0);
    auto grant = test::project_grant();
    grant.generation = shown.generation;
    grant.scope_digest = shown.scope_digest;
    grant.ttl_secs = 30;
    scene.plan.schema_version = 2;
    scene.plan.grants = std::vector{grant};
    const auto judged = scene.judged(exposures.get());
    ASSERT_TRUE(judged) << judged.error().step << " " << judged.error().detail;
    EXPECT_EQ(judged->grants.at(0).target, "/workspace/exposures/proj");
    EXPECT_EQ(judged->grants.at(0).exposure->scope_digest, shown.scope_digest);
    EXPECT_EQ(judged->grants.at(0).source_identity_digest,
              source_identity_digest(lasting_identity_of(judged->grants.at(0).facts)).value());

    EXPECT_EQ(step_of(scene.judged()), "plan.exposures");
    const auto before = open_descriptors();
    EXPECT_EQ(step_of(scene.still_granted(exposures.get())), "none");
    EXPECT_EQ(open_descriptors(), before);
    ASSERT_TRUE(exposures->revoke("key-2", {"proj", shown.generation}));
    EXPECT_EQ(step_of(scene.judged(exposures.get())), "exposure.state");
    // What was opened before is of no use then.
    EXPECT_EQ(step_of(scene.still_granted(exposures.get())), "exposure.state");
}

auto written(std::string alias, std::uint64_t bytes) -> granted_path {
    granted_path out;
    out.alias = std::move(alias);
    out.target = "/workspace/exposures/" + out.alias;
    out.access = access_kind::ephemeral_write;
    out.max_bytes = bytes;
    out.facts.identity = {8, 9, S_IFDIR};
    out.facts.permissions = 0755;
    return out;
}

TEST(HostGrants, LeaveRoomForThePrivatePlaces) {
    auto plan = test::usual_plan();
    plan.limits.disk_bytes = 10 * mib;
    std::vector<granted_path> grants;
    EXPECT_EQ(scratch_bytes(plan, grants).value(), 10 * mib);
    grants.push_back(written("a", 4 * mib));
    grants.push_back(written("b", 5 * mib));
    EXPECT_EQ(scratch_bytes(plan, grants).value(), least_scratch_bytes);
    grants[1].max_bytes += 1;
    EXPECT_EQ(step_of(scratch_bytes(plan, grants)), "prepare.disk");
    grants[1].max_bytes = UINT64_MAX;
    EXPECT_EQ(step_of(scratch_bytes(plan, grants)), "prepare.disk");
    grants[1].access = access_kind::read;
    EXPECT_EQ(scratch_bytes(plan, grants).value(), 6 * mib);
}

// --- an end that takes its time ---

TEST(HostSession, AnEndIsOverdueAfterItsPatience) {
    using std::chrono::hours;
    constexpr std::chrono::nanoseconds begin{hours{1}}, all{patience_with_end};
    slow_end end;
    EXPECT_FALSE(end.is_overdue(false, hours{0}));
    EXPECT_FALSE(end.is_overdue(true, begin));
    EXPECT_FALSE(end.is_overdue(true, begin + all - std::chrono::nanoseconds{1}));
    EXPECT_TRUE(end.is_overdue(true, begin + all));
    EXPECT_TRUE(end.is_overdue(true, begin + 2 * all));
    slow_end never;
    EXPECT_FALSE(never.is_overdue(false, begin));
    EXPECT_FALSE(never.is_overdue(false, begin + 2 * all));
}

// --- Glove's own files ---

TEST(HostOwnFiles, AreNeverSeenUnderAnyName) {
    const test::folder place;
    const auto state = place.directory("home/state/glove", 0700);
    (void)place.directory("home/state/glove/inner");
    const auto key = place.file("home/keys/audit.key", "k", 0600);
    const auto project = place.directory("home/project");
    (void)place.link("home/elsewhere", state);
    const auto own = own_files::locate({state, key, place / "home/not/there/yet"}).value();
    const auto check = [&](const std::string& path, container::access mode) {
        const auto pin = opened(path);
        return step_of(own.check_apart(pin, mode, "the grant x"));
    };
    using enum container::access;
    for (const auto mode : {read, write}) {
        EXPECT_EQ(check(project, mode), "none");
        EXPECT_EQ(check(state, mode), "prepare.own_files");                // it is one
        EXPECT_EQ(check(place / "home/state", mode), "prepare.own_files"); // holds one
        EXPECT_EQ(check(place / "home", mode), "prepare.own_files");
        EXPECT_EQ(check(state + "/inner", mode), "prepare.own_files"); // lies in one
        EXPECT_EQ(check(key, mode), "prepare.own_files");
        EXPECT_EQ(check(place / "home/elsewhere", mode), "prepare.own_files"); // another name
    }
    const auto pin = opened(state);
    const auto told = own.check_apart(pin, read, "the grant x");
    EXPECT_NE(told.error().detail.find("the grant x"), std::string::npos);
}

// A bind mount gives what is Glove's own a name that says nothing of it.
TEST(HostOwnFiles, AreKnownByWhatTheyAre) {
    const test::folder place;
    const auto holder = place.directory("holder");
    const auto state = place.directory("holder/state", 0700);
    (void)place.directory("holder/state/inner");
    const auto elsewhere = place.directory("projects/elsewhere");
    const auto beside = place.directory("projects/beside");
    const auto said = test::said_by([&] {
        test::enter_root("/"); // a user namespace, for an ordinary user
        test::prepared(::unshare(CLONE_NEWNS) == 0, "unshare");
        test::prepared(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0,
                       "private");
        const auto own = own_files::locate({state}).value();
        const auto check = [&](const std::string& path) {
            const auto pin = opened(path);
            return step_of(own.check_apart(pin, container::access::read, "x")) + "\n";
        };
        auto out = check(elsewhere);
        test::prepared(::mount(state.c_str(), elsewhere.c_str(), nullptr, MS_BIND, nullptr) == 0,
                       "mount");
        out += check(elsewhere) + check(elsewhere + "/inner") + check(beside);
        test::prepared(::mount(holder.c_str(), beside.c_str(), nullptr, MS_BIND, nullptr) == 0,
                       "mount");
        return out + check(beside);
    });
    EXPECT_EQ(said, "none\nprepare.own_files\nprepare.own_files\nnone\nprepare.own_files\n");
}

TEST(HostOwnFiles, WhatHasNoNameAnyMoreIsRefused) {
    const test::folder place;
    const auto own = own_files::locate({place.directory("state")}).value();
    const auto file = place.file("gone", "x");
    const auto pin = opened(file);
    EXPECT_EQ(step_of(own.check_apart(pin, container::access::read, "x")), "none");
    ASSERT_EQ(::unlink(file.c_str()), 0);
    EXPECT_NE(step_of(own.check_apart(pin, container::access::read, "x")), "none");
}

// --- the program ---

struct program_scene {
    test::folder place;
    std::string directory = place.directory("bin");
    supervisor::launch_template launch;

    program_scene() { launch.executable_path = place.file("bin/tool", "#!/bin/sh\n", 0755); }
    void discover(std::vector<std::string> in) {
        launch.executable_path.clear();
        launch.runtime_discovery = "claude-code";
        launch.executable_search_paths = std::move(in);
    }
};

TEST(HostProgram, IsTheFileThatWasHashed) {
    program_scene scene;
    const auto program = find_program(scene.launch).value();
    EXPECT_EQ(program.path, scene.launch.executable_path);
    const auto bound = measure(program).value();
    EXPECT_EQ(bound.sha256, sha("#!/bin/sh\n"));
    EXPECT_EQ(bound.size, 10U);
    EXPECT_EQ(bound.mode, S_IFREG | 0755U);
    EXPECT_EQ(bound.modified.seconds,
              static_cast<std::uint64_t>(program.facts.written_ns / 1'000'000'000));
    EXPECT_TRUE(check_unchanged(program));
}

TEST(HostProgram, WhatBearsItsNameLaterIsNotRun) {
    program_scene scene;
    const auto program = find_program(scene.launch).value();
    (void)scene.place.file("bin/new", "#!/bin/evil\n", 0755);
    std::filesystem::rename(scene.place / "bin/new", scene.launch.executable_path);
    // The descriptor is that of the old file, and that it was replaced is told.
    const auto again = sys::reopen(program.pin, O_RDONLY).value();
    const auto held = sys::read_all(again, 100);
    EXPECT_EQ(held.value(), "#!/bin/sh\n");
    EXPECT_EQ(step_of(measure(program)), "program.changed");
    EXPECT_EQ(step_of(measure(find_program(scene.launch).value())), "none");
}

TEST(HostProgram, WhatIsWrittenToItIsFound) {
    program_scene scene;
    const auto program = find_program(scene.launch).value();
    ASSERT_TRUE(measure(program));
    std::ofstream{scene.launch.executable_path, std::ios::app} << "x";
    EXPECT_EQ(step_of(check_unchanged(program)), "program.changed");
    EXPECT_EQ(step_of(measure(program)), "program.changed");
}

TEST(HostProgram, IsAnExecutableFileOfABoundedSize) {
    program_scene scene;
    const auto path = scene.launch.executable_path;
    ASSERT_EQ(::truncate(path.c_str(), static_cast<::off_t>(most_executable_bytes)), 0);
    EXPECT_EQ(step_of(find_program(scene.launch)), "none");
    ASSERT_EQ(::truncate(path.c_str(), static_cast<::off_t>(most_executable_bytes) + 1), 0);
    EXPECT_EQ(step_of(find_program(scene.launch)), "program.size");
    ASSERT_EQ(::truncate(path.c_str(), 0), 0);
    EXPECT_EQ(step_of(find_program(scene.launch)), "program.size");
    ASSERT_EQ(::truncate(path.c_str(), 1), 0);
    ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
    EXPECT_EQ(step_of(find_program(scene.launch)), "program.kind");
    scene.launch.executable_path = scene.directory;
    EXPECT_EQ(step_of(find_program(scene.launch)), "program.kind");
    scene.launch.executable_path = scene.directory + "/none";
    EXPECT_EQ(step_of(find_program(scene.launch)), "program.find");
}

TEST(HostProgram, KeepsTheNameByWhichItIsCalled) {
    program_scene scene;
    scene.launch.executable_path = scene.place.link("bin/other", scene.directory + "/tool");
    const auto program = find_program(scene.launch).value();
    EXPECT_EQ(program.path, scene.directory + "/tool");
    EXPECT_EQ(arguments_of(program, scene.launch).front(), scene.directory + "/other");
}

TEST(HostProgram, IsLookedForInTheOrderOfTheSearchPaths) {
    program_scene scene;
    const auto first = scene.place.directory("first"), second = scene.place.directory("second");
    scene.discover({first, second});
    EXPECT_EQ(step_of(find_program(scene.launch)), "program.find");
    (void)scene.place.file("second/claude", "2", 0755);
    EXPECT_EQ(find_program(scene.launch).value().path, second + "/claude");
    (void)scene.place.file("first/claude", "1", 0755);
    EXPECT_EQ(find_program(scene.launch).value().path, first + "/claude");
}

TEST(HostProgram, IsNotFoundWhereOthersMayPutOne) {
    program_scene scene;
    const auto found = scene.place.directory("found");
    (void)scene.place.file("found/claude", "1", 0755);
    scene.discover({found});
    EXPECT_EQ(step_of(find_program(scene.launch)), "none");
    (void)scene.place.directory("found", 0777);
    EXPECT_EQ(step_of(find_program(scene.launch)), "policy.search_path");
    // Nor behind a link that leads there.
    const auto links = scene.place.directory("links");
    (void)scene.place.link("links/claude", found + "/claude");
    scene.discover({links});
    EXPECT_EQ(step_of(find_program(scene.launch)), "policy.search_path");
    (void)scene.place.directory("found", 0755);
    EXPECT_EQ(step_of(find_program(scene.launch)), "none");
}

// --- secrets ---

struct secret_scene {
    test::folder place;
    std::string root = place.directory("root", 0700);
    std::string home = place.directory("home", 0700);
    sys::system_clock time;
    supervisor::session_rules rules = test::usual_rules();
    supervisor::session_plan plan = test::usual_plan();
    sys::unique_fd top = opened(root, O_RDONLY | O_DIRECTORY);
    supervisor::lease_store store = supervisor::lease_store::open(top, time).value();
    sys::unique_fd at_home = opened(home, O_RDONLY | O_DIRECTORY);

    secret_scene() { rules.secret_mounts[0].source_path = place.file("token", "token-1", 0600); }
    [[nodiscard]] auto lent() const { return lend_secrets(plan, rules, store); }
    [[nodiscard]] auto inside() const { return home + "/.codex/auth.json"; }
};

TEST(HostSecrets, GoToTheHomeAndComeBack) {
    secret_scene scene;
    {
        auto lent = scene.lent().value();
        EXPECT_EQ(step_of(scene.lent()), "lease.busy");
        ASSERT_TRUE(give(lent, scene.at_home));
        EXPECT_EQ(test::content_of(scene.inside()), "token-1");
        const auto facts = facts_at(scene.inside());
        EXPECT_EQ(facts.permissions, 0600U);
        EXPECT_EQ(facts_at(scene.home + "/.codex").permissions, 0700U);
        // Renewed, as programs do it.
        (void)scene.place.file("home/.codex/new", "token-2", 0600);
        std::filesystem::rename(scene.home + "/.codex/new", scene.inside());
        EXPECT_TRUE(take_back(lent, scene.at_home).empty());
    }
    std::filesystem::remove_all(scene.home + "/.codex");
    auto again = scene.lent().value();
    ASSERT_TRUE(give(again, scene.at_home));
    EXPECT_EQ(test::content_of(scene.inside()), "token-2");
    EXPECT_EQ(test::content_of(scene.place / "token"), "token-1");
}

TEST(HostSecrets, WhatCannotBeTakenBackIsATroubleAndTheLeaseStays) {
    secret_scene scene;
    (void)scene.place.file("victim", "somebody's", 0600);
    (void)scene.place.directory("other", 0700);
    (void)scene.place.file("other/auth.json", "planted", 0600);
    const auto with = [&](const std::function<void()>& meanwhile) {
        std::filesystem::remove_all(scene.home + "/.codex");
        auto lent = scene.lent().value();
        EXPECT_TRUE(give(lent, scene.at_home));
        meanwhile();
        const auto troubles = take_back(lent, scene.at_home);
        EXPECT_EQ(take_back(lent, scene.at_home).size(), 0U); // told once
        return troubles;
    };
    const auto link_file = with([&] {
        std::filesystem::remove(scene.inside());
        (void)scene.place.link("home/.codex/auth.json", scene.place / "victim");
    });
    ASSERT_EQ(link_file.size(), 1U);
    EXPECT_NE(link_file[0].detail.find("codex-token"), std::string::npos);
    EXPECT_EQ(link_file[0].detail.find("somebody"), std::string::npos);
    const auto link_directory = with([&] {
        std::filesystem::remove_all(scene.home + "/.codex");
        (void)scene.place.link("home/.codex", scene.place / "other");
    });
    EXPECT_EQ(link_directory.size(), 1U);
    const auto gone = with([&] { std::filesystem::remove_all(scene.home + "/.codex"); });
    EXPECT_EQ(gone.size(), 1U);
    auto lent = scene.lent().value();
    std::filesystem::remove_all(scene.home + "/.codex");
    ASSERT_TRUE(give(lent, scene.at_home));
    EXPECT_EQ(test::content_of(scene.inside()), "token-1");
}

TEST(HostSecrets, WhatWasNeverGivenIsNotMissed) {
    secret_scene scene;
    auto lent = scene.lent().value();
    EXPECT_TRUE(take_back(lent, scene.at_home).empty());
    // Something stands where it is to go: the session's own home is refused, and nothing is lost.
    (void)scene.place.file("home/.codex", "a file");
    EXPECT_EQ(step_of(give(lent, scene.at_home)), "prepare.secret");
    EXPECT_TRUE(take_back(lent, scene.at_home).empty());
}

TEST(HostSecrets, AreOfThePolicyAndOfAReadableSource) {
    secret_scene scene;
    scene.rules.secret_mounts[0].runtime_id = "pi";
    EXPECT_EQ(step_of(scene.lent()), "prepare.secret");
    scene.rules.secret_mounts[0].runtime_id = "codex";
    scene.rules.secret_mounts[0].target_path = "/home/agent-token";
    EXPECT_EQ(step_of(scene.lent()), "prepare.secret");
    scene.rules.secret_mounts[0].target_path = "/home/agent/token";
    EXPECT_EQ(step_of(scene.lent()), "none");
    ASSERT_EQ(::chmod((scene.place / "token").c_str(), 0644), 0);
    EXPECT_EQ(step_of(scene.lent()), "lease.source");
}

// --- egress ---

auto egress_of(supervisor::egress_target target) {
    auto rules = test::usual_rules();
    auto plan = test::usual_plan();
    rules.egress_policies[0].targets = {std::move(target)};
    plan.egress_policy_id = "model-only";
    return plan_egress(plan, rules);
}

TEST(HostEgress, ATargetBecomesExactlyOneRule) {
    struct row {
        supervisor::egress_target target;
        std::string rule;
    };
    for (const auto& [target, rule] :
         {row{{"api.example.com", 443, false}, "api.example.com"},
          row{{"API.Example.com", 8443, false}, "api.example.com:8443"},
          row{{"api.example.com", 443, true}, "api.example.com,allow-private"},
          row{{"10.1.2.3", 5432, true}, "10.1.2.3:5432,allow-private"},
          row{{"2001:4860:4860::8888", 443, false}, "2001:4860:4860::8888"},
          row{{"localhost", 5432, true}, "localhost:5432"}}) {
        const auto made = egress_of(target);
        ASSERT_TRUE(made) << target.host << ": " << made.error().detail;
        ASSERT_EQ((*made)->bridge.rules.all().size(), 1U);
        EXPECT_EQ((*made)->bridge.rules.all()[0].text, rule);
    }
}

TEST(HostEgress, ATargetNeverSaysMoreThanAHost) {
    for (const auto& target :
         std::initializer_list<supervisor::egress_target>{{".example.com", 443, false},
                                                          {"*.example.com", 443, false},
                                                          {"10.0.0.0/8", 443, true},
                                                          {"example.com,allow-private", 443, false},
                                                          {"example.com:8443", 443, false},
                                                          {"https://example.com", 443, false},
                                                          {"10.1.2.3", 443, false},
                                                          {"127.0.0.1", 443, true},
                                                          {"a.localhost", 443, true},
                                                          {"localhost", 443, false},
                                                          {"0.0.0.0", 443, true}}) {
        const auto made = egress_of(target);
        EXPECT_EQ(step_of(made), "prepare.egress") << target.host;
        if (made) continue;
        EXPECT_EQ(made.error().detail.find(target.host), std::string::npos);
    }
}

TEST(HostEgress, OfNoTargetIsNoNetwork) {
    auto rules = test::usual_rules();
    auto plan = test::usual_plan();
    EXPECT_FALSE(plan_egress(plan, rules).value());
    plan.egress_policy_id = "model-only";
    EXPECT_TRUE(plan_egress(plan, rules).value());
    rules.egress_policies[0].targets.clear();
    EXPECT_FALSE(plan_egress(plan, rules).value());
    rules.egress_policies.clear();
    EXPECT_EQ(step_of(plan_egress(plan, rules)), "prepare.egress");
}

// The file lies beside the journals, and whoever asks is hostile.
TEST(Egress, NoSessionFillsTheDiskWithRecords) {
    struct counter final : audit::sink {
        std::uint32_t seen = 0;
        auto append(const audit::event&) -> result<> override {
            ++seen;
            return {};
        }
    } file;
    session_records mine{file};
    const auto put = [&](audit::status how) {
        audit::event one;
        one.status = how;
        return step_of(mine.append(one));
    };
    const auto fill = [&](audit::status how, std::uint32_t most) {
        for (std::uint32_t i = 0; i < most; ++i)
            if (put(how) != "none") return i;
        return most;
    };
    EXPECT_EQ(fill(audit::status::invalid_arguments, session_records::most_refusals),
              session_records::most_refusals);
    EXPECT_EQ(put(audit::status::invalid_arguments), "egress.records");
    EXPECT_EQ(fill(audit::status::pending, session_records::most_intents),
              session_records::most_intents);
    EXPECT_EQ(put(audit::status::pending), "egress.records");
    EXPECT_EQ(file.seen, session_records::most_refusals + session_records::most_intents);
    // What was begun still ends on record.
    EXPECT_EQ(put(audit::status::ok), "none");
    EXPECT_EQ(put(audit::status::transport_error), "none");
}

TEST(HostEgress, TheTokenIsTiedToTheLaunchAndNotTold) {
    const test::folder place;
    const auto path = place / "state/egress-audit.jsonl";
    const auto token = digits('0') + digits('1');
    {
        auto log = audit::jsonl_sink::open(path, audit::durability::process).value();
        ASSERT_TRUE(record_token(log, "session-1", digits('a'), token, 5));
        EXPECT_EQ(step_of(record_token(log, "session-1", digits('a'), "short", 5)),
                  "binding.token");
    }
    const auto text = test::content_of(path);
    EXPECT_NE(text.find(egress_token_digest(digits('a'), token).value()), std::string::npos);
    EXPECT_NE(text.find("session-1"), std::string::npos);
    EXPECT_EQ(text.find(token), std::string::npos);
    EXPECT_EQ(facts_at(path).permissions, 0600U);
}

// --- the binding ---

auto kept(std::string_view name) -> std::string {
    std::istringstream lines{
        test::content_of(std::string{GLOVE_SOURCE} + "/tests/control/golden/launch_binding.txt")};
    for (std::string found, digest; lines >> found >> digest;)
        if (found == name) return digest;
    return "none";
}

auto facts_of(std::uint64_t inode, ::mode_t type, ::mode_t mode) -> sys::file_facts {
    sys::file_facts out;
    out.identity = {8, inode, type};
    out.permissions = mode;
    return out;
}

// `prepared` of tests/peers/launch_binding.py.
struct bound_scene {
    secret_scene secrets;
    supervisor::sealed_plan plan{test::usual_plan(), {}, {digits('a'), digits('e')}};
    supervisor::launch_template launch = test::usual_launch();
    session_program program{"/usr/bin/tool", "/usr/lib/tool", {}, {}};
    bound_executable executable{1, 2, 0100755, 3, {4, 5}, {6, 7}, digits('b')};
    std::vector<granted_path> grants;
    std::vector<supervisor::resolved_bundle> bundles;
    std::vector<session_secret> lent = secrets.lent().value();
    std::optional<online_plan> online;

    bound_scene() {
        launch.read_only_paths = {"/opt/runtime"};
        plan.plan.limits.disk_bytes = 4 * mib;
        grants.push_back(written("site", mib));
        grants[0].facts = facts_of(9, S_IFDIR, 0755);
        auto read = written("proj", 0);
        read.access = access_kind::read;
        read.facts = facts_of(10, S_IFREG, 0644);
        grants.push_back(std::move(read));
        supervisor::resolved_bundle bundle;
        bundle.projection = {"sage-core", digits('f'), "libraries"};
        bundle.target_path = "/opt/sage/libraries/" + digits('f') + ".json";
        bundle.object.facts = facts_of(11, S_IFREG, 0600);
        bundles.push_back(std::move(bundle));
        lent[0].source = {8, 12, 0100600};
        auto of = test::usual_rules();
        auto wanted = test::usual_plan();
        wanted.egress_policy_id = "model-only";
        online = plan_egress(wanted, of).value();
    }
    [[nodiscard]] auto binding() const -> launch_binding {
        return bind({.plan = plan,
                     .launch = launch,
                     .program = program,
                     .executable = executable,
                     .grants = grants,
                     .bundles = bundles,
                     .secrets = lent,
                     .online = online ? &*online : nullptr,
                     .scratch_bytes = 3 * mib});
    }
};

TEST(HostBinding, IsThatOfAnotherEncoder) {
    const bound_scene scene;
    const auto digest = profile_digest(scene.binding());
    ASSERT_TRUE(digest) << digest.error().step << digest.error().detail;
    EXPECT_EQ(*digest, kept("prepared"));
}

TEST(HostBinding, NamesEverythingThatASessionGets) {
    bound_scene scene;
    const auto before = profile_digest(scene.binding()).value();
    const auto changes = [&](auto change) {
        bound_scene other;
        change(other);
        const auto digest = profile_digest(other.binding());
        return !digest || *digest != before;
    };
    EXPECT_FALSE(changes([](bound_scene&) {}));
    EXPECT_TRUE(changes([](auto& s) { s.grants[0].facts.identity.inode = 99; }));
    EXPECT_TRUE(changes([](auto& s) { s.grants[1].facts.permissions = 0600; }));
    EXPECT_TRUE(changes([](auto& s) { s.grants.pop_back(); }));
    EXPECT_TRUE(changes([](auto& s) { s.bundles.clear(); }));
    EXPECT_TRUE(changes([](auto& s) { s.lent[0].source.inode = 99; }));
    EXPECT_TRUE(changes([](auto& s) { s.lent.clear(); }));
    EXPECT_TRUE(changes([](auto& s) { s.online.reset(); }));
    EXPECT_TRUE(changes([](auto& s) { s.launch.arguments.push_back("x"); }));
    EXPECT_TRUE(changes([](auto& s) { s.launch.environment.pop_back(); }));
    EXPECT_TRUE(changes([](auto& s) { s.program.name = "/usr/bin/other"; }));
    EXPECT_TRUE(changes([](auto& s) { s.executable.sha256 = digits('c'); }));
    EXPECT_TRUE(changes([](auto& s) { s.plan.digests.controller = digits('c'); }));
}

TEST(HostBinding, TheDirectoryToWorkIn) {
    std::vector<granted_path> grants;
    EXPECT_EQ(work_directory(grants), "/home/agent");
    grants.push_back(written("site", mib));
    grants[0].target = "/srv/site";
    EXPECT_EQ(work_directory(grants), "/home/agent");
    grants[0].target = "/workspaces";
    EXPECT_EQ(work_directory(grants), "/home/agent");
    grants[0].target = "/workspace/exposures/site";
    EXPECT_EQ(work_directory(grants), "/workspace");
    grants[0].target = "/workspace";
    EXPECT_EQ(work_directory(grants), "/workspace");
    grants[0].facts.identity.type = S_IFREG; // nobody works in a file
    EXPECT_EQ(work_directory(grants), "/home/agent");
}

// --- copies that are there already ---

TEST(HostImages, ACopyIsOfASessionThatIsNotYounger) {
    known_copy copy;
    copy.record.state = container::copy_state::whole;
    copy.written_ms = 1'000;
    EXPECT_TRUE(is_of(copy, 1'000));
    EXPECT_FALSE(is_of(copy, 1'001));
    copy.record.state = container::copy_state::begun; // nobody ever ran on it
    EXPECT_TRUE(is_of(copy, 1'001));
}

auto changes_of(std::string session, std::string exposure) -> change_cache::found {
    auto out = std::make_shared<container::change_set>();
    out->subject.session_id = std::move(session);
    out->subject.exposure_id = std::move(exposure);
    return out;
}

TEST(HostImages, TheLastFewChangesAreKept) {
    change_cache cache;
    for (const auto* id : {"a", "b", "c", "d"}) cache.keep(changes_of(id, "proj"));
    EXPECT_TRUE(cache.find("a", "proj"));
    EXPECT_FALSE(cache.find("a", "other"));
    cache.keep(changes_of("e", "proj")); // the one that was not used for longest goes
    EXPECT_FALSE(cache.find("b", "proj"));
    EXPECT_TRUE(cache.find("a", "proj"));
    const auto newer = changes_of("a", "proj");
    cache.keep(newer);
    EXPECT_EQ(cache.find("a", "proj"), newer);
    EXPECT_TRUE(cache.find("c", "proj"));
}

} // namespace
