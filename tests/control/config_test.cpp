#include "control/service_config_fields.hpp"
#include "support/folder.hpp"
#include "support/malformed.hpp"
#include <gmock/gmock.h>

namespace glove::control {
namespace {

using std::string;
using std::string_view;
using test::with_member;
using ::testing::HasSubstr;
using ::testing::Not;
using wire::json::value;

constexpr string_view minimal =
    R"({"schema_version":1,"persistent_service":false,"runtime_directory":"/s/runtime",)"
    R"("audit_key":"/s/audit.key","receipt_journal":"/s/receipts.journal"})";
constexpr string_view full =
    R"({"schema_version":1,"persistent_service":true,"runtime_directory":"/s/runtime",)"
    R"("audit_key":"/s/audit.key","receipt_journal":"/s/receipts.journal",)"
    R"("session_policy":"/c/session-policy.json","session_store":"/s/sessions.journal",)"
    R"("materialization_root":"/s/materializations","library_bundle_root":"/d/bundles",)"
    R"("path_exposure_policy":"/c/exposures.json","path_exposure_journal":"/s/exposures.journal",)"
    R"("apple_container":{"cli":"/usr/local/bin/container","image":"glove/guest",)"
    R"("image_digest":"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",)"
    R"("harness_closure_digest":)"
    R"("sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",)"
    R"("sage_guest":{"binary_digest":)"
    R"("sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",)"
    R"("source_revision":"0123456789abcdef0123456789abcdef01234567","policy_schema_version":1,)"
    R"("library_projection_schema":"sage_bundle_v1"}},)"
    R"("local_service_proxy":{"io_timeout_ms":1000,"max_concurrency":2,)"
    R"("guest_channel_adapter":{"adapter_id":"sage-observation",)"
    R"("channel_schema_id":"sage.glove-observation.v1","transport_id":"inherited-stream-v1"},)"
    R"("endpoints":[{"alias":"sage-observe","socket_path":"/run/user/1/sage/o.sock",)"
    R"("runtime_ids":["pi"]}]},"exchange_timeout_ms":250})";
constexpr string_view remote =
    R"({"host":"build.example","user":"glove","port":22,"host_public_key":"ssh-ed25519 )"
    R"(AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",)"
    R"("host_key_fingerprint":"SHA256:ZkAslGjFiUHdGf/WUL8rQvkib4PTvQatUV0OUQSncCA",)"
    R"("identity_file":"/c/id","executor_digest":)"
    R"("sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",)"
    R"("container_image":"registry.example:5000/glove/worker@)"
    R"(sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",)"
    R"("container_image_digest":)"
    R"("sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",)"
    R"("channel_timeout_ms":5000,"max_clock_skew_ms":1000,"max_sessions":4,)"
    R"("staging_root":"/var/stage"})";

auto tree_of(string_view text) -> value { return *wire::json::read(text); }
auto without(const value& in, string_view path, string_view name) -> value {
    return test::edited(in, path, [&](auto& members) {
        std::erase_if(members, [&](const auto& m) { return m.name == name; });
    });
}
auto step(const value& tree) -> string {
    const auto out = parse_service_config(wire::json::to_text(tree));
    return out ? "" : string{out.error().step};
}
auto why(const value& tree) -> string {
    const auto out = parse_service_config(wire::json::to_text(tree));
    return out ? "" : out.error().detail;
}
auto remote_config() -> value {
    auto tree = with_member(tree_of(minimal), "", "session_policy", "/c/session-policy.json");
    tree = with_member(tree, "", "session_store", "/s/sessions.journal");
    return with_member(tree, "", "remote_backend", tree_of(remote));
}

TEST(ServiceConfig, the_least_and_the_most_are_read_and_written) {
    for (const auto text : {minimal, full}) {
        const auto config = parse_service_config(text);
        ASSERT_TRUE(config) << config.error().detail;
        EXPECT_EQ(service_config_text(*config), string{text} + "\n");
        EXPECT_EQ(parse_service_config(*service_config_text(*config)), *config);
    }
    EXPECT_EQ(step(remote_config()), "");
}

TEST(ServiceConfig, every_way_of_breaking_it_is_refused) {
    const auto judge = [](string_view text) -> std::optional<error> {
        auto out = parse_service_config(text);
        if (out) return std::nullopt;
        return std::move(out).error();
    };
    const auto whole = tree_of(full);
    test::expect_each_to_be_refused(apple_fields, whole, "apple_container", judge);
    test::expect_each_to_be_refused(sage_guest_fields, whole, "apple_container/sage_guest", judge);
    test::expect_each_to_be_refused(local_service_fields, whole, "local_service_proxy", judge);
    test::expect_each_to_be_refused(guest_channel_fields, whole,
                                    "local_service_proxy/guest_channel_adapter", judge);
    test::expect_each_to_be_refused(endpoint_fields, whole, "local_service_proxy/endpoints/0",
                                    judge);
    test::expect_each_to_be_refused(remote_fields, remote_config(), "remote_backend", judge);
    // No configuration has all members at once: one of the two backends is wrong here.
    for (const auto& way : test::ways_of_breaking(
             config_fields, with_member(whole, "", "remote_backend", tree_of(remote)), "")) {
        if (way.step.empty()) continue;
        const auto problem = judge(way.text);
        EXPECT_EQ(problem ? problem->step : "", way.step) << way.what;
    }
}

