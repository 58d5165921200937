#include "service_scene.hpp"
#include <gmock/gmock.h>
#include <set>
#include <support/forked.hpp>

namespace glove::control {
namespace {

using std::string;
using std::string_view;
using ::testing::HasSubstr;

struct counted final : sys::entropy {
    auto fill(std::span<std::byte> out) -> result<> override {
        for (auto& b : out) b = static_cast<std::byte>(++last);
        return {};
    }
    int last = 0;
};

auto step_of(const auto& outcome) -> string {
    return outcome ? string{} : string{outcome.error().step};
}
auto content(const string& path) -> string {
    std::ifstream in{path};
    return {std::istreambuf_iterator<char>{in}, {}};
}
auto status(const string& path) -> struct ::stat {
    struct ::stat out{};
    EXPECT_EQ(::lstat(path.c_str(), &out), 0) << path;
    return out;
}

TEST(RuntimeDirectory, it_is_the_callers_alone) {
    const test::folder f;
    EXPECT_EQ(step_of(runtime_directory::open(f.path())), "");
    EXPECT_EQ(step_of(runtime_directory::open(f / "none")), "runtime.directory");
    EXPECT_EQ(step_of(runtime_directory::open("relative")), "runtime.path");
    EXPECT_EQ(step_of(runtime_directory::open("/")), "runtime.path");
    EXPECT_EQ(step_of(runtime_directory::open(f.path() + "/")), "runtime.path");
    for (const ::mode_t mode : {0755U, 0750U, 0701U, 0770U, 0500U, 01700U})
        EXPECT_EQ(step_of(runtime_directory::open(f.directory("open", mode))), "runtime.directory")
            << mode;
    EXPECT_EQ(step_of(runtime_directory::open(f.directory("own", 0700))), "");
    EXPECT_EQ(step_of(runtime_directory::open(f.link("link", f / "own"))), "runtime.directory");
    EXPECT_EQ(step_of(runtime_directory::open(f.file("file", "", 0700))), "runtime.directory");
}

TEST(RuntimeDirectory, its_socket_can_be_named_by_clients) {
    const test::folder f;
    const auto room = 107 - string_view{"/gloved.sock"}.size();
    const auto most = f.directory(string(room - f.path().size() - 1, 'd'), 0700);
    EXPECT_EQ(step_of(runtime_directory::open(most)), "");
    auto directory = runtime_directory::open(most);
    const auto listener = directory->listen();
    EXPECT_EQ(step_of(listener), "");
    EXPECT_TRUE(test::connected(most + "/gloved.sock"));
    const auto over = f.directory(string(room - f.path().size(), 'd'), 0700);
    EXPECT_EQ(step_of(runtime_directory::open(over)), "runtime.path");
}

TEST(RuntimeDirectory, one_service_at_a_time) {
    const test::folder f;
    {
        const auto first = runtime_directory::open(f.path());
        EXPECT_EQ(step_of(first), "");
        const auto second = runtime_directory::open(f.path());
        EXPECT_EQ(step_of(second), "runtime.locked");
        EXPECT_THAT(second.error().detail, HasSubstr("another gloved"));
    }
    EXPECT_EQ(step_of(runtime_directory::open(f.path())), "");
    EXPECT_EQ(status(f / "gloved.lock").st_mode, S_IFREG | 0600U);
}

TEST(RuntimeDirectory, the_secret_is_new_at_every_start_and_in_one_file) {
    const test::folder f;
    counted numbers;
    auto directory = *runtime_directory::open(f.path());
    const auto first = directory.renew_secret(numbers);
    ASSERT_TRUE(first);
    const auto line = content(f / "bootstrap-secret");
    EXPECT_EQ(line, "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20\n");
    EXPECT_EQ(status(f / "bootstrap-secret").st_mode, S_IFREG | 0600U);
    EXPECT_TRUE(first->is(line.substr(0, 64)));
    EXPECT_FALSE(first->is(line));
    EXPECT_FALSE(first->is(line.substr(0, 63)));
    EXPECT_FALSE(first->is(""));
    EXPECT_FALSE(first->is(string(64, '0')));
    const auto second = directory.renew_secret(numbers);
    EXPECT_FALSE(second->is(line.substr(0, 64)));
    EXPECT_NE(content(f / "bootstrap-secret"), line);
    std::set<string> names;
    for (const auto& entry : std::filesystem::directory_iterator{f.path()})
        names.insert(entry.path().filename());
    EXPECT_EQ(names, (std::set<string>{"bootstrap-secret", "gloved.lock"}));
}

TEST(RuntimeDirectory, a_name_that_is_taken_by_something_else_is_no_place_for_the_secret) {
    const test::folder f;
    counted numbers;
    auto directory = *runtime_directory::open(f.path());
    (void)f.directory("bootstrap-secret");
    const auto refused = directory.renew_secret(numbers);
    EXPECT_EQ(step_of(refused), "runtime.secret");
}

TEST(RuntimeDirectory, the_socket_is_closed_to_others_whatever_the_umask) {
    const test::folder f;
    const auto before = ::umask(0);
    auto directory = *runtime_directory::open(f.path());
    const auto listener = directory.listen();
    EXPECT_EQ(::umask(before), 0U); // as it was
    ASSERT_EQ(step_of(listener), "");
    EXPECT_EQ(status(f / "gloved.sock").st_mode, S_IFSOCK | 0600U);
}

TEST(RuntimeDirectory, what_a_dead_service_left_is_removed_and_nothing_else) {
    const test::folder f;
    const auto listen_again = [&] {
        auto directory = *runtime_directory::open(f.path());
        return step_of(directory.listen());
    };
    // A service that was killed.
    const auto done = test::forked([&]() -> string {
        auto directory = *runtime_directory::open(f.path());
        const auto listener = directory.listen();
        (void)::kill(::getpid(), SIGKILL);
        return "";
    });
    EXPECT_TRUE(WIFSIGNALED(done.wait_status));
    EXPECT_TRUE(std::filesystem::exists(f / "gloved.sock"));
    EXPECT_EQ(listen_again(), "");
    EXPECT_FALSE(std::filesystem::exists(f / "gloved.sock"));
    // Each of these is somebody else's.
    (void)f.file("gloved.sock", "text", 0600);
    EXPECT_EQ(listen_again(), "runtime.stale");
    EXPECT_EQ(content(f / "gloved.sock"), "text");
    std::filesystem::remove(f / "gloved.sock");
    (void)f.link("gloved.sock", f / "elsewhere");
    EXPECT_EQ(listen_again(), "runtime.stale");
    std::filesystem::remove(f / "gloved.sock");
    {
        auto directory = *runtime_directory::open(f.path());
        const auto listener = directory.listen();
        ASSERT_EQ(::link((f / "gloved.sock").c_str(), (f / "second").c_str()), 0);
        std::filesystem::rename(f / "second", f / "kept");
    }
    std::filesystem::rename(f / "kept", f / "gloved.sock");
    ASSERT_EQ(::chmod((f / "gloved.sock").c_str(), 0660), 0);
    EXPECT_EQ(listen_again(), "runtime.stale");
    ASSERT_EQ(::chmod((f / "gloved.sock").c_str(), 0600), 0);
    ASSERT_EQ(::link((f / "gloved.sock").c_str(), (f / "second").c_str()), 0);
    EXPECT_EQ(listen_again(), "runtime.stale");
    std::filesystem::remove(f / "second");
    EXPECT_EQ(listen_again(), "");
}

TEST(RuntimeDirectory, at_the_end_only_its_own_socket_goes) {
    const test::folder f;
    {
        auto directory = *runtime_directory::open(f.path());
        const auto listener = directory.listen();
        ASSERT_EQ(step_of(listener), "");
    }
    EXPECT_FALSE(std::filesystem::exists(f / "gloved.sock"));
    {
        auto directory = *runtime_directory::open(f.path());
        const auto listener = directory.listen();
        std::filesystem::remove(f / "gloved.sock");
        (void)f.file("gloved.sock", "another's");
    }
    EXPECT_EQ(content(f / "gloved.sock"), "another's");
}

} // namespace
} // namespace glove::control
