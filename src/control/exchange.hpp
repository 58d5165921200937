// One connection: a request is read, an answer is written. Never blocks, and never reads more than
// one frame.
//
// The time that the service needs is not the client's: the deadline stands still from the moment
// that the request has arrived until its answer is there, and while a large frame waits for room.
#pragma once
#include <array>
#include <chrono>
#include <glove/base/wipe.hpp>
#include <glove/control/methods.hpp>
#include <glove/control/protocol.hpp>
#include <glove/sys/fd.hpp>
#include <optional>
#include <string>

namespace glove::control {

inline constexpr std::size_t small_frame_bytes = 64UL << 10;

class exchange {
public:
    using time = std::chrono::nanoseconds; // monotonic
    enum class step : std::uint8_t {
        reading,
        waiting, // for room for a large frame
        working,
        writing,
    };
    enum class outcome : std::uint8_t {
        more,    // the socket has no more to give, or takes no more
        large,   // a large frame is announced; `go_on` when there is room
        arrived, // the request is here as a whole
        done,    // the answer is out
        left,    // the client closed before it asked anything
        failed,  // see `why`
    };

    exchange(sys::unique_fd socket, time now, time patience)
        : socket_{std::move(socket)}, began_{now}, patience_{patience}, deadline_{now + patience} {}
    exchange(const exchange&) = delete;
    auto operator=(const exchange&) -> exchange& = delete;
    ~exchange() { wipe(body_); } // the secret may be in it

    [[nodiscard]] auto read_some() -> outcome;
    // Between these two the client's time stands still; it waits no longer than it may take.
    void wait_for_room(time now);
    void go_on(time now);
    // Of a frame that is read: a piece of 64 KiB at least in each such time since it had room.
    [[nodiscard]] auto keeps_up(time now, time piece) const -> bool;
    [[nodiscard]] auto began() const noexcept -> time { return began_; }
    [[nodiscard]] auto waits_since() const noexcept -> time { return since_; }
    [[nodiscard]] auto received() const noexcept -> std::size_t { return body_.size(); }
    void begin_work(const arrival& when);
    void end_work(std::string answer, time now);
    [[nodiscard]] auto write_some() -> outcome;

    // The client knows the end of its answer by this. Nobody may watch the socket any more.
    void close() noexcept { socket_ = {}; }

    [[nodiscard]] auto socket() const noexcept -> sys::fd_ref { return socket_; }
    [[nodiscard]] auto at() const noexcept -> step { return step_; }
    [[nodiscard]] auto deadline() const noexcept -> time { return deadline_; }
    [[nodiscard]] auto is_large() const noexcept -> bool {
        return wanted_ && *wanted_ > small_frame_bytes;
    }
    [[nodiscard]] auto body() noexcept -> std::string& { return body_; }
    [[nodiscard]] auto arrived() const noexcept -> const arrival& { return arrived_; }
    [[nodiscard]] auto why() const noexcept -> const error& { return why_; }

private:
    [[nodiscard]] auto read_header() -> outcome;
    [[nodiscard]] auto read_body() -> outcome;
    // How many bytes came; nothing with the outcome that it means.
    [[nodiscard]] auto receive(char* to, std::size_t size) -> std::optional<std::size_t>;

    sys::unique_fd socket_;
    time began_;
    time patience_;
    time deadline_;
    time since_{}; // waiting, or having room
    time left_{};  // while working
    step step_ = step::reading;
    outcome stopped_{};
    error why_;
    std::array<char, frame_header_bytes> header_{};
    std::size_t header_size_ = 0;
    std::optional<std::size_t> wanted_;
    std::string body_;
    arrival arrived_;
    std::string answer_; // with its header
    std::size_t sent_ = 0;
};

} // namespace glove::control
