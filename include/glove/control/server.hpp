// The service's socket: many clients at once, each with one request and one answer.
//
// Guarantees: nobody but the service's own user is read from; each exchange has one absolute
// deadline that no byte moves, and the time that the service itself takes is not counted against
// the client; whatever a client sends, or does not, ends its own connection and nothing else; the
// number of connections, of large frames and of requests in work is bounded; who finds no room
// waits in the socket's backlog, and those who are slow to ask make room for it; what takes long is
// done by workers, never where connections are accepted.
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <glove/base/error.hpp>
#include <glove/control/methods.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/fd.hpp>
#include <memory>

namespace glove::control {

inline constexpr std::chrono::milliseconds least_exchange{1};
inline constexpr std::chrono::milliseconds most_exchange{60'000};

struct server_settings {
    std::chrono::milliseconds exchange{
        5'000}; // for a client to send its request and take the answer
    std::size_t connections = 128;
    std::size_t workers = 4;
    // Frames above 64 KiB that are held at one time; others wait before they are read.
    std::size_t large_frames = 8;
    // When there is no room, who has not sent a whole request for so long yields its place; and a
    // large frame of which less than 64 KiB arrive in such a time yields its room to one that
    // waits.
    std::chrono::milliseconds yields_after{250};
    std::chrono::milliseconds grace{5'000}; // for what is being answered when the service stops
};

enum class ending : std::uint8_t {
    clean,
    late, // a worker did not come back; only the end of the process ends it
};

class server {
public:
    // `listener` is a listening stream socket that does not block; the others outlive the server.
    // Steps: server.settings, server.open.
    [[nodiscard]] static auto open(sys::unique_fd listener, const server_settings& how,
                                   answerer& answers, const sys::clock& clock, service_log& log)
        -> result<std::unique_ptr<server>>;
    ~server();

    // Until `stop` becomes readable. What was received as a whole is still answered then, within
    // the grace. An error means that the listener itself failed: server.accept, server.wait.
    // `stopping` is called when that begins.
    [[nodiscard]] auto run(sys::fd_ref stop, const std::function<void()>& stopping = {})
        -> result<ending>;

private:
    struct state;
    explicit server(std::unique_ptr<state> owned);
    std::unique_ptr<state> state_;
};

} // namespace glove::control
