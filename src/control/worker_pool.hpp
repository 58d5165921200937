// A fixed number of threads that answer requests. Requests come in and go out as connections, so
// there are never more of them than connections.
//
// Guarantees: of several workers, one is never in work that may wait for a disk, however long the
// disk takes; of several that may do so, one is never in work that takes long by itself, so that a
// session can be stopped while others are made ready; work that finds no worker for that reason is
// set aside, in its order, and is taken up again at the moment at which it is late, so that it can
// be refused. Of those that are idle, the one that worked last is called: its memory is still near.
#pragma once
#include "control/exchange.hpp"
#include <condition_variable>
#include <deque>
#include <functional>
#include <glove/sys/clock.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace glove::control {

class worker_pool {
public:
    using job = std::unique_ptr<exchange>;
    using time = exchange::time;
    // All are called by workers.
    struct calls {
        std::function<glance(exchange&)> look;
        std::function<void(exchange&)> answer;
        std::function<void(exchange&)> give_up; // too many are set aside
        std::function<void()> wake;             // something is finished
    };
    worker_pool(std::size_t workers, std::size_t most_waiting, calls by, const sys::clock& clock);
    worker_pool(const worker_pool&) = delete;
    auto operator=(const worker_pool&) -> worker_pool& = delete;
    ~worker_pool(); // what waits is dropped, what runs is waited for

    // False when as many wait as may; the job is still the caller's then.
    [[nodiscard]] auto put(job& what) -> bool;
    [[nodiscard]] auto finished() -> std::vector<job>;

private:
    struct late_job {
        job what;
        time until;
        bool slow;
    };
    struct task {
        job what;
        bool is_new = false; // nobody has looked at it
        bool writes = false; // it has its place among those that write
        bool slow = false;   // and among those that take long
    };
    // Where one worker waits.
    struct seat {
        std::condition_variable changed;
        bool called = false;
    };
    void run();
    // `lock_` is held by all of these.
    [[nodiscard]] auto take(seat& mine, std::unique_lock<std::mutex>& held) -> std::optional<task>;
    [[nodiscard]] auto choose() -> std::optional<task>;
    void wait(seat& mine, std::unique_lock<std::mutex>& held);
    // Null: nobody is idle.
    [[nodiscard]] auto called() -> seat*;
    void call_one();
    [[nodiscard]] auto has_place(bool slow) const -> bool;
    void give_place(task& mine, bool slow);
    [[nodiscard]] auto may_wait(bool slow) const -> bool;
    // False: it is not to be answered now. Null then, when it is set aside.
    [[nodiscard]] auto admit(task& mine, const glance& seen) -> bool;

    const std::size_t most_;
    const std::size_t most_writing_, most_slow_;
    const calls by_;
    const sys::clock& clock_;
    std::mutex lock_;
    std::vector<seat*> idle_; // in the order in which they came
    std::deque<job> waiting_;
    std::deque<late_job> aside_; // they write, and wait for a place
    std::size_t writing_ = 0, slow_ = 0;
    std::vector<job> finished_;
    bool over_ = false;
    std::vector<std::thread> threads_; // last: they use all of the above
};

} // namespace glove::control
