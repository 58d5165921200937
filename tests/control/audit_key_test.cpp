// The key of the receipts: what a file of one is, and that nothing of it stays in memory.
#include "receipt_scene.hpp"
#include <cstring>
#include <glove/base/wipe.hpp>
#include <glove/sys/secret_memory.hpp>
#include <gtest/gtest.h>
#include <support/folder.hpp>
#include <sys/mman.h>
#include <sys/wait.h>

namespace {

using namespace glove;
using control::audit_key;
using test::key_text;

TEST(AuditKey, IsSixtyFourDigitsInAFileOfTheOwner) {
    const test::folder home;
    for (const auto& text : {key_text(), key_text().substr(0, 64), " \t\r\n" + key_text(),
                             key_text() + std::string(63, '\n')}) {
        const auto path = home.file("key", text, 0600);
        const auto key = audit_key::load(path);
        ASSERT_TRUE(key) << key.error().detail;
        EXPECT_EQ(key->id(), test::usual_key().id());
        std::filesystem::remove(path);
    }
}

TEST(AuditKey, IsNothingElse) {
    const auto digits = key_text().substr(0, 64);
    auto capitals = digits;
    for (auto& c : capitals)
        if (c == 'a') c = 'A';
    for (const auto& text :
         {std::string{}, digits.substr(1), digits + "0", digits + std::string(65, ' '), capitals,
          digits.substr(0, 32) + " " + digits.substr(32), std::string(64, ' '),
          digits.substr(1) + "g", std::string(128, 'a')}) {
        const auto key = audit_key::parse(text);
        ASSERT_FALSE(key) << text;
        EXPECT_EQ(key.error().step, "audit.key");
        EXPECT_EQ(key.error().detail.find(digits.substr(4, 12)), std::string::npos);
    }
}

TEST(AuditKey, AFileThatOthersMayReadIsRefused) {
    const test::folder home;
    for (const ::mode_t mode : {0640U, 0604U, 0400U, 0700U}) {
        const auto path = home.file("key" + std::to_string(mode), key_text(), mode);
        EXPECT_FALSE(audit_key::load(path)) << mode;
    }
    const auto good = home.file("good", key_text(), 0600);
    std::filesystem::create_symlink(good, home / "link");
    EXPECT_FALSE(audit_key::load(home / "link"));
    EXPECT_TRUE(audit_key::load(good));
    std::filesystem::create_hard_link(good, home / "second");
    EXPECT_FALSE(audit_key::load(good));
    EXPECT_FALSE(audit_key::load(home.file("long", key_text() + std::string(64, ' '), 0600)));
    const auto wrong = audit_key::load(home.file("wrong", std::string(65, 'z'), 0600));
    ASSERT_FALSE(wrong);
    EXPECT_TRUE(wrong.error().detail.starts_with(home / "wrong"));
    EXPECT_EQ(wrong.error().detail.find("zzz"), std::string::npos);
}

TEST(AuditKey, MovesAsAWhole) {
    auto key = test::usual_key();
    const auto before = key.authenticate("text").value();
    auto moved = std::move(key);
    EXPECT_EQ(moved.authenticate("text").value(), before);
    EXPECT_EQ(key.authenticate("text").error().step,
              "audit.key"); // NOLINT(bugprone-use-after-move)
    auto other = test::other_key();
    EXPECT_NE(other.authenticate("text").value(), before);
    other = std::move(moved);
    EXPECT_EQ(other.authenticate("text").value(), before);
    EXPECT_EQ(moved.authenticate("text").error().step,
              "audit.key"); // NOLINT(bugprone-use-after-move)
}

// --- memory ---

// How often the bytes stand in what this process can write to. The needle is kept turned inside
// out, and what is read to be searched is turned at once, in memory that is not searched itself.
auto times_in_memory(std::string_view inverted) -> std::size_t {
    constexpr std::size_t step = 64UL << 10, overlap = 128;
    static auto* const piece = static_cast<char*>(::mmap(
        nullptr, step + overlap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const auto own = reinterpret_cast<std::uint64_t>(piece);
    std::size_t out = 0;
    const sys::unique_fd memory{::open("/proc/self/mem", O_RDONLY | O_CLOEXEC)};
    std::ifstream maps{"/proc/self/maps"};
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
    for (std::string line; std::getline(maps, line);) {
        unsigned long from = 0, to = 0;
        char rights[5]{};
        if (std::sscanf(line.c_str(), "%lx-%lx %4s", &from, &to, rights) != 3) continue;
        // A sanitizer's own memory is larger than any of the program's.
        if (rights[0] == 'r' && rights[1] == 'w' && to - from < (64UL << 20))
            ranges.emplace_back(from, to);
    }
    for (const auto& [from, to] : ranges)
        for (auto at = from; at < to; at += step) {
            const auto size = std::min<std::uint64_t>(step + overlap, to - at);
            if (at < own + step + overlap && own < at + size) continue;
            const auto got = ::pread(memory.get(), piece, size, static_cast<::off_t>(at));
            if (got <= 0) continue;
            const std::string_view read{piece, static_cast<std::size_t>(got)};
            std::transform(read.begin(), read.end(), piece,
                           [](char c) { return static_cast<char>(~c); });
            for (std::size_t i = 0; (i = read.find(inverted, i)) < std::min(step, read.size()); ++i)
                ++out;
        }
    return out;
}

// Not the usual key: other cases of this program hold that.
auto inverted_secret() -> std::string {
    std::string out;
    for (unsigned i = 0; i < 32; ++i) out += static_cast<char>(~(0xa5U ^ (7U * i)));
    return out;
}
auto inverted_digits() -> std::string {
    std::string out;
    for (const char c : inverted_secret()) {
        const auto byte = static_cast<unsigned char>(~c);
        out += static_cast<char>(~"0123456789abcdef"[byte >> 4U]);
        out += static_cast<char>(~"0123456789abcdef"[byte & 15U]);
    }
    return out;
}
auto inverted_half(const std::string& of) -> std::string_view {
    return std::string_view{of}.substr(0, of.size() / 2);
}

TEST(AuditKey, LeavesNothingBehind) {
    const test::folder home;
    const auto path = home / "key";
    {
        const sys::unique_fd file{::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
        for (const char c : inverted_digits()) {
            const auto digit = static_cast<char>(~c);
            ASSERT_EQ(::write(file.get(), &digit, 1), 1);
        }
    }
    const auto secret = inverted_secret();
    const auto text = inverted_digits();
    ASSERT_EQ(times_in_memory(secret), 0U);
    ASSERT_EQ(times_in_memory(inverted_half(text)), 0U);
    {
        auto key = audit_key::load(path);
        ASSERT_TRUE(key);
        ASSERT_TRUE(key->authenticate("text"));
        auto moved = *std::move(key);
        ASSERT_TRUE(moved.authenticate("text"));
        EXPECT_EQ(times_in_memory(secret), 1U); // so this can be found at all
        EXPECT_EQ(times_in_memory(inverted_half(text)), 0U);
    }
    EXPECT_EQ(times_in_memory(secret), 0U);
    EXPECT_EQ(times_in_memory(inverted_half(secret)), 0U);
    EXPECT_EQ(times_in_memory(inverted_half(text)), 0U);
}

TEST(SecretMemory, IsZerosInAChild) {
    auto page = sys::secret_memory::make(32).value();
    std::ranges::fill(page.bytes(), 'x');
    const auto child = ::fork();
    if (child == 0) ::_exit(page.view() == std::string(32, '\0') ? 0 : 1);
    int status = 1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(page.view(), std::string(32, 'x'));
}

TEST(SecretMemory, IsBounded) {
    EXPECT_EQ(sys::secret_memory::make(0).error().step, "secret.memory");
    EXPECT_TRUE(sys::secret_memory::make(4096));
    EXPECT_EQ(sys::secret_memory::make(4097).error().step, "secret.memory");
}

TEST(SecretMemory, WipingATextTakesAllThatItHadRoomFor) {
    std::string text(200, 's');
    const auto* const at = text.data();
    text.resize(100);
    wipe(text);
    EXPECT_TRUE(text.empty());
    EXPECT_EQ(std::count(at, at + 200, 's'), 0);
}

} // namespace
