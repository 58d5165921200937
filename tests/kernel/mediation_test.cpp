#include <glove/kernel/mediation.hpp>
#include <gtest/gtest.h>

namespace glove::kernel {

namespace {

using std::chrono::milliseconds;

[[nodiscard]] auto everything() -> mediation {
    mediation out;
    out.task = task::bridge;
    out.upstreams = {{.name = "files",
                      .argv = {"npx", "-y", "server", ""},
                      .environment = {{"TOKEN", "a\"b\n"}, {"EMPTY", ""}},
                      .passed = {"LANG"},
                      .directory = "/srv",
                      .required = false,
                      .start_timeout = milliseconds{90'000},
                      .call_timeout = milliseconds{1}},
                     {.name = "git",
                      .argv = {"/bin/git-server"},
                      .environment = {},
                      .passed = {},
                      .directory = {}}};
    out.upstreams.front().grants = {{"/srv/r"}, {"/srv/w"}, {"a.example"}};
    out.upstreams.front().perimeter = {.glove = "/usr/bin/glove",
                                       .program = "/usr/bin/files",
                                       .needs = {"/opt/files"},
                                       .directories = {"/opt/files/bin"},
                                       .workspace = "/srv/w",
                                       .audit_log = "/srv/log"};
    out.rules = {{"files.*", "git.log"}, {"files.write"}, {"files.read:path=/srv/"}, "/etc/p.toml"};
    out.relay = {"resources", "roots"};
    out.names = tool_names::bare;
    out.renames = {{"read", "files.read_file"}};
    out.directory = "/srv/u/work";
    out.state = "/srv/u/.local/state/glove";
    out.audit_log = "/srv/u/.local/state/glove/audit.jsonl";
    out.audit_sync = true;
    out.run = "0123456789abcdef0123456789abcdef";
    out.start_timeout_ms = 1;
    out.call_timeout_ms = 2;
    out.result_bytes = 3;
    out.instructions = false;
    out.pinning = false;
    out.contain_upstreams = true;
    out.json = true;
    out.check_tool = "files.read";
    out.check_arguments = "{\"path\":\"/srv/x\"}";
    out.accept = {"*"};
    out.forget = {"files.read"};
    return out;
}

[[nodiscard]] auto least() -> mediation {
    mediation out;
    out.directory = "/";
    out.state = "/s";
    return out;
}

TEST(Mediation, GoesAcrossWithEveryMember) {
    for (const auto& what : {everything(), least()}) {
        const auto text = encode(what);
        ASSERT_TRUE(text) << text.error().detail;
        const auto back = decode_mediation(*text);
        ASSERT_TRUE(back) << back.error().detail;
        EXPECT_EQ(*back, what);
    }
}

TEST(Mediation, RefusesWhatItDoesNotKnow) {
    auto text = encode(least());
    ASSERT_TRUE(text);
    text->insert(1, R"("surprise":1,)");
    const auto back = decode_mediation(*text);
    ASSERT_FALSE(back);
    EXPECT_EQ(back.error().step, "wire.unknown");
    EXPECT_FALSE(decode_mediation("{}"));
    EXPECT_FALSE(decode_mediation(""));
}

TEST(Mediation, HasBounds) {
    auto what = everything();
    what.upstreams[0].name.assign(32, 'n');
    EXPECT_TRUE(encode(what));
    what.upstreams[0].name += 'n';
    EXPECT_FALSE(encode(what));
    what = everything();
    what.upstreams[0].argv.clear();
    EXPECT_FALSE(encode(what));
    what = everything();
    what.upstreams[0].argv.emplace_back("\0", 1);
    EXPECT_FALSE(encode(what));
    what = everything();
    what.call_timeout_ms = 0;
    EXPECT_FALSE(encode(what));
}

} // namespace

} // namespace glove::kernel
