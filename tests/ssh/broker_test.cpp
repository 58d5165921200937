// The broker in this process, with the test in the places of the agent and of the supervisor.
#include "ssh/broker/broker.hpp"
#include <cstring>
#include <fcntl.h>
#include <glove/sys/sockets.hpp>
#include <gtest/gtest.h>
#include <support/folder.hpp>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>

namespace glove::ssh {
namespace {

using namespace std::string_literals;

class Broker : public testing::Test {
protected:
    void SetUp() override { start(std::chrono::seconds{60}); }
    void TearDown() override { stop(); }
    void start(std::chrono::seconds patience) {
        auto channel = sys::message_channel("test.channel");
        ASSERT_TRUE(channel.has_value());
        control_ = std::move((*channel)[0]);
        thread_ = std::thread{[end = std::move((*channel)[1]), patience]() mutable {
            std::make_unique<broker>(std::move(end), patience)->run();
        }};
        EXPECT_EQ(news(), plain_news(broker_news::ready, 0));
        tell(identity_order({"key", "comment"}));
        sys::unique_fd listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
        ::sockaddr_un at{};
        at.sun_family = AF_UNIX;
        path_.copy(at.sun_path, sizeof at.sun_path - 1);
        (void)::unlink(path_.c_str());
        ASSERT_EQ(::bind(listener.get(), reinterpret_cast<::sockaddr*>(&at), sizeof at), 0);
        ASSERT_EQ(::listen(listener.get(), 16), 0);
        hand_over(listener);
    }
    void stop() {
        control_ = {};
        if (thread_.joinable()) thread_.join();
    }
    [[nodiscard]] auto news() -> std::string {
        std::string out(longest_news, '\0');
        const auto got = ::recv(control_.get(), out.data(), out.size(), 0);
        out.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
        return out;
    }
    void tell(const std::string& order) {
        EXPECT_EQ(::send(control_.get(), order.data(), order.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(order.size()));
    }
    void hand_over(const sys::unique_fd& listener) {
        auto order = plain_order(broker_word::listener, 0);
        ::iovec part{order.data(), order.size()};
        alignas(::cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
        ::msghdr whole{};
        whole.msg_iov = &part;
        whole.msg_iovlen = 1;
        whole.msg_control = space;
        whole.msg_controllen = sizeof space;
        auto* const header = CMSG_FIRSTHDR(&whole);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        const int number = listener.get();
        std::memcpy(CMSG_DATA(header), &number, sizeof number);
        ASSERT_GT(::sendmsg(control_.get(), &whole, MSG_NOSIGNAL), 0);
    }
    [[nodiscard]] auto connect() -> sys::unique_fd {
        sys::unique_fd out{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        ::sockaddr_un at{};
        at.sun_family = AF_UNIX;
        path_.copy(at.sun_path, sizeof at.sun_path - 1);
        EXPECT_EQ(::connect(out.get(), reinterpret_cast<::sockaddr*>(&at), sizeof at), 0);
        return out;
    }
    static void say(const sys::unique_fd& to, const std::string& bytes) {
        EXPECT_EQ(::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(bytes.size()));
    }
    // The next whole frame; empty at the end.
    [[nodiscard]] static auto frame(const sys::unique_fd& from) -> std::string {
        frame_reader in;
        std::array<char, 4096> bytes{};
        for (;;) {
            const auto got =
                ::recv(from.get(), bytes.data(), std::min(in.wanted(), bytes.size()), 0);
            if (got <= 0) return {};
            in.add({bytes.data(), static_cast<std::size_t>(got)});
            if (auto message = in.take()) return *message;
        }
    }

    test::folder place_;
    std::string path_ = place_ / "s";
    sys::unique_fd control_;
    std::thread thread_;
};

TEST_F(Broker, AnswersTheListByItself) {
    const auto agent = connect();
    say(agent, list_frame());
    EXPECT_EQ(read_identities(frame(agent))->front().key, "key");
}

TEST_F(Broker, AsksForASignatureAndPassesItOn) {
    const auto agent = connect();
    say(agent, sign_frame("key", "data", 4));
    const auto asked = news();
    const auto what = read_news(asked);
    ASSERT_TRUE(what.has_value());
    EXPECT_EQ(what->what, broker_news::sign);
    EXPECT_EQ(what->data, "data");
    EXPECT_EQ(what->flags, 4U);
    tell(plain_order(broker_word::signature, what->id, "signed"));
    EXPECT_EQ(read_signature(frame(agent)), "signed");
    say(agent, sign_frame("key", "more", 0));
    tell(plain_order(broker_word::refused, read_news(news())->id));
    EXPECT_TRUE(is_failure(frame(agent)));
}

TEST_F(Broker, ReadsNothingMoreOfAConnectionThatWaits) {
    const auto waiting = connect();
    say(waiting, sign_frame("key", "one", 0) + sign_frame("key", "two", 0));
    const auto first = news();
    const auto other = connect(); // is served meanwhile
    say(other, list_frame());
    EXPECT_FALSE(frame(other).empty());
    std::string more(longest_news, '\0');
    EXPECT_LT(::recv(control_.get(), more.data(), more.size(), MSG_DONTWAIT), 0);
    tell(plain_order(broker_word::refused, read_news(first)->id));
    EXPECT_TRUE(is_failure(frame(waiting)));
    EXPECT_EQ(read_news(news())->data, "two");
}

TEST_F(Broker, AnAnswerForAConnectionThatHasGoneIsDropped) {
    auto gone = connect();
    say(gone, sign_frame("key", "data", 0));
    const auto id = read_news(news())->id;
    gone = {};
    tell(plain_order(broker_word::signature, id, "signed"));
    tell(plain_order(broker_word::signature, id + 100, "signed"));
    const auto next = connect();
    say(next, list_frame());
    EXPECT_FALSE(frame(next).empty());
}

TEST_F(Broker, NothingButTheOneKeyIsAskedFor) {
    const auto agent = connect();
    for (const auto& wrong :
         {sign_frame("other", "data", 0), sign_frame("", "data", 0), sign_frame("key", "data", 1),
          sign_frame("ke", "data", 0), sign_frame("key\0"s, "data", 0), "\0\0\0\x01\x13"s}) {
        say(agent, wrong);
        EXPECT_TRUE(is_failure(frame(agent)));
    }
    std::string more(longest_news, '\0');
    EXPECT_LT(::recv(control_.get(), more.data(), more.size(), MSG_DONTWAIT), 0);
}

TEST_F(Broker, AFrameThatDoesNotEndInTimeIsTheEndOfItsConnection) {
    stop();
    start(std::chrono::seconds{1});
    const auto slow = connect();
    const auto idle = connect();
    say(slow, "\0\0\0\x02\x0b"s);
    EXPECT_EQ(frame(slow), "");
    say(idle, list_frame()); // between two frames there is no deadline
    EXPECT_FALSE(frame(idle).empty());
}

TEST_F(Broker, EndsWithItsSupervisor) {
    const auto agent = connect();
    stop();
    EXPECT_EQ(frame(agent), "");
}

} // namespace
} // namespace glove::ssh
