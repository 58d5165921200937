// The agent's side of the ssh agent: accepts its connections, answers what can be answered without
// the caller's agent, and asks the supervisor for a signature of the one key.
//
// Guarantees: sixteen connections at once, each with one request at a time, which is read before
// anything else of the connection; a request is bounded, and its frame must be whole within a fixed
// time, as its answer must be taken. No descriptor comes out of the sandbox: what is sent along is
// dropped by the kernel. Nothing but a signature request for exactly that key leads anywhere.
#pragma once
#include "ssh/broker_protocol.hpp"
#include <array>
#include <chrono>
#include <deque>
#include <glove/sys/fd.hpp>
#include <list>
#include <poll.h>

namespace glove::ssh {

class broker {
public:
    explicit broker(sys::unique_fd control,
                    std::chrono::seconds patience = std::chrono::seconds{60})
        : control_{std::move(control)}, patience_{patience} {}
    // Says that it is ready, and serves until the supervisor's channel ends.
    void run();

private:
    using clock = std::chrono::steady_clock;
    enum class doing : std::uint8_t { reading, asking, writing, closed };
    struct connection {
        sys::unique_fd socket;
        std::uint64_t id = 0;
        doing now = doing::reading;
        frame_reader in = {};
        std::string ask = {}; // not yet with the supervisor
        std::string out = {};
        clock::time_point deadline = clock::time_point::max();
    };

    [[nodiscard]] auto wait() -> bool;
    void serve(connection& one, short events);
    [[nodiscard]] auto take_orders() -> bool;
    [[nodiscard]] auto carry_out(std::string_view order, sys::unique_fd came) -> bool;
    void accept_all();
    void read(connection& one);
    void decide(connection& one, std::string_view message);
    void answer(connection& one, std::string frame);
    void write(connection& one);
    [[nodiscard]] auto send_asks() -> bool;

    sys::unique_fd control_, listener_;
    std::chrono::seconds patience_;
    std::optional<identity> key_;
    std::list<connection> connections_;
    std::deque<std::uint64_t> asks_; // in their order; the first ones are not sent yet
    std::uint64_t last_id_ = 0;
    std::vector<::pollfd> sources_;
    std::array<char, 64UL * 1024> buffer_{};
};

} // namespace glove::ssh
