// The choice of the key, its name, and the agent that is asked.
#include "ssh/fingerprint.hpp"
#include <cstdlib>
#include <glove/ssh/identity.hpp>
#include <glove/wire/crypto.hpp>
#include <gmock/gmock.h>
#include <support/folder.hpp>

namespace glove::ssh {
namespace {

using testing::HasSubstr;

TEST(Fingerprint, IsTheDigestThatTheLibraryMakes) {
    std::string bytes;
    for (std::size_t size = 0; size < 300; ++size) {
        EXPECT_EQ(sha256_of(bytes), wire::sha256(bytes).value()) << size;
        bytes += static_cast<char>(size * 37 + 11);
    }
    const std::string large(100'000, '\xa5');
    EXPECT_EQ(sha256_of(large), wire::sha256(large).value());
}

TEST(Fingerprint, IsWrittenAsSshDoes) {
    EXPECT_EQ(fingerprint_of("abc"), "SHA256:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0");
}

auto key(std::string name, std::string comment) -> public_key {
    return {
        .blob = name, .comment = std::move(comment), .type = "t", .fingerprint = "SHA256:" + name};
}

TEST(Choice, IsByFingerprintOrComment) {
    const std::vector keys{key("a", "one"), key("b", "two"), key("c", "two")};
    EXPECT_EQ(choose_key(keys, "SHA256:b")->blob, "b");
    EXPECT_EQ(choose_key(keys, "one")->blob, "a");
    EXPECT_EQ(choose_key({key("a", "one")}, "")->blob, "a");
}

TEST(Choice, OfNoneOrOfSeveralIsRefusedWithTheList) {
    const std::vector keys{key("a", "one"), key("b", "two"), key("c", "two")};
    const auto refused = [&](std::string_view wish, errc code) {
        const auto out = choose_key(keys, wish);
        EXPECT_EQ(out.error().code, code) << wish;
        EXPECT_EQ(out.error().step, "plan.ssh_agent");
        EXPECT_THAT(out.error().detail,
                    HasSubstr("SHA256:a (one), SHA256:b (two), SHA256:c (two)"));
    };
    refused("", errc::conflict);
    refused("two", errc::conflict);
    refused("SHA256:", errc::not_found);
    refused("b", errc::not_found);
    EXPECT_THAT(choose_key({}, "").error().detail, HasSubstr("holds no key"));
}

TEST(Agent, IsNamedByAnAbsolutePath) {
    EXPECT_EQ(agent_socket("/a/b"), "/a/b");
    for (const char* const wrong : {static_cast<const char*>(nullptr), "", "a", "./a"})
        EXPECT_EQ(agent_socket(wrong).error().step, "plan.ssh_agent");
}

TEST(Agent, MustBeASocketOfTheCallerOrOfRoot) {
    const test::folder place;
    EXPECT_THAT(pin_agent(place.file("plain")).error().detail, HasSubstr("is not a socket"));
    EXPECT_EQ(pin_agent(place / "none").error().code, errc::not_found);
}

} // namespace
} // namespace glove::ssh
