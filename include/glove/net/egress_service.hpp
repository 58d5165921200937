// The supervisor's side of approved egress: starts one `glove-egress` process for a run, puts on
// record what that process wants to do before it may do it, and counts for the report.
//
// Guarantees: `glove-egress` dials nothing whose intent was not appended; it ends with this object
// and with this process, also after SIGKILL. It never lets a byte of the agent into this process
// but host names and ports in their checked form.
#pragma once
#include <cstdint>
#include <glove/base/audit.hpp>
#include <glove/base/error.hpp>
#include <glove/net/destination.hpp>
#include <glove/net/egress_rules.hpp>
#include <glove/sys/child_process.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/fd.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace glove::net {

// glove-egress, beside this program or where it is installed.
[[nodiscard]] auto find_egress_program() -> result<std::string>;

struct egress_options {
    egress_rules rules = {};
    std::vector<std::uint16_t> published = {}; // ports of the host's 127.0.0.1, forwarded inwards
    unsigned connections = 256;                // at once; further ones wait
    bool tell_refusals = false; // one line on stderr for a destination's first refusal
    // A second door: a listening TCP socket of the loopback, whose sessions must show `token()`.
    sys::unique_fd listener = {};
    std::string program = {}; // glove-egress; found beside this program when empty
};

// How the connections to one destination went.
struct egress_record {
    destination where;
    std::uint64_t allowed = 0, refused = 0, failed = 0; // connections
    std::uint64_t bytes_sent = 0, bytes_received = 0;   // by the agent, of those that ended
    std::string last_error;
};
inline constexpr std::size_t most_egress_records = 1024;

class egress_service {
public:
    // `bridge` is the relay's end of the channel. `time` and `log` outlive the service; `run` is
    // the id of the run in the log.
    [[nodiscard]] static auto start(egress_options options, sys::unique_fd bridge,
                                    const sys::clock& time, audit::sink& log, std::string run)
        -> result<egress_service>;
    egress_service(egress_service&&) noexcept;
    ~egress_service();

    // Waits (10 s) until the process is confined and listens on every published port.
    [[nodiscard]] auto await_ready() -> result<>;
    // Readable when `advance` has something to do.
    [[nodiscard]] auto descriptor() const noexcept -> sys::fd_ref;
    // Never blocks but to append to the log. The process's own unexpected end is told once on
    // stderr; the run goes on without a network.
    void advance();
    // Ends the process and puts the outcome of what was open on record.
    [[nodiscard]] auto finish() -> result<>;
    // In the order of first use; `more_records` counts uses of destinations past the bound.
    [[nodiscard]] auto records() const noexcept -> std::span<const egress_record>;
    [[nodiscard]] auto more_records() const noexcept -> std::uint64_t;
    // 64 hexadecimal digits of this run: the password of the second door, whose user is "glove".
    [[nodiscard]] auto token() const noexcept -> const std::string&;

private:
    struct state;
    explicit egress_service(std::unique_ptr<state> made);
    std::unique_ptr<state> state_;
};

} // namespace glove::net
