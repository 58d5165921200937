// The supervisor's side with a real `glove-egress`: what is put on record, and that nothing happens
// that is not.
#include "own_host.hpp"
#include "proxy_scene.hpp"
#include <csignal>
#include <functional>
#include <glove/net/egress_service.hpp>
#include <support/forked.hpp>
#include <sys/stat.h>

namespace {

using namespace glove;
using namespace glove::test;
using std::chrono::nanoseconds;

class memory_log final : public audit::sink {
public:
    auto append(const audit::event& what) -> result<> override {
        const std::scoped_lock lock{mutex_};
        if (broken) return fail(errc::io, "test.broken");
        events_.push_back(what);
        return {};
    }
    [[nodiscard]] auto events() -> std::vector<audit::event> {
        const std::scoped_lock lock{mutex_};
        return events_;
    }
    std::atomic<bool> broken = false;

private:
    std::mutex mutex_;
    std::vector<audit::event> events_;
};

class fixed_clock final : public sys::clock {
public:
    [[nodiscard]] auto monotonic() const noexcept -> nanoseconds override {
        return real_.monotonic();
    }
    [[nodiscard]] auto wall() const noexcept -> nanoseconds override { return nanoseconds{77}; }

private:
    sys::system_clock real_;
};

auto rules_of(const std::vector<std::string>& texts) -> net::egress_rules {
    return net::egress_rules::parse(texts).value();
}

class EgressService : public ::testing::Test {
protected:
    memory_log log;
    fixed_clock time;
    tcp_server server;
    std::string where = "localhost:" + server.text();
    sys::unique_fd bridge, their_bridge;
    std::optional<net::egress_service> service;

    EgressService() {
        int ends[2];
        need(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
        bridge = sys::unique_fd{ends[0]};
        their_bridge = sys::unique_fd{ends[1]};
    }
    void start(net::egress_options options) {
        options.program = GLOVE_EGRESS;
        auto made = net::egress_service::start(std::move(options), std::move(their_bridge), time,
                                               log, "the-run");
        ASSERT_TRUE(made) << made.error().step << made.error().detail;
        service.emplace(std::move(*made));
    }
    void start_ready(net::egress_options options) {
        start(std::move(options));
        ASSERT_TRUE(service->await_ready());
    }
    [[nodiscard]] auto open() const -> wire_end {
        auto pair = connected_pair();
        net::bridge_message message{};
        message.what = net::bridge_news::proxy;
        need(pass(bridge.get(), message, {pair.accepted.fd()}), "pass");
        return std::move(pair.client);
    }
    // Lets the service work until it is so.
    auto advance_until(const std::function<bool()>& so) -> bool {
        for (int i = 0; i < 500; ++i) {
            if (so()) return true;
            ::pollfd source{service->descriptor().get(), POLLIN, 0};
            if (::poll(&source, 1, 10) > 0) service->advance();
        }
        return false;
    }
    auto advance_until_events(std::size_t count) -> bool {
        return advance_until([&] { return log.events().size() >= count; });
    }
    [[nodiscard]] auto ask(const std::string& target) -> std::string {
        const auto client = open();
        client.send("CONNECT " + target + " HTTP/1.1\r\n\r\n");
        EXPECT_TRUE(advance_until([&] { return !client.is_quiet(0); }));
        return client.rest();
    }
    [[nodiscard]] auto tunnel() -> wire_end {
        auto client = open();
        client.send("CONNECT " + where + " HTTP/1.1\r\n\r\n");
        EXPECT_TRUE(advance_until([&] { return !client.is_quiet(0); }));
        EXPECT_TRUE(client.head().starts_with("HTTP/1.1 200 "));
        return client;
    }
};

TEST_F(EgressService, AnIntentAndItsOutcomeShareACall) {
    start_ready({.rules = rules_of({where})});
    auto client = tunnel();
    auto far = server.accept();
    client.send("12345");
    EXPECT_EQ(far.read(5), "12345");
    far.send("123");
    EXPECT_EQ(client.read(3), "123");
    client.close();
    far.close();
    ASSERT_TRUE(advance_until_events(2));
    const auto events = log.events();
    EXPECT_EQ(events[0].action, audit::action::egress);
    EXPECT_EQ(events[0].status, audit::status::pending);
    EXPECT_EQ(events[0].tool, where);
    EXPECT_EQ(events[0].run, "the-run");
    EXPECT_EQ(events[0].timestamp_ns, 77);
    EXPECT_EQ(events[0].call.size(), 32U);
    EXPECT_EQ(events[1].status, audit::status::ok);
    EXPECT_EQ(events[1].call, events[0].call);
    EXPECT_EQ(events[1].arguments, "{\"sent\":5,\"received\":3}");
    EXPECT_GT(events[1].latency_ns, 0);
    EXPECT_FALSE(events[1].error);
    ASSERT_EQ(service->records().size(), 1U);
    const auto& row = service->records()[0];
    EXPECT_EQ(net::to_string(row.where), where);
    EXPECT_EQ(row.allowed, 1U);
    EXPECT_EQ(row.bytes_sent, 5U);
    EXPECT_EQ(row.bytes_received, 3U);
    EXPECT_TRUE(service->finish());
}

TEST_F(EgressService, NothingIsDialledThatCouldNotBePutOnRecord) {
    start_ready({.rules = rules_of({where})});
    log.broken = true;
    EXPECT_TRUE(ask(where).starts_with("HTTP/1.1 503 "));
    EXPECT_FALSE(server.got_connection(30));
    log.broken = false;
    const auto client = tunnel(); // the twin
    (void)server.accept();
    const auto finished = service->finish();
    ASSERT_FALSE(finished); // that something is missing is told
    EXPECT_EQ(finished.error().step, "test.broken");
}

TEST_F(EgressService, ARefusalIsOneEvent) {
    start_ready({.rules = rules_of({where})});
    EXPECT_TRUE(ask("api.other.org:443").starts_with("HTTP/1.1 403 "));
    ASSERT_TRUE(advance_until_events(1));
    const auto events = log.events();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].status, audit::status::invalid_arguments);
    EXPECT_EQ(events[0].tool, "api.other.org:443");
    EXPECT_EQ(events[0].error, "api.other.org:443 is not allowed");
    ASSERT_EQ(service->records().size(), 1U);
    EXPECT_EQ(service->records()[0].refused, 1U);
    EXPECT_EQ(service->records()[0].last_error, "api.other.org:443 is not allowed");
}

