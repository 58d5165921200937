#include "daemon/init_state.hpp"
#include <cstdlib>
#include <glove/control/receipt.hpp>
#include <glove/control/service_config.hpp>
#include <gmock/gmock.h>
#include <support/folder.hpp>

namespace glove::daemon {
namespace {

using std::string;
using ::testing::HasSubstr;

auto content(const string& path) -> string {
    std::ifstream in{path};
    return {std::istreambuf_iterator<char>{in}, {}};
}
auto mode(const string& path) -> ::mode_t {
    struct ::stat out{};
    EXPECT_EQ(::lstat(path.c_str(), &out), 0) << path;
    return out.st_mode & 07777U;
}

struct scene {
    scene() {
        ::setenv("HOME", f.path().c_str(), 1);
        ::setenv("XDG_STATE_HOME", (f / "state").c_str(), 1);
        ::setenv("XDG_CONFIG_HOME", (f / "config").c_str(), 1);
    }
    ~scene() {
        ::unsetenv("XDG_STATE_HOME");
        ::unsetenv("XDG_CONFIG_HOME");
    }
    auto init(const std::optional<string>& file = {}) { return init_state(file, random); }
    auto why(const std::optional<string>& file = {}) -> string {
        const auto out = init(file);
        return out ? "" : string{out.error().step} + ": " + out.error().detail;
    }
    test::folder f;
    sys::system_entropy random;
    string state = f / "state/glove", config = f / "config/glove/config.json";
};

TEST(InitState, everything_is_the_callers_alone_whatever_the_umask) {
    scene s;
    const auto before = ::umask(0);
    const auto made = s.init();
    (void)::umask(before);
    ASSERT_TRUE(made) << made.error().detail;
    ASSERT_EQ(made->size(), 4U);
    for (const auto& one : *made) EXPECT_TRUE(one.is_new) << one.path;
    for (const auto& directory : {s.state, s.state + "/runtime", s.f / "config/glove"})
        EXPECT_EQ(mode(directory), 0700U) << directory;
    for (const auto& file : {s.state + "/audit.key", s.config})
        EXPECT_EQ(mode(file), 0600U) << file;
    EXPECT_EQ(content(s.state + "/audit.key").size(), 65U);
    EXPECT_TRUE(control::audit_key::load(s.state + "/audit.key"));
    const auto config = control::load_service_config(s.config);
    ASSERT_TRUE(config) << config.error().detail;
    EXPECT_EQ(config->runtime_directory, s.state + "/runtime");
    EXPECT_EQ(config->audit_key, s.state + "/audit.key");
    EXPECT_EQ(config->receipt_journal, s.state + "/receipts.journal");
    EXPECT_FALSE(config->persistent_service);
    EXPECT_FALSE(config->session_policy || config->session_store);
}

TEST(InitState, again_changes_nothing) {
    scene s;
    ASSERT_EQ(s.why(), "");
    const auto key = content(s.state + "/audit.key");
    const auto config = content(s.config);
    const auto again = s.init();
    ASSERT_TRUE(again);
    for (const auto& one : *again) EXPECT_FALSE(one.is_new) << one.path;
    EXPECT_EQ(content(s.state + "/audit.key"), key);
    EXPECT_EQ(content(s.config), config);
}

TEST(InitState, two_machines_have_two_keys) {
    string first;
    {
        scene s;
        ASSERT_EQ(s.why(), "");
        first = content(s.state + "/audit.key");
    }
    scene s;
    ASSERT_EQ(s.why(), "");
    EXPECT_NE(content(s.state + "/audit.key"), first);
}

TEST(InitState, a_configuration_that_differs_stops_it_before_anything_is_made) {
    scene s;
    const string other =
        R"({"schema_version":1,"persistent_service":true,"runtime_directory":"/a",)"
        R"("audit_key":"/b","receipt_journal":"/c"})";
    (void)s.f.file("config/glove/config.json", other, 0600);
    const auto refused = s.init();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().step, "init.config");
    EXPECT_THAT(refused.error().detail, HasSubstr(s.config));
    EXPECT_THAT(refused.error().remedy, HasSubstr("gloved --config"));
    EXPECT_EQ(content(s.config), other);
    EXPECT_FALSE(std::filesystem::exists(s.state));
    (void)s.f.file("config/glove/config.json", "garbage", 0600);
    EXPECT_THAT(s.why(), HasSubstr("cannot be used"));
    EXPECT_EQ(content(s.config), "garbage");
}

TEST(InitState, a_file_that_is_no_key_is_left_and_named) {
    scene s;
    (void)s.f.directory("state/glove", 0700);
    (void)s.f.file("state/glove/audit.key", "not a key", 0600);
    EXPECT_THAT(s.why(), HasSubstr("init.key: " + s.state + "/audit.key"));
    EXPECT_EQ(content(s.state + "/audit.key"), "not a key");
    (void)s.f.file("state/glove/audit.key", string(64, 'a') + "\n", 0600);
    EXPECT_EQ(s.why(), "");
    EXPECT_EQ(content(s.state + "/audit.key"), string(64, 'a') + "\n");
    ASSERT_EQ(::chmod((s.state + "/audit.key").c_str(), 0640), 0);
    EXPECT_THAT(s.why(), HasSubstr("init.key"));
}

TEST(InitState, a_directory_that_others_look_into_is_refused_with_the_mend) {
    scene s;
    (void)s.f.directory("state/glove", 0755);
    const auto refused = s.init();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().step, "init.directory");
    EXPECT_EQ(refused.error().remedy, "chmod 700 " + s.state);
    EXPECT_FALSE(std::filesystem::exists(s.config));
    ASSERT_EQ(::chmod(s.state.c_str(), 0700), 0);
    EXPECT_EQ(s.why(), "");
}

TEST(InitState, another_file_for_the_configuration) {
    scene s;
    EXPECT_EQ(s.why(s.f / "elsewhere/my.json"), "");
    EXPECT_TRUE(control::load_service_config(s.f / "elsewhere/my.json"));
    EXPECT_FALSE(std::filesystem::exists(s.config));
}

TEST(InitState, variables_that_lead_nowhere) {
    scene s;
    ::setenv("XDG_STATE_HOME", "relative", 1);
    EXPECT_THAT(s.why(), HasSubstr("XDG_STATE_HOME"));
    ::unsetenv("XDG_STATE_HOME");
    EXPECT_EQ(s.why(), "");
    EXPECT_TRUE(std::filesystem::exists(s.f / ".local/state/glove/audit.key"));
}

} // namespace
} // namespace glove::daemon
