// The loop around the gateway: one thread, one epoll, a turn at a time.
//
// Guarantees: in a turn each peer is read at most once; nothing leaves before the records of the
// turn are where they belong, and when they cannot be, nothing leaves at all and the run ends.
// Nothing here waits for a peer: what is not taken is kept, bounded, and a peer that is far behind
// is not read from until it has caught up. While nothing happens, nothing runs.
#pragma once
#include "kernel/mediator_process/control.hpp"
#include "kernel/mediator_process/peers.hpp"
#include <array>
#include <functional>
#include <glove/kernel/gateway.hpp>
#include <glove/sys/clock.hpp>
#include <memory>
#include <vector>

struct epoll_event;

namespace glove::kernel {

struct service_options {
    enum class kind : std::uint8_t {
        serve,  // one agent on the standard streams
        bridge, // agents connect
        look,   // until the servers are up
    };
    kind what = kind::serve;
    bool passes_errors_on = false; // what servers write to stderr
    std::string log = {};          // how the audit log is called
};

// What is longer than a pipe holds goes through it in many pieces.
inline constexpr std::size_t long_message = 32UL << 10;
// A server that takes nothing of its queue for so long is ended.
inline constexpr std::chrono::seconds longest_standstill_of_server{60};

class service final : public outlet {
public:
    service(service_options options, const sys::clock& time, control channel);
    service(const service&) = delete;
    auto operator=(const service&) -> service& = delete;
    ~service() override;

    // Before `run`; the gateway has this for its outlet.
    void attach(gateway& gate, const std::vector<mcp::upstream_wish>& upstreams);
    // The status to end with: 0, 1 when a record could not be kept, 125 when it could not begin.
    [[nodiscard]] auto run() -> int;
    // Why it did not begin, or gave up.
    [[nodiscard]] auto problem() const -> const std::optional<error>& { return problem_; }
    [[nodiscard]] auto was_ready() const -> bool { return ready_; }

    void to_agent(session_id to, std::string message) override;
    void to_agent(session_id to, std::string head, mcp::shared_text body,
                  std::string tail) override;
    void to_upstream(std::size_t to, std::string message) override;
    void to_upstream(std::size_t to, std::string message, std::uint64_t call) override;
    [[nodiscard]] auto take_back(std::size_t from, std::uint64_t call) -> bool override;
    void close_agent(session_id which) override;
    void start_upstream(std::size_t which) override;
    void stop_upstream(std::size_t which) override;
    [[nodiscard]] auto waiting_for_agent(session_id which) const -> std::size_t override;
    [[nodiscard]] auto waiting_for_upstream(std::size_t which) const -> std::size_t override;
    void note(std::string words) override;

private:
    enum class source : std::uint8_t {
        signals,
        alarm,
        control,
        listener,
        agent_input,
        agent_output,
        server_input,
        server_output,
        server_errors,
        server_end,
    };
    struct action {
        enum class what : std::uint8_t { close_agent, start_upstream, stop_upstream } kind;
        std::size_t which;
    };

    // service.cpp
    [[nodiscard]] auto open() -> result<>;
    void turn();
    void handle(const ::epoll_event& event);
    void finish_turn();
    void settle_turn();
    void flush_all();
    [[nodiscard]] auto has_more() const -> bool;
    void carry_out(const action& wanted);
    void take_signals();
    void take_orders();
    void reap_strangers();
    void begin_end(std::string_view why);
    void give_up(const error& why);
    [[nodiscard]] auto is_done() const -> bool;
    [[nodiscard]] auto next_wake() const -> std::optional<std::chrono::nanoseconds>;
    [[nodiscard]] auto patience_of_turn() -> int;
    void set_alarm(std::chrono::nanoseconds when);
    void take_alarm();
    void own_deadlines();
    void widen(sys::fd_ref pipe, bool& is_wide);
    void look_after_memory();
    void announce();
    [[nodiscard]] auto watch(sys::fd_ref what, source kind, std::size_t index,
                             std::uint32_t generation, std::uint32_t events) -> bool;
    void rewatch(sys::fd_ref what, source kind, std::size_t index, std::uint32_t generation,
                 std::uint32_t events);

    // agents.cpp
    [[nodiscard]] auto open_standard_agent() -> result<>;
    void accept_agents();
    void read_agent(std::size_t which);
    void take_lines(std::size_t which);
    [[nodiscard]] auto may_take(std::size_t which) const -> bool;
    [[nodiscard]] auto has_lines(std::size_t which) const -> bool; // that were held back
    [[nodiscard]] auto memory_of_agent(std::size_t which) const -> std::size_t;
    [[nodiscard]] auto memory_of_server(std::size_t which) const -> std::size_t;
    void make_room();
    void agent_gone(std::size_t which);
    void drop_agent(std::size_t which);
    void flush_agent(std::size_t which);
    void look_after_agents();
    void watch_agent(std::size_t which);
    void agent_event(source kind, std::size_t which, std::uint32_t events);

    // servers.cpp
    void launch(std::size_t which);
    void server_event(source kind, std::size_t which);
    void read_server(std::size_t which);
    void read_rest(std::size_t which);
    void advance_server(std::size_t which);
    void end_server(std::size_t which);
    void flush_server(std::size_t which);
    void hear_errors(std::size_t which);
    void pause_servers();
    void end_those_that_do_not_read();
    void queued_for_server(std::size_t which);

    service_options options_;
    const sys::clock& time_;
    control control_;
    gateway* gate_ = nullptr;
    std::vector<mcp::upstream_wish> wishes_;
    sys::unique_fd epoll_, signals_, alarm_, listener_;
    std::optional<std::chrono::nanoseconds> alarm_at_; // when it rings
    std::array<agent_peer, most_sessions> agents_;
    std::size_t agents_end_ = 0; // beyond the last one that is open
    std::vector<server_peer> servers_;
    std::vector<std::uint32_t> agents_to_flush_, servers_to_flush_, flushing_, broken_agents_;
    std::vector<action> actions_;
    std::vector<std::string> notes_; // before it is ready
    std::shared_ptr<mcp::spare_buffer> spare_ = std::make_shared<mcp::spare_buffer>();
    std::optional<std::chrono::nanoseconds> spare_until_; // it is given back then
    std::optional<error> problem_;
    std::chrono::nanoseconds now_{}, end_by_{};
    std::size_t said_ = 0;
    std::size_t memory_ = 0;  // bytes that wait, of everybody; exact at the end of a turn
    unsigned far_behind_ = 0; // agents whose queue is too long
    unsigned paused_ = 0;     // servers that are not read from for their sake
    bool ready_ = false, ending_ = false, given_up_ = false, had_agent_ = false;
    bool child_ended_ = false;
};

} // namespace glove::kernel