TEST(ServiceConfig, members_need_each_other) {
    const auto all = tree_of(full);
    const auto lacks = [&](string_view name) { return without(all, "", name); };
    EXPECT_THAT(why(lacks("session_policy")), HasSubstr("$.session_store needs $.session_policy"));
    EXPECT_THAT(why(lacks("session_store")),
                HasSubstr("$.materialization_root needs $.session_store"));
    EXPECT_THAT(why(without(lacks("session_store"), "", "materialization_root")),
                HasSubstr("$.library_bundle_root needs $.session_store"));
    EXPECT_THAT(why(lacks("path_exposure_policy")), HasSubstr("needs $.path_exposure_policy"));
    EXPECT_THAT(why(lacks("path_exposure_journal")), HasSubstr("needs $.path_exposure_journal"));
    for (const string_view name :
         {"materialization_root", "library_bundle_root", "apple_container", "local_service_proxy"})
        EXPECT_EQ(step(lacks(name)), "") << name;
    EXPECT_EQ(step(without(lacks("path_exposure_policy"), "", "path_exposure_journal")), "");
    EXPECT_THAT(why(without(without(remote_config(), "", "session_store"), "", "session_policy")),
                HasSubstr("$.remote_backend needs $.session_policy"));
}

TEST(ServiceConfig, members_exclude_each_other) {
    const auto all = tree_of(full);
    for (const string_view name :
         {"materialization_root", "apple_container", "local_service_proxy"}) {
        value other;
        for (const auto& m : *all.as_object())
            if (m.name == name) other = m.data;
        EXPECT_EQ(step(with_member(remote_config(), "", name, other)), "config.excludes") << name;
    }
    EXPECT_EQ(step(with_member(remote_config(), "", "library_bundle_root", "/d/bundles")), "");
}

TEST(ServiceConfig, the_socket_can_be_named) {
    const auto all = tree_of(full);
    const auto of_size = [](std::size_t size) { return "/" + string(size - 1, 'r'); };
    EXPECT_EQ(step(with_member(all, "", "runtime_directory", of_size(95))), "");
    EXPECT_EQ(step(with_member(all, "", "runtime_directory", of_size(96))), "config.runtime");
}

TEST(ServiceConfig, no_two_members_name_one_file) {
    const auto all = tree_of(full);
    const std::array paths{"runtime_directory",    "audit_key",
                           "receipt_journal",      "session_policy",
                           "session_store",        "materialization_root",
                           "library_bundle_root",  "path_exposure_policy",
                           "path_exposure_journal"};
    for (const auto* name : paths) {
        if (string_view{name} != "audit_key") {
            EXPECT_EQ(step(with_member(all, "", name, "/s/audit.key")), "config.paths") << name;
        }
        if (string_view{name} == "receipt_journal") continue;
        for (const auto* derived :
             {"local-service-audit.jsonl", "control-audit.jsonl", "egress-audit.jsonl"})
            EXPECT_EQ(step(with_member(all, "", name, string{"/s/"} + derived)), "config.paths")
                << name;
        EXPECT_EQ(step(with_member(all, "", name, "/other/control-audit.jsonl")), "") << name;
    }
    const auto tree = tree_of(full);
    const auto* const runtime = tree.find("runtime_directory")->as_string();
    ASSERT_NE(runtime, nullptr);
    for (const auto* name : paths) {
        if (string_view{name} == "runtime_directory") continue;
        for (const auto* own : {"bootstrap-secret", "gloved.sock", "below/it"})
            EXPECT_EQ(step(with_member(all, "", name, *runtime + "/" + own)), "config.paths")
                << name;
        EXPECT_EQ(step(with_member(all, "", name, *runtime + "-2/file")), "") << name;
    }
    service_config at_root;
    at_root.receipt_journal = "/r";
    EXPECT_EQ(derived_files(at_root).front(), "/local-service-audit.jsonl");
}

