// Asks the gloved of this user: one request and one answer on a connection of its own.
//
// Guarantees: an exchange ends by one absolute deadline, whatever the other side does; nothing is
// sent before the directory, the socket and the process behind it are known to be this user's own;
// the secret of the service goes through that socket and nowhere else, into no error either; a
// service that is gone is an error and never a signal; an answer is believed only when it is one,
// to this request. An error names what failed, and how to mend it where that is known.
//
// Error steps: client.directory, client.secret, client.socket, client.peer,
// client.send, client.receive, client.deadline, client.interrupted, client.reply.
#pragma once
#include <chrono>
#include <cstdint>
#include <expected>
#include <glove/base/error.hpp>
#include <glove/control/protocol.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/entropy.hpp>
#include <glove/sys/fd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace glove::control {

struct client_settings {
    std::string runtime_directory;              // absolute
    std::chrono::milliseconds patience{10'000}; // for one exchange
    std::string start_hint = "gloved";          // the command that starts the service
    // When there is something to read in it, an exchange that waits is given up. Nothing is read.
    std::optional<sys::fd_ref> interrupt = {};
};

// A result as JSON text, or what the service answered instead.
using remote_answer = std::expected<std::string, remote_error>;

class client {
public:
    // `clock` and `random` must outlive it.
    client(client_settings how, const sys::clock& clock, sys::entropy& random)
        : how_{std::move(how)}, clock_{&clock}, random_{&random} {}

    // `payload` is JSON text. The secret is read anew, because each start of the service has one.
    [[nodiscard]] auto call(std::string_view method, std::string payload,
                            std::optional<std::string> idempotency_key = {}) const
        -> result<remote_answer>;

private:
    client_settings how_;
    const sys::clock* clock_;
    sys::entropy* random_;
};

} // namespace glove::control
