// Glove's own frames are those of an independent controller, byte for byte: what it writes, Glove
// reads and writes back the same. GLOVE_GOLDEN is the folder of the golden frames.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <glove/control/protocol.hpp>
#include <gtest/gtest.h>
#include <map>
#include <support/folder.hpp>

namespace glove::control {
namespace {

namespace fs = std::filesystem;
using std::string;

// Placeholders of texts stand within quotes, those of numbers do not.
auto filled(string text) -> string {
    const std::map<string, string> values{
        {"@SECRET@", string(64, 'a')},   {"@PLAN_DIGEST@", string(64, 'b')},
        {"@SCOPE@", string(64, 'd')},    {"@PROJECT@", "/srv/proj"},
        {"@DEADLINE@", "1893456000000"}, {"@PLAN_EXPIRES@", "1893456000001"},
        {"@CREATED@", "1893456000002"},  {"@EXPOSURE_EXPIRES@", "1893456000003"},
    };
    for (const auto& [name, value] : values)
        for (auto at = text.find(name); at != string::npos; at = text.find(name))
            text.replace(at, name.size(), value);
    if (text.ends_with('\n')) text.pop_back();
    return text;
}

auto frames(std::string_view kind) -> std::map<string, string> {
    std::map<string, string> out;
    for (const auto& each : fs::directory_iterator{std::getenv("GLOVE_GOLDEN")})
        if (const auto name = each.path().filename().string(); name.ends_with(kind))
            out.emplace(name, filled(test::content_of(each.path())));
    return out;
}

TEST(GoldenFrames, requests_are_read_and_written_the_same) {
    const auto all = frames(".request.json");
    EXPECT_GE(all.size(), 22U);
    for (const auto& [name, text] : all) {
        const auto read = decode_request(text);
        ASSERT_TRUE(read) << name << ": " << read.error().why.why.detail;
        EXPECT_EQ(read->method + ".request.json", name);
        EXPECT_EQ(read->bootstrap_secret, string(64, 'a'));
        const auto again = encode(*read);
        ASSERT_TRUE(again) << name;
        EXPECT_EQ(*again, text) << name;
    }
}

TEST(GoldenFrames, answers_are_read_and_written_the_same) {
    const auto all = frames(".response.json");
    EXPECT_EQ(all.size(), frames(".request.json").size());
    for (const auto& [name, text] : all) {
        const auto read = decode_reply(text);
        ASSERT_TRUE(read) << name << ": " << read.error().detail;
        response what{.id = read->id, .outcome = {}};
        if (read->outcome) {
            what.outcome = *read->outcome;
        } else {
            const auto code = error_code_named(read->outcome.error().code);
            ASSERT_TRUE(code) << name;
            EXPECT_EQ(message_of(*code), read->outcome.error().message) << name;
            what.outcome = *code;
        }
        const auto again = encode(what);
        ASSERT_TRUE(again) << name;
        EXPECT_EQ(*again, text) << name;
    }
}

TEST(GoldenFrames, no_cut_or_changed_frame_is_one) {
    for (const auto& [name, text] : frames("health.request.json")) {
        for (std::size_t size = 0; size < text.size(); ++size)
            EXPECT_FALSE(decode_request(text.substr(0, size))) << name << " " << size;
    }
    for (const auto& [name, text] : frames("health.response.json")) {
        for (std::size_t size = 0; size < text.size(); ++size)
            EXPECT_FALSE(decode_reply(text.substr(0, size))) << name << " " << size;
    }
}

} // namespace
} // namespace glove::control
