#include "sys/seccomp.hpp"
#include <algorithm>
#include <csignal>
#include <glove/sys/files.hpp>
#include <gtest/gtest.h>
#include <limits>
#include <linux/filter.h>
#include <support/folder.hpp>
#include <support/forked.hpp>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>

namespace {

using namespace glove;
using sys::follow;
using test::folder;

auto open_directory(const std::string& path) -> sys::unique_fd {
    return sys::unique_fd{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
}

auto facts_of(const std::string& path, follow last = follow::no) -> sys::file_facts {
    const auto pinned = sys::pin(path, last);
    return sys::inspect(*pinned).value();
}

// --- pin and inspect

TEST(Pin, AMagicLinkIsNotFollowed) {
    const auto refused = sys::pin("/proc/self/exe", follow::yes);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().os, ELOOP);
    EXPECT_EQ(refused.error().step, "file.pin");
    EXPECT_FALSE(sys::pin("/proc/self/root/etc", follow::yes).has_value());
    EXPECT_FALSE(sys::pin("/proc/self/cwd/.", follow::no).has_value());
}

TEST(Pin, AnOrdinaryLinkIsFollowedWhenAsked) {
    const folder place;
    const auto target = place.file("target");
    const auto link = place.link("link", "target");
    EXPECT_EQ(facts_of(link, follow::yes).identity, facts_of(target).identity);
    EXPECT_EQ(facts_of(link, follow::no).identity.type, ::mode_t{S_IFLNK});
    EXPECT_TRUE(sys::pin("/proc/self/status", follow::yes).has_value());
}

TEST(Pin, ItStaysTheSameFileWhenTheNameIsGivenToAnother) {
    const folder place;
    const auto name = place.file("name", "first");
    const auto pinned = sys::pin(name, follow::no);
    ASSERT_TRUE(pinned.has_value());
    const auto before = sys::inspect(*pinned).value().identity;
    EXPECT_EQ(facts_of(name).identity, before);
    place.file("other", "second");
    std::filesystem::rename(place / "other", name);
    EXPECT_EQ(sys::inspect(*pinned).value().identity, before);
    EXPECT_NE(facts_of(name).identity, before);
}

TEST(Pin, AFileAndADirectoryOfOneNameDiffer) {
    const folder place;
    const auto name = place.file("name");
    const auto before = facts_of(name).identity;
    std::filesystem::remove(name);
    place.directory("name");
    EXPECT_NE(facts_of(name).identity, before);
    EXPECT_EQ(facts_of(name).identity.type, ::mode_t{S_IFDIR});
}

TEST(Pin, WhatIsMissingIsNotFound) {
    const folder place;
    const auto refused = sys::pin(place / "missing", follow::yes);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, errc::not_found);
    EXPECT_EQ(refused.error().detail, place / "missing");
}

TEST(Pin, TheDescriptorDoesNotSurviveAnExec) {
    const folder place;
    const auto pinned = sys::pin(place.path(), follow::no);
    EXPECT_EQ(::fcntl(pinned->get(), F_GETFD), FD_CLOEXEC);
}

TEST(Inspect, TheFactsAreThoseOfTheFile) {
    const folder place;
    const auto name = place.file("name", "12345", 0640);
    std::filesystem::create_hard_link(name, place / "second");
    const auto facts = facts_of(name);
    struct ::stat found{};
    ASSERT_EQ(::stat(name.c_str(), &found), 0);
    EXPECT_EQ(facts.identity.device, found.st_dev);
    EXPECT_EQ(facts.identity.inode, found.st_ino);
    EXPECT_EQ(facts.identity.type, ::mode_t{S_IFREG});
    EXPECT_EQ(facts.permissions, ::mode_t{0640});
    EXPECT_EQ(facts.owner, ::geteuid());
    EXPECT_EQ(facts.links, 2U);
    EXPECT_EQ(facts.size, 5U);
    ASSERT_EQ(::chmod(name.c_str(), 04755), 0);
    EXPECT_EQ(facts_of(name).permissions, ::mode_t{04755});
}

