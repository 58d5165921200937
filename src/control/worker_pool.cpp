// A fixed number of threads, which are joined at the end; never more requests than connections.
#include "control/worker_pool.hpp"
#include <utility>

namespace glove::control {

worker_pool::worker_pool(std::size_t workers, std::size_t most_waiting,
                         std::function<void(exchange&)> work, std::function<void()> wake)
    : most_{most_waiting}, work_{std::move(work)}, wake_{std::move(wake)} {
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

void worker_pool::run() {
    for (;;) {
        job mine;
        {
            std::unique_lock held{lock_};
            changed_.wait(held, [this] { return over_ || !waiting_.empty(); });
            if (over_) return;
            mine = std::move(waiting_.front());
            waiting_.pop_front();
        }
        work_(*mine);
        {
            const std::lock_guard held{lock_};
            finished_.push_back(std::move(mine));
        }
        wake_();
    }
}

} // namespace glove::control
