#include "good_calls.hpp"
#include <gmock/gmock.h>

namespace glove::control {
namespace {

using std::string;
using std::string_view;
using test::digits;
using test::good_call_of;
using test::whole_service;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

TEST(Capabilities, with_everything) {
    whole_service s;
    const auto said = s.ask("capabilities");
    EXPECT_EQ(said,
              R"({"schema_version":1,"receipt_audit":{"envelope_schema_version":1,)"
              R"("algorithm":"hmac_sha256","key_id":")" +
                  s.key_id() +
                  R"("},"session_control":{"validate_plan":true,"create_session":true,)"
                  R"("start_session":true,"session_status":true,"attach":true,"resize":true,)"
                  R"("write_stdin":true,"signal":true,"detach":true,"stop_session":true,)"
                  R"("cleanup_session":true},"agent_runtime_adapter_schema_version":1,)"
                  R"("managed_runtime_ids":["codex","pi"],"path_exposure_admin_schema_version":1,)"
                  R"("path_exposure_catalog_schema_version":1,"retained_write_schema_version":1,)"
                  R"("change_manifest_schema_version":1,)"
                  R"("change_apply_authorization_schema_version":0,)"
                  R"("refinement_evaluation_protocol_schema_version":1,)"
                  R"("observation_intent_channel_schema_version":1,"backends":[)"
                  R"({"backend":"linux_production","resource_enforcement":{"cpu_time":"cgroup_v2",)"
                  R"("memory":"cgroup_v2","pids":"cgroup_v2","wall_time":"watchdog",)"
                  R"("disk":"filesystem_quota","terminal_output":"byte_counter",)"
                  R"("receipt_schema_version":1}},{"backend":"apple_container",)"
                  R"("resource_enforcement":{"cpu_time":"unavailable","memory":"unavailable",)"
                  R"("pids":"unavailable","wall_time":"unavailable","disk":"unavailable",)"
                  R"("terminal_output":"unavailable","receipt_schema_version":0}}]})");
}

// Nothing can be written any more; looking goes on.
TEST(Capabilities, what_cannot_be_written_is_not_advertised) {
    whole_service s;
    const auto call = [&](string_view method, string_view key) {
        return s.ask(method, good_call_of(s, method).payload, string{key});
    };
    EXPECT_THAT(call("create_session", "k1"), HasSubstr("session-1"));
    EXPECT_THAT(call("create_path_exposure", "e1"), HasSubstr("proj"));
    s.break_session_disk();
    EXPECT_EQ(s.ask("create_session", s.creation("session-2"), "k2"), "session_storage_failed");
    auto said = s.ask("capabilities");
    EXPECT_THAT(said, HasSubstr(R"("validate_plan":true,"create_session":false,)"
                                R"("start_session":false,"session_status":true,)"));
    EXPECT_THAT(said, HasSubstr(R"("agent_runtime_adapter_schema_version":0,)"
                                R"("managed_runtime_ids":[],)"
                                R"("path_exposure_admin_schema_version":1)"));
    EXPECT_THAT(s.ask("list_sessions", R"({"limit":9})"), HasSubstr("session-1"));
    EXPECT_THAT(s.ask("session_status", R"({"session_id":"session-1"})"), HasSubstr("created"));

    s.break_exposure_disk();
    EXPECT_EQ(s.ask("revoke_path_exposure", R"({"exposure_id":"proj","generation":1})", "r1"),
              "path_exposure_unavailable");
    EXPECT_THAT(s.ask("capabilities"), HasSubstr(R"("path_exposure_admin_schema_version":0,)"
                                                 R"("path_exposure_catalog_schema_version":0)"));
    EXPECT_THAT(s.ask("list_path_exposures"), HasSubstr("proj"));
}

