#include "daemon/options.hpp"
#include <gmock/gmock.h>

namespace glove::daemon {
namespace {

using std::string;
using std::string_view;
using ::testing::HasSubstr;

auto parse(std::vector<const char*> words) { return parse_options(words); }
auto why(std::vector<const char*> words) -> string {
    const auto out = parse(std::move(words));
    return out ? "" : string{out.error().step} + ": " + out.error().detail;
}
const std::vector<const char*> least{"--runtime-dir", "/r", "--audit-key", "/k", "--journal", "/j"};
auto with(std::vector<const char*> more) -> std::vector<const char*> {
    auto out = least;
    out.insert(out.end(), more.begin(), more.end());
    return out;
}

TEST(Options, a_file_stands_alone) {
    const auto out = parse({"--config", "/c/config.json"});
    ASSERT_TRUE(out);
    EXPECT_EQ(out->what, action::serve);
    EXPECT_EQ(out->config_file, "/c/config.json");
    EXPECT_EQ(parse({"--config=/c"})->config_file, "/c");
    EXPECT_EQ(parse({"--config", "relative"})->config_file, "relative");
    for (const char* other : {"--runtime-dir", "--audit-key", "--journal", "--session-policy"})
        EXPECT_THAT(why({"--config", "/c", other, "/x"}), HasSubstr("--config takes no other"));
}

TEST(Options, settings_word_by_word) {
    const auto out =
        parse(with({"--session-policy", "/p", "--session-store", "/s", "--materialization-root",
                    "/m", "--library-bundle-root", "/l", "--path-exposure-policy", "/ep",
                    "--path-exposure-journal=/ej", "--exchange-timeout-ms", "60000"}));
    ASSERT_TRUE(out) << out.error().detail;
    control::service_config wanted;
    wanted.runtime_directory = "/r";
    wanted.audit_key = "/k";
    wanted.receipt_journal = "/j";
    wanted.session_policy = "/p";
    wanted.session_store = "/s";
    wanted.materialization_root = "/m";
    wanted.library_bundle_root = "/l";
    wanted.path_exposure_policy = "/ep";
    wanted.path_exposure_journal = "/ej";
    wanted.exchange_timeout_ms = 60'000;
    EXPECT_EQ(out->settings, wanted);
    EXPECT_TRUE(parse(least));
}

TEST(Options, what_goes_together_is_what_goes_together_in_the_file) {
    EXPECT_THAT(why(with({"--session-store", "/s"})), HasSubstr("config.needs"));
    EXPECT_THAT(why(with({"--materialization-root", "/m", "--session-policy", "/p"})),
                HasSubstr("config.needs"));
    EXPECT_THAT(why(with({"--path-exposure-policy", "/p"})), HasSubstr("config.needs"));
    EXPECT_THAT(why(with({"--path-exposure-journal", "/p"})), HasSubstr("config.needs"));
    EXPECT_THAT(why(with({"--session-policy", "/k"})), HasSubstr("config.paths"));
    EXPECT_THAT(why(with({"--session-policy", "relative"})), HasSubstr("wire.grammar"));
    for (std::size_t i = 0; i < least.size(); i += 2) {
        auto words = least;
        words.erase(words.begin() + static_cast<long>(i), words.begin() + static_cast<long>(i) + 2);
        EXPECT_EQ(why(words), "usage: " + string{least[i]} + " is missing");
    }
}

TEST(Options, words_that_are_none) {
    EXPECT_EQ(why({}), "usage: --config is missing");
    EXPECT_EQ(why({"--nothing"}), "usage: '--nothing' is not an option of gloved");
    EXPECT_EQ(why({"file"}), "usage: 'file' is not an option of gloved");
    EXPECT_EQ(why({""}), "usage: '' is not an option of gloved");
    EXPECT_EQ(why({"--config"}), "usage: --config lacks its value");
    EXPECT_EQ(why({"--config", ""}), "usage: --config has an empty value");
    EXPECT_EQ(why({"--config="}), "usage: --config has an empty value");
    EXPECT_EQ(why({"--config", "/a", "--config", "/b"}), "usage: --config comes twice");
    EXPECT_EQ(why(with({"--journal", "/b"})), "usage: --journal comes twice");
    EXPECT_EQ(why({"--init-state", "--init-state"}), "usage: --init-state comes twice");
    for (const char* number : {"0", "60001", "-1", "5s", "", "05"})
        EXPECT_THAT(why(with({"--exchange-timeout-ms", number})),
                    HasSubstr("--exchange-timeout-ms"));
    EXPECT_TRUE(parse(with({"--exchange-timeout-ms", "1"})));
}

TEST(Options, a_first_start_takes_a_file_and_nothing_else) {
    EXPECT_EQ(parse({"--init-state"})->what, action::init_state);
    EXPECT_EQ(parse({"--init-state", "--config", "/c"})->config_file, "/c");
    EXPECT_EQ(parse({"--config", "/c", "--init-state"})->what, action::init_state);
    EXPECT_THAT(why({"--init-state", "--journal", "/j"}),
                HasSubstr("--init-state takes no option"));
    EXPECT_THAT(why({"--init-state", "--config", "/c", "--journal", "/j"}),
                HasSubstr("--init-state takes no option"));
}

TEST(Options, help_names_every_option) {
    EXPECT_EQ(parse({"-h"})->what, action::print_help);
    EXPECT_EQ(parse({"--help", "--nothing"})->what, action::print_help);
    EXPECT_EQ(parse({"-V"})->what, action::print_version);
    EXPECT_EQ(parse({"--version"})->what, action::print_version);
    const auto text = help_text();
    for (const string_view name :
         {"--config FILE", "--runtime-dir DIR", "--audit-key FILE", "--journal FILE",
          "--session-policy FILE", "--session-store FILE", "--materialization-root DIR",
          "--library-bundle-root DIR", "--path-exposure-policy FILE",
          "--path-exposure-journal FILE", "--exchange-timeout-ms N", "--init-state", "--version",
          "--help"})
        EXPECT_THAT(text, HasSubstr(string{name}));
}

} // namespace
} // namespace glove::daemon
