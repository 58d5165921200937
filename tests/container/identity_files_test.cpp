// Read back with libc's own parsers: what they make of the files is what programs see.
#include <algorithm>
#include <cstdio>
#include <glove/container/plan.hpp>
#include <grp.h>
#include <gtest/gtest.h>
#include <memory>
#include <pwd.h>
#include <unistd.h>

namespace {

using namespace glove::container;

auto content(const user_identity& user, std::string_view path) -> std::string {
    for (auto& entry : identity_files(user, "/bin/sh", nullptr))
        if (entry.path == path) return entry.text;
    ADD_FAILURE() << "there is no " << path;
    return {};
}

using stream = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
auto reading(std::string& text) -> stream {
    return {::fmemopen(text.data(), text.size(), "r"), std::fclose};
}

struct account {
    std::string name;
    ::uid_t uid;
    ::gid_t gid;
    std::string home, shell;
    auto operator==(const account&) const -> bool = default;
};

auto accounts(const user_identity& user) -> std::vector<account> {
    auto text = content(user, "/etc/passwd");
    const auto file = reading(text);
    std::vector<account> out;
    while (const auto* const row = ::fgetpwent(file.get()))
        out.push_back({row->pw_name, row->pw_uid, row->pw_gid, row->pw_dir, row->pw_shell});
    EXPECT_EQ(out.size(), static_cast<std::size_t>(std::ranges::count(text, '\n')));
    return out;
}

auto groups(const user_identity& user) -> std::vector<std::pair<std::string, ::gid_t>> {
    auto text = content(user, "/etc/group");
    const auto file = reading(text);
    std::vector<std::pair<std::string, ::gid_t>> out;
    while (const auto* const row = ::fgetgrent(file.get()))
        out.emplace_back(row->gr_name, row->gr_gid);
    return out;
}

const account root_row{"root", 0, 0, "/nonexistent", "/usr/sbin/nologin"};
const account nobody_row{"nobody", 65534, 65534, "/nonexistent", "/usr/sbin/nologin"};

TEST(IdentityFiles, AnOrdinaryUserIsTheAgentBesideRootAndNobody) {
    EXPECT_EQ(accounts({.uid = 1000, .gid = 1001}),
              (std::vector<account>{
                  root_row, {"agent", 1000, 1001, "/home/agent", "/bin/sh"}, nobody_row}));
    EXPECT_EQ(groups({.uid = 1000, .gid = 1001}),
              (std::vector<std::pair<std::string, ::gid_t>>{
                  {"root", 0}, {"agent", 1001}, {"nogroup", 65534}}));
}

TEST(IdentityFiles, RootHasThePrivateHomeToo) {
    EXPECT_EQ(accounts({.uid = 0, .gid = 0}),
              (std::vector<account>{{"root", 0, 0, "/home/agent", "/bin/sh"}, nobody_row}));
    EXPECT_EQ(groups({.uid = 0, .gid = 0}),
              (std::vector<std::pair<std::string, ::gid_t>>{{"root", 0}, {"nogroup", 65534}}));
}

TEST(IdentityFiles, TheNobodyUserIsNamedOnce) {
    EXPECT_EQ(accounts({.uid = 65534, .gid = 65534}),
              (std::vector<account>{root_row, {"agent", 65534, 65534, "/home/agent", "/bin/sh"}}));
    EXPECT_EQ(groups({.uid = 65534, .gid = 65534}),
              (std::vector<std::pair<std::string, ::gid_t>>{{"root", 0}, {"agent", 65534}}));
}

TEST(IdentityFiles, TheNameInTheFilesIsTheNameInTheEnvironment) {
    for (const ::uid_t uid : {0U, 1U, 1000U, 65534U}) {
        const user_identity user{.uid = uid, .gid = 5};
        const auto rows = accounts(user);
        const auto row = std::ranges::find(rows, uid, &account::uid);
        ASSERT_NE(row, rows.end());
        EXPECT_EQ(row->name, user.name());
    }
}

TEST(IdentityFiles, NothingOfTheHostIsInThem) {
    char host[256] = {};
    ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
    for (const auto& entry : identity_files({.uid = 1000, .gid = 1000}, "/bin/sh", nullptr)) {
        EXPECT_EQ(entry.kind, entry_kind::file);
        EXPECT_EQ(entry.origin, origin::managed);
        EXPECT_EQ(entry.permissions, ::mode_t{0444});
        EXPECT_TRUE(entry.text.ends_with('\n')) << entry.path;
        const bool telling =
            std::string_view{host} != host_name && std::string_view{host} != "localhost";
        EXPECT_FALSE(telling && entry.text.find(host) != std::string::npos) << entry.path;
        EXPECT_EQ(entry.text.find("nameserver"), std::string::npos);
        EXPECT_NE(entry.path, "/etc/machine-id");
        EXPECT_NE(entry.path, "/etc/shadow");
    }
    EXPECT_EQ(content({.uid = 1, .gid = 1}, "/etc/hostname"), "glove\n");
    EXPECT_NE(content({.uid = 1, .gid = 1}, "/etc/hosts").find("127.0.0.1\tlocalhost\n"),
              std::string::npos);
}

} // namespace
