// Known digests of the wire protocol. A change of the encoder, of a table's order or of an escape
// breaks interoperation with peers that exist, and shows here.
#include <glove/wire/crypto.hpp>
#include <glove/wire/digest.hpp>
#include <glove/wire/fields.hpp>
#include <gtest/gtest.h>

namespace {

using namespace glove;
using wire::digest_encoder;
using strings = std::vector<std::string>;

constexpr std::uint64_t mib = 1U << 20U;

auto times(char c, std::size_t n = 64) -> std::string { return std::string(n, c); }
auto digest(const digest_encoder& e) -> std::string { return e.sha256_hex().value(); }
auto sha(std::string_view text) -> std::string { return wire::to_hex(wire::sha256(text).value()); }
auto versioned(std::string_view domain) -> digest_encoder {
    digest_encoder out;
    out.str(domain).u8(1);
    return out;
}
auto plain(std::initializer_list<std::string_view> texts) -> digest_encoder {
    digest_encoder out;
    for (const auto t : texts) out.str(t);
    return out;
}

// --- launch templates ---

const strings usual_environment{"PATH=/usr/bin:/bin", "TERM=xterm-256color"};

auto launch_template(std::string_view program, const strings& arguments, const strings& environment,
                     const strings& read_only) -> std::string {
    auto e = versioned("glove.runtime-launch-template");
    return digest(e.str(program).list(arguments).list(environment).list(read_only));
}

TEST(WireVectors, LaunchTemplate) {
    EXPECT_EQ(launch_template("/usr/bin/true", {"--version"}, usual_environment, {}),
              "0129a3a97cacbef9bd8a2df44ea3b1e01ae8dad706cbe0c27c2237881b5107e7");
    const std::string root = "/opt/glove/runtime/cloudflare-os";
    EXPECT_EQ(launch_template(root + "/node-v25/bin/node",
                              {root + "/closure/scripts/run-local.mjs"}, {}, {root + "/closure"}),
              "2c3af3985743cc37adbc120a49290f48ac04ddc1e3bde1aa16fee8301a259cee");
    EXPECT_EQ(launch_template("/usr/bin/true", {"--version"}, usual_environment,
                              {"/opt/operator-harness/codex-runtime"}),
              "e66c0652fedc80fcdfe875761036053f973708ad72207e388c07de41553c4e33");
}

TEST(WireVectors, LaunchTemplateBytes) {
    auto e = versioned("glove.runtime-launch-template");
    e.str("/usr/bin/true").list({"--version"}).list(usual_environment).list({});
    EXPECT_EQ(e.bytes().value().size(), 121U);
    EXPECT_EQ(e.bytes().value().substr(0, 9), std::string_view("\0\0\0\x1dglove", 9));
}

TEST(WireVectors, LaunchTemplateThatDiscoversItsProgram) {
    digest_encoder e;
    e.str("glove.runtime-launch-template").u8(2).str("codex").list({"/opt/harness/bin"});
    e.str("").list({"--version"}).list({"PATH=/usr/bin:/bin"}).list({});
    EXPECT_EQ(digest(e), "81a772e22bb3903078701775b3f0c358992ccb3c1661dd0b1d5cf9159d83a5c4");
}

TEST(WireVectors, LaunchTemplateWithoutReadOnlyListIsAnotherDigest) {
    auto e = versioned("glove.runtime-launch-template");
    e.str("/usr/bin/true").list({"--version"}).list(usual_environment);
    EXPECT_EQ(digest(e), "05a49649e7973f6f8d6b119c9d525472517e6021fb38f8b191e0b40c8c4741d0");
}

// --- receipts ---

TEST(WireVectors, ReceiptChain) {
    std::string key;
    for (char c = 0; c < 32; ++c) key += c;
    auto id = versioned("glove.audit-key-id");
    const auto key_id = digest(id.str(key));
    EXPECT_EQ(key_id, "b97d6f8d2ae381761ea00f360c230cf75e8de5fdc6a8d25624a5c36b97f0d475");

    auto receipt = versioned("glove.resource-enforcement-receipt");
    receipt.u8(1).str(times('c')).str("linux_production").str("linux-production:cgroup-v2-v1");
    receipt.u64(60'000).u64(512 * mib).u32(128).u64(120'000).u64(1024 * mib).u64(16 * mib);
    for (const auto* mechanism :
         {"cgroup_v2", "cgroup_v2", "cgroup_v2", "watchdog", "filesystem_quota", "byte_counter"})
        receipt.str(mechanism);
    receipt.u8(1).u64(500).u64(16 * mib).u32(2).u64(750).u64(4096).u64(1024);
    receipt.str("exited").boolean(true).u32(0).u64(1000).u64(1750);
    EXPECT_EQ(receipt.bytes().value().size(), 368U);
    EXPECT_EQ(digest(receipt), "cf4dfdc1627c93e00c10a83a780937dba2a9493c03f0f91843af49ee17ed11a4");

    auto envelope = versioned("glove.receipt-audit-envelope");
    envelope.u64(1).str(key_id).str("session-1").str(times('a')).str(digest(receipt));
    envelope.str(times('0'));
    EXPECT_EQ(envelope.bytes().value().size(), 326U);
    EXPECT_EQ(envelope.hmac_hex(key).value(),
              "57bafec7db274bd24763fdbe4cfb680f6d19c46121bb79649ef3456532458f12");
}

// --- session plan, encoded from a field table ---

struct grant {
    std::string alias, access, materialization, cleanup;
    std::uint64_t max_bytes = 0, ttl_secs = 0;
};
struct projection {
    std::string id, digest, destination;
};
struct resources {
    std::uint64_t cpu = 0, memory = 0, wall = 0, disk = 0, output = 0;
    std::uint32_t pids = 0;
};
struct plan {
    std::uint8_t version = 1;
    std::string runtime = "codex", chosen = "codex-safe", command = times('a');
    std::string backend = "linux_production", egress = "no-network", tools = "sage-readonly";
    std::vector<grant> grants;
    std::vector<projection> projections;
    strings secrets;
    resources limits{1000, 64 * mib, 2000, 2 * mib, mib, 16};
    std::uint64_t revision = 7, expires = 61'000;
};

constexpr wire::integer positive{1};

constexpr auto grant_fields =
    wire::table(wire::row<&grant::alias, wire::alias>("alias"),
                wire::row<&grant::access, wire::ident>("access"),
                wire::row<&grant::materialization, wire::ident>("materialization"),
                wire::row<&grant::max_bytes, wire::integer{}>("max_bytes"),
                wire::row<&grant::ttl_secs, positive>("ttl_secs"),
                wire::row<&grant::cleanup, wire::ident>("cleanup_policy"));

constexpr auto projection_fields =
    wire::table(wire::row<&projection::id, wire::ident>("projection_id"),
                wire::row<&projection::digest, wire::hex64>("content_digest"),
                wire::row<&projection::destination, wire::ident>("destination_alias"));

constexpr auto resource_fields =
    wire::table(wire::row<&resources::cpu, positive>("cpu_time_ms"),
                wire::row<&resources::memory, positive>("memory_bytes"),
                wire::row<&resources::pids, wire::integer{1, UINT32_MAX}>("pids"),
                wire::row<&resources::wall, positive>("wall_time_ms"),
                wire::row<&resources::disk, positive>("disk_bytes"),
                wire::row<&resources::output, positive>("terminal_output_bytes"));

constexpr auto plan_fields = wire::table(
    wire::row<&plan::version, wire::integer{1, 2}>("schema_version"),
    wire::row<&plan::runtime, wire::ident>("runtime_id"),
    wire::row<&plan::chosen, wire::ident>("runtime_template_id"),
    wire::row<&plan::command, wire::hex64>("adapter_command_digest"),
    wire::row<&plan::backend, wire::ident>("sandbox_backend"),
    wire::row<&plan::egress, wire::ident>("egress_policy_id"),
    wire::row<&plan::tools, wire::ident>("tool_policy_id"),
    wire::row<&plan::grants, wire::list<wire::record<grant_fields>{}>{0, 64}>("path_grants"),
    wire::row<&plan::projections, wire::list<wire::record<projection_fields>{}>{0, 128}>(
        "library_projections"),
    wire::row<&plan::secrets, wire::list<wire::ident>{0, 32}>("secret_handles"),
    wire::row<&plan::limits, wire::record<resource_fields>{}>("limits"),
    wire::row<&plan::revision, wire::integer{}>("policy_revision"),
    wire::row<&plan::expires, wire::integer{}>("expires_at_ms"));

auto usual_plan() -> plan {
    plan out;
    out.projections = {{"sage-core", times('b'), "libraries"}};
    out.secrets = {"codex-token"};
    return out;
}

const auto* const plan_digest = "22531fcb58eb4ca5d4a5cd924793dbe0543106eb9650bca1e3943a30154ba6cf";

TEST(WireVectors, Plan) {
    auto in = usual_plan();
    const auto text = wire::encode(in, plan_fields).value();
    EXPECT_EQ(text.size(), 669U);
    EXPECT_EQ(sha(text), plan_digest);
    in.grants = {{"workspace", "ephemeral_write", "copy", "remove", mib, 60}};
    EXPECT_EQ(sha(wire::encode(in, plan_fields).value()),
              "828b0dc2fa2b5765617a23eecb3a76dc72973d5a758ad725aa55d6a75d528f33");
    plan empty;
    empty.version = 2;
    EXPECT_EQ(sha(wire::encode(empty, plan_fields).value()),
              "3393d1fb51f44624de7b8964f8aa78a70f732785759ecccfef966b47992d9f67");
}

TEST(WireVectors, PlanInAnotherFormHasTheSameDigestOnceEncodedAgain) {
    auto tree = *wire::json::read(wire::encode(usual_plan(), plan_fields).value())->as_object();
    std::reverse(tree.begin(), tree.end());
    const auto spread = "\n " + wire::json::to_text(tree) + "\t";
    const auto back = wire::decode_text(spread, plan_fields);
    ASSERT_TRUE(back);
    EXPECT_EQ(sha(wire::encode(*back, plan_fields).value()), plan_digest);
}

// --- authorization, registry ---

TEST(WireVectors, StartAuthorization) {
    auto e = versioned("glove.session-start-authorization");
    e.str("approval-1").str("session-1").str(times('c')).str(plan_digest).u64(1001).u64(2001);
    EXPECT_EQ(digest(e), "50ba043ddff4d734e0dfa36b58cf23748981203b4db5b2daa4585dd86ded9234");
}

TEST(WireVectors, RegistryRecord) {
    auto e = versioned("glove.session-registry.record");
    e.u64(1).str("create").str("create-session-1").str("session-1").str(times('c'));
    e.str(plan_digest).str(plan_digest).str("created").str("");
    e.u64(7).u64(61'000).u64(1000).u64(0).u64(0);
    e.str(wire::encode(usual_plan(), plan_fields).value()).str(times('0'));
    EXPECT_EQ(digest(e), "76d9de503ef95a1661cb0515986f02e640b890e4472f57102a8acdf913df3026");
}

// --- observations ---

auto observation(std::string_view schema, std::string_view intent, std::string_view kind,
                 std::uint64_t bytes) -> std::string {
    auto e = plain({"glove.observation-body.v1", schema, intent, kind, times('a')});
    return digest(e.u64(bytes));
}

TEST(WireVectors, Observations) {
    EXPECT_EQ(observation("test.observation.v1", "intent-1", "guest-capability-inventory", 4),
              "9cbc0bb0de2ed9d104318e9b5a5c8641af770c672511e5102e0ba4b61549b6b2");
    EXPECT_EQ(observation("test.proposal.v1", "proposal-1", "retired-proposal", 1),
              "1ec5cd4e47e46feb63e3b2cc9836e320c2fe6fa5fca6dd022275631ccc3a81f9");
    const auto body =
        observation("sage.glove-observation.v1", "intent-1", "guest-capability-inventory", 4);
    EXPECT_EQ(body, "3b6597eb187f1883063a3316272cb2622b1bf0bc5e33dc17253ba16fac145c2e");

    auto enqueue = plain({"glove.observation-intent-enqueue.v1", "sage.glove-observation.v1",
                          "intent-1", "guest-capability-inventory", times('a'), "session-1",
                          times('c'), times('e'), "pi", times('d'), "channel-1"});
    enqueue.u64(4).u64(7).u64(1).u64(30'010).u64(30'110);
    EXPECT_EQ(digest(enqueue), "e98ece9cc76924b00ac219583163c121a358db67442956cb245fd63ee4aad045");

    auto disposition = plain(
        {"glove.observation-intent-disposition.v1", "session-1", "intent-1", body, "accepted"});
    EXPECT_EQ(digest(disposition.u64(1).u64(30'050)),
              "30490944a247a4d8a78bd778902a4dc3c027428927a3d7a52d1cef62d701b235");
}

// --- path exposures ---

// One mode: read, bound in place, no bytes, kept.
void add_mode(digest_encoder& e) { e.count(1).u8(0).u8(0).u64(0).u8(0); }

TEST(WireVectors, Exposures) {
    auto source = versioned("glove.path-exposure-source-identity");
    source.u64(1).u64(2).u32(040755).u32(1000).u32(1000);
    EXPECT_EQ(digest(source), "8e2a0bb49864ca59394517295271f6495c93ea1e5c9ad0694c748fc8f8c0068d");

    auto scope = versioned("glove.path-exposure-scope");
    scope.str("proj").u64(1).str("projects").str(digest(source));
    add_mode(scope);
    scope.u64(3'601'000).list({"codex-safe"});
    EXPECT_EQ(digest(scope), "740f44b5523791811398674681d6a167047a61f03f630af4a138be0fbb73ecf9");

    auto create = versioned("glove.path-exposure-create-request");
    create.str("init-proj")
        .str("proj")
        .str("projects")
        .str("/srv/"
             "work/proj")
        .str("proj");
    add_mode(create);
    create.u64(3600).list({"codex-safe"});
    EXPECT_EQ(digest(create), "e474349675d96f614f542743157d40344b720225990ac6499a58d35e7a3a0dc0");

    auto revoke = versioned("glove.path-exposure-revoke-request");
    revoke.str("revoke-1").str("proj").u64(1);
    EXPECT_EQ(digest(revoke), "697735bbb2a6b9ff1f6bd04cd5e3ba9b2286ece472c96ac7007d95c7460ba685");
}

// --- bundles, native adapters ---

auto bundle_text() -> std::string {
    std::string out;
    wire::json::writer w{out};
    w.begin_object();
    w.member("schema_version", 1);
    w.member("source_library_ref", "bafy-codex");
    w.member("source_manifest_digest", times('a'));
    w.begin_array("entries");
    w.begin_object();
    w.member("key", "sage-core");
    w.member("kind", "skill");
    w.member("content_digest", sha("# Sage core\n"));
    w.member("content", "# Sage core\n");
    w.end_object();
    w.end_array();
    w.end_object();
    return out;
}

auto skill_projection() -> std::string {
    auto e = plain({"glove.codex-runtime-projection"});
    return digest(e.u32(1)
                      .str("sage-codex")
                      .str(sha(bundle_text()))
                      .str("sage-core")
                      .str(sha("# Sage core\n")));
}

TEST(WireVectors, Bundle) {
    EXPECT_EQ(sha("# Sage core\n"),
              "a8095aa5472d84253e87441d7438235d2b13c13e09de63cbb88609931b8b8947");
    EXPECT_EQ(sha(bundle_text()),
              "9bb303d4c5a0489015ac301dabc40b504fe54b7586a02d4ea8da0aacc3b2cee4");
    EXPECT_EQ(skill_projection(),
              "e24fff6b66213e71e0f2432cb1f92b16da4058f21acd1c3ef989dad469b5a773");
}

TEST(WireVectors, NativeAdapters) {
    const auto start = [](const std::string& runtime, std::string_view program) {
        return plain({"glove.native-skill-runtime-projection-v2", runtime, program,
                      "__runtime_home_" + runtime, skill_projection()});
    };
    auto codex = start("codex", "codex");
    codex.list({".codex", "skills"}).list({"CODEX_HOME=/home/agent/.codex"});
    codex.list({"--dangerously-bypass-approvals-and-sandbox"}).u32(1).list({".codex"});
    codex.str("config.toml").str("[projects.\"/home/agent\"]\ntrust_level = \"trusted\"\n").u32(0);
    EXPECT_EQ(digest(codex), "21e0368958539453b37491bdfedcf98f28bc64bd29952fe1bdb4a7f98f342850");

    auto claude = start("claude-code", "claude");
    claude.list({".claude", "skills"}).list({}).list({}).u32(0).u32(0);
    EXPECT_EQ(digest(claude), "b03aab972e27a4dbf734f3b662e19022bf3d0a58c58c3e176c613e596877001c");

    auto adoption = plain({"glove.native-harness-adoption-manifest-v1", "pi"});
    adoption.u32(1).list({"runtime-executable", "runtime-dependency-closure"});
    adoption.list({"host-auth", "host-sessions", "host-settings", "host-model-state",
                   "host-package-credentials"});
    EXPECT_EQ(digest(adoption.u32(1)),
              "d5b3575a23c2ba9f1efcd985e9a412de222141f5aba00818bc0053f1f8b05253");
}

// --- digests with an encoding of their own: only the hash is under test ---

TEST(WireVectors, HashesOfOtherEncodings) {
    std::string manifest;
    const auto number = [&](std::uint64_t n) {
        digest_encoder e;
        manifest += e.u64(n).bytes().value();
    };
    const auto text = [&](std::string_view t) {
        number(t.size());
        manifest += t;
    };
    text("glove.local-service-proxy");
    for (const unsigned n : {1U, 1U}) number(n);
    text("pi");
    number(1);
    text("sage-observe");
    for (const unsigned n : {1U, 10U, 1000U, 040700U, 2U, 1U, 11U, 1000U, 0140600U, 1U}) number(n);
    EXPECT_EQ(sha(manifest), "d34ba680e5970127ae2122a1da137521037659606f5744a93985f82be5c66c30");

    using namespace std::string_literals;
    EXPECT_EQ(sha("glove.pi-adoption-manifest-v1\0"s + times('b') + "\0pkg-a\0"s +
                  "{\"packages\":[\"./extensions/0\"],\"enableSkillCommands\":true}\n"),
              "3ac0b1c7d9092388648ec0a56259bc76a2b85b4756aa926d85c0cd55af2c2ed0");
}

TEST(WireVectors, EvaluationOutcome) {
    std::string out;
    {
        wire::json::writer w{out};
        w.begin_object();
        w.member("schema", "sage.refinement-eval-outcome-v1");
        w.member("encoding", "canonical-json-utf8");
        w.begin_object("metrics");
        w.member("failed_assertions", 0);
        w.member("forbidden_literals", 1);
        w.member("latency_us", 750'000);
        w.member("passed", 1);
        w.member("required_literals", 2);
        w.end_object();
        w.end_object();
    }
    EXPECT_EQ(out.size(), 187U);
    EXPECT_EQ(sha(out), "44acc671ba02023607ab1ed73f0aee8382342625ba1fe4c7c5c09b9c63224111");
}

} // namespace