TEST_F(EgressService, ARequestThatIsNoneIsPutOnRecordWithoutAPlace) {
    start_ready({.rules = rules_of({where})});
    EXPECT_TRUE(ask("no port at all").starts_with("HTTP/1.1 400 "));
    ASSERT_TRUE(advance_until_events(1));
    EXPECT_FALSE(log.events()[0].tool);
    EXPECT_EQ(log.events()[0].status, audit::status::invalid_arguments);
    EXPECT_TRUE(service->records().empty());
}

TEST_F(EgressService, AFailedDialIsATransportError) {
    const auto closed = "localhost:" + tcp_server{}.text();
    start_ready({.rules = rules_of({closed})});
    EXPECT_TRUE(ask(closed).starts_with("HTTP/1.1 502 "));
    ASSERT_TRUE(advance_until_events(2));
    EXPECT_EQ(log.events()[1].status, audit::status::transport_error);
    EXPECT_EQ(log.events()[1].error, closed + " could not be reached: Connection refused");
    EXPECT_EQ(service->records()[0].failed, 1U);
}

TEST_F(EgressService, WhatIsOpenAtTheEndGetsItsOutcome) {
    start_ready({.rules = rules_of({where})});
    const auto client = tunnel();
    const auto far = server.accept();
    client.send("1234");
    EXPECT_EQ(far.read(4), "1234");
    EXPECT_TRUE(service->finish());
    const auto events = log.events();
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[1].status, audit::status::transport_error);
    EXPECT_EQ(events[1].error, where + ": the run ended first");
    EXPECT_EQ(events[1].arguments, "{\"sent\":4,\"received\":0}");
}

TEST_F(EgressService, ItsUnexpectedEndIsToldOnceAndConcludesWhatWasOpen) {
    ::testing::internal::CaptureStderr();
    start_ready({.rules = rules_of({where})});
    const auto client = tunnel();
    // The only child of this process.
    const auto children =
        proxy_scene::sys_text("/proc/self/task/" + std::to_string(::getpid()) + "/children");
    ASSERT_EQ(::kill(static_cast<::pid_t>(std::stol(children)), SIGKILL), 0);
    ASSERT_TRUE(advance_until_events(2));
    EXPECT_EQ(log.events()[1].status, audit::status::transport_error);
    ::pollfd source{service->descriptor().get(), POLLIN, 0};
    EXPECT_EQ(::poll(&source, 1, 20), 0); // a loop over it does not spin
    service->advance();
    EXPECT_TRUE(service->finish());
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "glove: glove-egress ended; the command goes on without a network\n");
}

