// Servers: their processes and pipes.
#include "kernel/mediator_process/service.hpp"
#include <algorithm>
#include <cstring>
#include <glove/base/text.hpp>
#include <glove/sys/standard_error.hpp>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace glove::kernel {

namespace {

using namespace std::chrono_literals;

constexpr auto patience = 1s; // for each step of an end
constexpr int reads_at_end = 128;

} // namespace

void service::to_upstream(std::size_t to, std::string message) {
    auto& server = servers_[to];
    if (!server.process) return;
    memory_ += message.size() + 1;
    server.queue.push(std::move(message));
    queued_for_server(to);
}

void service::to_upstream(std::size_t to, std::string message, std::uint64_t call) {
    auto& server = servers_[to];
    if (!server.process) return;
    memory_ += message.size() + 1;
    server.queue.push(std::move(message), call);
    queued_for_server(to);
}

void service::queued_for_server(std::size_t which) {
    if (!std::exchange(servers_[which].queued, true))
        servers_to_flush_.push_back(static_cast<std::uint32_t>(which));
}

auto service::take_back(std::size_t from, std::uint64_t call) -> bool {
    return servers_[from].queue.take_back(call);
}

auto service::waiting_for_upstream(std::size_t which) const -> std::size_t {
    return servers_[which].queue.bytes();
}

void service::start_upstream(std::size_t which) {
    actions_.push_back({action::what::start_upstream, which});
}

void service::stop_upstream(std::size_t which) {
    actions_.push_back({action::what::stop_upstream, which});
}

void service::launch(std::size_t which) {
    if (ending_) return;
    auto& server = servers_[which];
    auto started = mcp::upstream_process::start(wishes_[which], ::environ);
    if (!started) {
        std::string_view detail{started.error().detail};
        // Who it is about is said by whoever says this.
        const auto about = "the server " + in_quotes(wishes_[which].name) + ": ";
        if (detail.starts_with(about)) detail.remove_prefix(about.size());
        std::string words{detail};
        if (started.error().os != 0) words.append(": ").append(std::strerror(started.error().os));
        return gate_->upstream_ended(which, words, {});
    }
    renew(server);
    const auto generation = server.generation;
    server.process.emplace(*std::move(started));
    server.reader.use(spare_);
    const auto& process = *server.process;
    if (!watch(process.output(), source::server_output, which, generation, EPOLLIN) ||
        !watch(process.errors(), source::server_errors, which, generation, EPOLLIN) ||
        !watch(process.ended(), source::server_end, which, generation, EPOLLIN) ||
        !watch(process.input(), source::server_input, which, generation, 0)) {
        server.process.reset();
        return gate_->upstream_ended(which, "cannot be waited for", {});
    }
    gate_->upstream_started(which);
}

void service::server_event(source kind, std::size_t which) {
    auto& server = servers_[which];
    switch (kind) {
    case source::server_output:
        if (server.reading && !server.silent) read_server(which);
        return;
    case source::server_errors: return hear_errors(which);
    case source::server_end: return advance_server(which);
    default: break;
    }
    queued_for_server(which);
    // An error with nothing to write: it does not read any more, and would tell so for ever.
    if (server.queue.bytes() == 0) end_server(which);
}

void service::read_server(std::size_t which) {
    auto& server = servers_[which];
    const auto state = server.reader.fill(server.process->output());
    while (const auto line = server.reader.next()) gate_->upstream_line(which, *line);
    if (server.reader.held_bytes() >= long_message)
        widen(server.process->output(), server.wide_output);
    if (state == mcp::line_reader::state::open) return;
    server.silent = true;
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, server.process->output().get(), nullptr);
    end_server(which);
}

// What it wrote before it ended.
void service::read_rest(std::size_t which) {
    auto& server = servers_[which];
    for (int i = 0; i < reads_at_end && !server.silent; ++i) {
        ::pollfd waits{server.process->output().get(), POLLIN, 0};
        if (::poll(&waits, 1, 0) != 1) break;
        read_server(which);
    }
    hear_errors(which);
}

void service::advance_server(std::size_t which) {
    auto& server = servers_[which];
    if (!server.process) return;
    ::pollfd over{server.process->ended().get(), POLLIN, 0};
    if (::poll(&over, 1, 0) == 1) read_rest(which);
    if (!server.process->advance(now_)) return;
    const auto how = server.process->ending();
    const auto tail = server.process->error_tail();
    renew(server);
    gate_->upstream_ended(which, how, tail);
}

void service::end_server(std::size_t which) {
    auto& server = servers_[which];
    if (!server.process) return;
    server.queue = {};
    server.process->begin_end(now_, patience);
}

void service::flush_server(std::size_t which) {
    auto& server = servers_[which];
    if (!server.process) return;
    // Its stdin is closed when it is being ended.
    if (server.process->deadline()) {
        server.queue = {};
        return;
    }
    const auto before = server.queue.bytes();
    const auto state = server.queue.flush(server.process->input());
    if (state == mcp::line_queue::state::broken) return end_server(which);
    const bool blocked = state == mcp::line_queue::state::waiting;
    if (server.queue.bytes() != before || !server.blocked) server.moved = now_;
    if (blocked && server.queue.bytes() >= long_message)
        widen(server.process->input(), server.wide_input);
    if (blocked == server.blocked) return;
    server.blocked = blocked;
    rewatch(server.process->input(), source::server_input, which, server.generation,
            blocked ? EPOLLOUT : 0U);
}

void service::hear_errors(std::size_t which) {
    auto& server = servers_[which];
    const auto pass_on = [&](std::string_view line) {
        sys::say_line(wishes_[which].name + ": " + printable(line));
    };
    const bool more = options_.passes_errors_on ? server.process->drain_errors(pass_on)
                                                : server.process->drain_errors({});
    if (!more)
        (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, server.process->errors().get(), nullptr);
}

// What waits for such a one is nobody's for ever, and calls that wait for it never run.
void service::end_those_that_do_not_read() {
    for (std::size_t i = 0; i < servers_.size(); ++i) {
        auto& server = servers_[i];
        if (!server.process || server.process->deadline() || !server.blocked ||
            server.queue.bytes() == 0 || now_ - server.moved < longest_standstill_of_server)
            continue;
        note("the server " + wishes_[i].name + " has read nothing of what waits for it for " +
             std::to_string(longest_standstill_of_server.count()) + " s and is ended");
        end_server(i);
    }
}

// A server is not read from while an agent with calls at it is too far behind.
void service::pause_servers() {
    paused_ = 0;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
        auto& server = servers_[i];
        if (!server.process || server.silent) continue;
        bool reading = true;
        for (std::size_t j = 0; j < agents_end_ && !ending_; ++j)
            reading = reading && (!agents_[j].open || !agents_[j].behind ||
                                  !gate_->has_calls(i, static_cast<session_id>(j)));
        if (!reading) ++paused_; // they are looked at again, whoever goes meanwhile
        if (reading == server.reading) continue;
        server.reading = reading;
        if (reading)
            (void)watch(server.process->output(), source::server_output, i, server.generation,
                        EPOLLIN);
        else
            (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, server.process->output().get(), nullptr);
    }
}

} // namespace glove::kernel
