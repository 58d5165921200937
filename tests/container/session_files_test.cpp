// Scratch file systems, as whoever may mount here: root, or the root of a user namespace.
#include "container/linux/own_mounts.hpp"
#include "sys/syscalls.hpp"
#include <climits>
#include <filesystem>
#include <glove/container/session_files.hpp>
#include <glove/sys/files.hpp>
#include <gmock/gmock.h>
#include <support/forked.hpp>
#include <support/mounter.hpp>
#include <sys/mount.h>
#include <sys/statvfs.h>

namespace {

using namespace glove;
using namespace glove::container;
using testing::HasSubstr;

const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));

auto made(std::uint64_t bytes, std::uint64_t inodes = 100) -> session_filesystem {
    auto out = make_scratch(bytes, inodes);
    if (!out) test::prepared(false, std::string{out.error().step} + ": " + out.error().detail);
    return *std::move(out);
}

auto put(sys::fd_ref directory, const char* name, std::uint64_t pages) -> int {
    const sys::unique_fd file{
        ::openat(directory.get(), name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
    if (!file) return errno;
    const std::string bytes(page, 'x');
    for (std::uint64_t i = 0; i < pages; ++i)
        if (::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
            return errno;
    return 0;
}

auto touch(sys::fd_ref directory, const std::string& name) -> int {
    const sys::unique_fd file{
        ::openat(directory.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
    return file ? 0 : errno;
}

auto use_of(session_filesystem& files) -> filesystem_use { return files.use().value(); }

TEST(Scratch, TheQuotaIsFineAndAPageMoreIsRefused) {
    auto files = made(3 * page);
    files.begin_use();
    EXPECT_EQ(put(files.content(), "a", 3), 0);
    EXPECT_EQ(use_of(files).bytes, 3 * page);
    EXPECT_FALSE(use_of(files).refused);
    EXPECT_EQ(put(files.content(), "a", 1), 0);
    EXPECT_EQ(use_of(files).bytes, 4 * page);
    EXPECT_TRUE(use_of(files).refused);
    EXPECT_EQ(put(files.content(), "a", 1), ENOSPC);
    EXPECT_EQ(use_of(files).bytes, 4 * page);
}

TEST(Scratch, WhatWasRefusedOnceStaysRefused) {
    auto files = made(page);
    files.begin_use();
    EXPECT_EQ(put(files.content(), "a", 2), 0);
    EXPECT_TRUE(use_of(files).refused);
    ASSERT_EQ(::unlinkat(files.content().get(), "a", 0), 0);
    EXPECT_TRUE(use_of(files).refused);
    EXPECT_EQ(use_of(files).bytes, 0U);
    files.begin_use();
    EXPECT_FALSE(use_of(files).refused);
}

TEST(Scratch, AQuotaThatIsNoWholePageIsRoundedUp) {
    auto files = made(page + 1);
    files.begin_use();
    EXPECT_EQ(put(files.content(), "a", 2), 0);
    EXPECT_FALSE(use_of(files).refused);
    EXPECT_EQ(put(files.content(), "a", 1), 0);
    EXPECT_TRUE(use_of(files).refused);
}

TEST(Scratch, AsManyFilesAsWereSaidAreFineAndOneMoreIsRefused) {
    auto files = made(64 * page, 3);
    files.begin_use();
    for (const auto* const name : {"a", "b", "c"}) EXPECT_EQ(touch(files.content(), name), 0);
    EXPECT_FALSE(use_of(files).refused);
    EXPECT_EQ(touch(files.content(), "d"), 0);
    EXPECT_TRUE(use_of(files).refused);
    EXPECT_EQ(touch(files.content(), "e"), ENOSPC);
}

TEST(Scratch, DirectoriesAndLinksAreFilesToo) {
    auto files = made(64 * page, 3);
    files.begin_use();
    const int top = files.content().get();
    EXPECT_EQ(::mkdirat(top, "a", 0755), 0);
    EXPECT_EQ(::symlinkat("a", top, "b"), 0);
    EXPECT_EQ(touch(files.content(), "c"), 0);
    EXPECT_FALSE(use_of(files).refused);
    EXPECT_EQ(::linkat(top, "c", top, "d", 0), 0);
    EXPECT_TRUE(use_of(files).refused);
    EXPECT_EQ(::linkat(top, "c", top, "e", 0), -1);
    EXPECT_EQ(errno, ENOSPC);
}

TEST(Scratch, HolesTakeNoRoomUntilTheyAreWritten) {
    auto files = made(4 * page);
    files.begin_use();
    const sys::unique_fd file{
        ::openat(files.content().get(), "a", O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    ASSERT_EQ(::ftruncate(file.get(), 1L << 40U), 0);
    EXPECT_EQ(use_of(files).bytes, 0U);
    ASSERT_EQ(::pwrite(file.get(), "x", 1, 1L << 39U), 1);
    EXPECT_EQ(use_of(files).bytes, page);
    ASSERT_EQ(::fallocate(file.get(), 0, 0, static_cast<::off_t>(16 * page)), -1);
    EXPECT_EQ(errno, ENOSPC);
}

TEST(Scratch, WhatWasThereAtTheStartIsNotCountedButTakesRoom) {
    auto files = made(4 * page);
    ASSERT_EQ(put(files.content(), "before", 3), 0);
    files.begin_use();
    EXPECT_EQ(use_of(files).bytes, 0U);
    EXPECT_EQ(put(files.content(), "after", 1), 0);
    EXPECT_EQ(use_of(files).bytes, page);
    EXPECT_FALSE(use_of(files).refused);
    EXPECT_EQ(put(files.content(), "after", 1), 0);
    EXPECT_TRUE(use_of(files).refused);
    ASSERT_EQ(::unlinkat(files.content().get(), "before", 0), 0);
    ASSERT_EQ(::unlinkat(files.content().get(), "after", 0), 0);
    EXPECT_EQ(use_of(files).bytes, 0U); // and not less
}

TEST(Scratch, IsWithoutSetIdProgramsAndDevices) {
    auto files = made(page);
    const auto mount = files.take_mount();
    ASSERT_TRUE(mount);
    for (const int fd : {mount->get(), files.content().get()}) {
        struct ::statvfs found{};
        ASSERT_EQ(::fstatvfs(fd, &found), 0);
        EXPECT_TRUE((found.f_flag & ST_NOSUID) != 0);
        EXPECT_TRUE((found.f_flag & ST_NODEV) != 0);
    }
    struct ::stat root{};
    ASSERT_EQ(::fstat(files.content().get(), &root), 0);
    EXPECT_EQ(root.st_mode & 07777U, 0755U);
    EXPECT_EQ(root.st_uid, ::geteuid());
}

TEST(Scratch, NothingAndMoreThanThereCanBeAreNoQuota) {
    for (const auto bytes : {std::uint64_t{0}, (std::uint64_t{1} << 62U) + 1,
                             std::numeric_limits<std::uint64_t>::max()}) {
        const auto files = make_scratch(bytes, 10);
        ASSERT_FALSE(files);
        EXPECT_EQ(files.error().step, "files.scratch");
        EXPECT_EQ(files.error().code, errc::invalid_input);
    }
    EXPECT_FALSE(make_scratch(page, std::numeric_limits<std::uint64_t>::max()));
    EXPECT_TRUE(make_scratch(1, 0));
}

// Both ways to another mount: the kernel's own, and the one of kernels that have none.
class TakenMount : public testing::TestWithParam<cloning> {
protected:
    sys::unique_fd first, content;
    void SetUp() override {
        const mount_option options[] = {{"size", "65536"}};
        first = make_mount("tmpfs", options, 0, "test.mount").value();
        content = sys::open_beneath(first, "", O_RDONLY | O_DIRECTORY).value();
    }
    auto take(const std::string& name = {}) -> sys::unique_fd {
        const auto part = sys::open_beneath(content, name, O_PATH | O_NOFOLLOW).value();
        auto out = second_mount(first, part, GetParam(), "test.mount");
        if (!out) test::prepared(false, out.error().detail);
        return *std::move(out);
    }
};

// What it says when another user and mount namespace has had the mount, and is gone.
TEST_P(TakenMount, ServesASandboxAndOutlivesIt) {
    auto second = take();
    const auto said = test::said_by([&]() -> std::string {
        test::enter_user_namespace(CLONE_NEWNS, 1000, 1000);
        if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return "private";
        if (sys::move_mount(second.get(), "", AT_FDCWD, "/tmp", MOVE_MOUNT_F_EMPTY_PATH) != 0)
            return "move: " + std::to_string(errno);
        struct ::stat found{};
        if (::stat("/tmp", &found) != 0 || found.st_uid != 1000) return "owner";
        if (::mkdir("/tmp/inner", 0755) != 0 || put(content, "outside", 1) != 0) return "make";
        // The sandbox's own mounts and its sealing are the sandbox's.
        if (::mount("none", "/tmp/inner", "tmpfs", 0, nullptr) != 0) return "submount";
        if (::mkdir("/tmp/inner/hidden", 0755) != 0) return "hidden";
        ::mount_attr sealed{};
        sealed.attr_set = MOUNT_ATTR_RDONLY;
        if (sys::mount_setattr(second.get(), "", AT_EMPTY_PATH, sealed) != 0) return "seal";
        if (::mkdir("/tmp/late", 0755) == 0 || errno != EROFS) return "not sealed";
        if (::mkdirat(content.get(), "service", 0755) != 0) return "service";
        if (::faccessat(content.get(), "inner/hidden", F_OK, 0) == 0) return "seen";
        return ::access("/tmp/service", F_OK) == 0 ? "good" : "not the same";
    });
    EXPECT_EQ(said, "good");
    second = {};
    EXPECT_EQ(::faccessat(content.get(), "outside", F_OK, 0), 0);
    EXPECT_EQ(put(content, "after", 1), 0);
    EXPECT_EQ(room_in(content, "test.room").value().bytes_used, 2 * page);
}

TEST_P(TakenMount, CanBeOfOneFile) {
    ASSERT_EQ(put(content, "file", 1), 0);
    const auto second = take("file");
    struct ::stat found{};
    ASSERT_EQ(::fstatat(second.get(), "", &found, AT_EMPTY_PATH), 0);
    EXPECT_TRUE(S_ISREG(found.st_mode));
    ASSERT_EQ(put(content, "file", 1), 0);
    ASSERT_EQ(::fstatat(second.get(), "", &found, AT_EMPTY_PATH), 0);
    EXPECT_EQ(static_cast<std::uint64_t>(found.st_size), 2 * page);
}

INSTANTIATE_TEST_SUITE_P(Both, TakenMount, testing::Values(cloning::direct, cloning::attached),
                         [](const auto& one) {
                             return one.param == cloning::direct ? "direct" : "attached";
                         });

TEST(Scratch, TheMountIsTakenOnceAndIsOfARegularFileOrOfAll) {
    auto files = made(64 * page);
    const int top = files.content().get();
    ASSERT_EQ(::mkdirat(top, "folder", 0755), 0);
    ASSERT_EQ(::symlinkat("file", top, "link"), 0);
    ASSERT_EQ(touch(files.content(), "file"), 0);
    for (const auto* const bad : {"folder", "link", "missing", "../file", "/etc/passwd"}) {
        const auto refused = files.take_mount(bad);
        ASSERT_FALSE(refused) << bad;
        EXPECT_EQ(refused.error().step, "files.mount");
    }
    EXPECT_TRUE(files.take_mount("file"));
    const auto again = files.take_mount();
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, errc::wrong_state);
}

TEST(Scratch, NothingIsLeftOfIt) {
    const auto descriptors = test::names_in("/proc/self/fd");
    const auto mounts = test::content_of("/proc/self/mountinfo");
    {
        auto files = made(64 * page);
        files.begin_use();
        const auto mount = files.take_mount();
        ASSERT_TRUE(mount);
        auto other = made(page);
        other = std::move(files);
        EXPECT_EQ(touch(other.content(), "a"), 0);
        const sys::system_clock time;
        EXPECT_TRUE(other.close(time, time.monotonic()));
        EXPECT_TRUE(other.close(time, time.monotonic()));
        EXPECT_FALSE(other.use());
        EXPECT_FALSE(other.take_mount());
    }
    EXPECT_EQ(test::names_in("/proc/self/fd"), descriptors);
    EXPECT_EQ(test::content_of("/proc/self/mountinfo"), mounts);
}

// Whoever has no namespace of its own is told so.
TEST(Scratch, WithoutTheRightToMountItIsRefused) {
    const auto said = test::said_by([]() -> std::string {
        if (sys::drop_capabilities() != 0) return "capabilities";
        const auto files = make_scratch(page, 1);
        return files ? "made" : std::string{files.error().step};
    });
    EXPECT_EQ(said, "files.scratch");
}

} // namespace
