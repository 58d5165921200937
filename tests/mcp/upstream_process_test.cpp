// Servers that behave, and servers that do what they can to stay or to hold their starter up.
#include <chrono>
#include <fcntl.h>
#include <glove/mcp/upstream_process.hpp>
#include <gmock/gmock.h>
#include <poll.h>
#include <support/forked.hpp>

namespace {

using namespace glove;
using namespace glove::mcp;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::UnorderedElementsAre;

constexpr const char* outer[] = {"PATH=/usr/bin:/bin", "HOME=/somewhere", nullptr};

auto shell(std::string script) -> upstream_wish {
    upstream_wish out;
    out.name = "up";
    out.argv = {"sh", "-c", std::move(script)};
    return out;
}

auto started(const upstream_wish& what, const char* const* environment = outer)
    -> upstream_process {
    auto process = upstream_process::start(what, environment);
    if (!process) ADD_FAILURE() << process.error().step << " " << process.error().detail;
    return std::move(process).value();
}

auto readable(sys::fd_ref of, std::chrono::milliseconds patience = 20s) -> bool {
    ::pollfd source{of.get(), POLLIN, 0};
    return ::poll(&source, 1, static_cast<int>(patience.count())) == 1;
}

// All that comes until the end, of a descriptor that does not wait.
auto all_of(sys::fd_ref from) -> std::string {
    std::string out;
    for (;;) {
        char part[4096];
        const auto got = ::read(from.get(), part, sizeof part);
        if (got == 0) return out;
        if (got > 0) out.append(part, static_cast<std::size_t>(got));
        else if (errno != EAGAIN || !readable(from)) return out + "[no end]";
    }
}

auto line_of(sys::fd_ref from) -> std::string {
    line_reader reader;
    for (;;) {
        if (const auto line = reader.next()) return std::string{line->text};
        if (!readable(from) || reader.fill(from) != line_reader::state::open) return "[end]";
    }
}

auto now() -> nanoseconds { return std::chrono::steady_clock::now().time_since_epoch(); }

struct end_seen {
    std::string how;
    nanoseconds took;
};
// Goes through the orderly end as its owner does.
auto ended(upstream_process& process, nanoseconds patience) -> end_seen {
    const auto from = now();
    process.begin_end(from, patience);
    for (;;) {
        const auto left = process.deadline().value_or(now()) - now();
        const auto wait = std::chrono::ceil<std::chrono::milliseconds>(std::max(left, 0ns));
        (void)readable(process.ended(), wait);
        if (process.advance(now())) return {process.ending(), now() - from};
        if (now() - from > 30s) return {"did not end", now() - from};
    }
}

auto is_gone(int number) -> bool {
    for (int i = 0; i < 2000; ++i) {
        if (::kill(number, 0) != 0) return true;
        // The zombie of a grandchild waits for somebody else to reap it.
        const auto stat = test::content_of("/proc/" + std::to_string(number) + "/stat");
        if (stat.empty() || stat.find(") Z") != std::string::npos) return true;
        ::usleep(5'000);
    }
    return false;
}

TEST(UpstreamProcess, SpeaksOnItsThreeStreams) {
    auto process = started(shell("while read -r line; do echo \"got $line\"; echo log >&2; done"));
    line_queue queue;
    queue.push("{\"a\":1}");
    EXPECT_EQ(queue.flush(process.input()), line_queue::state::empty);
    EXPECT_EQ(line_of(process.output()), "got {\"a\":1}");
    ASSERT_TRUE(readable(process.errors()));
    std::vector<std::string> heard;
    EXPECT_TRUE(process.drain_errors([&](auto line) { heard.emplace_back(line); }));
    EXPECT_THAT(heard, ElementsAre("log"));
    EXPECT_EQ(process.ending(), "is running");
    EXPECT_FALSE(readable(process.ended(), 0ms));
    const auto end = ended(process, 10s);
    EXPECT_EQ(end.how, "ended with status 0");
    EXPECT_LT(end.took, 5s);
}

TEST(UpstreamProcess, NothingOfOursWaits) {
    auto process = started(shell("exec sleep 100"));
    char byte = 0;
    EXPECT_LT(::read(process.output().get(), &byte, 1), 0);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_TRUE(process.drain_errors({}));
    line_queue queue;
    queue.push(std::string(1UL << 20, 'x'));
    EXPECT_EQ(queue.flush(process.input()), line_queue::state::waiting);
    // Its own ends do.
    auto other = started(shell("cat /proc/self/fdinfo/0 /proc/self/fdinfo/1"));
    EXPECT_THAT(all_of(other.output()), Not(HasSubstr("04000")));
}

TEST(UpstreamProcess, GetsItsDescriptorsAndNoOther) {
    const sys::unique_fd leaky{::fcntl(0, F_DUPFD, 77)}; // not close-on-exec
    ASSERT_GE(leaky.get(), 77);
    auto process = started(shell("echo /proc/$$/fd/*"));
    const auto seen = all_of(process.output());
    EXPECT_THAT(seen, HasSubstr("/fd/0 "));
    EXPECT_THAT(seen, HasSubstr("/fd/2"));
    EXPECT_THAT(seen, Not(HasSubstr("/fd/" + std::to_string(leaky.get()))));
}

auto environment_of(const upstream_wish& base, const char* const* environment)
    -> std::vector<std::string> {
    auto wish = base;
    wish.argv = {"env"};
    auto process = started(wish, environment);
    std::vector<std::string> out;
    auto text = all_of(process.output());
    for (std::size_t at = 0; at < text.size();) {
        const auto end = text.find('\n', at);
        out.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return out;
}

TEST(UpstreamProcess, GetsTheEnvironmentItNeedsAndNoSecret) {
    const char* const rich[] = {"PATH=/usr/bin:/bin",
                                "HOME=/h",
                                "USER=u",
                                "LOGNAME=u",
                                "SHELL=/bin/sh",
                                "TERM=t",
                                "LANG=C.UTF-8",
                                "LC_ALL=C",
                                "TMPDIR=/t",
                                "TZ=UTC",
                                "AWS_SECRET=s",
                                "GITHUB_TOKEN=t",
                                "HTTPS_PROXY=http://u:p@h",
                                "LD_PRELOAD=/x",
                                "SSH_AUTH_SOCK=/s",
                                "NODE_OPTIONS=--x",
                                "BASH_FUNC_f%%=() { :; }",
                                "nonsense",
                                "HOME=/second",
                                nullptr};
    EXPECT_THAT(environment_of(shell(""), rich),
                UnorderedElementsAre("PATH=/usr/bin:/bin", "HOME=/h", "USER=u", "LOGNAME=u",
                                     "SHELL=/bin/sh", "TERM=t", "LANG=C.UTF-8", "LC_ALL=C",
                                     "TMPDIR=/t", "TZ=UTC"));
    auto wish = shell("");
    wish.passed = {"GITHUB_TOKEN", "NOT_SET"};
    wish.environment = {{"HOME", "/mine"}, {"NEW", "a=b"}};
    EXPECT_THAT(environment_of(wish, rich),
                UnorderedElementsAre("PATH=/usr/bin:/bin", "HOME=/mine", "USER=u", "LOGNAME=u",
                                     "SHELL=/bin/sh", "TERM=t", "LANG=C.UTF-8", "LC_ALL=C",
                                     "TMPDIR=/t", "TZ=UTC", "GITHUB_TOKEN=t", "NEW=a=b"));
    const char* const function[] = {"PATH=/usr/bin:/bin", "TERM=() { :; }; echo", nullptr};
    EXPECT_THAT(environment_of(shell(""), function), ElementsAre("PATH=/usr/bin:/bin"));
}

TEST(UpstreamProcess, StartsWhereItIsTold) {
    const test::folder place;
    auto wish = shell("pwd");
    wish.directory = place.path();
    auto process = started(wish);
    EXPECT_EQ(all_of(process.output()), place.path() + "\n");
    wish.directory = place / "absent";
    const auto refused = upstream_process::start(wish, outer);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().step, "spawn.directory");
    EXPECT_THAT(refused.error().detail, HasSubstr("'up': " + place / "absent"));
}

// Found on the PATH of the caller, with the same name as another that must not be taken.
TEST(UpstreamProcess, AProgramIsLookedForOnTheCallersPath) {
    const test::folder place;
    (void)place.file("first/tool", "#!/bin/sh\necho first $0", 0644); // not executable
    (void)place.directory("second/tool");
    (void)place.file("third/tool", "#!/bin/sh\necho third", 0755);
    (void)place.file("here/tool", "#!/bin/sh\necho here", 0755);
    const auto path = "PATH=::.:here:" + place / "first" + ":" + place / "second" + ":" +
                      place / "third" + ":/usr/bin:/bin";
    const char* const environment[] = {path.c_str(), nullptr};
    upstream_wish wish;
    wish.name = "up";
    wish.argv = {"tool"};
    const auto in = [&](const std::string& directory) {
        return test::said_by([&] {
            if (::chdir(directory.c_str()) != 0) return std::string{"?"};
            return all_of(upstream_process::start(wish, environment).value().output());
        });
    };
    EXPECT_EQ(in(place / "here"), "third\n");
    EXPECT_EQ(in(place.path()), "third\n");
    wish.argv = {"./tool"};
    EXPECT_EQ(in(place / "here"), "here\n");
    wish.argv = {"here/tool"};
    wish.directory = "/";
    EXPECT_EQ(in(place.path()), "here\n");
    wish.argv = {place / "here/tool"};
    EXPECT_EQ(in("/"), "here\n");
}

auto refusal_of(std::vector<std::string> argv, const char* path) -> error {
    upstream_wish wish;
    wish.name = "up";
    wish.argv = std::move(argv);
    const char* const environment[] = {path, nullptr};
    const auto process = upstream_process::start(wish, environment);
    EXPECT_FALSE(process);
    EXPECT_LT(::waitpid(-1, nullptr, WNOHANG), 0); // nothing is left of the attempt
    return process ? error{} : process.error();
}

TEST(UpstreamProcess, OneThatCannotStartIsAnErrorWithAMend) {
    const test::folder place;
    const auto plain = place.file("plain", "no program", 0644);
    const auto no_script = place.file("script", "echo without a first line", 0755);
    const auto lost = place.file("lost", "#!/nonexistent/interpreter\n", 0755);
    const auto path = "PATH=" + place.path();
    auto why = refusal_of({"absent"}, path.c_str());
    EXPECT_EQ(why.step, "mcp.program");
    EXPECT_EQ(why.code, errc::not_found);
    EXPECT_THAT(why.detail, HasSubstr("'up': 'absent' is in no directory of PATH"));
    why = refusal_of({"sh"}, "HOME=/");
    EXPECT_EQ(why.code, errc::not_found);
    why = refusal_of({"sh"}, "PATH=bin:");
    EXPECT_EQ(why.code, errc::not_found);
    why = refusal_of({"plain"}, path.c_str());
    EXPECT_EQ(why.code, errc::not_permitted);
    EXPECT_THAT(why.detail, HasSubstr(plain));
    for (const auto& [program, os] : {std::pair{place / "absent", ENOENT},
                                      {plain, EACCES},
                                      {no_script, ENOEXEC},
                                      {lost, ENOENT},
                                      {place.path(), EACCES}}) {
        why = refusal_of({program}, path.c_str());
        EXPECT_EQ(why.step, "spawn.program");
        EXPECT_EQ(why.os, os) << program;
        EXPECT_THAT(why.detail, HasSubstr("'up': " + program));
        EXPECT_FALSE(why.remedy.empty());
    }
}

TEST(UpstreamProcess, AWishThatIsNoneStartsNothing) {
    upstream_wish wish;
    wish.name = "a.b";
    wish.argv = {"sh"};
    EXPECT_EQ(upstream_process::start(wish, outer).error().step, "mcp.upstream");
}

TEST(UpstreamProcess, OneThatEndsAtOnceSaysHow) {
    auto process = started(shell("echo why >&2; exit 3"));
    ASSERT_TRUE(readable(process.ended()));
    EXPECT_TRUE(process.advance(now()));
    EXPECT_EQ(process.ending(), "ended with status 3");
    EXPECT_FALSE(process.drain_errors({}));
    EXPECT_EQ(process.error_tail(), "why");
    EXPECT_FALSE(process.deadline());
    EXPECT_TRUE(process.advance(now()));
    process.begin_end(now(), 1s); // has nothing to do
    EXPECT_TRUE(process.advance(now()));

    auto killed = started(shell("kill -SEGV $$"));
    ASSERT_TRUE(readable(killed.ended()));
    EXPECT_EQ(killed.ending(), "was killed by signal 11");
}

TEST(UpstreamProcess, OneThatClosesItsOutputAndLivesIsEnded) {
    auto process = started(shell("exec >&-; exec sleep 100"));
    EXPECT_EQ(all_of(process.output()), "");
    EXPECT_FALSE(process.advance(now()));
    const auto end = ended(process, 500ms);
    EXPECT_EQ(end.how, "was killed by signal 15");
}

TEST(UpstreamProcess, OneThatIgnoresTheEndOfInputAndSigtermIsKilled) {
    auto process = started(shell("trap '' TERM; echo ready; while :; do sleep 100; done"));
    EXPECT_EQ(line_of(process.output()), "ready");
    const auto end = ended(process, 150ms);
    EXPECT_EQ(end.how, "was killed by signal 9");
    EXPECT_GE(end.took, 300ms);
    EXPECT_LT(end.took, 10s);
}

TEST(UpstreamProcess, OneThatHasStoppedItselfIsKilled) {
    auto process = started(shell("echo ready; kill -STOP $$; exec sleep 100"));
    EXPECT_EQ(line_of(process.output()), "ready");
    EXPECT_EQ(ended(process, 50ms).how, "was killed by signal 9");
}

TEST(UpstreamProcess, TheEndIsOrderlyAndEachStepHasItsTime) {
    auto process = started(shell("trap 'echo term; exit 7' TERM; echo ready; cat >/dev/null; "
                                 "echo end; while :; do sleep 0.05; done"));
    EXPECT_EQ(line_of(process.output()), "ready");
    const auto at = nanoseconds{1000s};
    EXPECT_FALSE(process.deadline());
    process.begin_end(at, 5s);
    EXPECT_EQ(process.deadline(), at + 5s);
    EXPECT_EQ(line_of(process.output()), "end");
    process.begin_end(at + 1s, 5s); // changes nothing
    EXPECT_FALSE(process.advance(at + 5s - 1ns));
    EXPECT_EQ(process.deadline(), at + 5s);
    EXPECT_FALSE(process.advance(at + 5s));
    EXPECT_EQ(process.deadline(), at + 10s);
    EXPECT_EQ(line_of(process.output()), "term");
    ASSERT_TRUE(readable(process.ended()));
    EXPECT_TRUE(process.advance(at + 6s));
    EXPECT_EQ(process.ending(), "ended with status 7");
}

// Prints the number of a grandchild that keeps the streams and ignores what can be ignored.
const std::string with_grandchild = "(trap '' TERM HUP INT; exec sleep 100) & echo $!; ";

TEST(UpstreamProcess, ItsGroupEndsWithIt) {
    for (const std::string rest :
         {"exit 0", "exec sleep 100", "trap '' TERM; while :; do sleep 9; done"}) {
        auto process = started(shell(with_grandchild + rest));
        const auto number = std::atoi(line_of(process.output()).c_str());
        ASSERT_GT(number, 0);
        EXPECT_EQ(::kill(number, 0), 0);
        EXPECT_NE(ended(process, 50ms).how, "did not end");
        EXPECT_TRUE(is_gone(number)) << rest;
        EXPECT_EQ(all_of(process.output()), "") << rest; // nobody holds the stream any more
    }
}

TEST(UpstreamProcess, OneThatEndedByItselfTakesItsGroupAlong) {
    auto process = started(shell(with_grandchild + "exit 5"));
    const auto number = std::atoi(line_of(process.output()).c_str());
    ASSERT_TRUE(readable(process.ended()));
    EXPECT_EQ(::kill(number, 0), 0); // until its owner looks
    EXPECT_TRUE(process.advance(now()));
    EXPECT_EQ(process.ending(), "ended with status 5");
    EXPECT_TRUE(is_gone(number));
}

TEST(UpstreamProcess, DroppingItKillsTheGroup) {
    int number = 0;
    {
        auto process = started(shell(with_grandchild + "trap '' TERM; while :; do sleep 9; done"));
        auto moved = std::move(process);
        number = std::atoi(line_of(moved.output()).c_str());
        ASSERT_GT(number, 0);
    }
    EXPECT_TRUE(is_gone(number));
}

TEST(UpstreamProcess, DiesWithItsStarter) {
    test::pipe_ends channel;
    const auto starter = ::fork();
    if (starter == 0) {
        auto process = upstream_process::start(shell("echo $$; exec sleep 100"), outer);
        test::say(channel.write, process ? line_of(process->output()) : "0");
        channel.write = {};
        (void)::kill(::getpid(), SIGKILL);
        ::_exit(1);
    }
    channel.write = {};
    const auto number = std::atoi(test::hear(channel.read).c_str());
    (void)::waitpid(starter, nullptr, 0);
    ASSERT_GT(number, 0);
    EXPECT_TRUE(is_gone(number));
}

TEST(UpstreamProcess, HasNoTerminalAndAGroupOfItsOwn) {
    auto process = started(shell("read -r a b c d group session tty rest </proc/$$/stat; "
                                 "[ \"$$ $$ 0\" = \"$group $session $tty\" ] && echo own"));
    EXPECT_EQ(line_of(process.output()), "own");
}

TEST(UpstreamErrors, AFloodWithoutALineEndHoldsNobodyUp) {
    auto process = started(shell("head -c 300000 /dev/zero | tr '\\0' 'x' >&2; echo done"));
    std::vector<std::string> heard;
    bool open = true;
    std::string out;
    while (open) {
        ASSERT_TRUE(readable(process.errors()));
        open = process.drain_errors([&](auto line) { heard.emplace_back(line); });
    }
    EXPECT_EQ(line_of(process.output()), "done");
    EXPECT_THAT(heard, ElementsAre(std::string(4096, 'x')));
    EXPECT_EQ(process.error_tail(), std::string(4096, 'x'));
}

TEST(UpstreamErrors, EachLineIsHeardOnceAndBounded) {
    const std::string script =
        "printf 'one\\r\\n\\ntwo\\n' >&2; head -c 4096 /dev/zero | tr '\\0' y >&2; echo >&2; "
        "head -c 4097 /dev/zero | tr '\\0' z >&2; echo >&2; printf 'last' >&2";
    auto process = started(shell(script));
    std::vector<std::string> heard;
    while (readable(process.errors()) &&
           process.drain_errors([&](auto line) { heard.emplace_back(line); })) {
    }
    EXPECT_THAT(heard,
                ElementsAre("one", "two", std::string(4096, 'y'), std::string(4096, 'z'), "last"));
}

TEST(UpstreamErrors, TheTailIsFitForAMessage) {
    auto process = started(shell("printf 'a\\033[31m\\r\\nb\\tc\\n\\n' >&2"));
    while (readable(process.errors()) && process.drain_errors({})) {
    }
    EXPECT_EQ(process.error_tail(), "a\\x1b[31m\nb\\x09c");
    auto quiet = started(shell("exec sleep 100"));
    EXPECT_EQ(quiet.error_tail(), "");
}

TEST(UpstreamErrors, OneThatNeverStopsIsReadInPortions) {
    auto process = started(shell("exec yes flood >&2"));
    std::size_t lines = 0;
    for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(readable(process.errors()));
        EXPECT_TRUE(process.drain_errors([&](auto) { ++lines; }));
    }
    EXPECT_GT(lines, 0U);
    EXPECT_LE(lines, 20U * 16 * (16 << 10) / 6 + 20);
}

} // namespace