TEST(Inspect, ANameTellsWhatItsFileTellsAndALinkIsLookedAtItself) {
    const folder place;
    const auto name = place.file("name", "12345", 0640);
    std::filesystem::create_symlink("name", place / "link");
    const auto directory = open_directory(place.path());
    EXPECT_EQ(sys::inspect(directory, "name").value(), facts_of(name));
    EXPECT_EQ(sys::inspect(directory, "link").value(), facts_of(place / "link"));
    EXPECT_EQ(sys::inspect(directory, "link")->identity.type, ::mode_t{S_IFLNK});
    EXPECT_EQ(sys::inspect(directory, "missing").error().os, ENOENT);
}

TEST(Absolute, AnAbsolutePathStaysAsItIs) {
    EXPECT_EQ(sys::absolute("/a//b/../c").value(), "/a//b/../c");
}

TEST(Absolute, ARelativeOneBeginsAtTheWorkingDirectory) {
    const folder place;
    const auto said = test::said_by([&] {
        ::unsetenv("PWD");
        if (::chdir(place.path().c_str()) != 0) return std::string{"no such place"};
        return sys::absolute("b/../c").value();
    });
    EXPECT_EQ(said, place.path() + "/b/../c");
}

TEST(Absolute, AWorkingDirectoryThatIsGoneIsAnError) {
    const folder place;
    const auto said = test::said_by([&] {
        ::unsetenv("PWD");
        const auto gone = place / "gone";
        if (::mkdir(gone.c_str(), 0700) != 0 || ::chdir(gone.c_str()) != 0 ||
            ::rmdir(gone.c_str()) != 0)
            return std::string{"could not be set up"};
        const auto got = sys::absolute("b");
        return got ? *got : std::string{got.error().step};
    });
    EXPECT_EQ(said, "file.working_directory");
}

TEST(ReadLink, TheTargetIsGivenAsItIsStored) {
    const folder place;
    EXPECT_EQ(sys::read_link(place.link("link", "../a//b")).value(), "../a//b");
    const auto refused = sys::read_link(place.file("file"));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, errc::invalid_input);
}

TEST(Exists, ADanglingLinkIsThereAndAMissingNameIsNot) {
    const folder place;
    EXPECT_TRUE(sys::exists(place.link("dangling", "nowhere")));
    EXPECT_TRUE(sys::exists(place.path()));
    EXPECT_FALSE(sys::exists(place / "missing"));
}

// --- reading and writing

