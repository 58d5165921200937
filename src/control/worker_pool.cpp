// A fixed number of threads behind a bounded queue. What is put in comes out again, worked on or
// not.
#include "control/worker_pool.hpp"
#include <algorithm>
#include <utility>

namespace glove::control {

worker_pool::worker_pool(std::size_t workers, std::size_t most_waiting, calls by,
                         const sys::clock& clock)
    : most_{most_waiting}, most_writing_{std::max<std::size_t>(workers, 2) - 1},
      most_slow_{std::max<std::size_t>(most_writing_, 2) - 1}, by_{std::move(by)}, clock_{clock} {
    threads_.reserve(workers);
    for (std::size_t i = 0; i < workers; ++i) threads_.emplace_back([this] { run(); });
}

worker_pool::~worker_pool() {
    {
        const std::lock_guard held{lock_};
        over_ = true;
        while (!idle_.empty()) call_one();
    }
    for (auto& thread : threads_) thread.join();
}

auto worker_pool::put(job& what) -> bool {
    seat* one = nullptr;
    {
        const std::lock_guard held{lock_};
        if (waiting_.size() >= most_) return false;
        waiting_.push_back(std::move(what));
        one = called();
    }
    if (one != nullptr) one->changed.notify_one(); // it is not kept waiting for the lock
    return true;
}

auto worker_pool::called() -> seat* {
    if (idle_.empty()) return nullptr;
    auto* out = idle_.back();
    idle_.pop_back();
    out->called = true;
    return out;
}

void worker_pool::call_one() {
    if (auto* one = called()) one->changed.notify_one();
}

auto worker_pool::finished() -> std::vector<job> {
    const std::lock_guard held{lock_};
    return std::exchange(finished_, {});
}

auto worker_pool::has_place(bool slow) const -> bool {
    return writing_ < most_writing_ && (!slow || slow_ < most_slow_);
}

void worker_pool::give_place(task& mine, bool slow) {
    mine.writes = true;
    mine.slow = slow;
    ++writing_;
    if (slow) ++slow_;
}

// What takes long never fills the room for what does not.
auto worker_pool::may_wait(bool slow) const -> bool {
    const auto waiting = slow ? std::ranges::count(aside_, true, &late_job::slow)
                              : static_cast<std::ptrdiff_t>(aside_.size());
    return std::cmp_less(waiting, slow ? most_ / 4 : most_ / 2);
}

auto worker_pool::choose() -> std::optional<task> {
    const auto now = clock_.monotonic();
    const auto late =
        std::ranges::find_if(aside_, [&](const auto& one) { return one.until <= now; });
    if (late != aside_.end()) {
        task out{std::move(late->what)};
        aside_.erase(late);
        return out;
    }
    const auto next =
        std::ranges::find_if(aside_, [&](const auto& one) { return has_place(one.slow); });
    if (next != aside_.end()) {
        task out{.what = std::move(next->what)};
        give_place(out, next->slow);
        aside_.erase(next);
        return out;
    }
    if (waiting_.empty()) return std::nullopt;
    task out{.what = std::move(waiting_.front()), .is_new = true};
    waiting_.pop_front();
    return out;
}

void worker_pool::wait(seat& mine, std::unique_lock<std::mutex>& held) {
    mine.called = false;
    idle_.push_back(&mine);
    const auto is_called = [&] { return mine.called; };
    if (aside_.empty()) return mine.changed.wait(held, is_called);
    const auto next = std::ranges::min_element(aside_, {}, &late_job::until)->until;
    // A clock that is no real one is looked at now and then.
    const auto patience =
        std::clamp<time>(next - clock_.monotonic(), time{0}, std::chrono::seconds{10});
    if (!mine.changed.wait_for(held, patience, is_called)) std::erase(idle_, &mine);
}

auto worker_pool::take(seat& mine, std::unique_lock<std::mutex>& held) -> std::optional<task> {
    for (;;) {
        if (over_) return std::nullopt;
        if (auto found = choose()) {
            if (!aside_.empty()) call_one(); // somebody else wakes when that is late
            return found;
        }
        wait(mine, held);
    }
}

auto worker_pool::admit(task& mine, const glance& seen) -> bool {
    if (!seen.writes) return true;
    if (has_place(seen.slow)) {
        give_place(mine, seen.slow);
        return true;
    }
    if (may_wait(seen.slow)) {
        aside_.push_back({std::move(mine.what), seen.until, seen.slow});
        call_one(); // somebody wakes when it is late
    }
    return false;
}

void worker_pool::run() {
    seat here;
    std::unique_lock held{lock_};
    while (auto mine = take(here, held)) {
        bool admitted = true;
        if (mine->is_new) {
            held.unlock();
            const auto seen = by_.look(*mine->what);
            held.lock();
            admitted = admit(*mine, seen);
            if (!mine->what) continue;
        }
        held.unlock();
        (admitted ? by_.answer : by_.give_up)(*mine->what);
        held.lock();
        if (mine->writes) --writing_;
        if (mine->slow) --slow_;
        finished_.push_back(std::move(mine->what));
        held.unlock();
        by_.wake();
        held.lock();
    }
}

} // namespace glove::control
