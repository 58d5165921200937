// What a started program gets, and that it gets nothing else.
#include <csignal>
#include <fcntl.h>
#include <glove/sys/spawn.hpp>
#include <gtest/gtest.h>
#include <poll.h>
#include <support/forked.hpp>

namespace {

using namespace glove;

auto shell(std::string script) -> sys::spawn_request {
    return {.program = "/bin/sh", .arguments = {"sh", "-c", std::move(script)}};
}

// What the program wrote to its standard output, with `more` passed as well.
auto output_of(sys::spawn_request request, std::vector<sys::passed_descriptor> more = {})
    -> std::string {
    test::pipe_ends pipe;
    request.descriptors = std::move(more);
    request.descriptors.push_back({.child = 1, .ours = pipe.write});
    auto child = sys::spawn(request);
    if (!child) return std::string{child.error().step} + ": " + std::to_string(child.error().os);
    pipe.write = {};
    auto said = test::hear(pipe.read);
    EXPECT_TRUE(child->wait());
    return said;
}

TEST(Spawn, TheProgramGetsItsArgumentsAndNoOtherEnvironment) {
    auto request = shell("echo \"$0 $1\"; env | grep -v -e '^PWD=' -e '^_=' -e '^SHLVL=' | sort");
    request.arguments.emplace_back("zero");
    request.arguments.emplace_back("one two");
    request.environment = {"ONLY=this", "PATH=/usr/bin:/bin"};
    EXPECT_EQ(output_of(request), "zero one two\nONLY=this\nPATH=/usr/bin:/bin\n");
}

TEST(Spawn, DescriptorsLandOnTheirNumbersAlsoWhenTheySwap) {
    test::pipe_ends first;
    test::pipe_ends second;
    ASSERT_EQ(::write(first.write.get(), "first\n", 6), 6);
    ASSERT_EQ(::write(second.write.get(), "second\n", 7), 7);
    // The numbers that the child wants are the ones that are taken here, the other way round.
    const int a = first.read.get();
    const int b = second.read.get();
    auto request =
        shell("read x <&" + std::to_string(a) + "; read y <&" + std::to_string(b) + "; echo $x $y");
    if (a > 9 || b > 9) GTEST_SKIP() << "the shell takes one digit";
    EXPECT_EQ(output_of(request, {{a, second.read}, {b, first.read}}), "second first\n");
}

TEST(Spawn, NothingElseIsInherited) {
    const sys::unique_fd leaky{::open("/dev/null", O_RDONLY)}; // not close-on-exec
    ASSERT_TRUE(leaky);
    // The listing's own descriptor is the 3.
    const sys::unique_fd nothing{::open("/dev/null", O_RDWR | O_CLOEXEC)};
    EXPECT_EQ(output_of({.program = "/bin/ls", .arguments = {"ls", "/proc/self/fd"}},
                        {{0, nothing}, {2, nothing}}),
              "0\n1\n2\n3\n");
}

TEST(Spawn, SignalsAreAsInAFreshProcess) {
    EXPECT_EQ(test::said_by([] {
                  (void)::signal(SIGPIPE, SIG_IGN);
                  ::sigset_t one;
                  ::sigemptyset(&one);
                  ::sigaddset(&one, SIGTERM);
                  (void)::sigprocmask(SIG_BLOCK, &one, nullptr);
                  return output_of(
                      {.program = "/bin/grep",
                       .arguments = {"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"}});
              }),
              "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST(Spawn, AFileCanBeStartedWithoutItsName) {
    const sys::unique_fd file{::open("/bin/echo", O_PATH | O_CLOEXEC)};
    ASSERT_TRUE(file);
    EXPECT_EQ(output_of({.program = "echo", .file = file, .arguments = {"echo", "said"}}),
              "said\n");
}

TEST(Spawn, AProgramThatCannotStartIsAnErrorWithItsReason) {
    const auto absent = sys::spawn({.program = "/nonexistent/program", .arguments = {"x"}});
    ASSERT_FALSE(absent);
    EXPECT_EQ(absent.error().step, "spawn.program");
    EXPECT_EQ(absent.error().os, ENOENT);
    EXPECT_EQ(absent.error().detail, "/nonexistent/program");
    const auto no_program = sys::spawn({.program = "/etc/passwd", .arguments = {"x"}});
    ASSERT_FALSE(no_program);
    EXPECT_EQ(no_program.error().os, EACCES);
    EXPECT_LT(::waitpid(-1, nullptr, WNOHANG), 0); // no child is left
    EXPECT_EQ(errno, ECHILD);
}

TEST(Spawn, AnOwnProgramThatIsAbsentAndOneThatCannotBeLookedForAreToldApart) {
    const auto absent = sys::find_own_program("glove-nonexistent", "test.program");
    ASSERT_FALSE(absent);
    EXPECT_EQ(absent.error().step, "test.program");
    EXPECT_EQ(absent.error().code, errc::not_found);
    EXPECT_FALSE(absent.error().remedy.empty());
    const auto unknown = sys::find_own_program(std::string(300, 'x'), "test.program");
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().step, "test.program");
    EXPECT_EQ(unknown.error().os, ENAMETOOLONG);
    EXPECT_NE(unknown.error().detail.find("/xxx"), std::string::npos);
}

TEST(Spawn, OneNumberCannotHoldTwo) {
    const sys::unique_fd nothing{::open("/dev/null", O_RDWR | O_CLOEXEC)};
    auto request = shell("true");
    request.descriptors = {{1, nothing}, {1, nothing}};
    const auto refused = sys::spawn(request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().step, "spawn.descriptors");
}

TEST(Spawn, AProcessBecomesAnotherProgram) {
    EXPECT_EQ(test::said_by([] {
                  test::pipe_ends out;
                  const sys::unique_fd other{::open("/etc/passwd", O_RDONLY)}; // not closed on exec
                  const auto child = ::fork();
                  if (child == 0) {
                      (void)sys::become(
                          {.program = "/bin/sh",
                           .arguments = {"sh", "-c", "echo $1 $A; ls /proc/self/fd | wc -l", "sh",
                                         "word"},
                           .environment = {"A=value", "PATH=/usr/bin:/bin"},
                           .descriptors = {{0, out.read}, {1, out.write}, {2, out.write}}});
                      ::_exit(99);
                  }
                  out.write = {};
                  return test::hear(out.read);
              }),
              "word value\n4\n"); // the three and the one that ls reads the directory by
}

TEST(Spawn, AProgramThatCannotBeBecomeIsAnError) {
    const auto got = sys::become({.program = "/nowhere", .arguments = {"x"}});
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, errc::not_found);
    EXPECT_EQ(got.error().detail, "/nowhere");
}

