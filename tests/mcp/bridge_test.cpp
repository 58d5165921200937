// The program inside of the sandbox, between streams of every kind and a socket.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <fcntl.h>
#include <glove/sys/spawn.hpp>
#include <gmock/gmock.h>
#include <optional>
#include <poll.h>
#include <support/forked.hpp>
#include <support/program.hpp>

namespace {

using namespace glove;
using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

struct ends {
    sys::unique_fd ours, theirs;
};
enum class kind : std::uint8_t { pipe, socket };

auto make_ends(kind of, bool they_read) -> ends {
    int both[2];
    if (of == kind::pipe) {
        test::prepared(::pipe2(both, O_CLOEXEC) == 0, "pipe");
        if (they_read) std::swap(both[0], both[1]);
    } else {
        test::prepared(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) == 0, "pair");
        // So small that poll calls it writable although much would have to wait.
        const int small = 8192;
        test::prepared(::setsockopt(both[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0,
                       "setsockopt");
    }
    return {sys::unique_fd{both[0]}, sys::unique_fd{both[1]}};
}

void set_nonblocking(sys::fd_ref of) {
    test::prepared(::fcntl(of.get(), F_SETFL, ::fcntl(of.get(), F_GETFL) | O_NONBLOCK) == 0,
                   "fcntl");
}

auto readable(sys::fd_ref of, std::chrono::milliseconds patience = 20s) -> bool {
    ::pollfd source{of.get(), POLLIN, 0};
    return ::poll(&source, 1, static_cast<int>(patience.count())) == 1;
}

// glove-mcp with its streams, and the other end of its connection.
struct scene {
    test::folder place;
    std::string path = place / "mcp.sock";
    sys::unique_fd listener = test::bound_socket(path);
    sys::unique_fd input, output, errors, peer;
    std::optional<sys::child_process> process;

    explicit scene(kind of = kind::pipe, bool nonblocking = false) {
        auto in = make_ends(of, true);
        auto out = make_ends(of, false);
        auto err = make_ends(kind::pipe, false);
        if (nonblocking) {
            set_nonblocking(in.theirs);
            set_nonblocking(out.theirs);
        }
        auto started = sys::spawn({.program = GLOVE_MCP,
                                   .arguments = {"glove-mcp", path},
                                   .descriptors = {{.child = 0, .ours = in.theirs},
                                                   {.child = 1, .ours = out.theirs},
                                                   {.child = 2, .ours = err.theirs}}});
        test::prepared(started.has_value(), "spawn");
        process.emplace(std::move(*started));
        input = std::move(in.ours);
        output = std::move(out.ours);
        errors = std::move(err.ours);
        test::prepared(readable(listener), "it does not connect");
        peer = sys::unique_fd{::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    }
    // The status and what was said to standard error.
    auto end() -> std::pair<int, std::string> {
        if (!readable(process->descriptor())) return {-1, "does not end"};
        const auto how = process->wait();
        return {how->si_code == CLD_EXITED ? how->si_status : 128 + how->si_status,
                test::hear(errors)};
    }
    // Of the processor, so far.
    [[nodiscard]] auto time_used() const -> std::chrono::nanoseconds {
        const auto info =
            test::content_of("/proc/self/fdinfo/" + std::to_string(process->descriptor().get()));
        const auto number = std::atoi(info.c_str() + info.find("Pid:\t") + 5);
        ::clockid_t clock{};
        ::timespec used{};
        test::prepared(::clock_getcpuclockid(number, &clock) == 0 &&
                           ::clock_gettime(clock, &used) == 0,
                       "clock");
        return std::chrono::seconds{used.tv_sec} + std::chrono::nanoseconds{used.tv_nsec};
    }
    // While nothing can be done. One that asks again and again takes all it gets.
    [[nodiscard]] auto is_idle() const -> bool {
        ::usleep(50'000);
        const auto before = time_used();
        ::usleep(300'000);
        return time_used() - before < 2ms;
    }
};

// A word that was heard, without waiting for the end.
auto heard(sys::fd_ref from, std::size_t bytes) -> std::string {
    std::string out;
    while (out.size() < bytes && readable(from)) {
        char part[4096];
        const auto got = ::read(from.get(), part, std::min(sizeof part, bytes - out.size()));
        if (got <= 0) return out + "[end]";
        out.append(part, static_cast<std::size_t>(got));
    }
    return out;
}

auto pattern(std::size_t bytes, unsigned seed) -> std::string {
    std::string out(bytes, '\0');
    for (auto& c : out) c = static_cast<char>((seed = seed * 1103515245U + 12345U) >> 16U);
    return out;
}

// Writes to one end while the other is read, so that neither has to hold it all.
auto passed(sys::fd_ref to, sys::fd_ref from, std::string_view bytes) -> std::string {
    set_nonblocking(to);
    const auto whole = bytes.size();
    std::string out;
    while (out.size() < whole) {
        ::pollfd of[2] = {{bytes.empty() ? -1 : to.get(), POLLOUT, 0}, {from.get(), POLLIN, 0}};
        if (::poll(of, 2, 20'000) <= 0) return out + "[stuck]";
        if (of[0].revents != 0) {
            const auto put = ::write(to.get(), bytes.data(), bytes.size());
            if (put > 0) bytes.remove_prefix(static_cast<std::size_t>(put));
        }
        if (of[1].revents != 0) {
            char part[65536];
            const auto got = ::read(from.get(), part, sizeof part);
            if (got <= 0) return out + "[end]";
            out.append(part, static_cast<std::size_t>(got));
        }
    }
    return out;
}

struct setting {
    kind of;
    bool nonblocking;
};
class Bridge : public testing::TestWithParam<setting> {};

INSTANTIATE_TEST_SUITE_P(Streams, Bridge,
                         testing::Values(setting{kind::pipe, false}, setting{kind::pipe, true},
                                         setting{kind::socket, false},
                                         setting{kind::socket, true}));

TEST_P(Bridge, PassesWordsBothWays) {
    scene at{GetParam().of, GetParam().nonblocking};
    test::say(at.input, "to the mediator\n");
    EXPECT_EQ(heard(at.peer, 16), "to the mediator\n");
    test::say(at.peer, "to the agent\n");
    EXPECT_EQ(heard(at.output, 13), "to the agent\n");
}

// One direction, as far as it has come.
struct flow {
    sys::fd_ref to, from;
    std::string all;
    std::size_t sent = 0;
    std::string got = {};

    void put() {
        const auto done = ::write(to.get(), all.data() + sent, all.size() - sent);
        if (done > 0) sent += static_cast<std::size_t>(done);
    }
    void take(std::size_t most) {
        std::string part(most, '\0');
        const auto done = ::read(from.get(), part.data(), part.size());
        if (done > 0) got.append(part, 0, static_cast<std::size_t>(done));
    }
    [[nodiscard]] auto goes_through() -> bool {
        const auto until = std::chrono::steady_clock::now() + 5s;
        while (got.size() < all.size() && std::chrono::steady_clock::now() < until) {
            put();
            take(65536);
        }
        return got == all;
    }
};

// Everything between is full, and of one direction only a little is taken now and then, so that it
// is written in parts: the other goes through all the same.
void expect_no_waiting(flow slow, flow fast) {
    for (const auto end : {slow.to, slow.from, fast.to, fast.from}) set_nonblocking(end);
    for (int i = 0; i < 60; ++i) {
        slow.put();
        fast.put();
        if (i >= 20) slow.take(5000);
        ::usleep(2'000);
    }
    ASSERT_LT(slow.sent, slow.all.size());
    ASSERT_LT(fast.sent, fast.all.size());
    EXPECT_TRUE(fast.goes_through()) << fast.got.size();
    EXPECT_TRUE(slow.goes_through()) << slow.got.size();
}

TEST_P(Bridge, ASlowAgentDoesNotHoldItsOwnWordsUp) {
    scene at{GetParam().of, GetParam().nonblocking};
    expect_no_waiting({at.peer, at.output, pattern(3UL << 20, 1)},
                      {at.input, at.peer, pattern(3UL << 20, 2)});
}

TEST_P(Bridge, ASlowMediatorDoesNotHoldItsOwnWordsUp) {
    scene at{GetParam().of, GetParam().nonblocking};
    expect_no_waiting({at.input, at.peer, pattern(3UL << 20, 1)},
                      {at.peer, at.output, pattern(3UL << 20, 2)});
}

TEST_P(Bridge, AnswersStillComeAfterTheEndOfInput) {
    scene at{GetParam().of, GetParam().nonblocking};
    const auto question = pattern(1UL << 20, 3);
    const auto answer = pattern(1UL << 20, 4);
    EXPECT_TRUE(passed(at.input, at.peer, question) == question);
    at.input = {};
    char byte = 0;
    ASSERT_TRUE(readable(at.peer));
    EXPECT_EQ(::read(at.peer.get(), &byte, 1), 0); // the end, and only that way
    EXPECT_TRUE(passed(at.peer, at.output, answer) == answer);
    EXPECT_FALSE(readable(at.process->descriptor(), 50ms));
    at.peer = {};
    EXPECT_EQ(test::hear(at.output), "");
    EXPECT_EQ(at.end(), (std::pair{0, std::string{}}));
}

TEST_P(Bridge, WhatTheMediatorSaidLastIsPassedOn) {
    scene at{GetParam().of, GetParam().nonblocking};
    const auto first = pattern(1UL << 20, 5);
    const auto last = pattern(50'000, 8);
    EXPECT_TRUE(passed(at.peer, at.output, first) == first);
    test::say(at.peer, last);
    at.peer = {};
    EXPECT_TRUE(test::hear(at.output) == last);
    EXPECT_EQ(at.end(), (std::pair{0, std::string{}}));
}

TEST_P(Bridge, EndsWhenTheAgentListensNoMore) {
    scene at{GetParam().of, GetParam().nonblocking};
    at.output = {};
    EXPECT_EQ(at.end(), (std::pair{0, std::string{}})); // although its input is still open
}

TEST_P(Bridge, WaitsWithoutWork) {
    scene at{GetParam().of, GetParam().nonblocking};
    // The mediator takes nothing: input stays full, and has ended.
    set_nonblocking(at.input);
    const auto much = pattern(4UL << 20, 6);
    for (int i = 0; i < 20; ++i) {
        (void)!::write(at.input.get(), much.data(), much.size());
        ::usleep(5'000);
    }
    at.input = {};
    EXPECT_TRUE(at.is_idle());
    EXPECT_FALSE(readable(at.process->descriptor(), 0ms));
    at.peer = {};
    EXPECT_EQ(test::hear(at.output), "");
}

// The agent takes nothing while the connection has ended.
TEST_P(Bridge, WaitsWithoutWorkForTheAgent) {
    scene at{GetParam().of, GetParam().nonblocking};
    set_nonblocking(at.peer);
    const auto much = pattern(4UL << 20, 7);
    for (int i = 0; i < 20; ++i) {
        (void)!::write(at.peer.get(), much.data(), much.size());
        ::usleep(5'000);
    }
    at.peer = {};
    EXPECT_TRUE(at.is_idle());
    EXPECT_FALSE(readable(at.process->descriptor(), 0ms));
    const auto out = test::hear(at.output);
    EXPECT_TRUE(much.starts_with(std::string_view{out}.substr(0, 100'000)));
    EXPECT_GT(out.size(), 100'000U);
    EXPECT_EQ(at.end(), (std::pair{0, std::string{}}));
}

TEST(BridgeEnd, APeerThatDiesWithUnreadWordsIsToldInALine) {
    scene at;
    test::say(at.input, "unread");
    ASSERT_TRUE(readable(at.peer));
    at.peer = {};
    const auto [status, words] = at.end();
    EXPECT_EQ(status, 1);
    EXPECT_EQ(words, "glove-mcp: the connection: Connection reset by peer\n");
}

TEST(BridgeEnd, APeerThatReadsNoMoreIsStillHeard) {
    scene at;
    ASSERT_EQ(::shutdown(at.peer.get(), SHUT_RD), 0);
    test::say(at.input, "nobody reads this");
    ::usleep(20'000);
    test::say(at.peer, "last words");
    EXPECT_EQ(heard(at.output, 10), "last words");
    at.peer = {};
    EXPECT_EQ(at.end().first, 0);
}

TEST(BridgeEnd, ADescriptorIsNotTaken) {
    scene at;
    test::pipe_ends sent;
    char text[] = "word";
    ::iovec piece{text, 4};
    alignas(::cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    ::msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    auto* const head = CMSG_FIRSTHDR(&message);
    *head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    const int passed_on = sent.write.get();
    std::copy_n(reinterpret_cast<const unsigned char*>(&passed_on), sizeof passed_on,
                CMSG_DATA(head));
    ASSERT_EQ(::sendmsg(at.peer.get(), &message, 0), 4);
    EXPECT_EQ(heard(at.output, 4), "word");
    sent.write = {};
    EXPECT_EQ(test::hear(sent.read), ""); // no writer is left
}

TEST(BridgeStart, ASocketThatCannotBeReachedIsNamed) {
    const test::folder place;
    const auto file = place.file("file", "no socket");
    const auto absent = place / "absent";
    const auto deaf = place / "deaf";
    {
        const auto closed = test::bound_socket(deaf);
    }
    const std::string longest(107, 'x');
    const std::vector<std::pair<std::string, std::string>> cases{
        {absent, "No such file or directory"},  {file, "Connection refused"},
        {deaf, "Connection refused"},           {"", "No such file or directory"},
        {longest, "No such file or directory"}, {longest + "x", "File name too long"}};
    for (const auto& [path, reason] : cases) {
        const auto done = test::run_program({GLOVE_MCP, path});
        EXPECT_EQ(done.status, 1) << path;
        EXPECT_EQ(done.out, "");
        EXPECT_EQ(done.err, "glove-mcp: cannot connect to " + path + ": " + reason + "\n");
    }
}

TEST(BridgeStart, ASocketThatIsNotReadableForItIsNamed) {
    if (::geteuid() == 0) return; // may connect to any; the ordinary user's run tells
    const test::folder place;
    const auto path = place / "private";
    const auto listener = test::bound_socket(path);
    ASSERT_EQ(::chmod(path.c_str(), 0), 0);
    const auto done = test::run_program({GLOVE_MCP, path});
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(done.err, EndsWith(": Permission denied\n"));
}

TEST(BridgeStart, LooksForTheUsualSocketWhenNoneIsNamed) {
    const auto done = test::run_program({GLOVE_MCP});
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(done.err, StartsWith("glove-mcp: cannot connect to /run/glove/mcp.sock: "));
}

TEST(BridgeStart, TakesNoSecondArgument) {
    const auto done = test::run_program({GLOVE_MCP, "/a", "/b"});
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(done.err, HasSubstr("one argument"));
}

// The connection never takes the place of a stream that the agent left closed.
TEST(BridgeStart, ClosedStreamsAreEmptyOnes) {
    const test::folder place;
    const auto path = place / "mcp.sock";
    const auto listener = test::bound_socket(path);
    const auto child = ::fork();
    if (child == 0) {
        const char* const words[] = {"glove-mcp", path.c_str(), nullptr};
        (void)sys::unique_fd{0};
        (void)sys::unique_fd{1};
        (void)sys::unique_fd{2};
        (void)::execv(GLOVE_MCP, const_cast<char* const*>(words));
        ::_exit(124);
    }
    ASSERT_TRUE(readable(listener));
    sys::unique_fd peer{::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    EXPECT_EQ(heard(peer, 1), "[end]"); // its input has ended
    test::say(peer, "to nobody");
    peer = {};
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

} // namespace