TEST_F(EgressService, TheFirstRefusalOfADestinationIsToldWithItsFlag) {
    ::testing::internal::CaptureStderr();
    start_ready({.rules = rules_of({where}), .tell_refusals = true});
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(ask("api.other.org:443").starts_with("HTTP/1.1 403 "));
    EXPECT_TRUE(ask("api.other.org:80").starts_with("HTTP/1.1 403 "));
    ASSERT_TRUE(advance_until_events(3));
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "glove: api.other.org:443 was refused; --egress-allow api.other.org would allow it\n"
              "glove: api.other.org:80 was refused; --egress-allow api.other.org:80 would allow "
              "it\n");
}

TEST_F(EgressService, APublishedPortThatIsTakenIsAnErrorWithItsMend) {
    start({.rules = {}, .published = {server.port()}});
    const auto ready = service->await_ready();
    ASSERT_FALSE(ready);
    EXPECT_EQ(ready.error().step, "egress.publish");
    EXPECT_EQ(ready.error().os, EADDRINUSE);
    EXPECT_EQ(ready.error().detail, "port " + server.text() + " of 127.0.0.1");
    EXPECT_FALSE(ready.error().remedy.empty());
}

TEST_F(EgressService, AMissingProgramIsAnErrorWithItsMend) {
    const auto absent =
        net::egress_service::start({.program = {}}, std::move(their_bridge), time, log, "the-run");
    ASSERT_FALSE(absent);
    EXPECT_EQ(absent.error().step, "egress.program");
    EXPECT_FALSE(absent.error().remedy.empty());
}

