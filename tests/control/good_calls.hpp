// A good call of each method, in an order in which a fresh service takes them.
#pragma once
#include "methods_scene.hpp"

namespace glove::test {

struct good_call {
    std::optional<std::string> key;
    std::string payload;
    std::string result; // begins so
};

inline auto good_calls(const whole_service& s) -> std::vector<std::pair<std::string, good_call>> {
    const std::string one = R"({"session_id":"session-1"})";
    const auto ack = [](std::string_view id = "session-1") {
        return R"({"schema_version":1,"session_id":")" + std::string{id} + "\"}";
    };
    const std::string session =
        R"({"schema_version":1,"session_id":"session-1","controller_plan_digest":")" + digits('c');
    const std::string exposure = R"({"schema_version":1,"exposure":{"schema_version":1,)"
                                 R"("exposure_id":"proj","generation":1,"scope_digest":")";
    const auto create = R"({"exposure_id":"proj","root_id":"projects","host_path":")" +
                        s.project() +
                        R"(","display_label":"demo","allowed_modes":[{"access":"read",)"
                        R"("materialization":"bind","max_bytes":0,"cleanup_policy":"retain"}],)"
                        R"("ttl_secs":3600,"allowed_runtime_template_ids":["codex-safe"]})";
    const auto authorization =
        R"({"authorization":{"schema_version":1,"authorization_id":"approval-1",)"
        R"("session_id":"session-1","controller_plan_digest":")" +
        digits('c') + R"(","plan_content_digest":")" + digits('c') +
        R"(","approved_at_ms":1001,"expires_at_ms":2001}})";
    return {
        {"health", {{}, "null", R"({"schema_version":1,"status":"ready"})"}},
        {"capabilities", {{}, "null", R"({"schema_version":1,"receipt_audit":{)"}},
        {"validate_plan", {{}, s.plan(), R"({"schema_version":1,"policy_revision":7})"}},
        {"create_session", {"create-1", s.creation(), session}},
        {"session_status", {{}, one, session}},
        {"list_sessions",
         {{}, R"({"after":"a","limit":1})", R"({"schema_version":1,"sessions":[)" + session}},
        {"verify_audit_chain",
         {{},
          R"({"sage_anchor":)" + s.genesis() + R"(,"limit":1000})",
          R"({"schema_version":1,"envelopes":[],"refinement_envelopes":[],"has_more":false,)"
          R"("local_anchor":)" +
              s.genesis() + "}"}},
        {"acknowledge_audit_chain",
         {"ack-1", R"({"anchor":)" + s.genesis() + "}",
          R"({"schema_version":1,"acknowledged_anchor":)" + s.genesis() + "}"}},
        {"start_session", {"start-1", authorization, session}},
        {"attach",
         {{},
          R"({"session_id":"session-1","cursor":4,"max_bytes":65536})",
          R"({"schema_version":1,"session_id":"session-1","oldest_cursor":1,"next_cursor":7,)"
          R"("truncated":false,"eof":true,"bytes":[0,127,255]})"}},
        {"write_stdin", {"input-1", R"({"session_id":"session-1","bytes":[104,105]})", ack()}},
        {"resize", {"size-1", R"({"session_id":"session-1","rows":1,"columns":4096})", ack()}},
        {"signal", {"signal-1", R"({"session_id":"session-1","signal":"hangup"})", ack()}},
        {"detach",
         {"detach-1", R"({"session_id":"session-1","transcript_cursor":9})",
          R"({"schema_version":1,"session_id":"session-1","transcript_cursor":9})"}},
        {"stop_session", {"stop-1", one, session}},
        {"cleanup_session", {"cleanup-1", one, ack()}},
        {"create_path_exposure", {"expose-1", create, exposure}},
        {"list_path_exposures", {{}, "null", R"({"schema_version":1,"exposures":[{)"}},
        {"revoke_path_exposure",
         {"revoke-1", R"({"exposure_id":"proj","generation":1})", exposure}},
        {"inspect_retained_changes",
         {{},
          R"({"session_id":"session-1","exposure_id":"proj","offset":3,"limit":256})",
          R"("session-1 proj 3 256")"}},
        {"page_observation_intents",
         {{}, R"({"after_sequence":0,"limit":256})", R"({"schema_version":1,"items":[]})"}},
        {"set_observation_intent_disposition",
         {"decide-1",
          R"({"session_id":"session-1","channel_generation":1,"intent_id":"intent-1",)"
          R"("intent_digest":")" +
              digits('a') + R"(","disposition":"accepted","decided_at_ms":0})",
          "observation_intent_not_found"}},
    };
}
inline auto good_call_of(const whole_service& s, std::string_view method) -> good_call {
    for (auto& [name, what] : good_calls(s))
        if (name == method) return what;
    ADD_FAILURE() << method;
    return {};
}

} // namespace glove::test