// What is on record stays a fact when nothing more can be written: a request that is repeated is
// answered as it was, a new one is told that the disk failed, and what writes nothing goes on.
TEST(Service, after_a_journal_has_failed_what_is_on_record_is_still_answered) {
    whole_service s;
    const auto create = [&](string_view id, string_view key) {
        return s.ask("create_session", s.creation(id), string{key});
    };
    const auto expose = [&](string_view key) {
        return s.ask("create_path_exposure", good_call_of(s, "create_path_exposure").payload,
                     string{key});
    };
    const auto revoke = [&](string_view key) {
        return s.ask("revoke_path_exposure", R"({"exposure_id":"proj","generation":1})",
                     string{key});
    };
    const auto made = create("session-1", "k1");
    ASSERT_THAT(made, HasSubstr("created"));
    ASSERT_THAT(expose("e1"), HasSubstr("proj"));
    const auto revoked = revoke("r1");
    ASSERT_THAT(revoked, HasSubstr("revoked"));
    s.break_session_disk();
    s.break_exposure_disk();
    EXPECT_EQ(create("session-2", "k2"), "session_storage_failed"); // this one finds out
    EXPECT_EQ(expose("e2"), "path_exposure_unavailable");

    EXPECT_EQ(create("session-1", "k1"), made);
    EXPECT_EQ(create("session-2", "k1"), "idempotency_conflict");
    EXPECT_EQ(create("session-1", "k3"), "session_conflict");
    EXPECT_EQ(create("session-2", "k2"), "session_storage_failed");
    EXPECT_EQ(revoke("r1"), revoked);
    EXPECT_THAT(expose("e1"), HasSubstr(R"("generation":1)"));
    EXPECT_EQ(expose("e2"), "path_exposure_unavailable");
    for (const string_view method : {"write_stdin", "signal", "stop_session", "attach"}) {
        const auto call = good_call_of(s, method);
        EXPECT_THAT(s.ask(method, call.payload, call.key), HasSubstr("session")) << method;
    }
}

// Each part on its own takes away what depends on it, and a runtime that does not work counts as
// none: nothing is concluded from a pointer.
TEST(Capabilities, nothing_is_advertised_that_is_not_there) {
    whole_service s;
    s.runtime.operational = false;
    const auto idle = capability_document(s.has);
    EXPECT_THAT(idle, HasSubstr(R"("create_session":true,"start_session":false)"));
    for (const string_view none :
         {R"("agent_runtime_adapter_schema_version":0)", R"("managed_runtime_ids":[])",
          R"("retained_write_schema_version":0)", R"("change_manifest_schema_version":0)",
          R"("refinement_evaluation_protocol_schema_version":0)",
          R"("observation_intent_channel_schema_version":0)",
          R"("backend":"linux_production","resource_enforcement":{"cpu_time":"unavailable")"})
        EXPECT_THAT(idle, HasSubstr(none));
    s.runtime.operational = true;
    auto has = s.has;
    has.exposures = nullptr;
    EXPECT_THAT(capability_document(has), HasSubstr(R"("path_exposure_admin_schema_version":0)"));
    EXPECT_THAT(capability_document(has), HasSubstr(R"("retained_write_schema_version":0)"));
    has = s.has;
    has.channels = nullptr;
    EXPECT_THAT(capability_document(has),
                HasSubstr(R"("observation_intent_channel_schema_version":0)"));
    has = s.has;
    has.policy = nullptr;
    EXPECT_THAT(capability_document(has), Not(HasSubstr("_session\":true")));
    EXPECT_THAT(capability_document(has), HasSubstr(R"("validate_plan":false)"));
}

// A runtime that starts whole commands of templates has no adapter to advertise.
TEST(Capabilities, no_adapter_without_a_runtime_that_has_one) {
    whole_service s;
    s.runtime.ids = {"codex"};
    EXPECT_THAT(capability_document(s.has), HasSubstr(R"("agent_runtime_adapter_schema_version":1,)"
                                                      R"("managed_runtime_ids":["codex"],)"));
    s.runtime.ids.clear();
    const auto said = capability_document(s.has);
    EXPECT_THAT(said, HasSubstr(R"("agent_runtime_adapter_schema_version":0,)"
                                R"("managed_runtime_ids":[],)"));
    EXPECT_THAT(said, HasSubstr(R"("start_session":true)"));
    EXPECT_THAT(said, HasSubstr(R"("disk":"filesystem_quota")"));
}

// Nothing can be started any more; what runs is still looked at and stopped, and not advertised.
TEST(Capabilities, a_session_that_is_there_stays_within_reach) {
    whole_service s;
    const auto ask = [&](string_view method, string_view key) {
        const auto call = good_call_of(s, method);
        return s.ask(method, call.payload,
                     call.key ? std::optional{string{key} + string{method}} : std::nullopt);
    };
    s.runtime.operational = false;
    for (const string_view method : {"attach", "write_stdin", "stop_session"})
        EXPECT_EQ(ask(method, "k1"), "method_not_found") << method;
    const auto none = capability_document(s.has);
    s.runtime.holds = true;
    for (const string_view method : {"attach", "write_stdin", "stop_session"})
        EXPECT_THAT(ask(method, "k2"), HasSubstr("session")) << method;
    EXPECT_EQ(capability_document(s.has), none);
    EXPECT_THAT(none, HasSubstr(R"("start_session":false,"session_status":true,"attach":false,)"));
}

} // namespace
} // namespace glove::control
