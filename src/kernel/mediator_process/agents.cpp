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
// What all queues and all that is not taken may have together.
constexpr std::size_t most_memory = 256UL << 20;

} // namespace

void service::to_agent(session_id to, std::string message) {
    auto& agent = agents_[to];
    if (!agent.open) return;
    memory_ += message.size() + 1;
    agent.queue.push(std::move(message));
    if (!std::exchange(agent.queued, true)) agents_to_flush_.push_back(to);
}

void service::to_agent(session_id to, std::string head, mcp::shared_text body, std::string tail) {
    auto& agent = agents_[to];
    if (!agent.open) return;
    const auto before = agent.queue.kept_bytes();
    agent.queue.push(std::move(head), std::move(body), std::move(tail));
    memory_ += agent.queue.kept_bytes() - before;
    if (!std::exchange(agent.queued, true)) agents_to_flush_.push_back(to);
}

void service::close_agent(session_id which) {
    actions_.push_back({action::what::close_agent, which});
}

// When all together have too much, each has as much as one may have.
auto service::waiting_for_agent(session_id which) const -> std::size_t {
    const auto own = agents_[which].queue.bytes();
    return memory_ > most_memory ? std::max(own, most_waiting_bytes) : own;
}

auto service::open_standard_agent() -> result<> {
    auto& agent = agents_[0];
    GLOVE_TRY(agent.input, own_stream(0));
    GLOVE_TRY(agent.output, own_stream(1));
    if (const auto made = gate_->open_session(); made != session_id{0})
        return fail(errc::wrong_state, "mcp.stream", "the first session is not free");
    agent.open = true;
    agent.reader.use(spare_);
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
        agent.reader.use(spare_);
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
    take_lines(which);
    if (agent.reader.held_bytes() >= long_message) widen(agent.input, agent.wide_input);
    if (state == mcp::line_reader::state::open) return;
    agent.ended = true;
    if (state == mcp::line_reader::state::broken) return agent_gone(which);
    watch_agent(which);
}

auto service::may_take(std::size_t which) const -> bool {
    const auto& agent = agents_[which];
    return agent.open && !agent.closing && !ending_ && !agent.behind &&
           waiting_for_agent(static_cast<session_id>(which)) < most_waiting_bytes &&
           gate_->takes_lines(static_cast<session_id>(which));
}

// A short line may bring a long answer, so after each it is looked whether there is room for one
// more. The others stay where they are, and nothing more is read meanwhile.
void service::take_lines(std::size_t which) {
    auto& agent = agents_[which];
    const auto from = static_cast<session_id>(which);
    agent.backlog = false;
    for (;;) {
        if (!may_take(which)) {
            agent.backlog = agent.reader.held_bytes() > 0 || gate_->has_held_lines(from);
            return;
        }
        if (gate_->take_held_line(from)) continue;
        const auto line = agent.reader.next();
        if (!line) return;
        gate_->agent_line(from, *line);
    }
}

auto service::has_lines(std::size_t which) const -> bool {
    return agents_[which].backlog || gate_->has_held_lines(static_cast<session_id>(which));
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
    if (blocked && before >= long_message) widen(agent.out(), agent.wide_output);
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

auto service::memory_of_agent(std::size_t which) const -> std::size_t {
    const auto& agent = agents_[which];
    if (!agent.open) return 0;
    return agent.queue.kept_bytes() + agent.reader.held_bytes() +
           gate_->held_bytes(static_cast<session_id>(which));
}

// Of one that is being ended, nothing more can be given up.
auto service::memory_of_server(std::size_t which) const -> std::size_t {
    const auto& server = servers_[which];
    if (!server.process || server.process->deadline()) return 0;
    return server.queue.bytes() + server.reader.held_bytes();
}

// Whoever has most is given up, until the rest is within the bound.
void service::make_room() {
    while (memory_ > most_memory) {
        std::size_t largest = 0, agent = 0, server = servers_.size();
        for (std::size_t i = 0; i < agents_end_; ++i)
            if (memory_of_agent(i) > largest) largest = memory_of_agent(agent = i);
        for (std::size_t i = 0; i < servers_.size(); ++i)
            if (memory_of_server(i) > largest) largest = memory_of_server(server = i);
        if (largest == 0) return;
        memory_ -= largest;
        const auto words = "more than " + std::to_string(most_memory >> 20) +
                           " MiB wait to be taken, " + std::to_string(largest >> 20) + " of them ";
        if (server != servers_.size()) {
            note(words + "by or of the server " + wishes_[server].name + ", which is ended");
            end_server(server);
        } else {
            note(words + "by or of one agent, whose connection is closed");
            agent_gone(agent);
        }
    }
}

// Connections that are over, and those that are too far behind.
void service::look_after_agents() {
    far_behind_ = 0;
    memory_ = 0;
    bool any = false;
    for (std::size_t i = 0; i < agents_end_; ++i) {
        auto& agent = agents_[i];
        if (!agent.open) continue;
        const auto waiting = agent.queue.bytes();
        const bool idle =
            waiting == 0 &&
            (ending_ || (!agent.backlog && gate_->open_requests(static_cast<session_id>(i)) == 0));
        if ((agent.closing && waiting == 0) || (agent.ended && idle) ||
            (waiting > most_waiting_bytes && now_ - agent.moved >= longest_standstill)) {
            agent_gone(i);
            continue;
        }
        any = true;
        memory_ += memory_of_agent(i);
        if (ending_) continue;
        const bool behind = waiting > (agent.behind ? most_waiting_bytes / 2 : most_waiting_bytes);
        if (waiting > most_waiting_bytes / 2 || (agent.behind && !behind))
            ++far_behind_; // so that the servers are looked at, also once more
        agent.behind = behind;
        const bool reading = !behind && !agent.backlog;
        if (reading == agent.reading) continue;
        agent.reading = reading;
        watch_agent(i);
    }
    for (std::size_t i = 0; i < servers_.size(); ++i) memory_ += memory_of_server(i);
    if (memory_ > most_memory && !ending_) make_room();
    if (!any && had_agent_ && options_.what == service_options::kind::serve && !ending_) {
        control_.say(control_word::left, "");
        begin_end("the agent has gone");
    }
}

} // namespace glove::kernel
