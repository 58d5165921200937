// The supervisor's side with the real `glove-ssh-agent`, and the test in the place of the caller's
// agent: what is on record when, and what happens when it cannot be.
#include "ssh/agent_message.hpp"
#include <algorithm>
#include <cstring>
#include <glove/ssh/agent_service.hpp>
#include <gmock/gmock.h>
#include <optional>
#include <poll.h>
#include <support/folder.hpp>
#include <sys/socket.h>
#include <sys/un.h>

namespace glove::ssh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class book : public audit::sink {
public:
    [[nodiscard]] auto append(const audit::event& what) -> result<> override {
        if (lines.size() == room) return fail(errc::io, "test.book", "full");
        lines.push_back(what);
        return {};
    }
    [[nodiscard]] auto statuses() const -> std::vector<audit::status> {
        std::vector<audit::status> out;
        for (const auto& line : lines) out.push_back(line.status);
        return out;
    }
    std::vector<audit::event> lines;
    std::size_t room = 1000;
};

[[nodiscard]] auto bound(const std::string& path) -> sys::unique_fd {
    sys::unique_fd out{::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    ::sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    EXPECT_EQ(::bind(out.get(), reinterpret_cast<::sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(::listen(out.get(), 16), 0);
    return out;
}

class Service : public testing::Test {
protected:
    void open(std::chrono::nanoseconds patience = signature_patience) {
        auto started = agent_service::start(
            {.key = {.blob = "key", .comment = "c", .type = "t", .fingerprint = "SHA256:k"},
             .socket = pinned_,
             .program = GLOVE_SSH_AGENT,
             .patience = patience},
            time_, log_, "run");
        ASSERT_TRUE(started.has_value()) << started.error().detail;
        service_.emplace(*std::move(started));
        const auto ready = service_->await_ready();
        ASSERT_TRUE(ready.has_value()) << ready.error().detail;
        service_->serve(bound(place_ / "inner"));
    }
    [[nodiscard]] auto connect() -> sys::unique_fd {
        sys::unique_fd out{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        ::sockaddr_un at{};
        at.sun_family = AF_UNIX;
        (place_ / "inner").copy(at.sun_path, sizeof at.sun_path - 1);
        EXPECT_EQ(::connect(out.get(), reinterpret_cast<::sockaddr*>(&at), sizeof at), 0);
        return out;
    }
    static void say(const sys::unique_fd& to, const std::string& bytes) {
        EXPECT_EQ(::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(bytes.size()));
    }
    // Lets the service go on until there is something to read.
    void until_readable(const sys::unique_fd& wanted) {
        for (int i = 0; i < 60'000; ++i) {
            std::array sources{::pollfd{wanted.get(), POLLIN, 0},
                               ::pollfd{service_->descriptor().get(), POLLIN, 0}};
            ASSERT_GE(::poll(sources.data(), sources.size(), 60'000), 1);
            if (sources[0].revents != 0) return;
            service_->advance();
        }
        FAIL() << "nothing came";
    }
    [[nodiscard]] auto frame(const sys::unique_fd& from) -> std::string {
        frame_reader in;
        std::array<char, 4096> bytes{};
        for (;;) {
            until_readable(from);
            const auto got =
                ::recv(from.get(), bytes.data(), std::min(in.wanted(), bytes.size()), MSG_DONTWAIT);
            if (got < 0 && errno == EAGAIN) continue;
            if (got <= 0) return {};
            in.add({bytes.data(), static_cast<std::size_t>(got)});
            if (auto message = in.take()) return *message;
        }
    }
    [[nodiscard]] auto accept() -> sys::unique_fd {
        until_readable(real_);
        return sys::unique_fd{::accept4(real_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    }

    test::folder place_;
    sys::unique_fd real_ = bound(place_ / "real");
    sys::unique_fd pinned_ = pin_agent(place_ / "real").value_or(sys::unique_fd{});
    sys::system_clock time_;
    book log_;
    std::optional<agent_service> service_;
};

TEST_F(Service, TheIntentIsOnRecordBeforeTheRequestAndTheOutcomeBeforeTheSignature) {
    open();
    const auto agent = connect();
    say(agent, sign_frame("key", "data", 2));
    const auto upstream = accept();
    EXPECT_THAT(log_.statuses(), ElementsAre(audit::status::pending));
    EXPECT_EQ(frame(upstream), sign_frame("key", "data", 2).substr(frame_head));
    say(upstream, signature_frame("signed"));
    EXPECT_EQ(read_signature(frame(agent)), "signed");
    EXPECT_THAT(log_.statuses(), ElementsAre(audit::status::pending, audit::status::ok));
    EXPECT_EQ(log_.lines[0].call, log_.lines[1].call);
    EXPECT_EQ(log_.lines[0].action, audit::action::ssh_sign);
    EXPECT_EQ(log_.lines[0].tool, "SHA256:k");
    EXPECT_TRUE(service_->finish().has_value());
    EXPECT_EQ(service_->counts().made, 1U);
}

TEST_F(Service, WithoutARecordNothingIsAskedFor) {
    log_.room = 0;
    open();
    const auto agent = connect();
    say(agent, sign_frame("key", "data", 0));
    EXPECT_TRUE(is_failure(frame(agent)));
    ::pollfd asked{real_.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&asked, 1, 0), 0);
    EXPECT_EQ(service_->finish().error().step, "test.book");
    EXPECT_EQ(service_->counts().failed, 1U);
}

TEST_F(Service, WithoutARecordOfTheOutcomeTheSignatureIsKept) {
    log_.room = 1;
    open();
    const auto agent = connect();
    say(agent, sign_frame("key", "data", 0));
    const auto upstream = accept();
    (void)frame(upstream);
    say(upstream, signature_frame("signed"));
    EXPECT_TRUE(is_failure(frame(agent)));
    EXPECT_FALSE(service_->finish().has_value());
}

TEST_F(Service, WhatTheRealAgentAnswersIsAnOutcome) {
    open();
    struct row {
        std::string answer;
        audit::status status;
        std::string_view words;
    };
    const row rows[] = {
        {failure_frame(), audit::status::execution_error, "refused to sign"},
        {list_frame(), audit::status::transport_error, "an answer that is none"},
        {std::string(4, '\0'), audit::status::transport_error, "an answer that is none"},
        {"\x7f\xff\xff\xff", audit::status::transport_error, "an answer that is none"},
        {"", audit::status::transport_error, "hung up"},
    };
    for (const auto& [answer, status, words] : rows) {
        const auto agent = connect();
        say(agent, sign_frame("key", "data", 0));
        auto upstream = accept();
        (void)frame(upstream);
        if (answer.empty()) upstream = {};
        else say(upstream, answer);
        EXPECT_TRUE(is_failure(frame(agent))) << words;
        EXPECT_EQ(log_.lines.back().status, status) << words;
        EXPECT_THAT(log_.lines.back().error.value_or(""), HasSubstr(words));
    }
}

TEST_F(Service, AnAgentThatDoesNotAnswerIsGivenUpAndOthersAreServedMeanwhile) {
    open(std::chrono::seconds{2});
    const auto first = connect();
    say(first, sign_frame("key", "one", 0));
    const auto silent = accept();
    const auto second = connect();
    say(second, sign_frame("key", "two", 0));
    const auto prompt = accept();
    (void)frame(prompt);
    say(prompt, signature_frame("signed"));
    EXPECT_EQ(read_signature(frame(second)), "signed");
    EXPECT_TRUE(is_failure(frame(first)));
    EXPECT_THAT(log_.lines.back().error.value_or(""), HasSubstr("did not answer in time"));
}

TEST_F(Service, WhatIsOpenAtTheEndIsPutOnRecord) {
    open();
    const auto agent = connect();
    say(agent, sign_frame("key", "data", 0));
    const auto upstream = accept();
    EXPECT_TRUE(service_->finish().has_value());
    EXPECT_THAT(log_.statuses(),
                ElementsAre(audit::status::pending, audit::status::transport_error));
    std::array<char, 1> byte{};
    EXPECT_EQ(::recv(agent.get(), byte.data(), 1, 0), 0) << "the process has gone";
}

TEST_F(Service, AnAgentThatHasGoneIsAnOutcome) {
    open();
    real_ = {};
    const auto agent = connect();
    say(agent, sign_frame("key", "data", 0));
    EXPECT_TRUE(is_failure(frame(agent)));
    EXPECT_THAT(log_.statuses(),
                ElementsAre(audit::status::pending, audit::status::transport_error));
}

} // namespace
} // namespace glove::ssh
