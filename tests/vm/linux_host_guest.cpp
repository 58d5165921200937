// Sessions of the Linux host with everything real: control groups, file systems, perimeters. Runs
// as the only process of a group that was delegated: tests/vm/linux_host_test.py starts it.
#include "control/host_images.hpp"
#include "control/receipt_journal_scene.hpp"
#include "supervisor/exposure_scene.hpp"
#include "supervisor/policy_scene.hpp"
#include <atomic>
#include <fcntl.h>
#include <functional>
#include <glove/container/launcher.hpp>
#include <glove/container/session_groups.hpp>
#include <glove/control/linux_host.hpp>
#include <glove/control/session_runtime.hpp>
#include <glove/supervisor/bundle_store.hpp>
#include <glove/wire/crypto.hpp>
#include <gtest/gtest.h>
#include <mutex>
#include <netinet/in.h>
#include <poll.h>
#include <support/folder.hpp>
#include <support/memory_storage.hpp>
#include <thread>

namespace glove::control {
namespace {

using namespace supervisor;
using std::chrono::seconds;
using test::mib;

constexpr seconds patience{100};

container::launcher* the_launcher = nullptr;
container::session_groups* the_groups = nullptr;
std::string the_programs; // the directory of Glove's own, with a '/'

auto sha(std::string_view bytes) -> std::string { return wire::sha256_hex(bytes).value(); }
template<class T> auto step_of(const result<T>& of) -> std::string {
    return of ? "none" : std::string{of.error().step} + ": " + of.error().detail;
}
auto lines_of(const std::string& path) -> std::size_t {
    const auto text = test::content_of(path);
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// The real one; and whoever wants to do something while a tree is copied.
class a_clock final : public sys::clock {
public:
    [[nodiscard]] auto monotonic() const noexcept -> std::chrono::nanoseconds override {
        if (meanwhile) meanwhile();
        return real_.monotonic();
    }
    [[nodiscard]] auto wall() const noexcept -> std::chrono::nanoseconds override {
        return real_.wall();
    }
    [[nodiscard]] auto ms() const -> std::uint64_t {
        return static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::milliseconds>(wall()).count());
    }
    std::function<void()> meanwhile;

private:
    sys::system_clock real_;
};

class a_log final : public service_log {
public:
    void write(const log_event& event) override {
        const std::lock_guard held{lock_};
        text_ += line_of(event, 0);
    }
    [[nodiscard]] auto text() -> std::string {
        const std::lock_guard held{lock_};
        return text_;
    }

private:
    std::mutex lock_;
    std::string text_;
};

// What is left of a session that ended.
struct ended {
    process_end how;
    std::string shown;
    resource_state use;
    session_remains remains;
    [[nodiscard]] auto troubles() const -> std::string {
        std::string out;
        for (const auto& one : remains.troubles)
            out.append(one.step).append(": ").append(one.detail).append("\n");
        return out;
    }
};

auto drained(sys::fd_ref terminal, std::string& to) -> bool {
    for (char part[4096];;) {
        const auto got = ::read(terminal.get(), part, sizeof part);
        if (got < 0 && errno == EAGAIN) return true;
        if (got <= 0) return false;
        to.append(part, static_cast<std::size_t>(got));
    }
}

class host_scene {
public:
    test::folder place;
    std::string root = place.directory("materialization", 0700);
    std::string library = place.directory("library", 0700);
    std::string code = place.directory("code");
    std::string egress_log = place / "state/egress-audit.jsonl";
    a_clock clock;
    a_log log;
    session_rules rules;
    exposure_rules exposed = test::usual_exposure_rules(code);
    std::optional<session_policy> policy;
    test::memory_files exposure_disk;
    test::memory_storage exposure_file{exposure_disk};
    std::unique_ptr<exposure_store> exposures;
    std::unique_ptr<linux_host> host;

