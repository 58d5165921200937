// Opening, lending and taking back.
#include "homes_scene.hpp"
#include <atomic>
#include <sys/mount.h>
#include <thread>

namespace {

using namespace glove;
using test::content_of;
using test::Homes;
using test::login;
using test::prepared;
using test::token;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

// --- names

TEST(HomeName, HasTheOneGrammar) {
    for (const auto* good : {"a", "0", "work", "a.b_c-d", "none1"})
        EXPECT_TRUE(host::is_home_name(good)) << good;
    EXPECT_TRUE(host::is_home_name(std::string(64, 'a')));
    EXPECT_FALSE(host::is_home_name(std::string(65, 'a')));
    for (const auto* bad :
         {"", "none", "A", ".a", "-a", "_a", "a/b", "..", "a+b", "a b", "\xc3\xa4"})
        EXPECT_FALSE(host::is_home_name(bad)) << bad;
}

TEST_F(Homes, EveryProjectOfAProfileHasAHomeOfItsOwn) {
    const auto key = [](const host::home_wish& wish) { return host::home_key(wish).value_or(""); };
    const auto one = key(wish_of("one"));
    EXPECT_THAT(one, testing::MatchesRegex("claude\\+[0-9a-f]{24}"));
    EXPECT_NE(one, key(wish_of("two")));
    auto other = wish_of("one");
    other.profile = "codex";
    EXPECT_NE(one, key(other));
    EXPECT_EQ(key(named("work")), "work");
    EXPECT_FALSE(host::home_key(named("../x")).has_value());
    EXPECT_FALSE(host::home_key({}).has_value());
}

// --- opening

TEST_F(Homes, ANewHomeIsEmptyAndTheOwnersAlone) {
    const auto home = opened(named("one"));
    EXPECT_EQ(test::names_in(home.directory().path), 0U);
    for (const std::string at : {"", "/one", "/one/home"}) {
        struct ::stat found{};
        ASSERT_EQ(::stat((place / "state/glove/homes" + at).c_str(), &found), 0);
        EXPECT_EQ(found.st_mode & 07777U, 0700U) << at;
    }
    EXPECT_THAT(home.warnings(), IsEmpty());
}

TEST_F(Homes, WhatWasWrittenIsThereAtTheNextOpening) {
    {
        agent_writes(opened(named("work")), "notes", "kept");
    }
    EXPECT_EQ(content_of(path_in(opened(named("work")), "notes")), "kept");
    EXPECT_FALSE(sys::exists(path_in(opened(named("play")), "notes")));
}

TEST_F(Homes, LookingMakesNothing) {
    const auto seen = host::look_at_home(named("work"));
    ASSERT_TRUE(seen);
    EXPECT_EQ(seen->identity.type, 0U);
    EXPECT_FALSE(sys::exists(place / "state"));
    const auto home = opened(named("work"));
    EXPECT_EQ(host::look_at_home(named("work"))->identity, home.directory().identity);
}

TEST_F(Homes, APlaceThatOthersCanEnterIsRefused) {
    {
        (void)opened(named("work"));
    }
    ASSERT_EQ(::chmod((place / "state/glove/homes").c_str(), 0750), 0);
    const auto refused = host::open_home::open(named("work"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().step, "home.private");
}

// No agent can lock a home for good.
TEST_F(Homes, AHomeThatForbidsEverythingIsOpenedListedShownAndRemoved) {
    const auto forbid = [](const std::string& at) { prepared(::chmod(at.c_str(), 0) == 0, at); };
    const auto at = opened(named("work")).directory().path;
    const auto is_open = [&] {
        struct ::stat found{};
        return ::stat(at.c_str(), &found) == 0 && (found.st_mode & 07777U) == 0700U;
    };
    forbid(at);
    EXPECT_EQ(host::look_at_home(named("work"))->path, at);
    EXPECT_TRUE(host::open_home::open(named("work")) && is_open());
    forbid(at);
    EXPECT_EQ(host::list_homes()->homes.size(), 1U);
    EXPECT_TRUE(is_open());
    forbid(at);
    EXPECT_TRUE(host::show_home("work") && is_open());
    forbid(at);
    EXPECT_TRUE(host::remove_home("work"));
    EXPECT_FALSE(sys::exists(at));
}

TEST_F(Homes, SomethingElseInThePlaceOfAHomeIsNamedByItsWholePath) {
    const auto at = opened(named("work")).directory().path;
    ASSERT_EQ(::rmdir(at.c_str()), 0);
    ASSERT_EQ(::symlink(place.path().c_str(), at.c_str()), 0);
    const auto refused = host::open_home::open(named("work"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().step, "home.place");
    EXPECT_EQ(refused.error().detail, at);
}

TEST_F(Homes, AHomeIsOfOneProfile) {
    auto wish = wish_of("x");
    wish.name = "work";
    {
        (void)opened(wish);
    }
    wish.profile = "codex";
    const auto refused = host::open_home::open(wish);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().step, "home.profile");
}

TEST_F(Homes, PathsThatLeadOutOfAHomeAreRefused) {
    for (const auto* bad : {"", "/etc/passwd", "../x", "a/../b", "a//b", "a/", "."}) {
        auto wish = wish_of("x");
        wish.credentials = {bad};
        EXPECT_FALSE(host::open_home::open(wish)) << bad;
        wish = wish_of("x");
        wish.seeds = {{bad, "x"}};
        EXPECT_FALSE(host::open_home::open(wish)) << bad;
    }
}

// --- sharing

TEST_F(Homes, RunsWithEqualGrantsShareAHome) {
    const auto first = opened(named("work"));
    const auto second = opened(named("work"));
    EXPECT_EQ(first.directory().identity, second.directory().identity);
}

TEST_F(Homes, ARunWithOtherGrantsIsRefusedUntilTheLastOneEnded) {
    auto first = std::optional{opened(named("work", "one"))};
    auto second = std::optional{opened(named("work", "one"))};
    const auto refused = [] {
        const auto got = host::open_home::open(named("work", "two"));
        return got ? error{} : got.error();
    };
    EXPECT_EQ(refused().step, "home.in_use");
    EXPECT_THAT(refused().detail, AllOf(HasSubstr("--words one"), HasSubstr("--words two")));
    EXPECT_THAT(refused().remedy, HasSubstr("--home OTHER"));
    first.reset();
    EXPECT_EQ(refused().step, "home.in_use");
    second.reset();
    EXPECT_EQ(refused().step, "");
}

TEST_F(Homes, ManyOpeningsAtOnceAllSucceedAndLendOnce) {
    log_in("a", token("t"));
    std::vector<::pid_t> children;
    for (int i = 0; i < 8; ++i) {
        const auto child = ::fork();
        prepared(child >= 0, "fork");
        if (child == 0) {
            auto home = host::open_home::open(wish_of("b"));
            const bool good = home && content_of(path_in(*home, login)) == token("t") &&
                              home->finish() && home->warnings().empty();
            ::_exit(good ? 0 : 1);
        }
        children.push_back(child);
    }
    for (const auto child : children) {
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
}

TEST(GrantsOf, TheOrderOfOptionsHasNoMeaningAndEveryGrantHas) {
    container::profile base;
    base.workspace = "/";
    base.grants = {{"--read", "/usr", container::access::read},
                   {"--read", "/etc", container::access::read}};
    base.environment = {{"A", "1"}, {"B", "2"}};
    const auto digest = [](const container::profile& of) { return host::grants_of(of)->digest; };
    const auto wanted = digest(base);
    auto same = base;
    std::swap(same.grants[0], same.grants[1]);
    same.environment = {{"B", "3"}, {"A", "4"}}; // values are no grants
    same.limits.output_bytes = 1;
    EXPECT_EQ(digest(same), wanted);
    const auto differs = [&](auto change) {
        auto other = base;
        change(other);
        EXPECT_NE(digest(other), wanted) << host::grants_of(other)->words;
    };
    differs([](auto& p) { p.workspace = "/usr"; });
    differs([](auto& p) { p.workspace.reset(); });
    differs([](auto& p) { p.grants[0].mode = container::access::write; });
    differs([](auto& p) { p.grants.pop_back(); });
    differs([](auto& p) { p.hidden = {"/usr/bin"}; });
    differs([](auto& p) { p.environment.pop_back(); });
    differs([](auto& p) { p.network = container::network_tier::local; });
    differs([](auto& p) { p.egress.allow = {"a.example"}; });
    differs([](auto& p) { p.egress.publish = {80}; });
    differs([](auto& p) { p.unprotected = {"/usr/.git"}; });
    differs([](auto& p) { p.ssh_agent = ""; });
    differs([](auto& p) { p.grants.push_back({"--path", "/opt", container::access::read, true}); });
}

TEST(GrantsOf, TheFilesOfAProgramCountAsOne) {
    const auto with = [](std::string_view flag, const std::string& path) {
        container::profile out;
        out.grants = {{flag, path, container::access::read, true}};
        out.path_directories = {path};
        return *host::grants_of(out);
    };
    EXPECT_EQ(with("--profile", "/opt/agent-1").digest, with("--profile", "/opt/agent-2").digest);
    EXPECT_EQ(with("--path", "/opt/bin-1").digest, with("--path", "/opt/bin-2").digest);
    EXPECT_NE(with("--profile", "/opt/a").digest, with("--path", "/opt/a").digest);
    EXPECT_THAT(with("--path", "/opt/a").words, HasSubstr("--path on"));
}

// --- credentials

TEST_F(Homes, ALoginOfOneProjectIsLentToAnother) {
    auto one = opened(wish_of("one"));
    EXPECT_FALSE(sys::exists(path_in(one, login)));
    agent_writes(one, login, token("first"));
    agent_writes(one, ".bashrc", "planted");
    EXPECT_THAT(finished_with(one), AllOf(HasSubstr(login), HasSubstr("is new")));
    auto two = opened(wish_of("two"));
    EXPECT_EQ(content_of(path_in(two, login)), token("first"));
    EXPECT_FALSE(sys::exists(path_in(two, ".bashrc")));
    struct ::stat found{};
    ASSERT_EQ(::stat(path_in(two, login).c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777U, 0600U);
    EXPECT_THAT(finished_with(two), IsEmpty());
}

TEST_F(Homes, ARotatedTokenComesBackAndReachesTheOthersAtTheirNextStart) {
    log_in("one", token("first"));
    {
        auto two = opened(wish_of("two"));
        agent_writes(two, login, token("second"));
        EXPECT_THAT(finished_with(two), IsEmpty());
    }
    EXPECT_EQ(stored(), token("second"));
    EXPECT_EQ(former(), token("first"));
    EXPECT_EQ(content_of(path_in(opened(wish_of("one")), login)), token("second"));
}

TEST_F(Homes, WhatAKilledGloveDidNotReturnTheNextOpeningDoes) {
    log_in("one", token("first"));
    const auto done = test::forked([] {
        const auto home = host::open_home::open(wish_of("one"));
        agent_writes(*home, login, token("second"));
        (void)::kill(::getpid(), SIGKILL);
        return std::string{};
    });
    ASSERT_TRUE(WIFSIGNALED(done.wait_status));
    EXPECT_EQ(stored(), token("first"));
    {
        (void)opened(wish_of("one"));
    }
    EXPECT_EQ(stored(), token("second"));
}

TEST_F(Homes, AHomeWithoutAProfileOnTheCommandLineKeepsItsOwn) {
    auto wish = wish_of("x");
    wish.name = "work";
    {
        (void)opened(wish);
    }
    {
        auto home = opened(named("work"));
        agent_writes(home, login, token("plain"));
        (void)finished_with(home);
    }
    EXPECT_EQ(stored(), token("plain"));
}

// Whatever ran in the home before had no profile, and thus no say in the profile's login.
TEST_F(Homes, AFileFromBeforeTheProfileNeitherReplacesItsLoginNorIsLost) {
    log_in("one", token("of the profile"));
    {
        agent_writes(opened(named("work")), login, token("from before"));
    }
    auto wish = wish_of("one");
    wish.name = "work";
    {
        const auto home = opened(wish);
        EXPECT_THAT(home.warnings(), testing::ElementsAre(AllOf(HasSubstr("which stays"),
                                                                HasSubstr("claude+superseded"))));
        EXPECT_EQ(stored(), token("of the profile"));
        EXPECT_EQ(former(), token("from before"));
        EXPECT_EQ(content_of(path_in(home, login)), token("of the profile"));
    }
    // The twin: from now on the login is lent to it, and a change comes back.
    auto home = opened(wish);
    EXPECT_THAT(home.warnings(), IsEmpty());
    agent_writes(home, login, token("renewed"));
    EXPECT_THAT(finished_with(home), IsEmpty());
    EXPECT_EQ(stored(), token("renewed"));
}

TEST_F(Homes, AFileFromBeforeTheProfileIsTakenAndToldWhereThereIsNoLogin) {
    {
        agent_writes(opened(named("work")), login, token("from before"));
    }
    auto wish = wish_of("one");
    wish.name = "work";
    EXPECT_THAT(opened(wish).warnings(),
                testing::ElementsAre(AllOf(HasSubstr(login), HasSubstr("it was taken"))));
    EXPECT_EQ(stored(), token("from before"));
}

TEST_F(Homes, ADeletedLoginComesAgain) {
    log_in("one", token("first"));
    {
        ASSERT_EQ(::unlink(path_in(opened(wish_of("one")), login).c_str()), 0);
    }
    EXPECT_EQ(content_of(path_in(opened(wish_of("one")), login)), token("first"));
}

[[nodiscard]] auto changed_at(const std::string& path) -> std::int64_t {
    const auto pin = sys::pin(path, sys::follow::no);
    return sys::inspect(*pin)->changed_ns;
}

// Two homes change one login; the order of their ends must not decide.
class Conflict : public Homes {
protected:
    Conflict() {
        log_in("start", token("start"));
        earlier.emplace(opened(wish_of("one")));
        later.emplace(opened(wish_of("two")));
        agent_writes(*earlier, login, token("earlier"));
        do agent_writes(*later, login, token("later"));
        while (changed_at(path_in(*later, login)) <= changed_at(path_in(*earlier, login)));
    }
    std::optional<host::open_home> earlier, later;
};

TEST_F(Conflict, TheLaterChangeStaysWhenItComesLast) {
    EXPECT_THAT(finished_with(*earlier), IsEmpty());
    EXPECT_THAT(finished_with(*later), HasSubstr("in another home, and later here"));
    EXPECT_EQ(stored(), token("later"));
    EXPECT_EQ(former(), token("earlier"));
}

TEST_F(Conflict, TheLaterChangeStaysWhenItComesFirst) {
    EXPECT_THAT(finished_with(*later), IsEmpty());
    EXPECT_THAT(finished_with(*earlier), HasSubstr("later in another home"));
    EXPECT_EQ(stored(), token("later"));
    EXPECT_EQ(former(), token("earlier"));
    EXPECT_THAT(finished_with(*earlier), IsEmpty()); // told once
}

// --- hostile homes

struct shape {
    const char* name;
    void (*make)(const std::string& at, const test::folder& outside);
    const char* told;
};
const shape shapes[] = {
    {"a link to a secret",
     [](const std::string& at, const test::folder& out) {
         prepared(::symlink((out / "secret").c_str(), at.c_str()) == 0, at);
     },
     "is a link"},
    {"a hard link",
     [](const std::string& at, const test::folder& out) {
         prepared(::link((out / "secret").c_str(), at.c_str()) == 0, at);
     },
     "more than one name"},
    {"a FIFO",
     [](const std::string& at, const test::folder&) {
         prepared(::mkfifo(at.c_str(), 0600) == 0, at);
     },
     "not a regular file"},
    {"a directory",
     [](const std::string& at, const test::folder&) {
         prepared(::mkdir(at.c_str(), 0700) == 0, at);
     },
     "is a directory"},
    {"a socket", [](const std::string& at, const test::folder&) { (void)test::bound_socket(at); },
     "is a socket"},
    {"more than 1 MiB",
     [](const std::string& at, const test::folder&) {
         std::ofstream{at} << '"' << std::string(1UL << 20U, 'x') << '"';
     },
     "larger than 1 MiB"},
    {"a file with a hole of a terabyte",
     [](const std::string& at, const test::folder&) {
         std::ofstream{at} << "x";
         prepared(::truncate(at.c_str(), 1LL << 40U) == 0, at);
     },
     "larger than 1 MiB"},
    {"nothing in it", [](const std::string& at, const test::folder&) { std::ofstream{at} << ""; },
     "is empty"},
    {"half of it",
     [](const std::string& at, const test::folder&) { std::ofstream{at} << R"({"token":"ab)"; },
     "not whole JSON"},
    {"a link on the way",
     [](const std::string& at, const test::folder& out) {
         const auto above = std::filesystem::path{at}.parent_path();
         std::filesystem::remove_all(above);
         prepared(::symlink(out.path().c_str(), above.c_str()) == 0, at);
     },
     "is a link"},
    {"a file on the way",
     [](const std::string& at, const test::folder&) {
         const auto above = std::filesystem::path{at}.parent_path();
         std::filesystem::remove_all(above);
         std::ofstream{above} << "x";
     },
     "no directory"},
};

class Shaped : public Homes, public testing::WithParamInterface<shape> {
protected:
    Shaped() {
        outside.file("secret", "the secret");
        outside.file(".credentials.json", token("outside"));
    }
    test::folder outside;
};

TEST_P(Shaped, IsNamedAndNotTakenBack) {
    log_in("one", token("first"));
    auto home = opened(wish_of("one"));
    ASSERT_EQ(::unlink(path_in(home, login).c_str()), 0);
    GetParam().make(path_in(home, login), outside);
    EXPECT_THAT(finished_with(home), AllOf(HasSubstr(login), HasSubstr(GetParam().told)));
    EXPECT_EQ(stored(), token("first"));
    EXPECT_EQ(former(), "");
    // The twin: a plain file in its place is taken.
    std::filesystem::remove_all(path_in(home, ".claude"));
    agent_writes(home, login, token("second"));
    EXPECT_THAT(finished_with(home), IsEmpty());
    EXPECT_EQ(stored(), token("second"));
}

TEST_P(Shaped, HarmsNothingOutsideWhenTheNextRunIsLentTheLogin) {
    log_in("one", token("first"));
    {
        const auto home = opened(wish_of("one"));
        ASSERT_EQ(::unlink(path_in(home, login).c_str()), 0);
        GetParam().make(path_in(home, login), outside);
    }
    {
        (void)opened(wish_of("one"));
    }
    EXPECT_EQ(content_of(outside / "secret"), "the secret");
    EXPECT_EQ(content_of(outside / ".credentials.json"), token("outside"));
    EXPECT_EQ(test::names_in(outside.path()), 2U);
    EXPECT_EQ(stored(), token("first"));
}

INSTANTIATE_TEST_SUITE_P(Homes, Shaped, testing::ValuesIn(shapes),
                         [](const testing::TestParamInfo<shape>& row) {
                             return std::to_string(row.index);
                         });

TEST_F(Homes, AFileThatIsSwappedMeanwhileIsNeverFollowed) {
    log_in("one", token("first"));
    place.file("secret", "{\"token\":\"the secret\"}");
    auto home = opened(wish_of("one"));
    const auto at = path_in(home, login);
    ASSERT_EQ(::symlink((place / "secret").c_str(), path_in(home, "link").c_str()), 0);
    agent_writes(home, login, token("second"));
    std::atomic<bool> done = false;
    std::thread swapper{[&] {
        while (!done)
            (void)::renameat2(AT_FDCWD, at.c_str(), AT_FDCWD, path_in(home, "link").c_str(),
                              RENAME_EXCHANGE);
    }};
    for (int i = 0; i < 200; ++i) {
        (void)finished_with(home);
        ASSERT_THAT(stored(), testing::AnyOf(token("first"), token("second")));
    }
    done = true;
    swapper.join();
}

// --- seeds

TEST_F(Homes, ASeedIsWrittenWhereNothingHasItsName) {
    auto wish = named("work");
    wish.seeds = {{".config/tool.toml", "seed"}};
    {
        EXPECT_EQ(content_of(path_in(opened(wish), ".config/tool.toml")), "seed");
    }
    {
        agent_writes(opened(wish), ".config/tool.toml", "changed");
    }
    const auto home = opened(wish);
    EXPECT_EQ(content_of(path_in(home, ".config/tool.toml")), "changed");
    ASSERT_EQ(::unlink(path_in(home, ".config/tool.toml").c_str()), 0);
    ASSERT_EQ(::symlink((place / "not-there").c_str(), path_in(home, ".config/tool.toml").c_str()),
              0);
    {
        (void)opened(wish);
    }
    EXPECT_FALSE(sys::exists(place / "not-there"));
}

TEST_F(Homes, ASeedBehindALinkIsLeftAndTold) {
    auto wish = named("work");
    {
        ASSERT_EQ(::symlink(place.path().c_str(), path_in(opened(wish), ".config").c_str()), 0);
    }
    wish.seeds = {{".config/tool.toml", "seed"}};
    const auto home = opened(wish);
    EXPECT_THAT(home.warnings(), testing::ElementsAre(HasSubstr(".config/tool.toml is a link")));
    EXPECT_FALSE(sys::exists(place / "tool.toml"));
}

// --- cut short

// A login that is longer than every record, so that a limit on files stops it alone.
auto long_token(char what) -> std::string { return token(std::string(16384, what)); }

// The signal of the limit ends the process in the middle of the file that goes beyond it.
template<class Body> void killed_while_writing(Body body) {
    const auto done = test::forked([&] {
        const ::rlimit limit{8192, 8192};
        prepared(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
        body();
        return std::string{};
    });
    ASSERT_TRUE(WIFSIGNALED(done.wait_status));
    ASSERT_EQ(WTERMSIG(done.wait_status), SIGXFSZ);
}

TEST_F(Homes, AKillInTheMiddleOfLendingLosesNothing) {
    log_in("one", long_token('1'));
    killed_while_writing([] { (void)host::open_home::open(wish_of("two")); });
    const auto home = opened(wish_of("two"));
    EXPECT_EQ(content_of(path_in(home, login)), long_token('1'));
    EXPECT_THAT(home.warnings(), IsEmpty());
    EXPECT_EQ(stored(), long_token('1'));
}

TEST_F(Homes, AKillInTheMiddleOfTakingBackLosesNothing) {
    log_in("one", long_token('1'));
    {
        auto home = opened(wish_of("one"));
        agent_writes(home, login, long_token('2'));
        killed_while_writing([&] { (void)home.finish(); });
    }
    EXPECT_EQ(stored(), long_token('1'));
    {
        (void)opened(wish_of("one"));
    }
    EXPECT_EQ(stored(), long_token('2'));
    EXPECT_EQ(former(), long_token('1'));
}

TEST_F(Homes, AKillBetweenTheRecordAndTheCopyIsNoChangeOfTheAgents) {
    log_in("one", long_token('1'));
    {
        (void)opened(wish_of("two"));
    }
    log_in("one", long_token('2'));
    killed_while_writing([] { (void)host::open_home::open(wish_of("two")); });
    // Its home still holds the first, which the store must not take for something new.
    log_in("one", long_token('3'));
    EXPECT_EQ(content_of(path_in(opened(wish_of("two")), login)), long_token('3'));
    EXPECT_EQ(stored(), long_token('3'));
}

TEST_F(Homes, AFullDiskIsAnErrorAndTheStoreStays) {
    const auto state = place.directory("state");
    EXPECT_EQ(test::said_by([&]() -> std::string {
                  const auto uid = ::geteuid();
                  if (uid != 0) {
                      test::enter_root("/");
                      prepared(::unshare(CLONE_NEWNS) == 0, "unshare");
                  } else prepared(::unshare(CLONE_NEWNS) == 0, "unshare");
                  prepared(::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "private");
                  prepared(::mount("tmpfs", state.c_str(), "tmpfs", 0, "size=256k") == 0, "mount");
                  log_in("one", long_token('1'));
                  auto home = opened(wish_of("one"));
                  agent_writes(home, login, long_token('2'));
                  const sys::unique_fd filler{
                      ::open(path_in(home, "filler").c_str(), O_WRONLY | O_CREAT, 0600)};
                  const std::string block(4096, 'x');
                  while (::write(filler.get(), block.data(), block.size()) > 0) {
                  }
                  const auto full = home.finish();
                  if (full) return "was not refused";
                  if (full.error().os != ENOSPC) return std::string{full.error().step};
                  if (stored() != long_token('1')) return "the store was harmed";
                  prepared(::ftruncate(filler.get(), 0) == 0, "ftruncate");
                  if (!home.finish()) return "was refused again";
                  return stored() == long_token('2') ? "good" : "not taken back";
              }),
              "good");
}

} // namespace
