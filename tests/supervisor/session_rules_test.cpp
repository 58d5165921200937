// The rules of a session policy: each row of its tables broken in every way, each rule that joins
// two members broken once, beside a twin that is allowed.
#include "policy_scene.hpp"
#include "supervisor/session_policy_fields.hpp"
#include <functional>
#include <gtest/gtest.h>
#include <support/malformed.hpp>

namespace {

using namespace glove;
using namespace glove::supervisor;
using test::digits;
using test::mib;
using test::usual_rules;
using wire::json::value;

auto judge(const std::string& text) -> std::optional<error> {
    const auto out = parse_session_rules(text);
    if (out) return std::nullopt;
    return out.error();
}
auto tree_of(const session_rules& rules) -> value {
    return *wire::json::read(session_rules_text(rules).value());
}
// "" when the rules are good; else step and sentence.
auto verdict(const session_rules& rules) -> std::string {
    const auto out = session_rules_text(rules);
    return out ? "" : std::string{out.error().step} + " " + out.error().detail;
}
using change = std::function<void(session_rules&)>;
auto after(const change& edit) -> std::string {
    auto rules = usual_rules();
    edit(rules);
    return verdict(rules);
}
// Of the first template's launch, with its digest made right again.
auto after_launch(const std::function<void(launch_template&)>& edit) -> std::string {
    return after([&](session_rules& r) {
        auto launch = *r.runtime_templates[0].launch;
        edit(launch);
        test::set_launch(r.runtime_templates[0], launch);
    });
}
auto after_discovery(const std::function<void(launch_template&)>& edit) -> std::string {
    return after([&](session_rules& r) {
        auto launch = *r.runtime_templates[2].launch;
        edit(launch);
        test::set_launch(r.runtime_templates[2], launch);
    });
}
auto numbered(std::string_view name, std::size_t number) -> std::string {
    auto digits_of = std::to_string(number);
    return std::string{name} + std::string(4 - digits_of.size(), '0') + digits_of;
}

// --- form ---

TEST(SessionRules, WhatIsWrittenReadsAsTheSame) {
    EXPECT_EQ(verdict(usual_rules()), "");
    const auto text = session_rules_text(usual_rules()).value();
    EXPECT_EQ(parse_session_rules(text).value(), usual_rules());
    EXPECT_EQ(session_rules_text(*parse_session_rules(text)).value(), text);
}

TEST(SessionRules, MembersMayComeInAnyOrder) {
    auto members = *tree_of(usual_rules()).as_object();
    std::reverse(members.begin(), members.end());
    EXPECT_EQ(parse_session_rules(wire::json::to_text(members)).value(), usual_rules());
}

TEST(SessionRules, EachRowIsEnforced) {
    const auto whole = tree_of(usual_rules());
    const auto all = [&](const auto& rows, std::string_view path) {
        test::expect_each_to_be_refused(rows, whole, path, judge);
    };
    all(session_rules_fields, "");
    all(alias_fields, "path_aliases/0");
    all(alias_access_fields, "path_aliases/0/access/1");
    all(destination_fields, "library_projection_destinations/1");
    all(profile_fields, "resource_profiles/1");
    all(egress_policy_fields, "egress_policies/0");
    all(secret_mount_fields, "secret_mounts/0");
    all(adoption_fields, "runtime_templates/1/adoption");
    // Members that may be left out are not in the text while they have their usual value.
    const auto target = tree_of([] {
        auto out = usual_rules();
        out.egress_policies[0].targets[0] = {"h", 80, true};
        return out;
    }());
    test::expect_each_to_be_refused(egress_target_fields, target, "egress_policies/0/targets/0",
                                    judge);
    auto launch = test::with_member(whole, "runtime_templates/2/launch", "executable_path", "");
    test::expect_each_to_be_refused(launch_fields, launch, "runtime_templates/2/launch", judge);
    launch = test::edited(whole, "runtime_templates/1",
                          [](auto& members) { std::swap(members.front(), members.back()); });
    test::expect_each_to_be_refused(template_fields, launch, "runtime_templates/1", judge);
}

TEST(SessionRules, WhatMayBeLeftOutHasAValueThatGivesNothing) {
    auto text = session_rules_text(usual_rules()).value();
    EXPECT_EQ(text.find("allow_private"), text.npos);
    const auto back = parse_session_rules(text).value();
    EXPECT_FALSE(back.egress_policies[0].targets[0].allow_private);
    EXPECT_EQ(back.egress_policies[0].targets[0].port, 443);
}

TEST(SessionRules, ManyAreAllowedAndOneMoreIsNot) {
    for (const std::size_t over : {0U, 1U}) {
        const std::string no = over == 0 ? "" : "wire.length ";
        const auto starts = [&](const std::string& what) {
            EXPECT_EQ(what.substr(0, no.size()), no);
            EXPECT_EQ(what.empty(), over == 0) << what;
        };
        starts(after([&](auto& r) {
            while (r.runtime_templates.size() < 64 + over)
                r.runtime_templates.push_back(
                    test::usual_template(numbered("t", r.runtime_templates.size())));
        }));
        starts(after([&](auto& r) {
            while (r.path_aliases.size() < 64 + over) {
                const auto name = numbered("a", r.path_aliases.size());
                r.path_aliases.push_back(
                    {name, "/srv/" + name, "/desk/" + name, 1, {test::read_by_bind()}});
            }
        }));
        starts(after([&](auto& r) {
            while (r.resource_profiles.size() < 64 + over) {
                const auto size = r.resource_profiles.size();
                r.resource_profiles.push_back({numbered("p", size), size, 1, 1, 1, 1, 1});
            }
        }));
        starts(after([&](auto& r) {
            auto& list = r.library_projection_destinations;
            while (list.size() < 128 + over) {
                const auto name = numbered("d", list.size());
                list.push_back({name, "/opt/" + name});
            }
        }));
        for (auto member : {&session_rules::egress_policy_ids, &session_rules::tool_policy_ids,
                            &session_rules::secret_handles})
            starts(after([&](auto& r) {
                auto& list = r.*member;
                while (list.size() < 128 + over) list.push_back(numbered("n", list.size()));
            }));
        starts(after([&](auto& r) {
            auto& list = r.egress_policies[0].targets;
            while (list.size() < 128 + over) list.push_back({numbered("h", list.size()), 1, false});
        }));
        starts(after([&](auto& r) {
            r.secret_handles.clear();
            r.secret_mounts.clear();
            for (std::size_t i = 0; i < 128 + over; ++i) {
                const auto name = numbered("s", i);
                if (i < 128) r.secret_handles.push_back(name);
                r.secret_mounts.push_back({name, "codex", "/etc/x", "/home/agent/" + name});
            }
        }));
        starts(after_launch([&](auto& l) { l.arguments.assign(256 + over, "a"); }));
        starts(after_launch([&](auto& l) { l.arguments = {std::string(65'536 + over, 'a')}; }));
        starts(after_launch([&](auto& l) {
            l.environment.clear();
            for (std::size_t i = 0; i < 256 + over; ++i)
                l.environment.push_back(numbered("V", i) + "=");
        }));
        starts(after_launch([&](auto& l) {
            for (std::size_t i = 0; i < 256 + over; ++i)
                l.read_only_paths.push_back("/opt/" + numbered("r", i));
        }));
        starts(after_launch(
            [&](auto& l) { l.executable_path = "/" + std::string(4095 + over, 'a'); }));
    }
}

TEST(SessionRules, AFileThatIsTooLongIsRefused) {
    auto text = session_rules_text(usual_rules()).value();
    text.append((1U << 20U) - text.size(), ' ');
    EXPECT_FALSE(judge(text));
    EXPECT_EQ(judge(text + " ")->step, "json.size");
}

// --- templates ---

TEST(SessionRules, ALaunchHasTheDigestThatOthersCompute) {
    auto launch = test::usual_launch();
    const auto digest = [&] { return launch_template_digest(launch).value(); };
    EXPECT_EQ(digest(), "0129a3a97cacbef9bd8a2df44ea3b1e01ae8dad706cbe0c27c2237881b5107e7");
    launch.read_only_paths = {"/opt/operator-harness/codex-runtime"};
    EXPECT_EQ(digest(), "e66c0652fedc80fcdfe875761036053f973708ad72207e388c07de41553c4e33");
    const std::string root = "/opt/glove/runtime/cloudflare-os";
    launch = {.runtime_discovery = {},
              .executable_path = root + "/node-v25/bin/node",
              .executable_search_paths = {},
              .arguments = {root + "/closure/scripts/run-local.mjs"},
              .environment = {},
              .read_only_paths = {root + "/closure"}};
    EXPECT_EQ(digest(), "2c3af3985743cc37adbc120a49290f48ac04ddc1e3bde1aa16fee8301a259cee");
    launch = {.runtime_discovery = "codex",
              .executable_path = {},
              .executable_search_paths = {"/opt/harness/bin"},
              .arguments = {"--version"},
              .environment = {"PATH=/usr/bin:/bin"},
              .read_only_paths = {}};
    EXPECT_EQ(digest(), "81a772e22bb3903078701775b3f0c358992ccb3c1661dd0b1d5cf9159d83a5c4");
}

TEST(SessionRules, EveryMemberOfALaunchIsPartOfItsDigest) {
    std::vector<std::string> seen;
    const auto note = [&](const std::function<void(launch_template&)>& edit) {
        auto launch = *usual_rules().runtime_templates[2].launch;
        edit(launch);
        seen.push_back(launch_template_digest(launch).value());
    };
    note([](auto&) {});
    note([](auto& l) { l.runtime_discovery = "pi"; });
    note([](auto& l) { l.runtime_discovery = ""; });
    note([](auto& l) { l.executable_path = "/x"; });
    note([](auto& l) { l.executable_search_paths.emplace_back("/x"); });
    note([](auto& l) { l.arguments.emplace_back("x"); });
    note([](auto& l) { l.arguments = {"--vers", "ion"}; });
    note([](auto& l) { l.environment.clear(); });
    note([](auto& l) { l.read_only_paths.clear(); });
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
}

TEST(SessionRules, ALaunchThatIsNotTheOneOfItsDigestIsRefusedWithTheRightDigest) {
    auto rules = usual_rules();
    rules.runtime_templates[0].adapter_command_digest = digits('0');
    const auto out = session_rules_text(rules);
    EXPECT_EQ(out.error().step, "policy.template_digest");
    EXPECT_EQ(out.error().detail, "$.runtime_templates[0].adapter_command_digest is not the digest "
                                  "of the template's launch");
    EXPECT_NE(
        out.error().remedy.find("0129a3a97cacbef9bd8a2df44ea3b1e01ae8dad706cbe0c27c2237881b5107e7"),
        std::string::npos);
    // The digest of a form without the list of read-only paths was in use once.
    rules.runtime_templates[0].adapter_command_digest =
        "05a49649e7973f6f8d6b119c9d525472517e6021fb38f8b191e0b40c8c4741d0";
    EXPECT_EQ(session_rules_text(rules).error().step, "policy.template_digest");
    rules.runtime_templates[0].launch.reset(); // then it stands for something outside
    EXPECT_EQ(verdict(rules), "");
}

TEST(SessionRules, ATemplateRefersToWhatThereIs) {
    const std::string at = "$.runtime_templates[0].";
    EXPECT_EQ(after([](auto& r) { r.runtime_templates[0].allowed_path_aliases = {"other"}; }),
              "policy.reference " + at + "allowed_path_aliases[0] is not in path_aliases");
    EXPECT_EQ(after([](auto& r) {
                  r.runtime_templates[0].allowed_projection_destinations.emplace_back("x");
              }),
              "policy.reference " + at +
                  "allowed_projection_destinations[1] is not in library_projection_destinations");
    EXPECT_EQ(after([](auto& r) {
                  r.runtime_templates[0].allowed_path_aliases = {"workspace", "workspace"};
              }),
              "policy.unique " + at + "allowed_path_aliases[1] appears twice");
    EXPECT_EQ(after([](auto& r) { r.runtime_templates[0].allowed_path_aliases.clear(); }), "");
    EXPECT_EQ(after([](auto& r) { r.runtime_templates[1].runtime_template_id = "codex-safe"; }),
              "policy.unique $.runtime_templates[1].runtime_template_id is what an earlier entry "
              "has, too");
}

TEST(SessionRules, AProgramIsNamedOrLookedForButNotBoth) {
    const std::string at = "policy.launch $.runtime_templates[";
    for (const auto* bad : {"", "true", "/", "/usr/../bin/true", "/usr//bin/true", "/usr/bin/"})
        EXPECT_EQ(after_launch([&](auto& l) { l.executable_path = bad; }),
                  at + "0].launch.executable_path is not an absolute path in its shortest form");
    EXPECT_EQ(after_launch([](auto& l) { l.executable_search_paths = {"/opt"}; }),
              at +
                  "0].launch.executable_search_paths is for templates with runtime_discovery only");
    EXPECT_EQ(after_discovery([](auto& l) { l.runtime_discovery = "bash"; }),
              at + "2].launch.runtime_discovery is none of codex, claude-code, pi, copilot and "
                   "opencode");
    EXPECT_EQ(after_discovery([](auto& l) { l.runtime_discovery = "opencode"; }),
              at + "2].launch.runtime_discovery is not the template's runtime_id");
    EXPECT_EQ(after_discovery([](auto& l) { l.executable_path = "/opt/x"; }),
              at + "2].launch.executable_path is for templates without runtime_discovery only");
    EXPECT_EQ(after_discovery([](auto& l) { l.executable_search_paths.clear(); }),
              at + "2].launch.executable_search_paths is empty");
    EXPECT_EQ(after_discovery([](auto& l) { l.executable_search_paths = {"/a", "/a/b"}; }),
              "policy.overlap $.runtime_templates[2].launch.executable_search_paths[1] overlaps "
              "$.runtime_templates[2].launch.executable_search_paths[0]");
    EXPECT_EQ(after_discovery([](auto& l) { l.executable_search_paths = {"/a", "/ab"}; }), "");
    for (const auto* known : {"codex", "claude-code", "copilot", "opencode"})
        EXPECT_EQ(after([&](auto& r) {
                      auto& t = r.runtime_templates[2];
                      auto launch = *t.launch;
                      launch.runtime_discovery = t.runtime_id = known;
                      test::set_launch(t, launch);
                  }),
                  "");
}

TEST(SessionRules, ReadOnlyPathsAreApartAndMayHoldTheProgram) {
    EXPECT_EQ(after_launch([](auto& l) { l.read_only_paths = {"/opt/a", "/opt/a"}; }),
              "policy.overlap $.runtime_templates[0].launch.read_only_paths[1] overlaps "
              "$.runtime_templates[0].launch.read_only_paths[0]");
    EXPECT_EQ(
        after_launch([](auto& l) { l.read_only_paths = {"/opt/a/b", "/opt/a"}; }).substr(0, 14),
        "policy.overlap");
    EXPECT_EQ(after_launch([](auto& l) { l.read_only_paths = {"/usr/bin", "/opt/a"}; }), "");
}

TEST(SessionRules, AnEnvironmentIsSortedUniqueAndNotGlovesOwn) {
    const auto environment = [](std::vector<std::string> entries) {
        return after_launch([&](auto& l) { l.environment = entries; });
    };
    const std::string at = "$.runtime_templates[0].launch.environment[";
    const auto own = at + "0] sets a variable that glove sets itself";
    for (const auto* name :
         {"HOME", "TMPDIR", "GLOVE_SANDBOXED", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
          "http_proxy", "https_proxy", "all_proxy", "GLOVE_LOCAL_SERVICE_DIR",
          "GLOVE_LOCAL_SERVICE_FDS_V1", "GLOVE_LOCAL_SERVICE_"})
        EXPECT_EQ(environment({std::string{name} + "=x"}), "policy.environment " + own) << name;
    EXPECT_EQ(environment({"GLOVE_LOCAL=1", "HOMES=x", "_=y", "a1=", "b=c=d"}), "");
    for (const auto* bad : {"NAME", "=x", "1A=x", "A-B=x", "A B=x", " A=x", "\xc3\xa4=x"})
        EXPECT_EQ(environment({bad}),
                  "policy.environment " + at +
                      "0] is not NAME=VALUE with a name of letters, digits and _")
            << bad;
    EXPECT_EQ(environment({"B=1", "A=1"}),
              "policy.order " + at + "1] does not come after the one before it");
    EXPECT_EQ(environment({"A=1", "A=2"}),
              "policy.unique " + at + "1] sets a variable that an earlier entry sets");
    EXPECT_EQ(environment({"A=2", "A1=0", "A=1"}).substr(0, 13), "policy.unique");
    EXPECT_EQ(environment({"A=1\n"}), "");
    EXPECT_EQ(environment({std::string{"A=\0", 3}}).substr(0, 12), "wire.grammar");
}

TEST(SessionRules, PiDoesNotStartWithoutAdoption) {
    EXPECT_EQ(after([](auto& r) { r.runtime_templates[1].adoption.reset(); }),
              "policy.adoption $.runtime_templates[1].adoption is missing, and pi does not start "
              "without it");
    EXPECT_EQ(after([](auto& r) {
                  r.runtime_templates[1].adoption.reset();
                  r.runtime_templates[1].launch.reset(); // never started
              }),
              "");
}

// --- aliases ---

TEST(SessionRules, AccessAndMaterializationGoTogether) {
    struct row {
        access_kind access;
        materialization_kind form;
        creation_kind create;
        cleanup_kind end;
        std::uint64_t bytes;
    };
    // The rule once more, as sentences of another shape.
    const auto legal = [](const row& r) {
        const bool bind = r.form == materialization_kind::bind;
        const bool tree = r.form == materialization_kind::git_worktree;
        if (tree != (r.create == creation_kind::git_worktree)) return false;
        switch (r.access) {
        case access_kind::read:
            return r.bytes == 0 &&
                   (!bind || (r.end == cleanup_kind::retain && r.create == creation_kind::never));
        case access_kind::ephemeral_write:
            return !bind && r.bytes > 0 && r.end == cleanup_kind::remove;
        case access_kind::retained_write:
            return !bind && r.bytes > 0 && r.end == cleanup_kind::retain;
        case access_kind::direct_write:
            return bind && r.bytes == 0 && r.end == cleanup_kind::retain &&
                   r.create == creation_kind::never;
        }
        return false;
    };
    int good = 0;
    for (int a = 0; a < 4; ++a)
        for (int m = 0; m < 4; ++m)
            for (int c = 0; c < 3; ++c)
                for (int e = 0; e < 2; ++e)
                    for (const std::uint64_t bytes : {0U, 1U}) {
                        const row r{
                            static_cast<access_kind>(a), static_cast<materialization_kind>(m),
                            static_cast<creation_kind>(c), static_cast<cleanup_kind>(e), bytes};
                        const auto said = after([&](auto& rules) {
                            rules.path_aliases[0].access = {
                                {r.access, r.form, r.create, r.end, r.bytes}};
                        });
                        EXPECT_EQ(said.empty(), legal(r))
                            << a << m << c << e << bytes << ": " << said;
                        if (!said.empty()) {
                            EXPECT_TRUE(
                                said.starts_with("policy.access $.path_aliases[0].access[0]."))
                                << said;
                        }
                        good += legal(r) ? 1 : 0;
                    }
    EXPECT_EQ(good, 22);
}

TEST(SessionRules, AnAliasHasOneEntryForEachAccess) {
    EXPECT_EQ(after([](auto& r) { r.path_aliases[0].access.push_back(test::read_by_bind()); }),
              "policy.unique $.path_aliases[0].access[2] is of an access that an earlier entry is "
              "of");
    EXPECT_EQ(after([](auto& r) { r.path_aliases[0].access.pop_back(); }), "");
    EXPECT_EQ(after([](auto& r) { r.path_aliases[0].access.clear(); }).substr(0, 11),
              "wire.length");
}

TEST(SessionRules, SomePathsOfTheHostAreNeverHandedOut) {
    const auto host = [](const std::string& path) {
        return after([&](auto& r) { r.path_aliases[0].host_path = path; });
    };
    const std::string at = "policy.host_path $.path_aliases[0].host_path ";
    for (const auto* path :
         {"/dev", "/dev/shm/x", "/proc", "/proc/self", "/run", "/run/user/1000", "/sys", "/sys/fs"})
        EXPECT_EQ(host(path), at + "is inside of /dev, /proc, /run or /sys") << path;
    for (const auto* path :
         {"/home/you/.ssh", "/.aws", "/a/.azure/b", "/a/.gnupg", "/a/.kube/x", "/a/.sage"})
        EXPECT_EQ(host(path), at + "is in a directory that holds credentials") << path;
    for (const auto* path : {"/root", "/var/root", "/home/you", "/Users/you"})
        EXPECT_EQ(host(path), at + "is the whole home of a user") << path;
    for (const auto* path : {"/devel", "/srv/run", "/root/project", "/home/you/project", "/home",
                             "/Users", "/home/you/ssh", "/a/.sshd", "/var/root/x"})
        EXPECT_EQ(host(path), "") << path;
    EXPECT_EQ(host("/a/../b").substr(0, 12), "wire.grammar");
}

TEST(SessionRules, SomePlacesOfTheSandboxAreNeverCovered) {
    const auto target = [](const std::string& path) {
        return after([&](auto& r) { r.path_aliases[0].target_path = path; });
    };
    const std::string at = "policy.target_path $.path_aliases[0].target_path ";
    for (const std::string path :
         {"/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr"})
        for (const auto& below : {path, path + "/x"})
            EXPECT_EQ(target(below), at + "is inside of the sandbox's own system") << below;
    for (const auto* path : {"/tmp", "/tmp/x", "/var/tmp", "/var/tmp/x", "/var"})
        EXPECT_EQ(target(path), at + "overlaps /proc, /tmp or /var/tmp") << path;
    for (const auto* path : {"/workspace", "/binary", "/home/agent/x", "/var/lib", "/tmpx"})
        EXPECT_EQ(target(path), "") << path;
}

TEST(SessionRules, AliasesAreApart) {
    const auto second = [](std::string name, std::string host, std::string target) {
        return after([&](auto& r) {
            r.path_aliases.push_back({name, host, target, 1, {test::read_by_bind()}});
        });
    };
    EXPECT_EQ(second("workspace", "/srv/b", "/b"),
              "policy.unique $.path_aliases[1].alias appears twice");
    EXPECT_EQ(second("b", "/srv/project/b", "/b"),
              "policy.overlap $.path_aliases[1].host_path overlaps $.path_aliases[0].host_path");
    EXPECT_EQ(second("b", "/srv", "/b").substr(0, 14), "policy.overlap");
    EXPECT_EQ(
        second("b", "/srv/b", "/workspace/b"),
        "policy.overlap $.path_aliases[1].target_path overlaps $.path_aliases[0].target_path");
    EXPECT_EQ(second("b", "/srv/project2", "/workspace2"), "");
}

TEST(SessionRules, DestinationsAreApartAndOutsideOfReservedPlaces) {
    const auto place = [](const std::string& path) {
        return after([&](auto& r) { r.library_projection_destinations[1].target_path = path; });
    };
    for (const auto* path :
         {"/dev", "/proc/x", "/run", "/run/x", "/sys", "/tmp", "/tmp/x", "/var/tmp/x", "/var"})
        EXPECT_EQ(place(path),
                  "policy.target_path $.library_projection_destinations[1].target_path overlaps "
                  "/dev, /proc, /run, /sys, /tmp or /var/tmp")
            << path;
    EXPECT_EQ(place("/opt/sage/library-bundles/x"),
              "policy.overlap $.library_projection_destinations[1].target_path overlaps "
              "$.library_projection_destinations[0].target_path");
    EXPECT_EQ(place("/opt/sage/library-bundles2"), "");
    EXPECT_EQ(after([](auto& r) { r.library_projection_destinations[1].alias = "libraries"; }),
              "policy.unique $.library_projection_destinations[1].alias is what an earlier entry "
              "has, too");
}

// --- profiles, egress, secrets ---

TEST(SessionRules, ProfilesDifferInNameAndBounds) {
    EXPECT_EQ(after([](auto& r) { r.resource_profiles[1].profile_id = "tiny"; }).substr(0, 47),
              "policy.unique $.resource_profiles[1].profile_id");
    EXPECT_EQ(after([](auto& r) {
                  r.resource_profiles[1] = r.resource_profiles[0];
                  r.resource_profiles[1].profile_id = "other";
              }),
              "policy.unique $.resource_profiles[1] is what an earlier entry has, too");
    for (auto member : {&resource_profile::cpu_time_ms, &resource_profile::memory_bytes,
                        &resource_profile::wall_time_ms, &resource_profile::disk_bytes,
                        &resource_profile::terminal_output_bytes})
        EXPECT_EQ(after([&](auto& r) {
                      r.resource_profiles[1] = r.resource_profiles[0];
                      r.resource_profiles[1].profile_id = "other";
                      ++(r.resource_profiles[1].*member);
                  }),
                  "");
}

TEST(SessionRules, APlanLastsLongerThanItsSession) {
    const auto with = [](std::uint64_t ttl, std::uint64_t wall) {
        return after([&](auto& r) {
            r.max_plan_ttl_ms = ttl;
            for (auto& p : r.resource_profiles) p.wall_time_ms = wall;
        });
    };
    const std::string no = "policy.plan_ttl $.resource_profiles[0].wall_time_ms is more than "
                           "max_plan_ttl_ms less 1000: its sessions would outlive their plan";
    EXPECT_EQ(with(1001, 1), "");
    EXPECT_EQ(with(1000, 1), no);
    EXPECT_EQ(with(999, 1), no);
    EXPECT_EQ(with(UINT64_MAX, UINT64_MAX - 1000), "");
    EXPECT_EQ(with(UINT64_MAX, UINT64_MAX - 999), no);
    EXPECT_EQ(with(1, UINT64_MAX), no);
}

TEST(SessionRules, EgressNamesWhatIsListedOnce) {
    EXPECT_EQ(after([](auto& r) { r.egress_policies[0].policy_id = "other"; }),
              "policy.reference $.egress_policies[0].policy_id is not in egress_policy_ids");
    EXPECT_EQ(
        after([](auto& r) { r.egress_policies.push_back(r.egress_policies[0]); }).substr(0, 44),
        "policy.unique $.egress_policies[1].policy_id");
    EXPECT_EQ(after([](auto& r) { r.egress_policies[0].targets[0].host = "a b"; }),
              "policy.egress $.egress_policies[0].targets[0].host holds a space");
    EXPECT_EQ(after([](auto& r) {
                  r.egress_policies[0].targets.push_back({"API.example.com", 443, true});
              }),
              "policy.unique $.egress_policies[0].targets[1] is the host and port of an earlier "
              "entry");
    EXPECT_EQ(after([](auto& r) {
                  r.egress_policies[0].targets.push_back({"api.example.com", 444, true});
              }),
              "");
    EXPECT_EQ(after([](auto& r) { r.egress_policies.clear(); }), "");
    EXPECT_TRUE(means_no_network("no-network") && means_no_network("deny-all"));
    EXPECT_FALSE(means_no_network("model-only") || means_no_network(""));
}

TEST(SessionRules, ListsOfNamesHaveNoneTwiceInAnyOrder) {
    for (auto member : {&session_rules::egress_policy_ids, &session_rules::tool_policy_ids,
                        &session_rules::secret_handles}) {
        EXPECT_EQ(after([&](auto& r) { (r.*member).push_back((r.*member).front()); }).substr(0, 13),
                  "policy.unique");
        EXPECT_EQ(after([&](auto& r) { (r.*member).emplace_back("a"); }), ""); // unsorted
    }
}

TEST(SessionRules, ASecretIsMountedBelowTheHomeOfARuntimeThatThereIs) {
    const auto mount = [](const std::function<void(secret_mount&)>& edit) {
        return after([&](auto& r) { edit(r.secret_mounts[0]); });
    };
    EXPECT_EQ(mount([](auto& m) { m.handle = "other"; }),
              "policy.reference $.secret_mounts[0].handle is not in secret_handles");
    EXPECT_EQ(mount([](auto& m) { m.runtime_id = "opencode"; }),
              "policy.reference $.secret_mounts[0].runtime_id is the runtime of no template");
    for (const auto* path : {"/home/agent", "/home/agents/x", "/etc/x", "/home"})
        EXPECT_EQ(mount([&](auto& m) { m.target_path = path; }),
                  "policy.target_path $.secret_mounts[0].target_path is not below /home/agent")
            << path;
    const auto second = [](std::string handle, std::string runtime, std::string target) {
        return after([&](auto& r) {
            r.secret_handles.emplace_back("other");
            r.secret_mounts.push_back({handle, runtime, "/etc/other", target});
        });
    };
    EXPECT_EQ(second("codex-token", "codex", "/home/agent/x").substr(0, 40),
              "policy.unique $.secret_mounts[1].handle ");
    EXPECT_EQ(second("other", "codex", "/home/agent/.codex"),
              "policy.overlap $.secret_mounts[1].target_path overlaps that of an earlier entry of "
              "the runtime");
    EXPECT_EQ(second("other", "pi", "/home/agent/.codex/auth.json"), "");
    EXPECT_EQ(after([](auto& r) {
                  r.secret_handles = {std::string(120, 'h')};
                  r.secret_mounts[0].handle = r.secret_handles[0];
              }),
              "");
}

TEST(SessionRules, AComplaintNeverQuotesAValue) {
    const std::string secret = "hunter2-hunter2";
    const auto quiet = [&](const std::string& said) {
        EXPECT_FALSE(said.empty());
        EXPECT_EQ(said.find(secret), said.npos) << said;
    };
    quiet(after_launch([&](auto& l) { l.environment = {"HOME=" + secret}; }));
    quiet(after_launch([&](auto& l) { l.environment = {secret}; }));
    quiet(after_launch([&](auto& l) { l.environment = {"B=" + secret, "A=" + secret}; }));
    quiet(after_launch([&](auto& l) { l.arguments = {std::string{"\0", 1} + secret}; }));
    quiet(after([&](auto& r) { r.runtime_templates[0].launch->arguments = {secret}; }));
    quiet(after([&](auto& r) { r.secret_mounts[0].source_path = secret; }));
    quiet(after([&](auto& r) { r.secret_handles = {secret + "/"}; }));
    auto text = session_rules_text(usual_rules()).value();
    text.insert(text.size() / 2, "\"" + secret);
    const auto problem = judge(text);
    ASSERT_TRUE(problem);
    quiet(problem->detail);
}

} // namespace
