// A fixed number of threads that answer requests. Requests come in and go out as connections, so
// there are never more of them than connections.
#pragma once
#include "control/exchange.hpp"
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace glove::control {

class worker_pool {
public:
    using job = std::unique_ptr<exchange>;
    // `work` answers, and `wake` tells that something is finished; both are called by workers.
    worker_pool(std::size_t workers, std::size_t most_waiting, std::function<void(exchange&)> work,
                std::function<void()> wake);
    worker_pool(const worker_pool&) = delete;
    auto operator=(const worker_pool&) -> worker_pool& = delete;
    ~worker_pool(); // what waits is dropped, what runs is waited for

    // False when as many wait as may; the job is still the caller's then.
    [[nodiscard]] auto put(job& what) -> bool;
    [[nodiscard]] auto finished() -> std::vector<job>;

private:
    void run();

    const std::size_t most_;
    const std::function<void(exchange&)> work_;
    const std::function<void()> wake_;
    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<job> waiting_;
    std::vector<job> finished_;
    bool over_ = false;
    std::vector<std::thread> threads_; // last: they use all of the above
};

} // namespace glove::control
