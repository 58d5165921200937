#include "methods_scene.hpp"
#include <gmock/gmock.h>

namespace glove::control {
namespace {

using std::string;
using std::string_view;
using test::digits;
using ::testing::HasSubstr;

// What one client does with one session, and what each answer must hold.
struct asked {
    string method;
    string payload;
    std::optional<string> key;
    string holds;
};
auto life_of(const test::whole_service& s, const string& id) -> std::vector<asked> {
    const auto one = R"({"session_id":")" + id + "\"}";
    const auto with = [&](string_view more) {
        return R"({"session_id":")" + id + "\"," + string{more} + "}";
    };
    const auto named = "\"session_id\":\"" + id + "\"";
    const auto authorization =
        R"({"authorization":{"schema_version":1,"authorization_id":"a","session_id":")" + id +
        R"(","controller_plan_digest":")" + digits('c') + R"(","plan_content_digest":")" +
        digits('c') + R"(","approved_at_ms":1001,"expires_at_ms":2001}})";
    const auto expose = R"({"exposure_id":")" + id + R"(","root_id":"projects","host_path":")" +
                        s.project() +
                        R"(","display_label":"demo","allowed_modes":[{"access":"read",)"
                        R"("materialization":"bind","max_bytes":0,"cleanup_policy":"retain"}],)"
                        R"("ttl_secs":3600,"allowed_runtime_template_ids":["codex-safe"]})";
    return {
        {"health", "null", {}, "ready"},
        {"capabilities", "null", {}, "hmac_sha256"},
        {"validate_plan", s.plan(), {}, "policy_revision"},
        {"create_session", s.creation(id), id + ".create", named},
        {"create_session", s.creation(id), id + ".create", named},
        {"session_status", one, {}, named},
        {"list_sessions", R"({"limit":256})", {}, named},
        {"verify_audit_chain",
         R"({"sage_anchor":)" + s.genesis() + R"(,"limit":15})",
         {},
         "local_anchor"},
        {"acknowledge_audit_chain", R"({"anchor":)" + s.genesis() + "}", id + ".ack",
         "acknowledged_anchor"},
        {"start_session", authorization, id + ".start", named},
        {"attach", with(R"("cursor":0,"max_bytes":1)"), {}, named},
        {"write_stdin", with(R"("bytes":[1,2])"), id + ".in", named},
        {"resize", with(R"("rows":1,"columns":1)"), id + ".size", named},
        {"signal", with(R"("signal":"interrupt")"), id + ".signal", named},
        {"detach", with(R"("transcript_cursor":0)"), id + ".detach", named},
        {"stop_session", one, id + ".stop", named},
        {"cleanup_session", one, "cleanup." + id, named},
        {"create_path_exposure", expose, id + ".expose", R"("state":"active")"},
        {"list_path_exposures", "null", {}, "\"" + id + "\""},
        {"revoke_path_exposure", R"({"exposure_id":")" + id + R"(","generation":1})",
         id + ".revoke", R"("state":"revoked")"},
        {"inspect_retained_changes", with(R"("exposure_id":"e","offset":0,"limit":1)"), {}, id},
        {"page_observation_intents", R"({"after_sequence":0,"limit":1})", {}, "items"},
        {"set_observation_intent_disposition",
         with(R"("channel_generation":1,"intent_id":"i","intent_digest":")" + digits('a') +
              R"(","disposition":"accepted","decided_at_ms":0)"),
         id + ".decide", "observation_intent_not_found"},
        {"no_such_method", "null", {}, "method_not_found"},
    };
}

// Every method, of sixty-four clients at once, each with a session of its own; and some who
// misbehave in between. Run with -DGLOVE_SANITIZE=thread, it is the proof that parts are shared as
// they may be.
TEST(MixedClients, sixty_four_of_them_and_every_method) {
    test::whole_service s;
    test::running_server server{s.service(), {.workers = 8}};
    std::atomic<int> answered = 0;
    const auto client = [&](int n) {
        const auto id = "session-" + std::to_string(n);
        auto life = life_of(s, id);
        for (const auto& what : life) {
            auto wanted = s.request(what.method, what.payload, what.key);
            wanted.deadline_ms = UINT64_MAX;
            wanted.id = id;
            const auto said = server.ask(*encode(wanted));
            EXPECT_THAT(said, HasSubstr(R"("id":")" + id + "\"")) << what.method;
            EXPECT_THAT(said, HasSubstr(what.holds)) << what.method;
            ++answered;
            if (n % 4 == 0) {
                const auto bad = server.client();
                (void)test::put(bad, test::framed(*encode(wanted)).substr(0, 40));
            }
        }
    };
    std::vector<std::thread> clients;
    for (int n = 0; n < 64; ++n) clients.emplace_back(client, n);
    for (auto& one : clients) one.join();
    EXPECT_EQ(answered, 64 * static_cast<int>(life_of(s, "s").size()));
    EXPECT_EQ(server.stop(), ending::clean);
}

} // namespace
} // namespace glove::control
