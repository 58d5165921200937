// The client against services that misbehave: each is a thread that does one thing wrong.
#include <atomic>
#include <chrono>
#include <functional>
#include <glove/control/client.hpp>
#include <gtest/gtest.h>
#include <support/folder.hpp>
#include <sys/socket.h>
#include <thread>

namespace glove::control {
namespace {

using namespace std::chrono_literals;
using std::string;
using std::string_view;

const string secret(64, 'a');

class scripted_service {
public:
    using script = std::function<void(int connection, const request& asked)>;

    // Reads the request first, unless it is told not to.
    explicit scripted_service(const string& directory, script what, bool reads = true)
        : listening_{test::bound_socket(directory + "/gloved.sock")},
          thread_{[this, what = std::move(what), reads] { serve(what, reads); }} {
        test::prepared(::chmod((directory + "/gloved.sock").c_str(), 0600) == 0, "chmod");
    }
    ~scripted_service() {
        (void)::shutdown(listening_.get(), SHUT_RDWR);
        thread_.join();
    }

private:
    static auto taken(int from, std::size_t bytes) -> string {
        string out(bytes, '\0');
        std::size_t at = 0;
        while (at < bytes) {
            const auto got = ::recv(from, out.data() + at, bytes - at, 0);
            if (got <= 0) break;
            at += static_cast<std::size_t>(got);
        }
        out.resize(at);
        return out;
    }
    void serve(const script& what, bool reads) {
        const sys::unique_fd one{::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
        if (!one) return;
        request asked;
        if (reads) {
            const auto size = frame_body_bytes(taken(one.get(), 4));
            const auto text = taken(one.get(), size.value_or(0));
            if (auto read = decode_request(text)) asked = *std::move(read);
        }
        what(one.get(), asked);
    }

    sys::unique_fd listening_;
    std::thread thread_;
};

void say(int to, string_view bytes) { (void)::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
void say_frame(int to, string_view body) {
    const auto header = frame_header(body.size());
    say(to, {header->data(), header->size()});
    say(to, body);
}
auto answered(const request& asked, std::variant<string, error_code> outcome) -> string {
    return *encode(response{.id = asked.id, .outcome = std::move(outcome)});
}
// Until the other side has gone.
void stay(int connection) {
    char byte = 0;
    while (::recv(connection, &byte, 1, 0) > 0) {
    }
}

class Client : public testing::Test {
protected:
    auto runtime() -> string {
        const auto out = folder_.directory("runtime", 0700);
        (void)folder_.file("runtime/bootstrap-secret", secret + "\n", 0600);
        return out;
    }
    auto ask(const string& directory, string payload = "null", std::chrono::milliseconds time = 10s)
        -> result<remote_answer> {
        const client asks{{directory, time, "gloved --config here"}, clock_, random_};
        return asks.call("health", std::move(payload), "key-1");
    }
    auto refused(const string& directory, string payload = "null",
                 std::chrono::milliseconds time = 10s) -> error {
        const auto out = ask(directory, std::move(payload), time);
        EXPECT_FALSE(out);
        if (out) return {};
        EXPECT_EQ(out.error().detail.find(secret), string::npos);
        return out.error();
    }

    test::folder folder_;
    sys::system_clock clock_;
    sys::system_entropy random_;
};

TEST_F(Client, gets_a_result_and_what_is_said_instead) {
    const auto directory = runtime();
    request seen;
    const auto before = clock_.wall() / 1ms;
    {
        const scripted_service service{directory, [&](int to, const request& asked) {
                                           seen = asked;
                                           say_frame(to, answered(asked, R"({"a":[1]})"));
                                       }};
        const auto out = ask(directory, R"({"b":2})");
        ASSERT_TRUE(out) << out.error().detail;
        EXPECT_EQ(**out, R"({"a":[1]})");
    }
    EXPECT_EQ(seen.method, "health");
    EXPECT_EQ(seen.bootstrap_secret, secret);
    EXPECT_EQ(seen.idempotency_key, "key-1");
    EXPECT_EQ(seen.payload, R"({"b":2})");
    EXPECT_GE(seen.deadline_ms, static_cast<std::uint64_t>(before) + 9'000);
    EXPECT_LE(seen.deadline_ms, static_cast<std::uint64_t>(clock_.wall() / 1ms) + 10'000);
    (void)::unlink((directory + "/gloved.sock").c_str());
    const scripted_service service{directory, [](int to, const request& asked) {
                                       say_frame(to, answered(asked, error_code::unauthorized));
                                   }};
    const auto out = ask(directory);
    ASSERT_TRUE(out);
    ASSERT_FALSE(*out);
    EXPECT_EQ(out->error().code, "unauthorized");
}

// Whatever it waits for: an answer, or room in the queue of those who connect.
TEST_F(Client, gives_up_when_it_is_interrupted) {
    const auto directory = runtime();
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const sys::unique_fd watched{ends[0]};
    const sys::unique_fd poked{ends[1]};
    const scripted_service service{directory, [](int to, const request&) { stay(to); }};
    const auto before = clock_.monotonic();
    const client asks{{directory, 100s, "gloved", watched}, clock_, random_};
    std::thread later{[&] {
        std::this_thread::sleep_for(50ms);
        (void)!::write(poked.get(), "x", 1);
    }};
    const auto out = asks.call("health", "null");
    later.join();
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error().step, "client.interrupted");
    EXPECT_LT(clock_.monotonic() - before, 50s);
    char left = 0;
    EXPECT_EQ(::read(watched.get(), &left, 1), 1); // it is the caller's
    const client again{{directory, 50ms, "gloved", watched}, clock_, random_};
    EXPECT_EQ(again.call("health", "null").error().step, "client.deadline");
}

TEST_F(Client, says_how_to_start_a_service_that_is_not_there) {
    for (const auto& directory : {folder_ / "none", folder_.directory("empty", 0700)}) {
        const auto why = refused(directory);
        EXPECT_EQ(why.code, errc::not_found);
        EXPECT_NE(why.detail.find(directory), string::npos);
        EXPECT_EQ(why.remedy, "start the service with: gloved --config here");
    }
    const auto directory = runtime();
    {
        const auto left = test::bound_socket(directory + "/gloved.sock");
    }
    (void)::chmod((directory + "/gloved.sock").c_str(), 0600);
    const auto why = refused(directory);
    EXPECT_EQ(why.step, "client.socket");
    EXPECT_NE(why.detail.find("nobody serves"), string::npos);
}

TEST_F(Client, asks_nobody_through_a_place_that_is_not_its_own_alone) {
    const auto directory = runtime();
    EXPECT_EQ(refused("relative").step, "client.directory");
    EXPECT_EQ(refused(directory + "/").step, "client.directory");
    EXPECT_EQ(refused(folder_.link("link", directory)).step, "client.directory");
    EXPECT_EQ(refused(folder_.file("file")).step, "client.directory");
    const auto answers = [](int to, const request& asked) { say_frame(to, answered(asked, "1")); };
    for (const ::mode_t mode : {0755U, 0711U, 0701U, 0500U}) {
        (void)::chmod(directory.c_str(), mode);
        EXPECT_EQ(refused(directory).step, "client.directory") << mode;
    }
    (void)::chmod(directory.c_str(), 0700);
    const auto socket = directory + "/gloved.sock";
    (void)folder_.file("runtime/gloved.sock", "", 0600);
    EXPECT_EQ(refused(directory).step, "client.socket");
    (void)::unlink(socket.c_str());
    (void)folder_.link("runtime/gloved.sock", folder_ / "elsewhere");
    EXPECT_EQ(refused(directory).step, "client.socket");
    (void)::unlink(socket.c_str());
    const scripted_service service{directory, answers};
    (void)::chmod(socket.c_str(), 0666);
    EXPECT_EQ(refused(directory).step, "client.socket");
    (void)::chmod(socket.c_str(), 0600);
    EXPECT_TRUE(ask(directory));
}

TEST_F(Client, says_nothing_to_a_process_of_another_user) {
    if (::geteuid() != 0) return; // nobody else can become another one
    const auto directory = runtime();
    const auto listening = test::bound_socket(directory + "/gloved.sock");
    (void)::chmod((directory + "/gloved.sock").c_str(), 0600);
    // Whoever listens last is who the kernel names.
    test::prepared(::seteuid(65534) == 0, "seteuid");
    const int heard = ::listen(listening.get(), 1);
    test::prepared(::seteuid(0) == 0, "seteuid");
    ASSERT_EQ(heard, 0);
    const auto why = refused(directory);
    EXPECT_EQ(why.step, "client.peer");
    EXPECT_EQ(why.code, errc::not_permitted);
    const sys::unique_fd one{::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    char byte = 0;
    EXPECT_EQ(::recv(one.get(), &byte, 1, 0), 0);
    ASSERT_EQ(::listen(listening.get(), 1), 0);
    EXPECT_EQ(refused(directory, "null", std::chrono::milliseconds{100}).step, "client.deadline");
}

TEST_F(Client, reads_only_a_secret_of_its_own_alone) {
    const auto directory = runtime();
    const auto path = directory + "/bootstrap-secret";
    const auto fails_with = [&](string_view content, ::mode_t mode) {
        (void)::unlink((directory + "/gloved.sock").c_str());
        (void)folder_.file("runtime/bootstrap-secret", content, mode);
        const scripted_service service{directory, [](int, const request&) {}, false};
        const auto why = refused(directory);
        EXPECT_EQ(why.step, "client.secret") << content;
        EXPECT_EQ(why.detail.find("aaaa"), string::npos);
        return why.code;
    };
    EXPECT_EQ(fails_with(secret + "\n", 0644), errc::not_permitted);
    EXPECT_EQ(fails_with(secret + "\n\n", 0600), errc::limit_exceeded);
    EXPECT_EQ(fails_with(secret.substr(1) + "\n", 0600), errc::corrupt);
    EXPECT_EQ(fails_with(secret.substr(1) + "A\n", 0600), errc::corrupt);
    EXPECT_EQ(fails_with("", 0600), errc::invalid_input);
    (void)::unlink(path.c_str());
    (void)folder_.file("other", secret, 0600);
    (void)folder_.link("runtime/bootstrap-secret", folder_ / "other");
    (void)::unlink((directory + "/gloved.sock").c_str());
    {
        const scripted_service service{directory, [](int, const request&) {}, false};
        EXPECT_EQ(refused(directory).step, "client.secret");
    }
    (void)::unlink(path.c_str());
    (void)::unlink((directory + "/gloved.sock").c_str());
    (void)folder_.file("runtime/bootstrap-secret", secret, 0600); // the newline is not needed
    const scripted_service service{
        directory, [](int to, const request& asked) { say_frame(to, answered(asked, "1")); }};
    EXPECT_TRUE(ask(directory));
}

TEST_F(Client, an_exchange_ends_by_its_deadline) {
    const std::pair<const char*, scripted_service::script> slow[] = {
        {"silent", [](int to, const request&) { stay(to); }},
        {"drips",
         [](int to, const request& asked) {
             const auto body = answered(asked, "\"" + string(2000, 'x') + "\"");
             const auto header = frame_header(body.size());
             say(to, {header->data(), header->size()});
             for (const char& c : body) {
                 if (::send(to, &c, 1, MSG_NOSIGNAL) < 0) return;
                 std::this_thread::sleep_for(10ms);
             }
         }},
    };
    for (const auto& [name, script] : slow) {
        const auto directory = runtime();
        (void)::unlink((directory + "/gloved.sock").c_str());
        const scripted_service service{directory, script};
        const auto begin = std::chrono::steady_clock::now();
        const auto why = refused(directory, "null", 300ms);
        EXPECT_EQ(why.step, "client.deadline") << name;
        EXPECT_EQ(why.code, errc::timed_out);
        const auto took = std::chrono::steady_clock::now() - begin;
        EXPECT_GE(took, 300ms) << name;
        EXPECT_LT(took, 10s) << name;
    }
    const auto directory = runtime();
    (void)::unlink((directory + "/gloved.sock").c_str());
    std::atomic<bool> over = false;
    const scripted_service service{directory,
                                   [&](int, const request&) {
                                       while (!over) std::this_thread::sleep_for(5ms);
                                   },
                                   false};
    // More than the socket's buffers hold.
    const auto why = refused(directory, "\"" + string(1'000'000, 'x') + "\"", 300ms);
    over = true;
    EXPECT_EQ(why.step, "client.deadline");
}

TEST_F(Client, a_service_that_hangs_up_is_an_error_and_no_signal) {
    const auto directory = runtime();
    const scripted_service service{directory, [](int, const request&) {}, false};
    EXPECT_EQ(refused(directory, "\"" + string(1'000'000, 'x') + "\"").step, "client.receive");
}

TEST_F(Client, believes_only_an_answer_to_its_request) {
    const std::pair<const char*, scripted_service::script> wrong[] = {
        {"nothing", [](int, const request&) {}},
        {"half a header", [](int to, const request&) { say(to, string_view{"\0\0", 2}); }},
        {"half a body", [](int to, const request&) { say(to, string_view{"\0\0\0\7{}", 6}); }},
        {"an empty frame", [](int to, const request&) { say(to, string_view{"\0\0\0\0", 4}); }},
        {"a frame too long", [](int to, const request&) { say(to, string_view{"\0\x10\0\1", 4}); }},
        {"no JSON", [](int to, const request&) { say_frame(to, "{"); }},
        {"another's answer",
         [](int to, const request&) { say_frame(to, R"({"jsonrpc":"2.0","id":"x","result":1})"); }},
        {"a result for nobody",
         [](int to, const request&) { say_frame(to, R"({"jsonrpc":"2.0","id":"","result":1})"); }},
        {"both",
         [](int to, const request& asked) {
             say_frame(to, R"({"jsonrpc":"2.0","id":")" + asked.id +
                               R"(","result":1,"error":{"code":"c","message":"m"}})");
         }},
    };
    for (const auto& [name, script] : wrong) {
        const auto directory = runtime();
        (void)::unlink((directory + "/gloved.sock").c_str());
        const scripted_service service{directory, script};
        const auto why = refused(directory);
        EXPECT_TRUE(why.step == "client.reply" || why.step == "client.receive") << name;
    }
    const auto directory = runtime();
    (void)::unlink((directory + "/gloved.sock").c_str());
    const scripted_service service{
        directory, [](int to, const request&) {
            say_frame(to, *encode(response{.id = "", .outcome = error_code::invalid_request}));
        }};
    const auto out = ask(directory);
    ASSERT_TRUE(out); // of a request that could not be read
    EXPECT_EQ(out->error().code, "invalid_request");
}

} // namespace
} // namespace glove::control
