// Whoever has something to tell puts it into the queue and goes on; one thread writes it down. What
// finds no room is counted where it would have stood.
#include <condition_variable>
#include <deque>
#include <glove/control/service_log.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/threads.hpp>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <utility>

namespace glove::control {

// The thread may outlive the log.
struct queued_log::state {
    state(std::unique_ptr<log_sink> sink, log_bounds bounds) : to{std::move(sink)}, most{bounds} {}

    struct entry {
        std::string line;
        std::uint64_t lost_after = 0; // that found no room behind it
    };

    [[nodiscard]] auto now_ms() const -> std::uint64_t { return sys::wall_ms(clock); }
    [[nodiscard]] auto is_mine() const -> bool { return ::getpid() == owner; }
    [[nodiscard]] auto idle() const -> bool { return lines.empty() && !writing; }

    void add(std::string line) {
        {
            const std::lock_guard held{lock};
            if (lines.size() < most.lines) lines.push_back({std::move(line)});
            else if (lines.empty()) ++lost;
            else ++lines.back().lost_after;
        }
        changed.notify_all();
    }

    // Below: the thread.
    [[nodiscard]] auto tells(std::uint64_t count) -> bool {
        const auto text = std::to_string(count) + " lines found no room";
        return to->put(line_of({.name = "log.lost", .text = text}, now_ms()));
    }
    // How many are lost now.
    [[nodiscard]] auto put(const entry& what, std::uint64_t before) -> std::uint64_t {
        if (before > 0 && !tells(before)) return before + 1 + what.lost_after;
        return (to->put(what.line) ? 0U : 1U) + what.lost_after;
    }
    void run() {
        std::unique_lock held{lock};
        for (;;) {
            changed.wait(held, [&] { return over || !lines.empty(); });
            if (lines.empty()) break;
            const auto one = std::move(lines.front());
            lines.pop_front();
            writing = true;
            const bool last = lines.empty();
            auto count = std::exchange(lost, 0);
            held.unlock();
            count = put(one, count);
            if (last && count > 0 && tells(count)) count = 0;
            held.lock();
            lost += count;
            writing = false;
            changed.notify_all();
        }
        ended = true;
        changed.notify_all();
    }

    const std::unique_ptr<log_sink> to;
    const log_bounds most;
    const sys::system_clock clock;
    const ::pid_t owner = ::getpid();

    std::mutex lock;
    std::condition_variable changed;
    std::deque<entry> lines;
    std::uint64_t lost = 0; // and nobody was told yet
    bool writing = false;
    bool over = false;
    bool ended = false;
    std::thread thread; // none: lines are written by those who have them
};

queued_log::queued_log(std::unique_ptr<log_sink> to, log_bounds most)
    : state_{std::make_shared<state>(std::move(to), most)} {
    if (auto made = sys::start_thread([kept = state_] { kept->run(); }, "log.thread"))
        state_->thread = *std::move(made);
}

queued_log::~queued_log() {
    if (!state_->is_mine()) { // the thread and the lock are another process's
        (void)new std::shared_ptr<state>{std::move(state_)};
        return;
    }
    if (!state_->thread.joinable()) return;
    std::unique_lock held{state_->lock};
    state_->over = true;
    state_->changed.notify_all();
    const bool ended =
        state_->changed.wait_for(held, state_->most.at_the_end, [&] { return state_->ended; });
    held.unlock();
    if (ended) state_->thread.join();
    else state_->thread.detach();
}

void queued_log::write(const log_event& event) {
    auto line = line_of(event, state_->now_ms());
    if (state_->is_mine() && state_->thread.joinable()) return state_->add(std::move(line));
    (void)state_->to->put(line);
}

auto queued_log::flush() -> bool {
    if (!state_->is_mine() || !state_->thread.joinable()) return true;
    std::unique_lock held{state_->lock};
    return state_->changed.wait_for(held, state_->most.at_the_end, [&] { return state_->idle(); });
}

} // namespace glove::control