    host_scene() {
        (void)place.directory("state", 0700);
        (void)place.directory("code/proj");
        (void)place.file("code/proj/README", "hello\n");
        (void)place.directory("code/site");
        (void)place.file("code/site/page", "one\n");
        (void)place.file("code/note", "a single file\n");
        rules = test::usual_rules(place.directory("aliased"));
        test::look_in(rules, place.directory("harness"));
        rules.secret_mounts[0].source_path = place.file("token", "token-1", 0600);
        rules.resource_profiles = {{"guest", 600'000, 512 * mib, 64, 300'000, 256 * mib, mib}};
        exposed.roots[0].allowed_modes = {test::read_mode(), test::ephemeral_mode(64 * mib),
                                          test::retained_mode(64 * mib)};
        run("echo hello");
    }
    // A command of a shell is the template's program from now on.
    void run(std::string command) {
        auto launch = test::usual_launch();
        launch.executable_path = "/bin/sh";
        launch.arguments = {"-c", std::move(command)};
        set(std::move(launch));
    }
    void set(launch_template launch) {
        test::set_launch(rules.runtime_templates[0], std::move(launch));
    }
    void open() {
        policy.emplace(session_policy::freeze(rules).value());
        if (!exposures)
            exposures =
                exposure_store::open(exposure_file, exposure_policy::freeze(exposed).value(), clock)
                    .value();
        host.reset();
        auto made =
            linux_host::open({.policy = &*policy,
                              .exposures = exposures.get(),
                              .clock = &clock,
                              .log = &log,
                              .groups = the_groups,
                              .launcher = the_launcher},
                             {.materialization_root = root,
                              .library_bundle_root = library,
                              .egress_log = egress_log,
                              .own_files = {place / "state"},
                              .egress_program = the_programs + "glove-egress",
                              .image_program = images_ ? the_programs + "glove-image" : "/none"});
        ASSERT_TRUE(made) << step_of(made);
        host = *std::move(made);
    }
    [[nodiscard]] auto plan() const -> session_plan {
        auto out = test::usual_plan();
        out.adapter_command_digest = rules.runtime_templates[0].adapter_command_digest;
        out.limits = rules.resource_profiles[0].limits();
        out.library_projections.clear();
        out.secret_handles.clear();
        out.expires_at_ms = clock.ms() + 500'000;
        return out;
    }
    // Exposed at once, and granted so.
    void grant(session_plan& to, const std::string& name, access_kind access) {
        const auto mode = access == access_kind::read              ? test::read_mode()
                          : access == access_kind::ephemeral_write ? test::ephemeral_mode(32 * mib)
                                                                   : test::retained_mode(48 * mib);
        auto made = exposures->create(
            "key-" + name + std::to_string(++keys_),
            {name, "projects", code + "/" + name, name, {mode}, 3600, {"codex-safe"}});
        ASSERT_TRUE(made) << made.error().why.step << made.error().why.detail;
        if (!std::holds_alternative<std::vector<exposure_grant>>(to.grants)) {
            to.schema_version = 2;
            to.grants = std::vector<exposure_grant>{};
        }
        auto& list = std::get<std::vector<exposure_grant>>(to.grants);
        list.push_back({name, made->generation, made->scope_digest, mode.access,
                        mode.materialization, mode.max_bytes, 60, mode.cleanup_policy});
        std::ranges::sort(list, {}, &exposure_grant::exposure_id);
    }
    [[nodiscard]] auto sealed(session_plan of) const -> sealed_plan {
        return seal(std::move(of), test::digits('9')).value();
    }
    [[nodiscard]] auto record(const std::string& id = "session-1") const -> session_record {
        session_record out;
        out.session_id = id;
        out.state = session_state::preparing;
        out.created_at_ms = clock.ms();
        out.authorization_expires_at_ms = clock.ms() + 100'000;
        return out;
    }
    [[nodiscard]] auto prepare(const session_plan& of) -> result<std::unique_ptr<hosted_session>> {
        return host->prepare(record(), sealed(of));
    }
    // Everything that a refusal might leave behind.
    [[nodiscard]] auto traces() const -> std::string {
        std::string out = std::to_string(test::names_in("/proc/self/fd")) + " descriptors, " +
                          std::to_string(lines_of("/proc/self/mountinfo")) + " mounts, groups:";
        const auto groups = the_groups->list().value();
        for (const auto& id : groups) out += " " + id;
        out += ", files:";
        std::vector<std::string> names;
        for (const auto& one : std::filesystem::recursive_directory_iterator{root})
            names.push_back(one.path().lexically_relative(root));
        std::ranges::sort(names);
        for (const auto& name : names) out += " " + name;
        return out;
    }

