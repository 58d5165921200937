#include <climits>
#include <glove/host/service_unit.hpp>
#include <gmock/gmock.h>

namespace glove::host {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const service_programs usual{.gloved = "/usr/bin/gloved",
                             .config = "/home/a user/.config/glove/config.json",
                             .into_subgroup = ""};

TEST(ServiceUnit, the_text_of_the_unit) {
    EXPECT_EQ(systemd_unit_text(usual).value(),
              "# Made by glove daemon install, which writes over what is changed here.\n"
              "[Unit]\n"
              "Description=Glove control service\n"
              "\n"
              "[Service]\n"
              "Type=simple\n"
              "ExecStart=\"/usr/bin/unshare\" --user --map-root-user --mount --propagation private "
              "-- \"/usr/bin/gloved\" --config \"/home/a user/.config/glove/config.json\"\n"
              "Delegate=cpu memory pids\n"
              "DelegateSubgroup=glove-host\n"
              "Restart=on-failure\n"
              "RestartSec=2s\n"
              "TimeoutStopSec=15s\n"
              "UMask=0077\n"
              "\n"
              "[Install]\n"
              "WantedBy=default.target\n");
}

TEST(ServiceUnit, an_older_systemd_is_helped_into_the_subgroup) {
    auto older = usual;
    older.into_subgroup = "/usr/libexec/glove/glove-control";
    const auto text = systemd_unit_text(older).value();
    EXPECT_THAT(text,
                HasSubstr("\nExecStart=\"/usr/libexec/glove/glove-control\" enter-subgroup -- "
                          "\"/usr/bin/unshare\" --user "));
    EXPECT_THAT(text, HasSubstr("\nDelegate=cpu memory pids\nRestart="));
    EXPECT_THAT(text, Not(HasSubstr("DelegateSubgroup")));
}

TEST(ServiceUnit, no_path_says_more_than_a_path) {
    for (const auto* const path :
         {"", "/", "gloved", "/a//b", "/a/../b", "/a/./b", "/a/", "/a\"b", "/a\\b", "/a$b", "/a%b",
          "/a\nb", "/a\rb", "/a\tb", "/a\x7f", "/a\x01", "/a\xff", "/a\xc3"}) {
        EXPECT_FALSE(check_unit_path(path)) << path;
        for (const auto which : {&service_programs::gloved, &service_programs::config,
                                 &service_programs::into_subgroup}) {
            const bool is_helper = which == &service_programs::into_subgroup;
            if (is_helper && *path == '\0') continue; // none
            auto of = usual;
            of.*which = path;
            const auto text = systemd_unit_text(of);
            ASSERT_FALSE(text) << path;
            EXPECT_EQ(text.error().step, "service.path");
            EXPECT_EQ(launchd_text(of).has_value(), is_helper) << path;
        }
    }
    EXPECT_FALSE(check_unit_path(std::string_view{"/a\0b", 4}));
    for (const auto* const path : {"/a", "/a b/'c'", "/ä/ü", "/a;b|c&d", "/{a}*?~#", "/a=b", "/-a"})
        EXPECT_TRUE(check_unit_path(path)) << path;
}

TEST(ServiceUnit, a_path_is_as_long_as_the_kernel_takes_it) {
    const auto longest = "/" + std::string(PATH_MAX - 2, 'a');
    EXPECT_TRUE(check_unit_path(longest));
    EXPECT_FALSE(check_unit_path(longest + "a"));
    EXPECT_LE(systemd_unit_text({longest, longest, longest}).value().size(), most_unit_bytes);
    const auto marks = "/" + std::string(PATH_MAX - 2, '&');
    EXPECT_LE(launchd_text({marks, marks, ""}).value().size(), most_unit_bytes);
}

TEST(ServiceUnit, the_configuration_is_read_back_from_its_own_text_only) {
    auto older = usual;
    older.into_subgroup = "/x/glove-control";
    for (const auto& of : {usual, older}) {
        const auto text = systemd_unit_text(of).value();
        EXPECT_EQ(config_of_unit(text), usual.config);
        for (std::size_t i = 0; i < text.size(); i += 3)
            EXPECT_NE(config_of_unit(text.substr(0, i)), usual.config) << i;
        EXPECT_EQ(config_of_unit(text + "Environment=A=b\n"), std::nullopt);
        auto changed = text;
        changed.replace(changed.find("UMask=0077"), 10, "UMask=0000");
        EXPECT_EQ(config_of_unit(changed), std::nullopt);
    }
    EXPECT_EQ(config_of_unit(""), std::nullopt);
    EXPECT_EQ(config_of_unit("[Service]\nExecStart=\"/bin/sh\" -c \"x\"\n"), std::nullopt);
}

TEST(ServiceUnit, the_text_for_macos) {
    EXPECT_EQ(launchd_text({"/opt/<a>&b/gloved", "/opt/a/config.json", ""}).value(),
              R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
    <key>Label</key>
    <string>org.sage-protocol.gloved</string>
    <key>ProgramArguments</key>
    <array>
        <string>/opt/&lt;a&gt;&amp;b/gloved</string>
        <string>--config</string>
        <string>/opt/a/config.json</string>
    </array>
    <key>RunAtLoad</key>
    <false/>
    <key>KeepAlive</key>
    <dict>
        <key>SuccessfulExit</key>
        <false/>
    </dict>
    <key>ProcessType</key>
    <string>Interactive</string>
    <key>ThrottleInterval</key>
    <integer>2</integer>
</dict>
</plist>
)");
}

TEST(ServiceUnit, versions_of_systemd) {
    EXPECT_EQ(systemd_version_of("257.13-1~deb13u1").value(), 257U);
    EXPECT_EQ(systemd_version_of("252.39-1~deb12u2").value(), 252U);
    EXPECT_EQ(systemd_version_of("254").value(), 254U);
    EXPECT_EQ(systemd_version_of("v255 (255.4-1ubuntu8)").value(), 255U);
    EXPECT_EQ(systemd_version_of("256~rc3").value(), 256U);
    for (const auto* const said :
         {"", "v", "systemd 257", "-257", "0254", "254x", "1234567", " 254"})
        EXPECT_EQ(systemd_version_of(said).error().step, "service.version") << said;
}

} // namespace
} // namespace glove::host