// Another program in its place: asks for ever, and takes no answer.
TEST_F(EgressService, AProgramThatTakesNoAnswersIsEnded) {
    const auto path = ::testing::TempDir() + "glove-egress-" + std::to_string(::getpid());
    write_text(path,
               "#!/usr/bin/python3\n"
               "import socket, struct\n"
               "channel = socket.socket(fileno=3)\n"
               "def say(what, id, port=0):\n"
               "    channel.send(struct.pack('=BBBBBBHIIQQQ512x', what, 0, int(port != 0), 0,\n"
               "                             0, 0, port, 0, 0, id, 0, 0))\n"
               "say(0, 0)\n"
               "try:\n"
               "    for id in range(1, 100000):\n"
               "        say(2, id, 80)\n"
               "        say(4, id)\n"
               "except OSError: pass\n");
    ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
    auto made = net::egress_service::start({.program = path}, std::move(their_bridge), time, log,
                                           "the-run");
    ASSERT_TRUE(made);
    service.emplace(std::move(*made));
    EXPECT_TRUE(service->await_ready());
    ::testing::internal::CaptureStderr();
    std::size_t seen = 0;
    for (int quiet = 0; quiet < 100; quiet = log.events().size() == seen ? quiet + 1 : 0) {
        seen = log.events().size();
        ::pollfd source{service->descriptor().get(), POLLIN, 0};
        if (::poll(&source, 1, 10) > 0) service->advance();
    }
    (void)::unlink(path.c_str());
    EXPECT_NE(::testing::internal::GetCapturedStderr().find("said what it must not"),
              std::string::npos);
    EXPECT_LT(log.events().size(), 10'000U); // of 200'000
}

TEST_F(EgressService, TheSecondDoorTakesTheTokenOfTheRun) {
    tcp_server door;
    const auto port = door.port();
    start_ready({.rules = rules_of({where}), .listener = door.release()});
    EXPECT_EQ(service->token().size(), 64U);
    const auto without = connect_to(port);
    without.send("CONNECT " + where + " HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(advance_until([&] { return !without.is_quiet(0); }));
    EXPECT_TRUE(without.head().starts_with("HTTP/1.1 407 "));
}

TEST_F(EgressService, PublishedConnectionsAreOnRecord) {
    const auto port = tcp_server{}.port();
    start_ready({.rules = {}, .published = {port}});
    const auto caller = connect_to(port);
    net::bridge_order order{};
    ASSERT_TRUE(advance_until(
        [&] { return ::recv(bridge.get(), &order, sizeof order, MSG_DONTWAIT) == sizeof order; }));
    net::bridge_message message{};
    message.what = net::bridge_news::unreached;
    message.id = order.id;
    message.os = ECONNREFUSED;
    ASSERT_TRUE(pass(bridge.get(), message, {}));
    ASSERT_TRUE(advance_until_events(2));
    EXPECT_EQ(log.events()[0].tool, "publish:" + std::to_string(port));
    EXPECT_EQ(log.events()[1].status, audit::status::transport_error);
    EXPECT_TRUE(service->records().empty());
}

// The supervisor is killed as nothing can prevent: no process of the run is left.
TEST(EgressLifetime, TheSupervisorsDeathEndsTheProcess) {
    test::pipe_ends channel;
    const auto supervisor = ::fork();
    if (supervisor == 0) {
        memory_log log;
        sys::system_clock time;
        auto made = net::egress_service::start({.program = GLOVE_EGRESS}, sys::unique_fd{}, time,
                                               log, "run");
        if (!made || !made->await_ready()) ::_exit(1);
        const auto children =
            proxy_scene::sys_text("/proc/self/task/" + std::to_string(::getpid()) + "/children");
        test::say(channel.write, children);
        ::pause();
        ::_exit(0);
    }
    char text[32]{};
    ASSERT_GT(::read(channel.read.get(), text, sizeof text - 1), 0);
    const auto number = std::stol(text);
    ASSERT_EQ(::kill(supervisor, SIGKILL), 0);
    ASSERT_EQ(::waitpid(supervisor, nullptr, 0), supervisor);
    bool gone = false;
    for (int i = 0; i < 500 && !gone; ++i) {
        const auto status = proxy_scene::sys_text("/proc/" + std::to_string(number) + "/status");
        gone = status.empty() || status.contains("State:\tZ"); // nobody here reaps orphans
        if (!gone) std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    EXPECT_TRUE(gone);
}

// A message is taken only when every field holds.
class EgressMessages : public ::testing::Test {
protected:
    net::egress_message message;
    EgressMessages() {
        message.what = egress_news::intent;
        message.id = 1;
        message.port = 443;
        net::put_name(message, "api.example");
    }
    [[nodiscard]] auto taken() const -> bool {
        return net::read_news(std::as_bytes(std::span{&message, 1})).has_value();
    }
};

TEST_F(EgressMessages, TheCheckedFormIsTaken) {
    EXPECT_TRUE(taken());
    EXPECT_FALSE(net::read_news(std::as_bytes(std::span{&message, 1}).first(10)));
}

TEST_F(EgressMessages, AnotherFormOfANameIsNot) {
    for (const std::string_view name : {"API.example", "api.example.", "a b", "", "a\n", "::1 "}) {
        net::put_name(message, name);
        EXPECT_FALSE(taken()) << name;
    }
}

TEST_F(EgressMessages, UnknownValuesAreNot) {
    message.port = 0;
    EXPECT_FALSE(taken());
    message.port = 443;
    message.inward = 2;
    EXPECT_FALSE(taken());
    message.inward = 1; // a published port has no name
    EXPECT_FALSE(taken());
    message.inward = 0;
    message.what = static_cast<egress_news>(99);
    EXPECT_FALSE(taken());
    message.what = egress_news::outcome;
    net::put_name(message, "");
    message.reason = static_cast<egress_reason>(99);
    EXPECT_FALSE(taken());
}

TEST_F(EgressMessages, WhatIsToldIsPrintable) {
    message.what = egress_news::refused;
    net::put_detail(message, "\x1b[2J");
    const auto news = net::read_news(std::as_bytes(std::span{&message, 1}));
    ASSERT_TRUE(news);
    EXPECT_EQ(news->detail, "\\x1b[2J");
}

TEST(EgressSettings, ComeBackAsTheyWereAndCannotBeChanged) {
    const net::egress_configuration settings{.rules = {"a.example", ".b.example:80"},
                                             .published = {1, 65535},
                                             .token = "token",
                                             .limits = {.connections = 7}};
    auto file = net::seal(settings);
    ASSERT_TRUE(file);
    EXPECT_LT(::write(file->get(), "x", 1), 0);
    EXPECT_NE(::ftruncate(file->get(), 0), 0);
    const auto back = net::unseal(*file);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->rules, settings.rules);
    EXPECT_EQ(back->published, settings.published);
    EXPECT_EQ(back->token, "token");
    EXPECT_EQ(back->limits.connections, 7U);
    EXPECT_FALSE(net::unseal(*file)); // at its end: nothing
}

} // namespace
