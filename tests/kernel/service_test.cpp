// The loop itself, with a clock that runs sixty times as fast: a minute is a second.
#include "kernel/mediator_process/service.hpp"
#include <glove/wire/json_outline.hpp>
#include <gtest/gtest.h>
#include <poll.h>
#include <support/forked.hpp>
#include <thread>

namespace glove::kernel {

namespace {

using namespace std::chrono_literals;

constexpr int speed = 60;

class fast_clock final : public sys::clock {
public:
    [[nodiscard]] auto monotonic() const noexcept -> std::chrono::nanoseconds override {
        return real_.monotonic() * speed;
    }
    [[nodiscard]] auto wall() const noexcept -> std::chrono::nanoseconds override {
        return real_.wall();
    }

private:
    sys::system_clock real_;
};

class no_record final : public audit::batching_sink {
public:
    [[nodiscard]] auto append(const audit::event&) -> result<> override { return {}; }
    [[nodiscard]] auto stage(const audit::event&) -> result<> override { return {}; }
    [[nodiscard]] auto commit() -> result<> override { return {}; }
};

// It comes up with one tool, and reads nothing afterwards.
constexpr std::string_view deaf_server = R"sh(
answer() { id=${1#*\"id\":}; echo "{\"jsonrpc\":\"2.0\",\"id\":${id%%,*},\"result\":$2}"; }
read -r line
answer "$line" '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}'
read -r line; read -r line
answer "$line" '{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}'
exec sleep 600
)sh";

// Serves on the standard streams.
[[nodiscard]] auto serve() -> std::string {
    const std::vector<std::string> names{"s"};
    auto rules = policy::engine::parse({.allow = {"s.*"}}, {}, names, "/").value();
    gateway_options options;
    options.upstreams.push_back({.name = "s",
                                 .argv = {"/bin/sh", "-c", std::string{deaf_server}},
                                 .environment = {},
                                 .passed = {},
                                 .directory = {}});
    options.call_timeout = 1h;
    options.start_timeout = 1h;
    options.run = "run";
    options.version = "1";
    const fast_clock time;
    no_record log;
    policy::meter meter;
    service loop{{}, time, {}};
    auto gate = gateway::make(options, {loop, log, rules, meter, nullptr, time}).value();
    loop.attach(gate, options.upstreams);
    return std::to_string(loop.run());
}

struct spoken {
    sys::unique_fd to, from; // of the agent
    std::thread served;
    std::string status;

    spoken() {
        test::pipe_ends in, out;
        to = std::move(in.write);
        from = std::move(out.read);
        served = std::thread{[this, in = std::move(in.read), out = std::move(out.write)] {
            status = test::said_by([&] {
                to = {};
                from = {};
                if (::dup2(in.get(), 0) < 0 || ::dup2(out.get(), 1) < 0) return std::string{"dup2"};
                return serve();
            });
        }};
    }
    // Pings until an answer to the call comes or so much time has passed; the answer.
    [[nodiscard]] auto answer_within(std::chrono::seconds most) -> std::string {
        const auto begin = std::chrono::steady_clock::now();
        std::string heard;
        while ((std::chrono::steady_clock::now() - begin) * speed < most) {
            test::say(to, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n");
            ::pollfd waits{from.get(), POLLIN, 0};
            while (::poll(&waits, 1, 20) == 1) {
                char part[4096];
                const auto got = ::read(from.get(), part, sizeof part);
                if (got <= 0) return "the end";
                heard.append(part, static_cast<std::size_t>(got));
            }
            if (const auto at = heard.find("\"id\":7"); at != heard.npos) return heard.substr(at);
        }
        return {};
    }
    void call(std::size_t bytes) {
        test::say(to, R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{)"
                      R"("protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{}}})"
                      "\n"
                      R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"s__t",)"
                      R"("arguments":{"x":")" +
                          std::string(bytes, 'x') + "\"}}}\n");
    }
    void end() {
        to = {};
        from = {};
        served.join();
    }
};

TEST(Service, AServerThatReadsNothingOfWhatWaitsForItIsEndedAfterAMinute) {
    spoken of;
    of.call(2'000'000); // more than any pipe takes
    EXPECT_EQ(of.answer_within(50s), "");
    const auto answer = of.answer_within(600s);
    EXPECT_NE(answer.find("-31001"), std::string::npos) << answer;
    of.end();
    EXPECT_EQ(of.status, "0");
}

TEST(Service, AServerThatHasReadAllAndOnlyTakesItsTimeIsNot) {
    spoken of;
    of.call(100);
    EXPECT_EQ(of.answer_within(150s), "");
    of.end();
    EXPECT_EQ(of.status, "0");
}

} // namespace

} // namespace glove::kernel