TEST(ServiceConfig, endpoints_are_in_order_and_apart_from_the_services_own_files) {
    const auto all = tree_of(full);
    const auto with = [&](string_view endpoints) {
        return with_member(all, "local_service_proxy", "endpoints", tree_of(endpoints));
    };
    const auto one = [](string_view alias, string_view path, string_view runtimes = R"(["pi"])") {
        return string{R"({"alias":")"}.append(alias) + R"(","socket_path":")" + string{path} +
               R"(","runtime_ids":)" + string{runtimes} + "}";
    };
    EXPECT_EQ(step(with("[" + one("a", "/x/1") + "," + one("b", "/x/2") + "]")), "");
    EXPECT_THAT(why(with("[" + one("b", "/x/1") + "," + one("a", "/x/2") + "]")),
                HasSubstr("endpoints[1].alias"));
    EXPECT_EQ(step(with("[" + one("a", "/x/1") + "," + one("a", "/x/2") + "]")), "config.endpoint");
    EXPECT_THAT(why(with("[" + one("a", "/x/1") + "," + one("b", "/x/1") + "]")),
                HasSubstr("another endpoint"));
    EXPECT_EQ(step(with("[" + one("a", "/x/1", R"(["a","b"])") + "]")), "");
    EXPECT_EQ(step(with("[" + one("a", "/x/1", R"(["b","a"])") + "]")), "config.endpoint");
    EXPECT_EQ(step(with("[" + one("a", "/x/1", R"(["a","a"])") + "]")), "config.endpoint");
    EXPECT_EQ(step(with("[" + one("a", "/x/\xc3\xa9") + "]")), "config.endpoint");
    for (const string_view path :
         {"/s/runtime", "/s/runtime/x", "/s/materializations/a/b", "/s/audit.key", "/d/bundles/1"})
        EXPECT_THAT(why(with("[" + one("a", path) + "]")), HasSubstr("socket_path is in $."))
            << path;
    EXPECT_EQ(step(with("[" + one("a", "/s/runtimes") + "]")), "");
}

TEST(ServiceConfig, a_remote_backend_is_pinned_in_every_part) {
    const auto with = [](string_view name, const value& data) {
        return step(with_member(remote_config(), "remote_backend", name, data));
    };
    EXPECT_EQ(with("host", "10.0.0.1"), "");
    EXPECT_EQ(with("host", "fe80::1"), "");
    EXPECT_EQ(with("host", "-oProxyCommand=x"), "wire.grammar");
    EXPECT_EQ(with("host", "-x"), "config.backend");
    EXPECT_EQ(with("host", "a_b"), "config.backend");
    EXPECT_EQ(with("user", "_g-1"), "");
    for (const string_view user : {"Glove", "1a", "-a"})
        EXPECT_EQ(with("user", user), "config.backend");
    EXPECT_EQ(with("host_key_fingerprint", "SHA256:" + string(43, 'A')), "config.backend");
    for (const string_view key :
         {"ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
          "ssh-ed25519  AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
          "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f me",
          "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4",
          "ssh-ed25519 AAAA", "ssh-ed25519 "})
        EXPECT_EQ(with("host_public_key", key), "config.backend") << key;
    const auto digest = "sha256:" + string(64, 'a');
    for (const auto& image :
         {"worker:1@" + digest, "a/worker:latest@" + digest, "@" + digest, string{"worker"},
          "worker@sha256:" + string(64, 'b'), "a worker@" + digest, "worker@" + digest + "0"})
        EXPECT_EQ(with("container_image", image), "config.backend") << image;
    EXPECT_EQ(with("container_image", "worker@" + digest), "");
}

TEST(ServiceConfig, what_this_build_has_not_is_refused_by_name) {
    EXPECT_TRUE(check_supported(*parse_service_config(minimal)));
    const auto apple = check_supported(*parse_service_config(full));
    ASSERT_FALSE(apple);
    EXPECT_EQ(apple.error().step, "config.unsupported");
    EXPECT_THAT(apple.error().detail, HasSubstr("apple_container"));
    const auto far = check_supported(*parse_service_config(wire::json::to_text(remote_config())));
    ASSERT_FALSE(far);
    EXPECT_THAT(far.error().detail, HasSubstr("remote_backend"));
}

TEST(ServiceConfig, its_file_is_the_callers_alone_and_never_quoted) {
    const test::folder f;
    EXPECT_TRUE(load_service_config(f.file("good.json", minimal, 0600)));
    EXPECT_FALSE(load_service_config(f.file("open.json", minimal, 0640)));
    EXPECT_FALSE(load_service_config(f.link("link.json", f / "good.json")));
    EXPECT_FALSE(load_service_config(f / "none.json"));
    EXPECT_FALSE(load_service_config(f.file("empty.json", "", 0600)));
    const auto pad = [](std::size_t size) {
        return string{minimal} + string(size - minimal.size(), ' ');
    };
    EXPECT_TRUE(load_service_config(f.file("most.json", pad(most_config_bytes), 0600)));
    EXPECT_FALSE(load_service_config(f.file("over.json", pad(most_config_bytes + 1), 0600)));
    const auto bad = load_service_config(
        f.file("bad.json", R"({"schema_version":1,"persistent_service":"hush-hush"})", 0600));
    ASSERT_FALSE(bad);
    EXPECT_THAT(bad.error().detail, HasSubstr("bad.json"));
    EXPECT_THAT(bad.error().detail, HasSubstr("$.persistent_service"));
    EXPECT_THAT(bad.error().detail, Not(HasSubstr("hush")));
}

} // namespace
} // namespace glove::control
