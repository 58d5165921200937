// The ways into the proxy: the sandbox's bridge, a listener, and the published ports.
//
// Guarantees: a socket that the bridge passes is used only when it is a connected TCP socket
// between two loopback addresses; a message with another number of descriptors than its row names
// ends the channel. While the limit of connections is reached, nothing further is taken.
#pragma once
#include "net/bridge_protocol.hpp"
#include "net/proxy/core.hpp"

namespace glove::net::proxy {

class bridge_door {
public:
    bridge_door(core& in, sys::unique_fd channel);
    void open();
    void shut(std::string_view why); // told on stderr unless empty

    struct inward {
        sys::unique_fd connection;
        int os = 0; // why there is none
    };
    // A connection to the port inside.
    [[nodiscard]] auto ask_inwards(std::uint16_t port) -> awaitable<inward>;

private:
    struct waiting_order {
        explicit waiting_order(asio::io_context& io) : bell{io}, clock{io} {}
        proxy::bell bell;
        deadline clock;
        bool answered = false;
        inward answer;
    };
    struct handed_over {
        bridge_message what{};
        sys::unique_fd socket;
    };
    enum class taken : std::uint8_t { message, nothing, short_of_descriptors, end, hostile };

    [[nodiscard]] auto read() -> awaitable<void>;
    [[nodiscard]] auto admit_parked() -> awaitable<void>;
    [[nodiscard]] auto receive(handed_over& into) -> taken;
    [[nodiscard]] auto dispatch(handed_over message) -> bool;
    [[nodiscard]] auto admit(handed_over& message) -> bool;

    core& in_;
    stream channel_;
    std::map<std::uint32_t, std::shared_ptr<waiting_order>> orders_;
    std::deque<handed_over> parked_;
    std::uint32_t last_order_ = 0;
    bool shut_ = false;
};

// Sessions of a listening socket, each of which must show the credential.
void open_listener(core& in, sys::unique_fd listener);

// 127.0.0.1:port of the host.
[[nodiscard]] auto listen_on(std::uint16_t port) -> result<sys::unique_fd>;
// Carries its connections inwards. `bridge` outlives the context's run.
void publish(core& in, bridge_door& bridge, sys::unique_fd listener, std::uint16_t port);

// A connected TCP socket between two addresses of the loopback. Makes it non-blocking.
[[nodiscard]] auto is_loopback_connection(sys::fd_ref socket) -> bool;

} // namespace glove::net::proxy
