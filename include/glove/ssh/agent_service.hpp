// The supervisor's side of the ssh agent of a run: starts one `glove-ssh-agent`, puts each
// signature on record before the caller's agent is asked for it, and asks.
//
// Guarantees: no request goes to the caller's agent whose intent was not appended, and no signature
// goes back whose outcome was not. What is sent is made here: a signature request for the one key,
// over bytes that are not looked at; so is what goes back. `glove-ssh-agent` never has a connection
// to the caller's agent; it ends with this object and with this process, also after SIGKILL.
#pragma once
#include <chrono>
#include <cstdint>
#include <glove/base/audit.hpp>
#include <glove/base/error.hpp>
#include <glove/ssh/identity.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/fd.hpp>
#include <memory>
#include <string>

namespace glove::ssh {

// Time for the caller to say yes, where the caller's agent asks (ssh-add -c).
inline constexpr std::chrono::seconds signature_patience{120};

struct agent_options {
    public_key key;
    sys::fd_ref socket;       // of the caller's agent, by `pin_agent`; outlives the service
    std::string program = {}; // glove-ssh-agent; found beside this program when empty
    std::chrono::nanoseconds patience = signature_patience;
};

struct agent_counts {
    std::uint64_t made = 0, failed = 0; // signatures
};

class agent_service {
public:
    // `time` and `log` outlive the service; `run` is the id of the run in the log.
    [[nodiscard]] static auto start(agent_options options, const sys::clock& time, audit::sink& log,
                                    std::string run) -> result<agent_service>;
    agent_service(agent_service&&) noexcept;
    ~agent_service();

    // Waits (10 s) until the process is confined.
    [[nodiscard]] auto await_ready() -> result<>;
    // Hands the process the socket inside. Without it nothing connects.
    void serve(sys::unique_fd listener);
    // Readable when `advance` has something to do.
    [[nodiscard]] auto descriptor() const noexcept -> sys::fd_ref;
    // Never blocks but to append to the log. The process's own unexpected end is told once on
    // stderr; the run goes on without an ssh agent.
    void advance();
    // Ends the process and puts the outcome of what was open on record.
    [[nodiscard]] auto finish() -> result<>;
    [[nodiscard]] auto counts() const noexcept -> agent_counts;

private:
    struct state;
    explicit agent_service(std::unique_ptr<state> made);
    std::unique_ptr<state> state_;
};

} // namespace glove::ssh