TEST(Spawn, AProgramCanHaveASessionOfItsOwn) {
    const std::string script{"read -r a b c d group session rest </proc/$$/stat; "
                             "[ \"$$ $$\" = \"$group $session\" ] && echo own || echo shared"};
    test::pipe_ends shared;
    EXPECT_EQ(output_of(shell(script)), "shared\n");
    auto request = shell(script);
    request.own_session = true;
    EXPECT_EQ(output_of(std::move(request)), "own\n");
}

TEST(Spawn, AProgramCanStartInAnotherDirectory) {
    const test::folder place;
    auto request = shell("pwd; cat here");
    (void)place.file("here", "found\n");
    request.directory = place.path();
    EXPECT_EQ(output_of(std::move(request)), place.path() + "\nfound\n");
}

TEST(Spawn, ADirectoryThatCannotBeEnteredIsNamed) {
    auto request = shell("true");
    request.directory = "/nonexistent/directory";
    const auto absent = sys::spawn(request);
    ASSERT_FALSE(absent);
    EXPECT_EQ(absent.error().step, "spawn.directory");
    EXPECT_EQ(absent.error().os, ENOENT);
    EXPECT_EQ(absent.error().detail, "/nonexistent/directory");
    request = {.program = "/nonexistent/program", .arguments = {"x"}};
    request.directory = "/";
    const auto program = sys::spawn(request);
    ASSERT_FALSE(program);
    EXPECT_EQ(program.error().step, "spawn.program");
}

// Whether a program goes on after its parent was killed; it is ended then.
auto outlives_its_parent(bool dies) -> bool {
    test::pipe_ends said;
    test::pipe_ends held;
    test::pipe_ends go;
    const auto parent = ::fork();
    if (parent == 0) {
        auto request = shell("echo $$; exec sleep 100");
        request.dies_with_parent = dies;
        request.descriptors = {{1, said.write}, {2, held.write}};
        const auto child = sys::spawn(request);
        said.write = {};
        held.write = {};
        go.write = {};
        if (child && test::hear(go.read).empty()) (void)::kill(::getpid(), SIGKILL);
        ::_exit(1);
    }
    held.write = {};
    char number[16] = {};
    EXPECT_GT(::read(said.read.get(), number, sizeof number - 1), 0);
    go.write = {};
    (void)::waitpid(parent, nullptr, 0);
    ::pollfd end{held.read.get(), 0, 0}; // no writer is left
    if (::poll(&end, 1, dies ? 20'000 : 300) == 1) return false;
    (void)::kill(std::atoi(number), SIGKILL);
    return true;
}

TEST(Spawn, AProgramCanDieWithItsParent) {
    EXPECT_FALSE(outlives_its_parent(true));
    EXPECT_TRUE(outlives_its_parent(false));
}

TEST(Spawn, AGroupIsReachedAsAWholeUntilItsLeaderIsReaped) {
    for (const bool leader_lives : {true, false}) {
        test::pipe_ends pipe;
        auto request = shell(leader_lives ? "sleep 100 & sleep 100" : "sleep 100 &");
        request.own_session = true;
        request.descriptors = {{1, pipe.write}};
        auto child = sys::spawn(request);
        ASSERT_TRUE(child);
        pipe.write = {};
        ::pollfd end{child->descriptor().get(), POLLIN, 0};
        ASSERT_EQ(::poll(&end, 1, leader_lives ? 200 : 20'000), leader_lives ? 0 : 1);
        EXPECT_EQ(child->has_ended().value(), !leader_lives);
        EXPECT_TRUE(child->signal_group(SIGKILL));
        EXPECT_EQ(test::hear(pipe.read), "");
        EXPECT_TRUE(child->wait());
        const auto late = child->signal_group(SIGKILL);
        ASSERT_FALSE(late);
        EXPECT_EQ(late.error().step, "child.signal_group");
        EXPECT_EQ(late.error().code, errc::wrong_state);
        EXPECT_FALSE(child->has_ended());
    }
}

TEST(Spawn, AProgramInTheCallersGroupLeadsNone) {
    auto child = sys::spawn(shell("exec sleep 100"));
    ASSERT_TRUE(child);
    const auto sent = child->signal_group(SIGKILL);
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().code, errc::wrong_state);
    EXPECT_FALSE(child->has_ended().value());
}

TEST(Spawn, DroppingTheChildEndsIt) {
    test::pipe_ends pipe;
    {
        auto request = shell("exec sleep 100");
        request.descriptors = {{1, pipe.write}};
        auto child = sys::spawn(request);
        ASSERT_TRUE(child);
        pipe.write = {};
    }
    EXPECT_EQ(test::hear(pipe.read), "");
}

} // namespace
