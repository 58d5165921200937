// Carries bytes between a client and a destination until both are done.
//
// Guarantees: until the TLS greeting was judged, nothing of the client goes out, while the other
// direction flows from the start; a second greeting, when the server asks for one, is judged alike;
// no more bytes pass than the rule's budget holds; an end of sending is passed on by itself, and a
// reset as a reset. It changes no byte.
#pragma once
#include "net/proxy/core.hpp"
#include "net/proxy/request.hpp"

namespace glove::net::proxy {

struct relay_order {
    std::optional<destination> greeting; // the TLS greeting must name it; empty: nothing is judged
    byte_budget* budget = nullptr;
    // A forwarded request: its head goes first, then its body and nothing after it, and the answer
    // ends the relay.
    std::optional<http_request> request;
    std::string first; // what the client sent already
};

struct relay_ending {
    egress_reason reason = egress_reason::none;
    int os = 0;
    std::string detail;
};

class relay : public std::enable_shared_from_this<relay> {
public:
    relay(core& in, stream client, stream server, relay_order order);
    [[nodiscard]] auto run() -> awaitable<relay_ending>;
    [[nodiscard]] auto sent() const -> std::uint64_t { return sent_; }
    [[nodiscard]] auto received() const -> std::uint64_t { return received_; }
    [[nodiscard]] auto has_bytes_to_send() const -> bool { return !up_done_; }

private:
    enum class moved : std::uint8_t { everything, peer_gone, source_gone, given_up };

    [[nodiscard]] auto up() -> awaitable<void>;
    [[nodiscard]] auto down() -> awaitable<void>;
    [[nodiscard]] auto greet() -> awaitable<bool>;
    [[nodiscard]] auto judge_greeting() -> awaitable<bool>;
    [[nodiscard]] auto read_answer() -> awaitable<bool>;
    [[nodiscard]] auto greeting_problem() -> std::optional<relay_ending>; // `settled_` when judged
    [[nodiscard]] auto send_request() -> awaitable<bool>;
    [[nodiscard]] auto send_counted(std::string bytes) -> awaitable<bool>;
    [[nodiscard]] auto pump(stream& from, stream& to, std::uint64_t& counter) -> awaitable<moved>;
    [[nodiscard]] auto drain(lane& bytes, stream& to, std::uint64_t& counter) -> awaitable<moved>;
    [[nodiscard]] auto at_budget_end(stream& from) -> moved;
    void end(egress_reason why, int os = 0, std::string detail = {});
    void watch_clock();
    void touch() { last_move_ = std::chrono::steady_clock::now(); }

    core& in_;
    stream client_, server_;
    relay_order order_;
    relay_ending ending_;
    deadline clock_, hello_clock_;
    bell bell_;
    std::chrono::steady_clock::time_point began_, last_move_;
    std::uint64_t sent_ = 0, received_ = 0;
    bool up_done_ = false, ended_ = false, settled_ = false;
    bool greeted_ = false;  // a TLS greeting went to the server
    bool answered_ = false; // whether the server asks for another one is known
    bool asks_again_ = false;
};

} // namespace glove::net::proxy
