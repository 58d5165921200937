// Agents: their connections, read with measure and written without waiting.
#include "kernel/mediator_process/service.hpp"
#include <algorithm>
#include <glove/mcp/message.hpp>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace glove::kernel {

namespace {

using namespace std::chrono_literals;

constexpr auto longest_standstill = 30s;
constexpr int connections_at_once = 16;

} // namespace

void service::to_agent(session_id to, std::string message) {
    auto& agent = agents_[to];
    if (!agent.open) return;
    agent.queue.push(std::move(message));
    if (!std::exchange(agent.queued, true)) agents_to_flush_.push_back(to);
}

void service::close_agent(session_id which) {
    actions_.push_back({action::what::close_agent, which});
}

auto service::waiting_for_agent(session_id which) const -> std::size_t {
    return agents_[which].queue.bytes();
}

auto service::open_standard_agent() -> result<> {
    auto& agent = agents_[0];
    GLOVE_TRY(agent.input, own_stream(0));
    GLOVE_TRY(agent.output, own_stream(1));
    if (const auto made = gate_->open_session(); made != session_id{0})
        return fail(errc::wrong_state, "mcp.stream", "the first session is not free");
    agent.open = true;
    agents_end_ = 1;
    had_agent_ = true;
    if (!watch(agent.input, source::agent_input, 0, 0, EPOLLIN)) {
        if (errno != EPERM) return fail_os("mcp.events", errno, "standard input");
        agent.always_ready = true; // a file
    }
    // Only to hear that nobody reads any more.
    if (!watch(agent.output, source::agent_output, 0, 0, 0) && errno != EPERM)
        return fail_os("mcp.events", errno, "standard output");
    return {};
}

void service::accept_agents() {
    for (int i = 0; i < connections_at_once; ++i) {
        sys::unique_fd came{
            ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
        if (!came) return;
        const auto made = gate_->open_session();
        if (!made || agents_[*made].open) {
            const auto words = mcp::failure_text("null", mcp::code::too_many_calls,
                                                 "there are " + std::to_string(most_sessions) +
                                                     " connections already") +
                               "\n";
            (void)::send(came.get(), words.data(), words.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
            if (made) gate_->agent_gone(*made);
            continue;
        }
        auto& agent = agents_[*made];
        renew(agent);
        agent.input = std::move(came);
        agent.open = true;
        agents_end_ = std::max<std::size_t>(agents_end_, *made + 1);
        had_agent_ = true;
        if (!watch(agent.input, source::agent_input, *made, agent.generation, EPOLLIN | EPOLLRDHUP))
            agent_gone(*made);
    }
}

void service::agent_event(source kind, std::size_t which, std::uint32_t events) {
    auto& agent = agents_[which];
    if ((events & EPOLLOUT) != 0 && !std::exchange(agent.queued, true))
        agents_to_flush_.push_back(static_cast<std::uint32_t>(which));
    if (kind == source::agent_output) {
        if ((events & (EPOLLERR | EPOLLHUP)) != 0) agent_gone(which);
        return;
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) == 0) return;
    if (agent.reading) read_agent(which);
    // Nobody is left to take an answer.
    if (agent.is_socket() && (events & (EPOLLHUP | EPOLLERR)) != 0 && agent.open &&
        (agent.ended || agent.closing || ending_ || !agent.reading))
        agent_gone(which);
}

void service::read_agent(std::size_t which) {
    auto& agent = agents_[which];
    if (!agent.open || agent.ended || agent.closing || !agent.reading || ending_) return;
    const auto state = agent.reader.fill(agent.input);
    while (const auto line = agent.reader.next())
        gate_->agent_line(static_cast<session_id>(which), *line);
    if (state == mcp::line_reader::state::open) return;
    agent.ended = true;
    if (state == mcp::line_reader::state::broken) return agent_gone(which);
    watch_agent(which);
}

void service::agent_gone(std::size_t which) {
    if (!ending_) gate_->agent_gone(static_cast<session_id>(which));
    drop_agent(which);
}

void service::drop_agent(std::size_t which) {
    renew(agents_[which]);
    while (agents_end_ > 0 && !agents_[agents_end_ - 1].open) --agents_end_;
}

void service::flush_agent(std::size_t which) {
    auto& agent = agents_[which];
    if (!agent.open) return;
    const auto before = agent.queue.bytes();
    const auto state = agent.queue.flush(agent.out());
    if (state == mcp::line_queue::state::broken)
        return broken_agents_.push_back(static_cast<std::uint32_t>(which));
    const bool blocked = state == mcp::line_queue::state::waiting;
    if (agent.queue.bytes() != before || !agent.blocked) agent.moved = now_;
    if (blocked == agent.blocked) return;
    agent.blocked = blocked;
    watch_agent(which);
}

// Which events are wanted of its descriptors.
void service::watch_agent(std::size_t which) {
    auto& agent = agents_[which];
    if (!agent.open) return;
    const bool wanted = agent.reading && !agent.ended && !agent.closing && !ending_;
    const std::uint32_t out = agent.blocked ? EPOLLOUT : 0U;
    if (agent.is_socket())
        return rewatch(agent.input, source::agent_input, which, agent.generation,
                       (wanted ? EPOLLIN : 0U) | out);
    rewatch(agent.output, source::agent_output, which, agent.generation, out);
    if (agent.always_ready || wanted == agent.watched) return;
    agent.watched = wanted;
    // That a pipe has ended is told for ever, whatever is asked for.
    if (!wanted) (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, agent.input.get(), nullptr);
    else (void)watch(agent.input, source::agent_input, which, agent.generation, EPOLLIN);
}

// Connections that are over, and those that are too far behind.
void service::look_after_agents() {
    far_behind_ = 0;
    bool any = false;
    for (std::size_t i = 0; i < agents_end_; ++i) {
        auto& agent = agents_[i];
        if (!agent.open) continue;
        const auto waiting = agent.queue.bytes();
        const bool idle =
            waiting == 0 && (ending_ || gate_->open_requests(static_cast<session_id>(i)) == 0);
        if ((agent.closing && waiting == 0) || (agent.ended && idle) ||
            (waiting > most_waiting_bytes && now_ - agent.moved >= longest_standstill)) {
            agent_gone(i);
            continue;
        }
        any = true;
        if (ending_) continue;
        const bool reading =
            waiting <= (agent.reading ? most_waiting_bytes : most_waiting_bytes / 2);
        if (waiting > most_waiting_bytes / 2) ++far_behind_;
        if (reading == agent.reading) continue;
        agent.reading = reading;
        if (reading) ++far_behind_; // so that the servers are looked at once more
        watch_agent(i);
    }
    if (!any && had_agent_ && options_.what == service_options::kind::serve && !ending_)
        begin_end("the agent has gone");
}

} // namespace glove::kernel
