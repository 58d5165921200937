// Listing, removing, importing.
#include "homes_scene.hpp"
#include <sys/mount.h>

namespace {

using namespace glove;
using test::content_of;
using test::Homes;
using test::login;
using test::prepared;
using test::token;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

auto problem_of(const result<std::vector<std::string>>& got) -> error {
    return got ? error{} : got.error();
}

TEST_F(Homes, AListOfNothingMakesNothing) {
    const auto all = host::list_homes();
    ASSERT_TRUE(all);
    EXPECT_THAT(all->homes, IsEmpty());
    EXPECT_FALSE(sys::exists(place / "state"));
}

TEST_F(Homes, AListTellsWhatThereIs) {
    {
        agent_writes(opened(named("work")), "big", std::string(100'000, 'x'));
    }
    const auto used = opened(wish_of("one", "mine"));
    const auto all = host::list_homes();
    ASSERT_TRUE(all);
    ASSERT_THAT(all->homes, SizeIs(2));
    const auto& one = all->homes[0];
    EXPECT_EQ(one.profile, "claude");
    EXPECT_EQ(one.project, "/src/one");
    EXPECT_THAT(one.credentials, ElementsAre(login));
    EXPECT_TRUE(one.in_use);
    EXPECT_EQ(one.grants, "--words mine");
    const auto& work = all->homes[1];
    EXPECT_EQ(work.name, "work");
    EXPECT_FALSE(work.in_use);
    EXPECT_GE(work.bytes, 100'000U);
    EXPECT_EQ(work.entries, 1U);
    EXPECT_TRUE(work.counted_all);
    EXPECT_GT(work.used_ns, 0);
}

// Directories in each other, each entered by its name alone.
void nest(const std::string& at, int levels) {
    sys::unique_fd here{::open(at.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    const std::string name(100, 'd');
    for (int i = 0; i < levels; ++i) {
        prepared(::mkdirat(here.get(), name.c_str(), 0700) == 0, "mkdirat");
        here = sys::unique_fd{::openat(here.get(), name.c_str(), O_RDONLY | O_CLOEXEC)};
        prepared(here.get() >= 0, "openat");
        const sys::unique_fd file{
            ::openat(here.get(), "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0400)};
    }
}

TEST_F(Homes, ATreeDeeperThanAnyPathIsCountedInPartAndRemovedWhole) {
    {
        nest(opened(named("deep")).directory().path, 200);
    }
    EXPECT_FALSE(host::show_home("deep")->counted_all);
    EXPECT_EQ(problem_of(host::remove_home("deep")).detail, "");
    EXPECT_THAT(host::list_homes()->homes, IsEmpty());
    EXPECT_THAT(host::list_homes()->leftovers, IsEmpty());
}

TEST_F(Homes, DirectoriesThatForbidEverythingAreRemoved) {
    {
        const auto home = opened(named("closed"));
        for (const std::string name : {"a", "a/b", "a/b/c", "a/.moved-1", "x"})
            prepared(::mkdir(path_in(home, name).c_str(), 0700) == 0, name);
        std::ofstream{path_in(home, "a/b/c/file")} << "x";
        std::ofstream{path_in(home, "a/.moved-1/file")} << "x";
        std::ofstream{path_in(home, "x/file")} << "x";
        for (const std::string name : {"a/b/c", "a/b", "a", "x"})
            prepared(::chmod(path_in(home, name).c_str(), 0) == 0, name);
    }
    EXPECT_EQ(problem_of(host::remove_home("closed")).detail, "");
    EXPECT_EQ(host::show_home("closed").error().code, errc::not_found);
    EXPECT_EQ(test::names_in(place / "state/glove/homes"), 1U); // the gate
}

TEST_F(Homes, NoLinkIsFollowedWhenAHomeIsRemoved) {
    place.file("outside/precious", "stays");
    {
        const auto home = opened(named("links"));
        prepared(::symlink((place / "outside").c_str(), path_in(home, "to").c_str()) == 0, "link");
        prepared(::mkdir(path_in(home, "in").c_str(), 0700) == 0, "mkdir");
        prepared(::symlink("../../../..", path_in(home, "in/up").c_str()) == 0, "link");
        prepared(::mkfifo(path_in(home, "in/fifo").c_str(), 0600) == 0, "fifo");
    }
    EXPECT_EQ(problem_of(host::remove_home("links")).detail, "");
    EXPECT_EQ(content_of(place / "outside/precious"), "stays");
}

TEST_F(Homes, AMountInAHomeIsNotEmptiedAndTheNextRemovalGoesOn) {
    const auto said = test::said_by([this]() -> std::string {
        if (::geteuid() != 0) test::enter_root("/");
        prepared(::unshare(CLONE_NEWNS) == 0, "unshare");
        prepared(::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "private");
        place.file("outside/precious", "stays");
        {
            prepared(::mkdir(path_in(opened(named("mounted")), "m").c_str(), 0700) == 0, "mkdir");
        }
        const auto at = place / "state/glove/homes/mounted/home/m";
        prepared(::mount((place / "outside").c_str(), at.c_str(), "", MS_BIND, nullptr) == 0, at);
        const auto refused = problem_of(host::remove_home("mounted"));
        const auto left = host::list_homes()->leftovers;
        if (refused.step != "home.remove" || left.size() != 1) return "was not refused";
        if (refused.remedy != "unmount what is mounted there") return refused.remedy;
        if (content_of(place / "outside/precious") != "stays") return "was emptied";
        prepared(::umount2((left[0] + "/home/m").c_str(), 0) == 0 ||
                     ::umount2((left[0] + "/.moved-1/m").c_str(), 0) == 0 ||
                     ::umount2((left[0] + "/.moved-1").c_str(), 0) == 0,
                 "umount");
        {
            (void)opened(named("next"));
        }
        if (!host::remove_home("next")) return "the next was refused";
        return host::list_homes()->leftovers.empty() ? "good" : "left over";
    });
    EXPECT_EQ(said, "good");
}

TEST_F(Homes, AHomeInUseIsNotRemoved) {
    auto home = std::optional{opened(named("work"))};
    EXPECT_EQ(problem_of(host::remove_home("work")).step, "home.in_use");
    home.reset();
    EXPECT_EQ(problem_of(host::remove_home("work")).step, "");
    EXPECT_EQ(problem_of(host::remove_home("work")).code, errc::not_found);
}

TEST_F(Homes, RemovingTakesAChangedLoginBackFirst) {
    const auto key = host::home_key(wish_of("one")).value();
    {
        agent_writes(opened(wish_of("one")), login, token("pending"));
    }
    EXPECT_EQ(stored(), "");
    ASSERT_TRUE(host::remove_home(key));
    EXPECT_EQ(stored(), token("pending"));
}

TEST_F(Homes, AHomeThatFilledTheDiskIsRemovedWithItsLogin) {
    const auto state = place.directory("state");
    EXPECT_EQ(test::said_by([&]() -> std::string {
                  if (::geteuid() != 0) test::enter_root("/");
                  prepared(::unshare(CLONE_NEWNS) == 0, "unshare");
                  prepared(::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "private");
                  prepared(::mount("tmpfs", state.c_str(), "tmpfs", 0, "size=256k") == 0, "mount");
                  const auto key = host::home_key(wish_of("one")).value();
                  log_in("one", token(std::string(16384, '1')));
                  {
                      const auto home = opened(wish_of("one"));
                      agent_writes(home, login, token(std::string(16384, '2')));
                      std::ofstream filler{path_in(home, "filler")};
                      const std::string block(4096, 'x');
                      while (filler << block << std::flush) {
                      }
                  }
                  const auto removed = host::remove_home(key);
                  if (!removed) return std::string{removed.error().step};
                  if (removed->size() != 1) return "was not told";
                  if (!removed->front().contains("was not taken back")) return removed->front();
                  if (stored() != token(std::string(16384, '1'))) return "the store was harmed";
                  return host::list_homes()->homes.empty() ? "good" : "is still there";
              }),
              "good");
}

TEST_F(Homes, NothingButTheNameOfAHomeIsRemoved) {
    {
        (void)opened(named("work"));
    }
    for (const auto* bad : {"..", ".", "", ".gate", "work/home", "../credentials", "a+b"}) {
        EXPECT_FALSE(host::remove_home(bad)) << bad;
        EXPECT_FALSE(host::show_home(bad)) << bad;
    }
    EXPECT_TRUE(host::show_home("work"));
}

TEST_F(Homes, ABrokenRecordIsToldAndItsHomeCanBeRemoved) {
    {
        (void)opened(named("bad"));
    }
    {
        (void)opened(named("good"));
    }
    place.file("state/glove/homes/bad/home.json", "{");
    EXPECT_EQ(host::open_home::open(named("bad")).error().step, "home.record");
    const auto all = host::list_homes();
    EXPECT_THAT(all->homes, SizeIs(1));
    EXPECT_THAT(all->problems, SizeIs(1));
    EXPECT_TRUE(host::remove_home("bad"));
    EXPECT_THAT(host::list_homes()->problems, IsEmpty());
}

// --- import

auto import_into(const std::string& home, const std::string& file) -> error {
    return problem_of(
        host::import_files({.home = home, .profile = {}, .credentials = {}, .files = {file}}));
}

TEST_F(Homes, AnImportedFileGoesToTheSamePlace) {
    place.file("you/.config/git/config", "settings", 0644);
    EXPECT_EQ(import_into("work", place / "you/.config/git/config").detail, "");
    const auto home = opened(named("work"));
    EXPECT_EQ(content_of(path_in(home, ".config/git/config")), "settings");
}

TEST_F(Homes, AFileOfAnotherPlaceNeedsATarget) {
    place.file("elsewhere", "text");
    place.link("you/link", place / "elsewhere");
    EXPECT_THAT(import_into("work", place / "elsewhere").remedy, HasSubstr(":TARGET"));
    EXPECT_THAT(import_into("work", place / "you/link").remedy, HasSubstr(":TARGET"));
    EXPECT_FALSE(sys::exists(place / "state"));
    EXPECT_EQ(import_into("work", (place / "elsewhere") + ":.a/b").detail, "");
    EXPECT_EQ(content_of(path_in(opened(named("work")), ".a/b")), "text");
    for (const auto* bad : {"/etc/x", "../x", "a/../../x"})
        EXPECT_EQ(import_into("work", (place / "elsewhere:") + bad).step, "usage") << bad;
}

TEST_F(Homes, OnlyPlainFilesOfReasonableSizeAreImported) {
    place.directory("you/dir");
    place.fifo("you/fifo");
    place.file("you/big", std::string((1UL << 20U) + 1, 'x'));
    for (const auto* bad : {"you/dir", "you/fifo", "you/big"})
        EXPECT_EQ(import_into("work", place / bad).step, "usage") << bad;
    EXPECT_EQ(import_into("work", place / "you/none").step, "grant.resolve");
    place.file("you/full", std::string(1UL << 20U, 'x'));
    EXPECT_EQ(import_into("work", place / "you/full").step, "");
}

TEST_F(Homes, NothingIsImportedThroughALinkOfTheAgents) {
    place.file("you/.config/tool", "text");
    {
        prepared(
            ::symlink(place.path().c_str(), path_in(opened(named("work")), ".config").c_str()) == 0,
            "link");
    }
    EXPECT_EQ(import_into("work", place / "you/.config/tool").step, "home.import");
    EXPECT_FALSE(sys::exists(place / "tool"));
}

TEST_F(Homes, ALoginIsImportedIntoTheStore) {
    place.file("you/" + login, token("mine"));
    place.file("you/other", "x");
    host::import_request request{
        .home = {}, .profile = "claude", .credentials = {login}, .files = {place / "you/" + login}};
    ASSERT_TRUE(host::import_files(request));
    EXPECT_EQ(stored(), token("mine"));
    const auto home = opened(wish_of("one"));
    EXPECT_EQ(content_of(path_in(home, login)), token("mine"));
    request.files = {place / "you/other"};
    EXPECT_EQ(problem_of(host::import_files(request)).step, "usage");
    // By the name of a home of that profile, too.
    place.file("you/" + login, token("newer"));
    EXPECT_EQ(import_into(home.directory().name, place / "you/" + login).detail, "");
    EXPECT_EQ(stored(), token("newer"));
}

} // namespace
