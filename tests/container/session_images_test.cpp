// Images, by every means that there is here. In the guest none may be missing: fuse for everybody,
// loop devices for root.
#include "container/image/image_names.hpp"
#include "sys/syscalls.hpp"
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <glove/container/session_changes.hpp>
#include <glove/container/session_copy.hpp>
#include <glove/container/session_files.hpp>
#include <glove/sys/files.hpp>
#include <gmock/gmock.h>
#include <iostream>
#include <iterator>
#include <linux/fs.h>
#include <map>
#include <set>
#include <sstream>
#include <support/forked.hpp>
#include <support/mounter.hpp>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <thread>

namespace {

using namespace glove;
using namespace glove::container;
using testing::HasSubstr;

constexpr std::uint64_t mebi = 1UL << 20U;
constexpr std::uint64_t size_of_image = 32 * mebi;

auto slowness() -> int {
    const char* const said = ::getenv("GLOVE_SLOWNESS");
    return said == nullptr ? 1 : std::atoi(said);
}

auto put(sys::fd_ref directory, const char* name, std::string_view bytes) -> int {
    const sys::unique_fd file{
        ::openat(directory.get(), name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
    if (!file) return errno;
    while (!bytes.empty()) {
        const auto done =
            ::write(file.get(), bytes.data(), std::min<std::size_t>(bytes.size(), 65536));
        if (done < 0) return errno;
        bytes.remove_prefix(static_cast<std::size_t>(done));
    }
    return 0;
}

auto text_of(sys::fd_ref directory, const char* name) -> std::string {
    const auto file = sys::open_beneath(directory, name, O_RDONLY);
    return file ? sys::read_all(*file, mebi).value_or("unreadable") : "not there";
}

template<class T> auto in_words(const result<T>& what) -> std::string {
    if (what) return "good";
    return std::string{what.error().step} + ": " + what.error().detail;
}

class Images : public testing::TestWithParam<image_means> {
protected:
    test::folder place;
    std::string root = place.directory("images", 0700);
    sys::system_clock time;
    std::optional<session_images> images;
    std::size_t descriptors = 0;
    std::string mounts, loops;

    void SetUp() override {
        descriptors = test::names_in("/proc/self/fd");
        mounts = test::content_of("/proc/self/mountinfo");
        loops = loop_devices();
        auto opened = open();
        ASSERT_TRUE(opened) << opened.error().detail;
        images.emplace(*std::move(opened));
        ASSERT_EQ(images->means(), GetParam());
    }
    void TearDown() override {
        images.reset();
        // The process that serves an image ends by itself, a moment after its starter has let go.
        EXPECT_EQ(test::names_in("/proc/self/fd"), descriptors);
        EXPECT_EQ(test::content_of("/proc/self/mountinfo"), mounts);
        for (int i = 0; i < 100 * slowness() && loop_devices() != loops; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds{10});
        EXPECT_EQ(loop_devices(), loops);
    }
    auto open() const -> result<session_images> {
        return session_images::open(root, {.only = GetParam(), .program = GLOVE_IMAGE});
    }
    static auto loop_devices() -> std::string {
        std::string out;
        for (const auto& entry : std::filesystem::directory_iterator{"/sys/block"})
            if (std::filesystem::exists(entry.path() / "loop/backing_file"))
                out += entry.path().filename().string() + " ";
        return out;
    }
    [[nodiscard]] auto deadline() const -> std::chrono::nanoseconds {
        return time.monotonic() + std::chrono::seconds{30};
    }
    auto made(std::string_view alias = "work", std::uint64_t bytes = size_of_image)
        -> session_filesystem {
        auto out = images->make("s-1", alias, bytes, std::nullopt);
        if (!out) test::prepared(false, in_words(out));
        return std::move(out->files);
    }
    void close(session_filesystem& files) {
        EXPECT_EQ(in_words(files.close(time, deadline())), "good");
    }
    [[nodiscard]] auto image_path(std::string_view alias = "work") const -> std::string {
        return root + "/" + name_of(image_name::image, "s-1", alias);
    }
    void use_of(session_filesystem& files, filesystem_use& out) {
        // What a process serves is told a question later.
        for (int i = 0; i < 20; ++i) {
            out = files.use().value();
            std::this_thread::sleep_for(std::chrono::milliseconds{slowness()});
        }
    }
};

TEST_P(Images, WhatWasWrittenIsThereInALaterLook) {
    auto files = made();
    EXPECT_EQ(put(files.content(), "a", "one"), 0);
    close(files);
    auto seen = images->look("s-1", "work");
    ASSERT_EQ(in_words(seen), "good");
    EXPECT_EQ(seen->state, image_state::good);
    EXPECT_EQ(text_of(seen->files.content(), "a"), "one");
    EXPECT_EQ(put(seen->files.content(), "b", "two"), EROFS);
    close(seen->files);
    EXPECT_EQ(images->list().value(), (std::vector<session_images::kept_image>{{"s-1", "work"}}));
}

TEST_P(Images, TheBytesAreReservedAndTheNameIsTheOnePromised) {
    auto files = made();
    const auto look_at = [this] {
        struct ::stat found{};
        ASSERT_EQ(::stat((root + "/glove-mat-s3-s-1-a4-work").c_str(), &found), 0);
        EXPECT_EQ(static_cast<std::uint64_t>(found.st_size), size_of_image);
        EXPECT_GE(static_cast<std::uint64_t>(found.st_blocks) * 512, size_of_image);
        EXPECT_EQ(found.st_mode, S_IFREG | 0600U);
    };
    look_at();
    struct ::statvfs mount{};
    ASSERT_EQ(::fstatvfs(files.content().get(), &mount), 0);
    EXPECT_TRUE((mount.f_flag & ST_NOSUID) != 0 && (mount.f_flag & ST_NODEV) != 0);
    EXPECT_LE(mount.f_blocks * mount.f_frsize, size_of_image);
    struct ::stat content{};
    const int content_number = files.content().get();
    ASSERT_EQ(::fstat(content_number, &content), 0);
    EXPECT_EQ(content.st_uid, ::geteuid());
    EXPECT_TRUE(std::filesystem::is_empty("/proc/self/fd/" + std::to_string(content_number)));
    // Nothing that a session does gives them back.
    {
        EXPECT_EQ(::mkdirat(content_number, "folder", 0755), 0);
        const sys::unique_fd file{
            ::openat(content_number, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
        EXPECT_EQ(::fallocate(file.get(), 0, 0, 8 * mebi), 0);
        EXPECT_EQ(::fsync(file.get()), 0);
        (void)::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4 * mebi);
        EXPECT_EQ(::fsync(file.get()), 0);
        EXPECT_EQ(::unlinkat(content_number, "file", 0), 0);
    }
    (void)test::said_by([&]() -> std::string {
        ::fstrim_range all{.start = 0, .len = ~0ULL, .minlen = 0};
        if (sys::drop_capabilities() != 0) return "capabilities";
        return ::ioctl(content_number, FITRIM, &all) == 0 ? "trimmed" : "refused";
    });
    close(files);
    look_at();
}

TEST_P(Images, ItsUseIsToldAndAFullOneIsRefused) {
    auto files = made();
    EXPECT_EQ(put(files.content(), "before", std::string(2 * mebi, 'x')), 0);
    files.begin_use();
    filesystem_use now;
    use_of(files, now);
    EXPECT_EQ(now.bytes, 0U);
    EXPECT_EQ(put(files.content(), "a", std::string(4 * mebi, 'x')), 0);
    ASSERT_EQ(::syncfs(files.content().get()), 0);
    use_of(files, now);
    EXPECT_GE(now.bytes, 4 * mebi);
    EXPECT_LT(now.bytes, 5 * mebi);
    EXPECT_FALSE(now.refused);
    EXPECT_EQ(put(files.content(), "b", std::string(size_of_image, 'x')), ENOSPC);
    use_of(files, now);
    struct ::statvfs left{};
    ASSERT_EQ(::fstatvfs(files.content().get(), &left), 0);
    EXPECT_TRUE(now.refused) << left.f_bavail * left.f_frsize;
    EXPECT_LE(now.bytes, size_of_image);
    close(files);
}

TEST_P(Images, FilesRunOutToo) {
    auto files = made("work", 2 * mebi);
    files.begin_use();
    int os = 0;
    for (int i = 0; os == 0 && i < 100'000; ++i)
        os = put(files.content(), std::to_string(i).c_str(), "");
    EXPECT_EQ(os, ENOSPC);
    filesystem_use now;
    use_of(files, now);
    EXPECT_TRUE(now.refused);
    close(files);
}

TEST_P(Images, ALookThatIsToldToStopIsBrokenOffAndTheImageStays) {
    auto files = made();
    EXPECT_EQ(put(files.content(), "a", "one"), 0);
    close(files);
    std::stop_source service;
    service.request_stop();
    const auto stopped = images->look("s-1", "work", service.get_token());
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, errc::wrong_state) << in_words(stopped);
    auto seen = images->look("s-1", "work", std::stop_source{}.get_token());
    ASSERT_TRUE(seen) << in_words(seen);
    EXPECT_EQ(text_of(seen->files.content(), "a"), "one");
    close(seen->files);
}

TEST_P(Images, TwoUsesOfOneAreRefused) {
    auto files = made();
    for (int i = 0; i < 2; ++i) {
        const auto again = images->make("s-1", "work", size_of_image, std::nullopt);
        ASSERT_FALSE(again);
        EXPECT_EQ(again.error().step, "files.busy");
        const auto looked = images->look("s-1", "work");
        ASSERT_FALSE(looked);
        EXPECT_EQ(looked.error().step, "files.busy");
        const auto removed = images->remove("s-1", "work");
        ASSERT_FALSE(removed);
        EXPECT_EQ(removed.error().step, "files.busy");
    }
    auto other = made("other");
    close(other);
    close(files);
    EXPECT_EQ(in_words(images->remove("s-1", "work")), "good");
}

TEST_P(Images, RemovedMeansGoneWithItsRecord) {
    auto files = made();
    close(files);
    (void)place.file("images/" + session_images::record_name("s-1", "work"), "{}", 0600);
    (void)place.file("images/" + session_images::record_name("s-1", "other"), "{}", 0600);
    (void)place.file("images/glove-mat-s3-s-1-a4-worx", "", 0644); // its form, and not its use
    EXPECT_EQ(in_words(images->remove("s-1", "work")), "good");
    EXPECT_EQ(in_words(images->remove("s-1", "work")), "good");
    EXPECT_EQ(test::names_in(root), 2U);
    const auto gone = images->look("s-1", "work");
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().code, errc::not_found);
    EXPECT_EQ(gone.error().step, "files.image");
}

TEST_P(Images, OneThatIsThereIsGoneOnWithButNotInAnotherSize) {
    {
        auto files = made();
        EXPECT_EQ(put(files.content(), "a", "one"), 0);
        close(files);
    }
    const auto larger = images->make("s-1", "work", size_of_image + 4096, std::nullopt);
    ASSERT_FALSE(larger);
    EXPECT_EQ(larger.error().code, errc::conflict);
    auto files = made();
    EXPECT_EQ(text_of(files.content(), "a"), "one");
    EXPECT_EQ(put(files.content(), "b", "two"), 0);
    close(files);
}

// What a service that was killed leaves: nobody closed anything.
TEST_P(Images, WhatWasSyncedSurvivesItsService) {
    const auto child = ::fork();
    test::prepared(child >= 0, "fork");
    if (child == 0) {
        auto opened = open();
        if (!opened) ::_exit(1);
        auto files = opened->make("s-1", "work", size_of_image, std::nullopt);
        if (!files) ::_exit(2);
        if (put(files->files.content(), "a", "one") != 0) ::_exit(3);
        if (::syncfs(files->files.content().get()) != 0) ::_exit(4);
        const auto file = sys::open_beneath(files->files.content(), "a", O_RDONLY);
        if (!file || !sys::sync(*file)) ::_exit(5);
        (void)put(files->files.content(), "b", std::string(mebi, 'x'));
        (void)::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    auto seen = images->look("s-1", "work");
    for (int i = 0; i < 100 * slowness() && !seen && seen.error().step == "files.busy"; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds{100});
        seen = images->look("s-1", "work");
    }
    ASSERT_EQ(in_words(seen), "good");
    EXPECT_EQ(text_of(seen->files.content(), "a"), "one");
    close(seen->files);
}

// As after a power cut: what was synced until now is all that there is of it.
TEST_P(Images, ACopyThatWasTakenMeanwhileIsMendedOrKeptAway) {
    auto files = made();
    EXPECT_EQ(put(files.content(), "a", "one"), 0);
    {
        const auto file = sys::open_beneath(files.content(), "a", O_RDONLY).value();
        ASSERT_TRUE(sys::sync(file));
    }
    std::filesystem::copy_file(image_path(), image_path("copy"));
    EXPECT_EQ(put(files.content(), "b", "two"), 0);
    auto seen = images->look("s-1", "copy");
    ASSERT_EQ(in_words(seen), "good");
    EXPECT_EQ(text_of(seen->files.content(), "a"), "one");
    close(seen->files);
    close(files);
}

// As a session has it: in namespaces of its own, as a user that is the service's one outside.
TEST_P(Images, ASandboxWritesThroughAMountOfItsOwn) {
    auto files = made();
    EXPECT_EQ(put(files.content(), "before", "one"), 0);
    {
        auto mount = files.take_mount();
        ASSERT_EQ(in_words(mount), "good");
        EXPECT_FALSE(files.take_mount());
        const auto said = test::said_by([&]() -> std::string {
            test::enter_user_namespace(CLONE_NEWNS, 1000, 1000);
            if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return "private";
            if (sys::move_mount(mount->get(), "", AT_FDCWD, "/tmp", MOVE_MOUNT_F_EMPTY_PATH) != 0)
                return "move: " + std::to_string(errno);
            if (sys::drop_capabilities() != 0) return "capabilities";
            if (test::content_of("/tmp/before") != "one") return "read";
            if (::access("/tmp/../tmp/lost+found", F_OK) == 0) return "more than its directory";
            if (::mkdir("/tmp/folder", 0700) != 0) return "mkdir: " + std::to_string(errno);
            std::ofstream{"/tmp/folder/after"} << "two";
            struct ::stat found{};
            if (::stat("/tmp/folder/after", &found) != 0 || found.st_uid != 1000) return "owner";
            if (::chmod("/tmp/folder/after", 0400) != 0) return "chmod";
            if (::open("/tmp/folder/after", O_WRONLY | O_CLOEXEC) >= 0) return "not its modes";
            if (::mknod("/tmp/device", S_IFCHR | 0600, ::makedev(1, 3)) == 0) return "device";
            return "good";
        });
        EXPECT_EQ(said, "good");
    }
    EXPECT_EQ(text_of(files.content(), "folder/after"), "two");
    struct ::stat found{};
    ASSERT_EQ(::fstatat(files.content().get(), "folder/after", &found, 0), 0);
    EXPECT_EQ(found.st_uid, ::geteuid());
    close(files);
    auto seen = images->look("s-1", "work");
    ASSERT_EQ(in_words(seen), "good");
    EXPECT_EQ(text_of(seen->files.content(), "folder/after"), "two");
    close(seen->files);
}

// Wherever it is interrupted: there is none, or it is whole.
TEST_P(Images, AMakeThatIsKilledIsBegunAnew) {
    constexpr int until_it_is_there = 60'000;
    int there = 0;
    for (const int delay_ms : {0, 3, 8, 15, 25, 40, 80, until_it_is_there}) {
        const auto child = ::fork();
        test::prepared(child >= 0, "fork");
        if (child == 0) {
            const auto files = images->make("s-1", "work", size_of_image, std::nullopt);
            (void)::pause();
            ::_exit(0);
        }
        for (int waited = 0; waited < delay_ms * slowness() && test::names_in(root) == 0; ++waited)
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        ASSERT_EQ(::kill(child, SIGKILL), 0);
        ASSERT_EQ(::waitpid(child, nullptr, 0), child);
        there += static_cast<int>(test::names_in(root));
        auto files = images->make("s-1", "work", size_of_image, std::nullopt);
        for (int i = 0; i < 100 * slowness() && !files && files.error().step == "files.busy"; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds{100});
            files = images->make("s-1", "work", size_of_image, std::nullopt);
        }
        ASSERT_EQ(in_words(files), "good");
        EXPECT_EQ(put(files->files.content(), "a", "one"), 0);
        close(files->files);
        EXPECT_EQ(in_words(images->remove("s-1", "work")), "good");
        EXPECT_EQ(test::names_in(root), 0U);
    }
    EXPECT_GT(there, 0);
}

TEST_P(Images, SeveralThreadsHaveTheirOwn) {
    std::vector<std::thread> threads;
    std::array<std::string, 3> said;
    for (std::size_t i = 0; i < said.size(); ++i)
        threads.emplace_back([&, i] {
            const auto alias = "work-" + std::to_string(i);
            auto files = images->make("s-1", alias, size_of_image, std::nullopt);
            if (!files) return (void)(said[i] = in_words(files));
            if (put(files->files.content(), "a", alias) != 0) return (void)(said[i] = "put");
            if (!files->files.close(time, deadline())) return (void)(said[i] = "close");
            auto seen = images->look("s-1", alias);
            if (!seen) return (void)(said[i] = in_words(seen));
            said[i] = text_of(seen->files.content(), "a");
        });
    for (auto& thread : threads) thread.join();
    EXPECT_THAT(said, testing::ElementsAre("work-0", "work-1", "work-2"));
}

struct damage {
    const char* name;
    void (*done)(int image);
};
void write_over(int image, std::uint64_t at, std::uint64_t size, char what) {
    const std::string bytes(size, what);
    test::prepared(::pwrite(image, bytes.data(), bytes.size(), static_cast<::off_t>(at)) ==
                       static_cast<ssize_t>(size),
                   "pwrite");
}
constexpr damage damages[] = {
    {"nothing of it is left", [](int image) { write_over(image, 0, size_of_image, 0); }},
    {"its superblock is noise", [](int image) { write_over(image, 1024, 1024, 0x5a); }},
    {"its inodes are noise", [](int image) { write_over(image, 4096, 3 * mebi, 0x5a); }},
    {"it is short", [](int image) { test::prepared(::ftruncate(image, mebi) == 0, "truncate"); }},
    {"it is empty", [](int image) { test::prepared(::ftruncate(image, 0) == 0, "truncate"); }},
    {"its state is not what its checksum says", [](int image) { write_over(image, 1082, 1, 2); }},
    {"a block is in nobody's hands",
     [](int image) {
         const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(image));
         test::prepared(std::system(("PATH=/usr/sbin:/sbin debugfs -w -R 'setb 6000' " +
                                     path.string() + " 2>/dev/null")
                                        .c_str()) == 0,
                        "debugfs");
     }},
};

// Whatever it is then, it is either good again or out of the way; what was in it is not asked.
TEST_P(Images, ADamagedOneIsMendedOrPutUnderQuarantine) {
    std::map<std::string, int> states;
    for (const auto& [name, done] : damages) {
        SCOPED_TRACE(name);
        {
            auto files = made();
            EXPECT_EQ(put(files.content(), "a", "one"), 0);
            close(files);
        }
        {
            const sys::unique_fd image{::open(image_path().c_str(), O_RDWR | O_CLOEXEC)};
            done(image.get());
        }
        auto seen = images->look("s-1", "work");
        if (seen) {
            ++states["mended"];
            EXPECT_EQ(seen->state, image_state::repaired);
            close(seen->files);
            auto again = images->look("s-1", "work");
            ASSERT_EQ(in_words(again), "good");
            EXPECT_EQ(again->state, image_state::good);
            close(again->files);
        } else {
            ++states["kept away"];
            EXPECT_EQ(seen.error().step, "files.quarantined") << seen.error().detail;
            EXPECT_EQ(seen.error().code, errc::corrupt);
            EXPECT_FALSE(std::filesystem::exists(image_path()));
            EXPECT_EQ(images->list().value(),
                      (std::vector<session_images::kept_image>{{"s-1", "work", true}}));
            EXPECT_EQ(images->look("s-1", "work").error().code, errc::not_found);
        }
        EXPECT_EQ(in_words(images->remove("s-1", "work")), "good");
        EXPECT_EQ(test::names_in(root), 0U);
    }
    EXPECT_GE(states["kept away"], 4);
    EXPECT_GE(states["mended"], 1);
}

TEST_P(Images, OnlyOneOfTheirFormAndTheServicesOwnIsOpened) {
    auto files = made();
    close(files);
    const auto refused = [&] {
        const auto seen = images->look("s-1", "work");
        return seen ? "good" : std::string{seen.error().step};
    };
    ASSERT_EQ(::chmod(image_path().c_str(), 0640), 0);
    EXPECT_EQ(refused(), "files.image");
    ASSERT_EQ(::chmod(image_path().c_str(), 0600), 0);
    ASSERT_EQ(::link(image_path().c_str(), (root + "/other").c_str()), 0);
    EXPECT_EQ(refused(), "files.image");
    ASSERT_EQ(::unlink((root + "/other").c_str()), 0);
    EXPECT_EQ(refused(), "good");
    ASSERT_EQ(::rename(image_path().c_str(), (root + "/other").c_str()), 0);
    (void)place.link("images/" + name_of(image_name::image, "s-1", "work"), root + "/other");
    EXPECT_EQ(refused(), "files.image");
    ASSERT_EQ(::unlink(image_path().c_str()), 0);
    (void)place.fifo("images/" + name_of(image_name::image, "s-1", "work"));
    EXPECT_EQ(refused(), "files.image");
    EXPECT_TRUE(images->list().value().empty());
    for (const auto* const bad : {"", "a/b", ".. /", "a\n"}) {
        EXPECT_EQ(images->look(bad, "work").error().code, errc::invalid_input);
        EXPECT_EQ(images->make("s-1", bad, size_of_image, std::nullopt).error().step,
                  "files.image");
        EXPECT_EQ(images->remove(bad, bad).error().step, "files.image");
    }
}

TEST_P(Images, TheDirectoryInItIsADirectory) {
    auto files = made();
    close(files);
    {
        auto again = images->make("s-1", "work", size_of_image, std::nullopt);
        ASSERT_EQ(in_words(again), "good");
        const auto up = sys::unique_fd{
            ::openat(again->files.content().get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
        ASSERT_EQ(::unlinkat(up.get(), "content", AT_REMOVEDIR), 0);
        ASSERT_EQ(::symlinkat("/", up.get(), "content"), 0);
    }
    const auto seen = images->look("s-1", "work");
    ASSERT_FALSE(seen);
    EXPECT_EQ(seen.error().step, "files.quarantined");
    EXPECT_EQ(images->list().value(),
              (std::vector<session_images::kept_image>{{"s-1", "work", true}}));
}

TEST_P(Images, NoRoomOnTheHostIsSaidBeforeAnythingIsThere) {
    const auto huge = images->make("s-1", "work", std::uint64_t{1} << 44U, std::nullopt);
    ASSERT_FALSE(huge);
    EXPECT_EQ(huge.error().step, "files.image");
    EXPECT_EQ(test::names_in(root), 0U);
    for (const auto bytes : {std::uint64_t{0}, mebi - 1, (std::uint64_t{1} << 44U) + 1})
        EXPECT_EQ(images->make("s-1", "work", bytes, std::nullopt).error().code,
                  errc::invalid_input);
    auto least = made("work", mebi);
    close(least);
}

TEST_P(Images, ACopyCanBeGoneOnWithAndItsChangesAreRead) {
    (void)place.file("source/kept", "kept");
    (void)place.file("source/folder/changed", "before");
    const auto source = sys::pin(place / "source", sys::follow::no).value();
    const tree_patience patience{.time = time, .deadline = deadline()};
    const tree_limits limits{.bytes = size_of_image};
    const auto record = session_images::record_name("s-1", "work");
    std::string last_step;
    const auto copy = [&](const session_filesystem& into, std::string_view until) {
        return copy_source({.source = source,
                            .into = into.content(),
                            .records = images->root(),
                            .record = record,
                            .source_identity_digest = std::string(64, 'a'),
                            .limits = limits,
                            .how_long = lasts::for_good,
                            .before_step = [&, until](std::string_view step) -> result<> {
                                last_step = step;
                                if (step == until) return fail(errc::io, "test.stop");
                                return {};
                            }},
                           patience);
    };
    {
        auto files = made();
        EXPECT_FALSE(copy(files, "whole"));
        EXPECT_EQ(last_step, "whole");
        close(files);
    }
    auto files = made();
    const auto baseline = copy(files, "");
    ASSERT_EQ(in_words(baseline), "good");
    EXPECT_EQ(baseline->rows.size(), 3U);
    const int top = files.content().get();
    EXPECT_EQ(put(files.content(), "new", "new"), 0);
    EXPECT_EQ(put(files.content(), "folder/changed", "after"), 0);
    EXPECT_EQ(::unlinkat(top, "kept", 0), 0);
    close(files);

    auto seen = images->look("s-1", "work");
    ASSERT_EQ(in_words(seen), "good");
    const auto noted = find_copy_record(images->root(), record).value();
    ASSERT_TRUE(noted);
    EXPECT_EQ(noted->tree, *baseline);
    const auto staged = read_tree(seen->files.content(), limits, patience);
    ASSERT_EQ(in_words(staged), "good");
    const auto changes = changes_between({.session_id = "s-1",
                                          .exposure_id = "work",
                                          .generation = 1,
                                          .scope_digest = std::string(64, 'b'),
                                          .source_identity_digest = std::string(64, 'a'),
                                          .max_bytes = size_of_image},
                                         noted->tree, *staged);
    ASSERT_EQ(in_words(changes), "good");
    EXPECT_EQ(changes->created, 1U);
    EXPECT_EQ(changes->modified, 1U);
    EXPECT_EQ(changes->removed, 1U);
    close(seen->files);
}

// As it is for whoever reads the file alone, which is all that there is after a power cut.
TEST_P(Images, WhatIsSettledIsInTheFileWhileItIsInUse) {
    auto files = made();
    EXPECT_EQ(put(files.content(), "file", "all of it"), 0);
    // After the last file was closed, which hands on by itself what there is.
    ASSERT_EQ(::mkdirat(files.content().get(), "folder", 0755), 0);
    ASSERT_EQ(in_words(files.settle()), "good");
    std::filesystem::copy_file(image_path(), image_path("copy"));
    const auto said_of = [&](const std::string& question) {
        const auto said = place / "said";
        const auto command = "PATH=/usr/sbin:/sbin debugfs -R '" + question + "' " +
                             image_path("copy") + " > " + said + " 2>&1";
        EXPECT_EQ(std::system(command.c_str()), 0);
        return test::content_of(said);
    };
    EXPECT_THAT(said_of("cat /content/file"), testing::HasSubstr("all of it"));
    EXPECT_THAT(said_of("ls -p /content"), testing::HasSubstr("/folder/"));
    close(files);
}

// Of the guest, what must be there; of another machine, what is.
auto find_means() -> std::vector<image_means> {
    std::vector<image_means> out;
    const bool in_guest = ::getenv("GLOVE_SLOWNESS") != nullptr;
    for (const auto means : {image_means::loop, image_means::fuse}) {
        const auto said = test::said_by([means]() -> std::string {
            const bool expected = means == image_means::fuse || test::outer_root();
            test::become_mounter();
            const test::folder place;
            const auto opened =
                session_images::open(place / "images", {.only = means, .program = GLOVE_IMAGE});
            return opened ? "works" : expected ? opened.error().detail : "cannot be";
        });
        if (said == "works" || (in_guest && said != "cannot be")) out.push_back(means);
        else std::cout << said << "\n";
    }
    return out;
}

auto means_here() -> const std::vector<image_means>& {
    static const auto found = find_means();
    return found;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Images);
INSTANTIATE_TEST_SUITE_P(By, Images, testing::ValuesIn(means_here()),
                         [](const auto& one) { return std::string{to_string(one.param)}; });

// What serves an image: a process that is not to be trusted with anything but its image.
class ServedImages : public Images {
protected:
    // The processes below this one: the helper, the sandbox's init, and its program.
    struct served {
        ::pid_t helper = 0, init = 0, program = 0;
    };
    static auto child_of(::pid_t parent, std::string_view name) -> ::pid_t {
        const auto base = "/proc/" + std::to_string(parent) + "/task";
        std::error_code gone;
        for (const auto& thread : std::filesystem::directory_iterator{base, gone}) {
            std::istringstream children{test::content_of(thread.path() / "children")};
            for (::pid_t child = 0; children >> child;)
                if (name.empty() ||
                    test::content_of("/proc/" + std::to_string(child) + "/comm").starts_with(name))
                    return child;
        }
        return 0;
    }
    static auto servers() -> served {
        served out;
        out.helper = child_of(::getpid(), "glove-image");
        out.init = child_of(out.helper, "");
        out.program = child_of(out.init, "fuse2fs");
        EXPECT_GT(out.program, 0);
        return out;
    }
    static auto status_line(::pid_t process, const std::string& name) -> std::string {
        std::istringstream lines{test::content_of("/proc/" + std::to_string(process) + "/status")};
        for (std::string line; std::getline(lines, line);)
            if (line.starts_with(name + ":"))
                return line.substr(line.find_first_not_of(": \t", name.size()));
        return "none";
    }
    static auto is_gone(::pid_t process) -> bool {
        for (int i = 0; i < 200 * slowness(); ++i) {
            if (::kill(process, 0) != 0 && errno == ESRCH) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds{10});
        }
        return false;
    }
    [[nodiscard]] auto took(const std::function<void()>& what) const -> std::chrono::nanoseconds {
        const auto begin = time.monotonic();
        what();
        return time.monotonic() - begin;
    }
};

TEST_P(ServedImages, TheProcessHasTheImageAndNothingElse) {
    auto files = made();
    EXPECT_EQ(put(files.content(), "a", "one"), 0);
    const auto [helper, init, program] = servers();
    EXPECT_EQ(status_line(program, "CapEff"), "0000000000000000");
    EXPECT_EQ(status_line(program, "CapBnd"), "0000000000000000");
    EXPECT_EQ(status_line(program, "NoNewPrivs"), "1");
    EXPECT_EQ(status_line(program, "Seccomp"), "2");
    const auto of = "/proc/" + std::to_string(program);
    for (const auto* const kind : {"user", "mnt", "net", "pid", "ipc", "uts"})
        EXPECT_NE(std::filesystem::read_symlink(of + "/ns/" + kind),
                  std::filesystem::read_symlink(std::string{"/proc/self/ns/"} + kind));
    EXPECT_EQ(test::content_of(of + "/mountinfo").find(place.path()), std::string::npos);
    std::map<std::string, int> opened;
    for (const auto& entry : std::filesystem::directory_iterator{of + "/fd"}) {
        const auto target = std::filesystem::read_symlink(entry.path()).string();
        ++opened[target.starts_with("pipe:") ? "pipe" : target];
    }
    EXPECT_EQ(opened,
              (std::map<std::string, int>{{"/dev/fuse", 1}, {image_path(), 2}, {"pipe", 1}}));
    EXPECT_THAT(test::content_of(of + "/limits"),
                HasSubstr("Max file size             " + std::to_string(size_of_image)));
    close(files);
    for (const auto process : {helper, init, program}) EXPECT_TRUE(is_gone(process));
}

TEST_P(ServedImages, AKilledProcessIsAnErrorAndItsImageIsCheckedBeforeItIsUsedAgain) {
    for (const auto who : {&served::program, &served::init, &served::helper}) {
        auto files = made();
        files.begin_use();
        EXPECT_EQ(put(files.content(), "a", std::string(mebi, 'x')), 0);
        std::jthread writer{[&](std::stop_token stop) {
            for (int i = 0; !stop.stop_requested() && i < 10'000; ++i)
                (void)put(files.content(), std::to_string(i).c_str(), "some");
        }};
        std::this_thread::sleep_for(std::chrono::milliseconds{30 * slowness()});
        const auto processes = servers();
        ASSERT_EQ(::kill(processes.*who, SIGKILL), 0);
        EXPECT_TRUE(is_gone(processes.program));
        writer.request_stop();
        writer.join();
        EXPECT_EQ(put(files.content(), "late", "x"), ENOTCONN);
        result<filesystem_use> now = filesystem_use{};
        for (int i = 0; i < 100 * slowness() && now; ++i) {
            now = files.use();
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
        ASSERT_FALSE(now);
        EXPECT_EQ(now.error().step, "files.use");
        EXPECT_FALSE(files.close(time, deadline()));
        const auto seen = images->look("s-1", "work");
        EXPECT_TRUE(seen || seen.error().step == "files.quarantined") << in_words(seen);
        EXPECT_TRUE(!seen || seen->state == image_state::repaired);
    }
}

// A service manager signals every process of a service that it stops; the service still needs
// these.
TEST_P(ServedImages, WhatStopsAServiceStopsNeither) {
    auto files = made();
    const auto [helper, init, program] = servers();
    for (const auto process : {helper, init, program})
        for (const int number : {SIGHUP, SIGINT, SIGTERM}) EXPECT_EQ(::kill(process, number), 0);
    EXPECT_EQ(put(files.content(), "a", "one"), 0);
    EXPECT_EQ(text_of(files.content(), "a"), "one");
    close(files); // and by itself
    for (const auto process : {helper, init, program}) EXPECT_TRUE(is_gone(process));
    auto seen = images->look("s-1", "work");
    ASSERT_EQ(in_words(seen), "good");
    EXPECT_EQ(seen->state, image_state::good);
    EXPECT_EQ(text_of(seen->files.content(), "a"), "one");
    close(seen->files);
}

// It has stopped answering: nobody waits for longer than was said.
TEST_P(ServedImages, AProcessThatHangsHoldsNobody) {
    auto files = made();
    files.begin_use();
    const auto processes = servers();
    ASSERT_EQ(::kill(processes.program, SIGSTOP), 0);
    for (int i = 0; i < 50; ++i)
        EXPECT_LT(took([&] { EXPECT_TRUE(files.use()); }),
                  std::chrono::milliseconds{100 * slowness()});
    EXPECT_LT(took([&] { files.begin_use(); }), std::chrono::seconds{2 * slowness()});
    EXPECT_LT(took([&] {
                  const auto closed =
                      files.close(time, time.monotonic() + std::chrono::milliseconds{500});
                  EXPECT_FALSE(closed);
              }),
              std::chrono::seconds{2 * slowness()});
    EXPECT_TRUE(is_gone(processes.program));
    const auto seen = images->look("s-1", "work");
    EXPECT_TRUE(seen || seen.error().step == "files.quarantined") << in_words(seen);
}

// A copy into it waits for its answers, which nothing but its own end ends.
TEST_P(ServedImages, WhatIsAttendedEndsWhateverTheProcessDoes) {
    auto files = made();
    const auto in_time = [&](std::chrono::milliseconds left) {
        return files.attended(time, time.monotonic() + left, [&]() -> result<> {
            const int os = put(files.content(), "a", "one");
            if (os != 0) return fail_os("test.put", os);
            return {};
        });
    };
    EXPECT_TRUE(in_time(std::chrono::seconds{10}));
    const auto program = servers().program;
    EXPECT_EQ(::kill(program, 0), 0);
    ASSERT_EQ(::kill(program, SIGSTOP), 0);
    EXPECT_LT(took([&] {
                  const auto late = in_time(std::chrono::milliseconds{500});
                  ASSERT_FALSE(late);
                  EXPECT_EQ(late.error().step, "test.put");
              }),
              std::chrono::seconds{2 * slowness()});
    EXPECT_TRUE(is_gone(program));
    EXPECT_FALSE(files.close(time, deadline()));
}

// Of a look, which reads what a session left, even those who wait for its files.
TEST_P(ServedImages, ALookEndsWhateverTheProcessDoes) {
    auto files = made();
    EXPECT_EQ(put(files.content(), "a", "one"), 0);
    close(files);
    auto impatient = session_images::open(root, {.only = GetParam(),
                                                 .program = GLOVE_IMAGE,
                                                 .patience_with_look = std::chrono::seconds{2}});
    ASSERT_EQ(in_words(impatient), "good");
    auto seen = impatient->look("s-1", "work");
    ASSERT_EQ(in_words(seen), "good");
    const auto program = servers().program;
    ASSERT_EQ(::kill(program, SIGSTOP), 0);
    EXPECT_LT(took([&] { EXPECT_EQ(text_of(seen->files.content(), "a"), "not there"); }),
              std::chrono::seconds{2 + 2 * slowness()});
    EXPECT_TRUE(is_gone(program));
    EXPECT_FALSE(seen->files.close(time, deadline()));
    auto patient = images->look("s-1", "work");
    ASSERT_EQ(in_words(patient), "good");
    EXPECT_EQ(text_of(patient->files.content(), "a"), "one");
    close(patient->files);
}

// Before it is anything: whoever gave the group counts all of it.
TEST_P(ServedImages, EntersTheGroupFirst) {
    test::pipe_ends entry;
    const sys::fd_ref group = entry.write;
    auto made_there = images->make("s-1", "work", size_of_image, group);
    ASSERT_EQ(in_words(made_there), "good");
    entry.write = {};
    EXPECT_EQ(test::hear(entry.read), "0\n");
    close(made_there->files);
    // One that cannot be entered is not gone without.
    const sys::unique_fd full{::open("/dev/full", O_WRONLY | O_CLOEXEC)};
    const sys::fd_ref no_group = full;
    const auto refused = images->make("s-1", "work", size_of_image, no_group);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().step, "files.check");
    EXPECT_THAT(refused.error().detail, HasSubstr("image.group"));
    const auto fresh = images->make("s-1", "fresh", size_of_image, no_group);
    ASSERT_FALSE(fresh);
    EXPECT_EQ(fresh.error().step, "files.mount");
    EXPECT_THAT(fresh.error().detail, HasSubstr("image.group"));
}

TEST_P(ServedImages, IsTheRealGroupsWhenThereIsOne) {
    const std::string group = "/sys/fs/cgroup/glove-images-test";
    if (!test::outer_root() || ::mkdir(group.c_str(), 0755) != 0)
        return; // the session's group has tests of its own
    const sys::unique_fd procs{::open((group + "/cgroup.procs").c_str(), O_RDWR | O_CLOEXEC)};
    {
        const sys::fd_ref entry = procs;
        auto files = images->make("s-1", "work", size_of_image, entry);
        EXPECT_EQ(in_words(files), "good");
        std::istringstream inside{test::content_of(group + "/cgroup.procs")};
        std::set<::pid_t> found{std::istream_iterator<::pid_t>{inside}, {}};
        const auto [helper, init, program] = servers();
        EXPECT_EQ(found, (std::set{helper, init, program}));
        if (files) close(files->files);
    }
    EXPECT_EQ(::rmdir(group.c_str()), 0);
}

auto served_means() -> std::vector<image_means> {
    std::vector<image_means> out;
    for (const auto means : means_here())
        if (means == image_means::fuse) out.push_back(means);
    return out;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ServedImages);
INSTANTIATE_TEST_SUITE_P(By, ServedImages, testing::ValuesIn(served_means()),
                         [](const auto& one) { return std::string{to_string(one.param)}; });

// ------------------------------------------------------------------------------------------------

TEST(ImageRoot, IsTheCallersAlone) {
    const test::folder place;
    const auto root = place.directory("images", 0750);
    const auto open = session_images::open(root, {.program = GLOVE_IMAGE});
    ASSERT_FALSE(open);
    EXPECT_EQ(open.error().step, "files.root");
    const auto link = place.link("link", place.directory("other", 0700));
    EXPECT_EQ(session_images::open(link, {.program = GLOVE_IMAGE}).error().step, "files.root");
    const auto file = place.file("file");
    EXPECT_EQ(session_images::open(file, {.program = GLOVE_IMAGE}).error().step, "files.root");
}

TEST(ImageMeans, WhatIsMissingIsSaid) {
    const test::folder place;
    const auto open = session_images::open(place / "images", {.program = place / "missing"});
    ASSERT_FALSE(open);
    EXPECT_EQ(open.error().code, errc::unsupported);
    EXPECT_EQ(open.error().step, "files.means");
    EXPECT_THAT(open.error().detail, HasSubstr("loop: "));
    EXPECT_THAT(open.error().detail, HasSubstr("fuse: "));
    EXPECT_FALSE(open.error().remedy.empty());
    EXPECT_EQ(test::names_in(place / "images"), 0U);
}

} // namespace