    void without_images(bool without = true) { images_ = !without; }

private:
    int keys_ = 0;
    bool images_ = true; // to try them out takes its time
};

auto launched(hosted_session& session, const a_clock& clock) -> std::string {
    const auto who = session.launch(clock.monotonic() + patience);
    if (!who) return step_of(who);
    EXPECT_NE(who->pid, 0U);
    EXPECT_EQ(who->boot_id.size(), 36U);
    EXPECT_EQ(who->cgroup_inode, session.binding().cgroup->inode);
    return "launched";
}

// To its end, as the runtime does it.
auto finished(hosted_session& session, const a_clock& clock,
              const std::function<void(const std::string&)>& meanwhile = {}) -> ended {
    ended out;
    const auto terminal = session.take_terminal();
    EXPECT_TRUE(terminal);
    EXPECT_EQ(::fcntl(terminal.get(), F_SETFL, O_RDWR | O_NONBLOCK), 0);
    EXPECT_TRUE(session.release());
    const auto deadline = clock.monotonic() + patience;
    for (bool over = false; !over && clock.monotonic() < deadline;) {
        std::vector<::pollfd> sources{{terminal.get(), POLLIN, 0}};
        for (const auto fd : session.descriptors()) sources.push_back({fd.get(), POLLIN, 0});
        (void)::poll(sources.data(), sources.size(), 100);
        (void)drained(terminal, out.shown);
        if (meanwhile) meanwhile(out.shown);
        const auto news = session.advance();
        if (!news) {
            ADD_FAILURE() << step_of(news);
            break;
        }
        if (*news) {
            out.how = **news;
            over = true;
        }
    }
    (void)drained(terminal, out.shown);
    const auto use = session.meter().state();
    EXPECT_TRUE(use) << step_of(use);
    if (use) out.use = *use;
    out.remains = session.conclude({});
    return out;
}
auto exited(std::uint32_t code) -> process_end { return {process_end::how::exited, code}; }

auto run_once(host_scene& scene, const session_plan& plan) -> ended {
    auto made = scene.prepare(plan);
    if (!made) {
        ADD_FAILURE() << step_of(made);
        return {};
    }
    if (const auto how = launched(**made, scene.clock); how != "launched") {
        ADD_FAILURE() << how;
        return {};
    }
    return finished(**made, scene.clock);
}

TEST(LinuxHost, RunsASession) {
    host_scene scene;
    scene.without_images();
    scene.run("echo hello; id -u; pwd; echo $HOME $TMPDIR; tty");
    scene.open();
    const auto before = scene.traces();
    {
        auto made = scene.prepare(scene.plan());
        ASSERT_TRUE(made) << step_of(made);
        const auto& binding = (*made)->binding();
        EXPECT_EQ(binding.filesystem->disk_limit_bytes, 256 * mib);
        EXPECT_TRUE(binding.filesystem->partitions.empty());
        const auto facts = (*made)->facts();
        EXPECT_EQ(facts.profile_digest, binding.launch_profile_digest);
        EXPECT_EQ(facts.backend_id, "linux-production:cgroup-v2-v1");
        EXPECT_EQ(the_groups->list().value(), std::vector<std::string>{"session-1"});
        ASSERT_EQ(launched(**made, scene.clock), "launched");
        const auto end = finished(**made, scene.clock);
        EXPECT_EQ(end.how, exited(0));
        EXPECT_EQ(end.shown.substr(0, 5), "hello") << end.shown;
        EXPECT_NE(end.shown.find("\n1000\r"), std::string::npos) << end.shown;
        EXPECT_NE(end.shown.find("/home/agent /tmp"), std::string::npos) << end.shown;
        EXPECT_EQ(end.troubles(), "");
        EXPECT_GT(end.use.peak_pids, 1U);
        EXPECT_GT(end.use.peak_memory_bytes, 0U);
        EXPECT_FALSE(end.use.disk_refused);
        EXPECT_TRUE((*made)->signal_foreground(SIGTERM)); // does nothing any more
        EXPECT_TRUE((*made)->kill());
    }
    EXPECT_EQ(scene.traces(), before);
}

TEST(LinuxHost, TheSameLaunchHasTheSameDigest) {
    host_scene scene;
    scene.without_images();
    scene.open();
    const auto digest = [&] {
        auto made = scene.prepare(scene.plan());
        EXPECT_TRUE(made) << step_of(made);
        return (*made)->facts().profile_digest;
    };
    const auto first = digest();
    EXPECT_EQ(digest(), first);
    scene.run("echo other");
    scene.open();
    EXPECT_NE(digest(), first);
}

TEST(LinuxHost, GivesWhatWasGrantedAndNoMore) {
    host_scene scene;
    scene.without_images();
    scene.run("cd /workspace/exposures; cat proj/README note; (echo x >proj/README) 2>/dev/null "
              "|| echo denied; echo two >site/page && cat site/page; echo new >note; "
              "touch /tmp/a ~/b; ls /workspace");
    scene.open();
    auto plan = scene.plan();
    scene.grant(plan, "proj", access_kind::read);
    scene.grant(plan, "note", access_kind::ephemeral_write);
    scene.grant(plan, "site", access_kind::ephemeral_write);
    const auto before = scene.traces();
    const auto end = run_once(scene, plan);
    EXPECT_EQ(end.how, exited(0));
    EXPECT_EQ(end.shown, "hello\r\na single file\r\ndenied\r\ntwo\r\nexposures\r\n");
    EXPECT_EQ(end.troubles(), "");
    EXPECT_EQ(test::content_of(scene.code + "/site/page"), "one\n");
    EXPECT_EQ(test::content_of(scene.code + "/note"), "a single file\n");
    EXPECT_EQ(scene.traces(), before);
}

TEST(LinuxHost, ARefusalLeavesNothing) {
    struct row {
        std::string step;
        std::function<void(host_scene&, session_plan&)> change;
    };
    const std::vector<row> rows{
        {"plan.revision", [](auto&, auto& p) { ++p.policy_revision; }},
        {"plan.start",
         [](auto& s, auto& p) {
             p.egress_policy_id = "model-only";
             s.rules.egress_policies.clear();
         }},
        {"prepare.egress",
         [](auto& s, auto& p) {
             p.egress_policy_id = "model-only";
             s.rules.egress_policies = {{"model-only", {{"localhost", 1, false}}}};
         }},
        {"program.find",
         [](auto& s, auto& p) {
             auto launch = test::usual_launch();
             launch.executable_path = "/usr/bin/there-is-none";
             s.set(launch);
             p.adapter_command_digest = s.rules.runtime_templates[0].adapter_command_digest;
         }},
        {"prepare.read_only",
         [](auto& s, auto& p) {
             auto launch = test::usual_launch();
             launch.read_only_paths = {"/opt/there-is-none"};
             s.set(launch);
             p.adapter_command_digest = s.rules.runtime_templates[0].adapter_command_digest;
         }},
        {"prepare.own_files",
         [](auto& s, auto& p) {
             auto launch = test::usual_launch();
             launch.read_only_paths = {s.place / "state/inner"};
             s.set(launch);
             p.adapter_command_digest = s.rules.runtime_templates[0].adapter_command_digest;
         }},
        {"bundle.object",
         [](auto&, auto& p) {
             p.library_projections = {{"sage-core", test::digits('f'), "libraries"}};
         }},
        {"lease.source",
         [](auto& s, auto& p) {
             p.secret_handles = {"codex-token"};
             std::filesystem::permissions(s.place / "token", std::filesystem::perms{0644});
         }},
        {"prepare.disk",
         [](auto& s, auto& p) {
             s.rules.resource_profiles[0].disk_bytes = 32 * mib;
             p.limits.disk_bytes = 32 * mib;
             s.grant(p, "site", access_kind::ephemeral_write);
         }},
        {"binding.targets",
         [](auto& s, auto& p) {
             p.grants = std::vector{test::workspace_grant()};
             s.rules.path_aliases[0].target_path = "/home/agent/inside";
         }},
        {"tree.kind",
         [](auto& s, auto& p) {
             (void)s.place.link("code/site/link", "/etc/passwd");
             s.grant(p, "note", access_kind::ephemeral_write);
             s.grant(p, "site", access_kind::ephemeral_write);
         }},
        {"files.means", [](auto& s, auto& p) { s.grant(p, "site", access_kind::retained_write); }},
        {"session.target",
         [](auto& s, auto& p) {
             p.grants = std::vector{test::workspace_grant()};
             s.rules.path_aliases[0].target_path = "/run/inside";
         }},
    };
    for (const auto& one : rows) {
        host_scene fresh;
        fresh.without_images();
        (void)fresh.place.directory("state/inner");
        fresh.open(); // for the exposures
        auto plan = fresh.plan();
        one.change(fresh, plan);
        fresh.open();
        const auto before = fresh.traces();
        const auto made = fresh.prepare(plan);
        EXPECT_EQ(step_of(made).substr(0, one.step.size()), one.step) << step_of(made);
        EXPECT_EQ(fresh.traces(), before) << one.step;
    }
}

TEST(LinuxHost, WhatIsDroppedBeforeItRanLeavesNothing) {
    host_scene scene;
    scene.without_images();
    scene.open();
    auto plan = scene.plan();
    plan.secret_handles = {"codex-token"};
    (void)scene.prepare(plan); // the lease is made, and stays
    const auto before = scene.traces();
    {
        auto made = scene.prepare(plan);
        ASSERT_TRUE(made) << step_of(made);
        EXPECT_EQ(step_of(scene.prepare(plan)).substr(0, 10), "lease.busy");
    }
    EXPECT_EQ(scene.traces(), before);
    {
        auto made = scene.prepare(plan);
        ASSERT_TRUE(made) << step_of(made);
        ASSERT_EQ(launched(**made, scene.clock), "launched");
    }
    EXPECT_EQ(scene.traces(), before);
}

TEST(LinuxHost, WhatIsRevokedWhileItIsMadeReadyIsNotStarted) {
    host_scene scene;
    scene.without_images();
    scene.open();
    auto plan = scene.plan();
    scene.grant(plan, "site", access_kind::ephemeral_write);
    const auto before = scene.traces();
    {
        auto twin = scene.prepare(plan);
        ASSERT_TRUE(twin) << step_of(twin);
        EXPECT_EQ(launched(**twin, scene.clock), "launched");
    }
    {
        auto made = scene.prepare(plan);
        ASSERT_TRUE(made) << step_of(made);
        const auto generation = std::get<std::vector<exposure_grant>>(plan.grants)[0].generation;
        ASSERT_TRUE(scene.exposures->revoke("key-revoked", {"site", generation}));
        EXPECT_EQ(launched(**made, scene.clock).substr(0, 14), "exposure.state");
    }
    EXPECT_EQ(scene.traces(), before);
}

TEST(LinuxHost, ASessionIsKilled) {
    host_scene scene;
    scene.without_images();
    scene.run("echo begun; sleep 1000");
    scene.open();
    auto made = scene.prepare(scene.plan());
    ASSERT_TRUE(made) << step_of(made);
    ASSERT_EQ(launched(**made, scene.clock), "launched");
    const auto end = finished(**made, scene.clock, [&](const std::string& shown) {
        if (shown.contains("begun")) {
            std::thread other{[&] { EXPECT_TRUE((*made)->kill()); }};
            other.join();
        }
    });
    EXPECT_EQ(end.how.what, process_end::how::signaled);
}

TEST(LinuxHost, ASessionThatIsKilledBeforeItsLaunchDoesNotRun) {
    host_scene scene;
    scene.without_images();
    scene.open();
    auto made = scene.prepare(scene.plan());
    ASSERT_TRUE(made) << step_of(made);
    EXPECT_TRUE((*made)->kill());
    EXPECT_NE(launched(**made, scene.clock), "launched");
}

TEST(LinuxHost, SecretsAreLentAndTakenBack) {
    host_scene scene;
    scene.without_images();
    scene.run("cat ~/.codex/auth.json; echo token-2 >~/.codex/new; mv ~/.codex/new "
              "~/.codex/auth.json");
    scene.open();
    auto plan = scene.plan();
    plan.secret_handles = {"codex-token"};
    auto end = run_once(scene, plan);
    EXPECT_EQ(end.shown, "token-1");
    EXPECT_EQ(end.troubles(), "");
    end = run_once(scene, plan);
    EXPECT_EQ(end.shown, "token-2\r\n");
    EXPECT_EQ(test::content_of(scene.place / "token"), "token-1");
    // What is no file any more is a trouble, and the lease stays.
    scene.run("rm ~/.codex/auth.json; ln -s /etc/passwd ~/.codex/auth.json");
    scene.open();
    plan.adapter_command_digest = scene.plan().adapter_command_digest;
    end = run_once(scene, plan);
    EXPECT_NE(end.troubles().find("lease.returned"), std::string::npos) << end.troubles();
    scene.run("cat ~/.codex/auth.json");
    scene.open();
    plan.adapter_command_digest = scene.plan().adapter_command_digest;
    EXPECT_EQ(run_once(scene, plan).shown, "token-2\r\n");
}

TEST(LinuxHost, WhatWasHashedIsWhatRuns) {
    host_scene scene;
    scene.without_images();
    auto launch = test::usual_launch();
    launch.executable_path = scene.place.file("tools/tool", "#!/bin/sh\necho good\n", 0755);
    launch.arguments.clear();
    scene.set(launch);
    scene.open();
    EXPECT_EQ(run_once(scene, scene.plan()).shown, "good\r\n");
    const auto evil = [&] {
        (void)scene.place.file("tools/new", "#!/bin/sh\necho evil\n", 0755);
        std::filesystem::rename(scene.place / "tools/new", launch.executable_path);
    };
    auto made = scene.prepare(scene.plan());
    ASSERT_TRUE(made) << step_of(made);
    evil();
    EXPECT_EQ(launched(**made, scene.clock).substr(0, 15), "program.changed");
    made = {};
    made = scene.prepare(scene.plan());
    ASSERT_TRUE(made) << step_of(made);
    ASSERT_EQ(launched(**made, scene.clock), "launched");
    (void)scene.place.file("tools/tool", "#!/bin/sh\necho good\n", 0755);
    (void)scene.place.file("tools/newer", "#!/bin/sh\necho worse\n", 0755);
    std::filesystem::rename(scene.place / "tools/newer", launch.executable_path);
    // Built already: the file that was pinned runs, and no other.
    EXPECT_NE(finished(**made, scene.clock).shown, "worse\r\n");
}

TEST(LinuxHost, BundlesAreMountedAsTheyWereFetched) {
    host_scene scene;
    scene.without_images();
    bundle_document document;
    document.source_library_ref = "bafy-codex";
    document.source_manifest_digest = test::digits('a');
    document.entries = {{"sage-core", bundle_kind::skill, sha("# Sage core\n"), "# Sage core\n"}};
    const auto text = encode(document).value();
    const auto name = sha(text) + ".json";
    const auto file = scene.place.file("library/" + name, text, 0600);
    scene.run("cat /opt/sage/library-bundles/" + name +
              " && ! echo x >>/opt/sage/library-bundles/" + name + " 2>/dev/null");
    scene.open();
    auto plan = scene.plan();
    plan.library_projections = {{"sage-core", sha(text), "libraries"}};
    scene.grant(plan, "site",
                access_kind::ephemeral_write); // the clock is asked while it is copied
    auto made = scene.prepare(plan);
    ASSERT_TRUE(made) << step_of(made);
    const auto facts = (*made)->facts();
    ASSERT_EQ(facts.library_projections.size(), 1U);
    EXPECT_EQ(facts.library_projections[0].target_path, "/opt/sage/library-bundles/" + name);
    ASSERT_EQ(launched(**made, scene.clock), "launched");
    const auto end = finished(**made, scene.clock);
    EXPECT_EQ(end.how, exited(0)) << end.shown;
    EXPECT_NE(end.shown.find("Sage core"), std::string::npos) << end.shown;
    made = {};

    const auto before = scene.traces();
    int looks = 0;
    scene.clock.meanwhile = [&] {
        if (++looks != 3) return;
        const auto changed = text + " ";
        std::ofstream{file} << changed;
    };
    EXPECT_EQ(step_of(scene.prepare(plan)).substr(0, 14), "bundle.changed");
    EXPECT_GE(looks, 3);
    scene.clock.meanwhile = {};
    EXPECT_EQ(scene.traces(), before);
}

TEST(LinuxHost, AComparisonIsEvaluatedByItsFixture) {
    host_scene scene;
    scene.without_images();
    bundle_document document;
    document.source_library_ref = "bafy-codex";
    document.source_manifest_digest = test::digits('a');
    document.entries = {{"skill", bundle_kind::skill, sha("# Skill\n"), "# Skill\n"}};
    const auto bundle = encode(document).value();
    (void)scene.place.file("library/" + sha(bundle) + ".json", bundle, 0600);
    scene.run("ls /opt/sage /opt/sage/library-bundles; echo all good; echo done");
    auto& chosen = scene.rules.runtime_templates[0];
    chosen.runtime_template_id = std::string{refinement_template_id};
    chosen.allowed_projection_destinations = {"libraries", "fixtures"};
    scene.open();
    auto plan = scene.plan();
    plan.runtime_template_id = std::string{refinement_template_id};
    plan.refinement = test::refinement_plan().refinement;
    auto& wanted = *plan.refinement;
    wanted.candidate.content_digest = sha(bundle);
    auto fixture = test::usual_fixture();
    fixture.candidate_projection_digest = fixture.skill_projection_digest = sha(bundle);
    fixture.assertions = {termination_cause::exited, 0, {"all good"}, {"panic"}, 200'000};
    wanted.matched_context_digest =
        matched_context_digest(fixture, refinement_context_digest(plan).value()).value();
    fixture.matched_context_digest = wanted.matched_context_digest;
    const auto text = encode(fixture).value();
    (void)scene.place.file("library/" + sha(text) + ".json", text, 0600);
    wanted.fixture.content_digest = sha(text);
    plan.library_projections = {wanted.fixture, wanted.candidate};

    const auto before = scene.traces();
    const auto other = scene.host->prepare(scene.record("session-2"), scene.sealed(plan));
    EXPECT_EQ(step_of(other).substr(0, 13), "fixture.match") << step_of(other);
    EXPECT_EQ(scene.traces(), before);

    auto made = scene.prepare(plan);
    ASSERT_TRUE(made) << step_of(made);
    EXPECT_EQ((*made)->facts().library_projections.size(), 1U);
    auto eye = (*made)->take_evaluator();
    ASSERT_TRUE(eye);
    EXPECT_FALSE((*made)->take_evaluator());
    ASSERT_EQ(launched(**made, scene.clock), "launched");
    const auto end = finished(**made, scene.clock);
    EXPECT_EQ(end.how, exited(0));
    EXPECT_FALSE(end.shown.contains("fixtures")) << end.shown; // only the service reads it
    EXPECT_TRUE(end.shown.contains(sha(bundle))) << end.shown;
    EXPECT_FALSE(end.shown.contains(sha(text))) << end.shown;
    ASSERT_TRUE(eye->feed(end.shown));
    const auto evidence = std::move(*eye).finish({termination_cause::exited, 0, 1'000, true});
    ASSERT_TRUE(evidence) << step_of(evidence);
    EXPECT_EQ(evidence->status, evidence_status::valid_outcome);
}

// A service of the host's own loopback that says one word to whoever comes.
struct one_word {
    sys::unique_fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    std::uint16_t port = 0;
    std::thread server;
    one_word() {
        ::sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ::socklen_t size = sizeof at;
        test::prepared(::bind(socket.get(), reinterpret_cast<::sockaddr*>(&at), size) == 0 &&
                           ::listen(socket.get(), 4) == 0 &&
                           ::getsockname(socket.get(), reinterpret_cast<::sockaddr*>(&at), &size) ==
                               0,
                       "listen");
        port = ntohs(at.sin_port);
        server = std::thread{[this] {
            for (;;) {
                const sys::unique_fd came{::accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC)};
                if (!came) return;
                (void)::write(came.get(), "word\n", 5);
            }
        }};
    }
    ~one_word() {
        (void)::shutdown(socket.get(), SHUT_RDWR);
        server.join();
    }
};

TEST(LinuxHost, AnOnlineSessionReachesWhatThePolicyNames) {
    host_scene scene;
    scene.without_images();
    const one_word service;
    const auto port = std::to_string(service.port);
    scene.rules.egress_policies = {{"model-only", {{"localhost", service.port, true}}}};
    auto launch = test::usual_launch();
    launch.executable_path = "/bin/bash";
    launch.arguments = {"-c", "echo $HTTP_PROXY; cat </dev/tcp/127.0.0.1/" + port +
                                  "; cat </dev/tcp/127.0.0.1/1 || echo refused"};
    scene.set(launch);
    scene.open();
    auto plan = scene.plan();
    plan.egress_policy_id = "model-only";
    auto made = scene.prepare(plan);
    ASSERT_TRUE(made) << step_of(made);
    const auto digest = (*made)->facts().profile_digest;
    ASSERT_EQ(launched(**made, scene.clock), "launched");
    const auto end = finished(**made, scene.clock);
    EXPECT_EQ(end.troubles(), "");
    EXPECT_NE(end.shown.find("http://127.0.0.1:61080"), std::string::npos) << end.shown;
    EXPECT_NE(end.shown.find("word"), std::string::npos) << end.shown;
    EXPECT_NE(end.shown.find("refused"), std::string::npos) << end.shown;
    const auto told = test::content_of(scene.egress_log);
    EXPECT_NE(told.find("egress_token_digest"), std::string::npos) << told;
    EXPECT_NE(told.find(digest), std::string::npos) << told;
    EXPECT_NE(told.find("localhost:" + port), std::string::npos) << told;
    EXPECT_NE(told.find("\"session-1\""), std::string::npos) << told;
}

// --- retained copies ---

// A session on record, as far as retained changes are told by it.
struct registry_scene {
    test::memory_files disk;
    test::memory_storage file{disk};
    std::unique_ptr<session_registry> sessions;
    explicit registry_scene(const a_clock& clock)
        : sessions{session_registry::open(file, {}, nullptr, clock).value()} {}

    void create(const host_scene& scene, const session_plan& plan, const std::string& id) {
        const auto sealed = scene.sealed(plan);
        auto made = sessions->create(
            "create-" + id, {id, sealed.digests.controller, sealed.text},
            [&](const create_session&) -> answer<sealed_plan> { return scene.sealed(plan); });
        ASSERT_TRUE(made) << made.error().why.step << made.error().why.detail;
        const auto now = scene.clock.ms();
        auto reserved = sessions->reserve_start(id + ".reserve",
                                                {1, "authorization", id, sealed.digests.controller,
                                                 sealed.digests.content, now, now + 100'000});
        ASSERT_TRUE(reserved) << reserved.error().why.step << reserved.error().why.detail;
    }
    void fail(const std::string& id) {
        ASSERT_TRUE(sessions->mark_failed(id + ".failed", id, "launch_failed"));
    }
    void run(const std::string& id, const start_binding& binding, const process_identity& who) {
        ASSERT_TRUE(sessions->mark_starting(id + ".starting", id, binding));
        ASSERT_TRUE(sessions->mark_running(id + ".running", id, who));
    }
    void end(const std::string& id) {
        ASSERT_TRUE(sessions->mark_failed(id + ".failed", id, "supervisor_error"));
    }
};

// To its end, with its records.
auto run_on_record(host_scene& scene, registry_scene& registry, const session_plan& plan,
                   const std::string& id) -> ended {
    registry.create(scene, plan, id);
    auto made = scene.host->prepare(registry.sessions->record(id).value(), scene.sealed(plan));
    if (!made) {
        ADD_FAILURE() << step_of(made);
        return {};
    }
    const auto who = (*made)->launch(scene.clock.monotonic() + patience);
    if (!who) {
        ADD_FAILURE() << step_of(who);
        return {};
    }
    registry.run(id, (*made)->binding(), *who);
    auto out = finished(**made, scene.clock);
    registry.end(id);
    return out;
}

TEST(LinuxHostImages, WhatASessionLeftIsToldAndKept) {
    host_scene scene;
    scene.run("cd /workspace/exposures/site; echo two >page; mkdir new; echo x >new/file");
    scene.open();
    registry_scene registry{scene.clock};
    ASSERT_TRUE(scene.host->retained(*registry.sessions)) << "no means for images";
    auto plan = scene.plan();
    scene.grant(plan, "site", access_kind::retained_write);
    const auto end = run_on_record(scene, registry, plan, "session-1");
    EXPECT_EQ(end.how, exited(0)) << end.shown;
    EXPECT_EQ(end.troubles(), "");
    ASSERT_EQ(end.remains.retained_changes.size(), 1U);
    const auto& changes = end.remains.retained_changes[0];
    EXPECT_EQ(changes.exposure_id, "site");
    EXPECT_EQ(changes.created, 2U);
    EXPECT_EQ(changes.modified, 1U);
    EXPECT_EQ(changes.removed, 0U);
    EXPECT_EQ(test::content_of(scene.code + "/site/page"), "one\n");

    const auto page = [&] {
        return scene.host->retained(*registry.sessions)->changes("session-1", "site", 0, 10);
    };
    const auto first = page();
    ASSERT_TRUE(first) << first.error().why.step << first.error().why.detail;
    EXPECT_NE(first->find(changes.manifest_digest), std::string::npos) << *first;
    scene.open(); // as after a restart: nothing is remembered
    scene.host->sweep(*registry.sessions);
    const auto again = page();
    ASSERT_TRUE(again) << again.error().why.step << again.error().why.detail;
    EXPECT_EQ(*again, *first);

    const auto refused = [&](const char* id, const char* exposure) {
        const auto told = scene.host->retained(*registry.sessions)->changes(id, exposure, 0, 10);
        return told ? "none" : std::string{told.error().why.step};
    };
    EXPECT_EQ(refused("session-1", "proj"), "retained.exposure");
    EXPECT_EQ(
        scene.host->retained(*registry.sessions)->changes("session-2", "site", 0, 10).error().code,
        error_code::session_not_found);
    registry.create(scene, plan, "session-3");
    EXPECT_EQ(refused("session-3", "site"), "retained.session");
}

TEST(LinuxHostImages, WhatCannotBeToldIsATroubleAndTheImageStays) {
    host_scene scene;
    scene.run("ln -s /etc/passwd /workspace/exposures/site/link");
    scene.open();
    registry_scene registry{scene.clock};
    auto plan = scene.plan();
    scene.grant(plan, "site", access_kind::retained_write);
    const auto end = run_on_record(scene, registry, plan, "session-1");
    EXPECT_TRUE(end.remains.retained_changes.empty());
    EXPECT_NE(end.troubles().find("tree.kind"), std::string::npos) << end.troubles();
    const auto told = scene.host->retained(*registry.sessions)->changes("session-1", "site", 0, 10);
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().code, error_code::retained_changes_unavailable);
    EXPECT_EQ(told.error().why.step, "tree.kind");
    const auto before = scene.traces();
    scene.host->sweep(*registry.sessions);
    EXPECT_EQ(scene.traces(), before);
}

TEST(LinuxHostImages, WhatAKilledSessionWroteIsTold) {
    host_scene scene;
    scene.run("cd /workspace/exposures; cat note; echo more >>note; echo two >site/page; "
              "echo begun; sleep 1000");
    scene.open();
    auto plan = scene.plan();
    scene.grant(plan, "note", access_kind::retained_write);
    scene.grant(plan, "site", access_kind::retained_write);
    auto made = scene.prepare(plan);
    ASSERT_TRUE(made) << step_of(made);
    ASSERT_EQ(launched(**made, scene.clock), "launched");
    const auto end = finished(**made, scene.clock, [&](const std::string& shown) {
        if (shown.contains("begun")) {
            EXPECT_TRUE((*made)->kill());
        }
    });
    EXPECT_EQ(end.how.what, process_end::how::signaled);
    EXPECT_EQ(end.shown, "a single file\r\nbegun\r\n");
    EXPECT_EQ(end.troubles(), "");
    ASSERT_EQ(end.remains.retained_changes.size(), 2U);
    for (const auto& one : end.remains.retained_changes) {
        EXPECT_EQ(one.modified, 1U) << one.exposure_id;
        EXPECT_EQ(one.created + one.renamed + one.removed, 0U) << one.exposure_id;
    }
    EXPECT_EQ(end.remains.retained_changes[0].exposure_id, "note");
    EXPECT_EQ(end.remains.retained_changes[0].after_bytes, 19U);
}

TEST(LinuxHostImages, OnlyWhatNobodyWroteIsRemoved) {
    host_scene scene;
    scene.open();
    registry_scene registry{scene.clock};
    auto plan = scene.plan();
    scene.grant(plan, "site", access_kind::retained_write);
    const auto before = scene.traces();
    registry.create(scene, plan, "session-1");
    const auto record = registry.sessions->record("session-1").value();
    {
        auto made = scene.host->prepare(record, scene.sealed(plan));
        ASSERT_TRUE(made) << step_of(made);
        EXPECT_NE(scene.traces(), before);
    }
    EXPECT_EQ(scene.traces(), before);
    // An earlier session of the id wrote to it: it is neither used nor removed.
    {
        auto made = scene.host->prepare(record, scene.sealed(plan));
        ASSERT_TRUE(made) << step_of(made);
        ASSERT_EQ(launched(**made, scene.clock), "launched");
        (void)finished(**made, scene.clock);
    }
    const auto kept = scene.traces();
    EXPECT_NE(kept, before);
    auto later = record;
    later.created_at_ms = scene.clock.ms() + 1;
    EXPECT_EQ(step_of(scene.host->prepare(later, scene.sealed(plan))).substr(0, 13),
              "prepare.image");
    EXPECT_EQ(scene.traces(), kept);
    // By the records, this one never ran, and its copy is not older: so it goes.
    registry.fail("session-1");
    scene.host->sweep(*registry.sessions);
    EXPECT_EQ(scene.traces(), before) << scene.log.text();
    EXPECT_NE(scene.log.text().find("session.image_removed"), std::string::npos);
}

// --- with the runtime ---

// A whole service's worth of parts, and one session after the other.
class service_scene {
public:
    host_scene scene;
    test::memory_files receipt_disk;
    receipt_journal receipts = test::journal_on(receipt_disk);
    test::controller archive;
    std::optional<registry_scene> registry;
    std::unique_ptr<session_runtime> runtime;

    std::function<void(session_plan&)> also;

    service_scene() {
        scene.without_images();
        scene.rules.resource_profiles[0].pids = 24;
        scene.rules.resource_profiles[0].memory_bytes = 64 * mib;
        scene.rules.resource_profiles[0].disk_bytes = 16 * mib;
    }
    // What a command in a shell ended as, by its receipt.
    auto receipt_of(const std::string& id, const std::string& command)
        -> std::optional<resource_receipt> {
        scene.run(command);
        runtime.reset();
        scene.open();
        if (!registry) registry.emplace(scene.clock);
        EXPECT_TRUE(archive.reconcile(receipts));
        runtime = session_runtime::create({.sessions = registry->sessions.get(),
                                           .receipts = &receipts,
                                           .rules = &scene.policy->rules(),
                                           .host = scene.host.get(),
                                           .clock = &scene.clock,
                                           .log = &scene.log},
                                          {.launch_time = patience})
                      .value();
        auto plan = scene.plan();
        if (also) also(plan);
        const auto sealed = scene.sealed(plan);
        EXPECT_TRUE(registry->sessions->create(
            "create-" + id, {id, sealed.digests.controller, sealed.text},
            [&](const create_session&) -> answer<sealed_plan> { return sealed; }));
        const auto now = scene.clock.ms();
        const auto started =
            runtime->start("start-" + id, {1, "authorization", id, sealed.digests.controller,
                                           sealed.digests.content, now, now + 100'000});
        EXPECT_TRUE(started) << test::why(started) << scene.log.text();
        const auto deadline = scene.clock.monotonic() + patience;
        while (scene.clock.monotonic() < deadline &&
               !is_terminal(registry->sessions->status(id).value().state))
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
        const auto page = runtime->attach(id, 0, 65'536);
        if (page) shown = page->bytes;
        const auto chain = receipts.page(archive.anchor, 15);
        EXPECT_TRUE(chain);
        if (!chain || chain->envelopes.size() != 1) {
            ADD_FAILURE() << "there is no receipt: " << scene.log.text();
            return std::nullopt;
        }
        return chain->envelopes[0].receipt;
    }
    auto cause_of(const std::string& id, const std::string& command) -> std::string {
        const auto receipt = receipt_of(id, command);
        return receipt ? std::string{to_string(receipt->cause)} : "none";
    }
    std::string shown;
};

TEST(LinuxHostRuntime, AWholeSessionEndsWithItsReceipt) {
    service_scene of;
    const auto receipt = of.receipt_of("session-1", "echo hello");
    ASSERT_TRUE(receipt);
    EXPECT_EQ(of.shown, "hello\r\n");
    EXPECT_EQ(receipt->cause, termination_cause::exited);
    EXPECT_EQ(receipt->exit_code, 0U);
    EXPECT_EQ(receipt->backend_id, "linux-production:cgroup-v2-v1");
    EXPECT_EQ(receipt->mechanisms, linux_mechanisms());
    EXPECT_EQ(receipt->observed.terminal_output_bytes, 7U);
    EXPECT_GT(receipt->observed.peak_memory_bytes, 0U);
    EXPECT_EQ(receipt->profile_digest,
              of.registry->sessions->record("session-1").value().launch_profile_digest);
    EXPECT_EQ(of.registry->sessions->status("session-1").value().state, session_state::exited);
    EXPECT_TRUE(the_groups->list().value().empty());
}

TEST(LinuxHostRuntime, EachLimitIsHeldAndItsTwinIsNot) {
    service_scene of;
    EXPECT_EQ(of.cause_of("disk-n", "head -c 8000000 /dev/zero >/tmp/x"), "exited");
    EXPECT_EQ(of.cause_of("disk", "head -c 32000000 /dev/zero >/tmp/x; sleep 100"), "disk_limit");
    EXPECT_EQ(of.cause_of("pids-n", "for i in 1 2 3 4 5; do sleep 1 & done; wait"), "exited");
    EXPECT_EQ(of.cause_of("pids", "for i in $(seq 40); do sleep 100 & done; wait"), "pid_limit");
    EXPECT_EQ(of.cause_of("memory", "x=$(head -c 200000000 /dev/zero | tr '\\0' x); sleep 100"),
              "memory_limit");
    EXPECT_EQ(of.cause_of("left", "exit 7"), "exited");
}

// The kernel ends everything in the group, what serves the image included.
TEST(LinuxHostRuntime, MemoryThatRunsOutDoesNotHideBehindAnImage) {
    service_scene of;
    of.scene.without_images(false);
    of.scene.rules.resource_profiles[0].disk_bytes = 128 * mib;
    of.also = [&](session_plan& plan) {
        of.scene.grant(plan, "site", access_kind::retained_write);
    };
    const auto receipt =
        of.receipt_of("session-1", "echo two >/workspace/exposures/site/page; "
                                   "x=$(head -c 200000000 /dev/zero | tr '\\0' x); sleep 100");
    ASSERT_TRUE(receipt);
    EXPECT_EQ(to_string(receipt->cause), "memory_limit") << of.scene.log.text();
    // Whatever fuse2fs had not written yet is gone; what there is is told or said not to be.
    const auto told =
        of.scene.host->retained(*of.registry->sessions)->changes("session-1", "site", 0, 10);
    EXPECT_EQ(told.has_value(), receipt->retained_changes.size() == 1)
        << (told ? *told : test::why(told)) << of.scene.log.text();
}

} // namespace
} // namespace glove::control

auto main(int count, char** words) -> int {
    using namespace glove;
    auto launcher = container::launcher::start(); // before there are threads
    if (!launcher) {
        std::fprintf(stderr, "%s: %s\n", std::string{launcher.error().step}.c_str(),
                     launcher.error().detail.c_str());
        return 1;
    }
    auto groups = container::session_groups::open();
    if (!groups) {
        std::fprintf(stderr, "%s: %s\n", std::string{groups.error().step}.c_str(),
                     groups.error().detail.c_str());
        return 1;
    }
    control::the_programs =
        std::filesystem::canonical("/proc/self/exe").parent_path().string() + "/../bin/";
    control::the_launcher = &*launcher;
    control::the_groups = &*groups;
    testing::InitGoogleTest(&count, words);
    return RUN_ALL_TESTS();
}
