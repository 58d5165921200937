// A fixed number of threads behind a bounded queue. What is put in comes out again, worked on or
// not.
#include "control/worker_pool.hpp"
#include <algorithm>
#include <utility>

namespace glove::control {

worker_pool::worker_pool(std::size_t workers, std::size_t most_waiting, calls by,
                         const sys::clock& clock)
    : most_{most_waiting}, most_writing_{std::max<std::size_t>(workers, 2) - 1}, by_{std::move(by)},
      clock_{clock} {
    threads_.reserve(workers);
    for (std::size_t i = 0; i < workers; ++i) threads_.emplace_back([this] { run(); });
}

worker_pool::~worker_pool() {
    {
        const std::lock_guard held{lock_};
        over_ = true;
    }
    changed_.notify_all();
    for (auto& thread : threads_) thread.join();
}

auto worker_pool::put(job& what) -> bool {
    {
        const std::lock_guard held{lock_};
        if (waiting_.size() >= most_) return false;
        waiting_.push_back(std::move(what));
    }
    changed_.notify_one();
    return true;
}

auto worker_pool::finished() -> std::vector<job> {
    const std::lock_guard held{lock_};
    return std::exchange(finished_, {});
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
    if (writing_ < most_writing_ && !aside_.empty()) {
        task out{.what = std::move(aside_.front().what), .writes = true};
        aside_.pop_front();
        ++writing_;
        return out;
    }
    if (waiting_.empty()) return std::nullopt;
    task out{.what = std::move(waiting_.front()), .is_new = true};
    waiting_.pop_front();
    return out;
}

void worker_pool::wait(std::unique_lock<std::mutex>& held) {
    if (aside_.empty()) return changed_.wait(held);
    const auto next = std::ranges::min_element(aside_, {}, &late_job::until)->until;
    // A clock that is no real one is looked at now and then.
    changed_.wait_for(
        held, std::clamp<time>(next - clock_.monotonic(), time{0}, std::chrono::seconds{10}));
}

auto worker_pool::take(std::unique_lock<std::mutex>& held) -> std::optional<task> {
    for (;;) {
        if (over_) return std::nullopt;
        if (auto found = choose()) return found;
        wait(held);
    }
}

auto worker_pool::admit(task& mine, const glance& seen) -> bool {
    if (!seen.writes) return true;
    if (writing_ < most_writing_) {
        ++writing_;
        mine.writes = true;
        return true;
    }
    if (aside_.size() < most_ / 2) {
        aside_.push_back({std::move(mine.what), seen.until});
        changed_.notify_one(); // somebody wakes when it is late
    }
    return false;
}

void worker_pool::run() {
    std::unique_lock held{lock_};
    while (auto mine = take(held)) {
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
        finished_.push_back(std::move(mine->what));
        held.unlock();
        by_.wake();
        held.lock();
    }
}

} // namespace glove::control