TEST(ReadAll, ExactlyTheLimitIsReadAndOneByteMoreIsRefused) {
    const folder place;
    // Around the ends of the pieces that it is read in.
    for (const std::size_t n : {0U, 1U, 100U, 4'095U, 4'096U, 4'097U, 12'287U, 12'288U, 12'289U,
                                65'535U, 65'536U, 65'537U, 200'000U}) {
        std::string content(n, 'x');
        for (std::size_t i = 0; i < n; ++i) content[i] = static_cast<char>('a' + i * 7 % 26);
        const auto name = place.file("name", content);
        EXPECT_EQ(sys::read_file(name, n).value(), content) << n;
        EXPECT_EQ(sys::read_file(name, n + 70'000).value(), content) << n;
        place.file("name", std::string(n + 1, 'x'));
        const auto refused = sys::read_file(name, n);
        ASSERT_FALSE(refused.has_value()) << n;
        EXPECT_EQ(refused.error().code, errc::limit_exceeded);
    }
}

TEST(ReadAll, TheLargestLimitIsNoLimit) {
    const folder place;
    EXPECT_EQ(
        sys::read_file(place.file("name", "all of it"), std::numeric_limits<std::size_t>::max())
            .value(),
        "all of it");
}

TEST(ReadAll, APipeIsReadToItsEnd) {
    test::pipe_ends pipe;
    ASSERT_EQ(::write(pipe.write.get(), "ab", 2), 2);
    ASSERT_EQ(::write(pipe.write.get(), "cd", 2), 2);
    pipe.write = {};
    EXPECT_EQ(sys::read_all(pipe.read, 4).value(), "abcd");
}

TEST(ReadFile, AFileThatTellsNoSizeIsReadWhole) {
    EXPECT_TRUE(sys::read_file("/proc/self/status", 65'536).value().starts_with("Name:"));
}

TEST(ReadFile, ADirectoryAndAMissingFileAreErrors) {
    const folder place;
    EXPECT_EQ(sys::read_file(place.path(), 10).error().os, EISDIR);
    EXPECT_EQ(sys::read_file(place / "missing", 10).error().os, ENOENT);
}

void do_nothing(int) {}

// A pipe takes 64 KiB: the rest waits for a slow reader, interrupted by signals all the while.
TEST(WriteAll, SignalsAndShortWritesLoseNothing) {
    constexpr std::size_t size = 1 << 20;
    test::pipe_ends pipe;
    const auto writer = ::fork();
    if (writer == 0) {
        pipe.read = {};
        struct ::sigaction quiet{};
        quiet.sa_handler = do_nothing;
        (void)::sigaction(SIGALRM, &quiet, nullptr);
        ::ualarm(500, 500);
        std::string text(size, ' ');
        for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i % 23);
        ::_exit(sys::write_all(pipe.write, text) ? 0 : 1);
    }
    pipe.write = {};
    std::string got;
    char part[3000];
    for (ssize_t n = 0; (n = ::read(pipe.read.get(), part, sizeof part)) > 0;) {
        got.append(part, static_cast<std::size_t>(n));
        if (got.size() % 8 == 0) ::usleep(100);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(writer, &status, 0), writer);
    EXPECT_EQ(status, 0);
    ASSERT_EQ(got.size(), size);
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(got[i], static_cast<char>('a' + i % 23)) << i;
}

TEST(WriteAll, AFullDeviceIsAnError) {
    const sys::unique_fd full{::open("/dev/full", O_WRONLY | O_CLOEXEC)};
    const auto written = sys::write_all(full, "x");
    ASSERT_FALSE(written.has_value());
    EXPECT_EQ(written.error().os, ENOSPC);
    EXPECT_TRUE(sys::write_all(full, "").has_value());
}

TEST(Sync, AFileCanBeSyncedAndAPipeCannot) {
    const folder place;
    const sys::unique_fd file{::open(place.file("name").c_str(), O_WRONLY | O_CLOEXEC)};
    EXPECT_TRUE(sys::sync(file).has_value());
    const test::pipe_ends pipe;
    EXPECT_EQ(sys::sync(pipe.write).error().step, "file.sync");
}

// --- directories

TEST(MakeDirectory, EveryMissingParentIsMadeForTheOwnerAlone) {
    const folder place;
    const auto made = sys::make_directory(place / "a/b/c");
    ASSERT_TRUE(made.has_value());
    for (const auto* name : {"a", "a/b", "a/b/c"}) {
        EXPECT_EQ(facts_of(place / name).permissions, ::mode_t{0700}) << name;
        EXPECT_EQ(facts_of(place / name).identity.type, ::mode_t{S_IFDIR}) << name;
    }
    EXPECT_EQ(sys::inspect(*made).value().identity, facts_of(place / "a/b/c").identity);
}

TEST(MakeDirectory, OneThatExistsIsOpenedAsItIs) {
    const folder place;
    place.directory("old", 0755);
    EXPECT_TRUE(sys::make_directory(place / "old").has_value());
    EXPECT_EQ(facts_of(place / "old").permissions, ::mode_t{0755});
}

TEST(MakeDirectory, AFileInTheWayIsAnError) {
    const folder place;
    place.file("file");
    EXPECT_EQ(sys::make_directory(place / "file").error().os, ENOTDIR);
    EXPECT_EQ(sys::make_directory(place / "file/below").error().os, ENOTDIR);
}

TEST(MakePrivateDirectory, ADirectoryOfTheCallerIsTaken) {
    const folder place;
    EXPECT_TRUE(sys::make_private_directory(place / "new/one").has_value());
    place.directory("old", 0755); // others may look, not write
    EXPECT_TRUE(sys::make_private_directory(place / "old").has_value());
}

TEST(MakePrivateDirectory, OneThatOthersCanWriteIsRefused) {
    const folder place;
    for (const ::mode_t mode : {0720U, 0702U, 0777U, 01777U}) {
        place.directory("shared", mode);
        const auto refused = sys::make_private_directory(place / "shared");
        ASSERT_FALSE(refused.has_value()) << mode;
        EXPECT_EQ(refused.error().code, errc::not_permitted);
        EXPECT_EQ(refused.error().step, "file.private_directory");
    }
}

TEST(MakePrivateDirectory, OneThatBelongsToAnotherIsRefused) {
    // "/" belongs to root; root itself hands one of its own away.
    const folder place;
    auto foreign = std::string{"/"};
    if (::geteuid() == 0) {
        foreign = place.directory("foreign");
        ASSERT_EQ(::chown(foreign.c_str(), 65534, 65534), 0);
    }
    const auto refused = sys::make_private_directory(foreign);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().step, "file.private_directory");
}

TEST(MakePrivateDirectory, ALinkToOneIsRefused) {
    const folder place;
    place.directory("real", 0700);
    EXPECT_FALSE(sys::make_private_directory(place.link("link", "real")).has_value());
    EXPECT_TRUE(sys::make_private_directory(place / "real").has_value());
}

// --- private files

class PrivateAppend : public testing::Test {
protected:
    [[nodiscard]] auto open(const std::string& name) const -> result<sys::unique_fd> {
        const auto directory = open_directory(place.path());
        return sys::open_private_append(directory, name);
    }
    void refused(const std::string& name) const {
        const auto opened = open(name);
        ASSERT_FALSE(opened.has_value()) << name;
    }
    folder place;
};

TEST_F(PrivateAppend, ANewFileIsForTheOwnerAlone) {
    const auto opened = open("new");
    ASSERT_TRUE(opened.has_value());
    EXPECT_EQ(facts_of(place / "new").permissions, ::mode_t{0600});
    EXPECT_EQ(::fcntl(opened->get(), F_GETFD), FD_CLOEXEC);
}

TEST_F(PrivateAppend, WhatIsWrittenComesAfterWhatIsThere) {
    place.file("old", "one\n", 0600);
    const auto opened = open("old");
    ASSERT_TRUE(opened.has_value());
    ASSERT_TRUE(sys::write_all(*opened, "two\n").has_value());
    EXPECT_EQ(test::content_of(place / "old"), "one\ntwo\n");
}

TEST_F(PrivateAppend, ALinkIsRefusedAndItsTargetUntouched) {
    place.file("target", "mine", 0600);
    place.link("link", "target");
    refused("link");
    place.link("dangling", "made");
    refused("dangling");
    EXPECT_FALSE(sys::exists(place / "made"));
    EXPECT_EQ(test::content_of(place / "target"), "mine");
    EXPECT_TRUE(open("target").has_value());
}

TEST_F(PrivateAppend, ASecondNameIsRefused) {
    place.file("file", "", 0600);
    std::filesystem::create_hard_link(place / "file", place / "second");
    refused("file");
    std::filesystem::remove(place / "second");
    EXPECT_TRUE(open("file").has_value());
}

TEST_F(PrivateAppend, AnyOtherModeIsRefused) {
    for (const ::mode_t mode : {0644U, 0660U, 0606U, 0700U, 0200U, 04600U}) {
        place.file("file", "", 0600);
        ASSERT_EQ(::chmod((place / "file").c_str(), mode), 0);
        refused("file");
        std::filesystem::remove(place / "file");
    }
    place.file("file", "", 0600);
    EXPECT_TRUE(open("file").has_value());
}

TEST_F(PrivateAppend, AFifoIsRefusedWithoutWaitingForAReader) {
    place.fifo("fifo");
    refused("fifo");
    const sys::unique_fd reader{
        ::open((place / "fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    const auto with_reader = open("fifo");
    ASSERT_FALSE(with_reader.has_value());
    EXPECT_EQ(with_reader.error().step, "file.private");
}

TEST_F(PrivateAppend, ADirectoryIsRefused) {
    place.directory("directory", 0600);
    refused("directory");
}

TEST_F(PrivateAppend, AFileOfAnotherUserIsRefused) {
    if (::geteuid() != 0) return; // an ordinary user cannot give a file away
    place.file("foreign", "", 0600);
    ASSERT_EQ(::chown((place / "foreign").c_str(), 65534, 65534), 0);
    EXPECT_EQ(open("foreign").error().step, "file.private");
    ASSERT_EQ(::chown((place / "foreign").c_str(), 0, 0), 0);
    EXPECT_TRUE(open("foreign").has_value());
}

TEST(ReplacePrivateFile, TheNewFileIsWholeAndForTheOwnerAlone) {
    const folder place;
    const auto directory = open_directory(place.path());
    place.file("name", "old", 0644);
    const auto before = facts_of(place / "name").identity;
    ASSERT_TRUE(sys::replace_private_file(directory, "name", "new content").has_value());
    EXPECT_EQ(test::content_of(place / "name"), "new content");
    EXPECT_EQ(facts_of(place / "name").permissions, ::mode_t{0600});
    EXPECT_NE(facts_of(place / "name").identity, before);
    EXPECT_EQ(test::names_in(place.path()), 1U);
}

TEST(ReplacePrivateFile, AFreeNameIsTaken) {
    const folder place;
    const auto directory = open_directory(place.path());
    ASSERT_TRUE(sys::replace_private_file(directory, "name", "content").has_value());
    EXPECT_EQ(test::content_of(place / "name"), "content");
    EXPECT_EQ(facts_of(place / "name").permissions, ::mode_t{0600});
    EXPECT_EQ(test::names_in(place.path()), 1U);
}

TEST(ReplacePrivateFile, KilledWhileItWritesItLeavesNothing) {
    const folder place;
    const auto killed = test::forked([&] {
        const auto directory = open_directory(place.path());
        const ::rlimit limit{10'000, 10'000};
        test::prepared(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit"); // SIGXFSZ ends it
        (void)sys::replace_private_file(directory, "name", std::string(10'001, 'x'));
        return std::string{"lives"};
    });
    ASSERT_TRUE(WIFSIGNALED(killed.wait_status)) << killed.said;
    EXPECT_EQ(test::names_in(place.path()), 0U);
}

// In the child only: a file system without unnamed files, or a /proc that gives them no name.
void refuse_unnamed_files(long call, std::uint32_t bits) {
    const ::sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(::seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, sys::seccomp::argument(call == SYS_openat ? 2 : 4)),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, bits, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const ::sock_fprog program{std::size(code), const_cast<::sock_filter*>(code)};
    test::prepared(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                       ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0,
                   "filter");
}

TEST(ReplacePrivateFile, WithoutUnnamedFilesItWorksAsWell) {
    struct row {
        long call;
        std::uint32_t bits;
    };
    for (const auto& [call, bits] :
         {row{SYS_openat, O_TMPFILE}, row{SYS_linkat, AT_SYMLINK_FOLLOW}}) {
        const folder place;
        place.file("name", "old", 0644);
        const auto said = test::said_by([&] {
            refuse_unnamed_files(call, bits);
            const auto directory = open_directory(place.path());
            const auto both = [&](const char* name) {
                return sys::check_replaceable(directory, name) &&
                       sys::replace_private_file(directory, name, "new");
            };
            return std::string{both("name") && both("other") ? "written" : "refused"};
        });
        EXPECT_EQ(said, "written");
        for (const auto* const name : {"name", "other"}) {
            EXPECT_EQ(test::content_of(place / name), "new");
            EXPECT_EQ(facts_of(place / name).permissions, ::mode_t{0600});
        }
        EXPECT_EQ(test::names_in(place.path()), 2U);
    }
}

TEST(ReplacePrivateFile, WhoHoldsTheOldFileStillReadsIt) {
    const folder place;
    const auto directory = open_directory(place.path());
    const sys::unique_fd held{::open(place.file("name", "old").c_str(), O_RDONLY | O_CLOEXEC)};
    ASSERT_TRUE(sys::replace_private_file(directory, "name", "new").has_value());
    EXPECT_EQ(sys::read_all(held, 100).value(), "old");
}

TEST(ReplacePrivateFile, ALinkIsReplacedNotFollowed) {
    const folder place;
    const auto directory = open_directory(place.path());
    place.file("target", "mine");
    place.link("name", "target");
    ASSERT_TRUE(sys::replace_private_file(directory, "name", "new").has_value());
    EXPECT_EQ(test::content_of(place / "target"), "mine");
    EXPECT_EQ(facts_of(place / "name").identity.type, ::mode_t{S_IFREG});
}

TEST(ReplacePrivateFile, AFailedWriteLeavesTheOldFileAndNothingElse) {
    const folder place;
    place.file("name", "old");
    const auto replace = [&](std::size_t size) {
        return test::said_by([&] {
            test::forbid_growth(10'000);
            const auto directory = open_directory(place.path());
            const auto written =
                sys::replace_private_file(directory, "name", std::string(size, 'x'));
            return written ? std::string{"written"} : std::string{written.error().step};
        });
    };
    EXPECT_EQ(replace(10'001), "file.write");
    EXPECT_EQ(test::content_of(place / "name"), "old");
    EXPECT_EQ(test::names_in(place.path()), 1U);
    EXPECT_EQ(replace(10'000), "written");
    EXPECT_EQ(test::content_of(place / "name").size(), 10'000U);
}

TEST(ReplacePrivateFile, AFailedRenameLeavesNothingBehind) {
    const folder place;
    place.file("name/inner");
    const auto directory = open_directory(place.path());
    EXPECT_EQ(sys::replace_private_file(directory, "name", "new").error().step, "file.rename");
    EXPECT_EQ(test::names_in(place.path()), 1U);
    EXPECT_TRUE(sys::exists(place / "name/inner"));
}

// --- names

TEST(SealedFile, IsReadFromItsBeginningAndCannotBeChanged) {
    const auto file = sys::sealed_file("words", "test.step").value();
    EXPECT_EQ(sys::read_all(file, 100).value(), "words");
    EXPECT_FALSE(sys::write_all(file, "more"));
    EXPECT_NE(::ftruncate(file.get(), 0), 0);
    EXPECT_NE(::fcntl(file.get(), F_GETFD) & FD_CLOEXEC, 0);
    const auto empty = sys::sealed_file("", "test.step").value();
    EXPECT_EQ(sys::read_all(empty, 100).value(), "");
}

TEST(IsNormalAbsolute, OnlyPlainAbsolutePathsAreNormal) {
    using namespace std::string_view_literals;
    for (const auto path :
         {"/"sv, "/a"sv, "/a/b"sv, "/a/...b"sv, "/.a/b."sv, "/a b"sv, "/a/.../b"sv})
        EXPECT_TRUE(sys::is_normal_absolute(path)) << path;
    for (const auto path :
         {""sv, "a"sv, "./a"sv, "//"sv, "/a/"sv, "//a"sv, "/a//b"sv, "/."sv, "/a/."sv, "/a/./b"sv,
          "/.."sv, "/a/.."sv, "/../a"sv, "/a/../b"sv, "/a\0b"sv})
        EXPECT_FALSE(sys::is_normal_absolute(path)) << path;
}

TEST(ParentOf, TheLastComponentIsCutOff) {
    EXPECT_EQ(sys::parent_of("/a/b/c"), "/a/b");
    EXPECT_EQ(sys::parent_of("/a"), "/");
    EXPECT_EQ(sys::parent_of("/"), "/");
    EXPECT_EQ(sys::parent_of("a"), "/");
}

TEST(Holds, ADirectoryHoldsItselfAndWhatIsBelow) {
    EXPECT_TRUE(sys::holds("/desk", "/desk"));
    EXPECT_TRUE(sys::holds("/desk", "/desk/x"));
    EXPECT_TRUE(sys::holds("/desk", "/desk/x/y"));
    EXPECT_TRUE(sys::holds("/", "/"));
    EXPECT_TRUE(sys::holds("/", "/anything"));
}

TEST(Holds, ANeighbourWithTheSameBeginningIsOutside) {
    EXPECT_FALSE(sys::holds("/desk", "/desk-evil"));
    EXPECT_FALSE(sys::holds("/desk", "/workx/y"));
    EXPECT_FALSE(sys::holds("/desk", "/wor"));
    EXPECT_FALSE(sys::holds("/desk/x", "/desk"));
    EXPECT_FALSE(sys::holds("/desk", "/"));
    EXPECT_FALSE(sys::holds("/desk", ""));
}

} // namespace
