// The whole proxy over an event loop: doors, sessions and the supervisor's word.
//
// Guarantees: it ends when the supervisor's channel ends. It listens where it was told and nowhere
// else.
#pragma once
#include "net/proxy/doors.hpp"

namespace glove::net::proxy {

// Descriptors that may be empty: bridge and listener.
struct server_channels {
    sys::unique_fd control, bridge, listener;
};

class server {
public:
    // Binds the published ports. An error with a port is told to the supervisor first.
    [[nodiscard]] static auto open(egress_configuration settings, server_channels channels)
        -> result<std::unique_ptr<server>>;
    server(const server&) = delete;
    auto operator=(const server&) -> server& = delete;
    ~server();

    void run(); // until the end

private:
    // Its handlers, and the coroutines in them, go before what they use.
    struct context : asio::io_context {
        context() : asio::io_context{1} {}
        void drop_handlers() { shutdown(); }
    };
    struct published_port {
        sys::unique_fd listener;
        std::uint16_t port;
    };
    server(egress_configuration settings, egress_rules rules, server_channels channels,
           std::vector<published_port> published);
    [[nodiscard]] auto finish() -> awaitable<void>;
    void report_live();

    context io_;
    core core_;
    bridge_door bridge_;
    sys::unique_fd listener_;
    std::vector<published_port> published_;
    bool finishing_ = false;
};

// `put_news` for a start that failed, straight to the supervisor.
void tell_failure(sys::fd_ref control, std::uint16_t port, const error& problem);

} // namespace glove::net::proxy
