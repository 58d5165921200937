// The mask is inherited, so it is set before the thread is there.
#include <csignal>
#include <glove/sys/threads.hpp>
#include <system_error>

namespace glove::sys {

namespace {

class no_signals {
public:
    no_signals() {
        ::sigset_t all;
        ::sigfillset(&all);
        (void)::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    no_signals(const no_signals&) = delete;
    auto operator=(const no_signals&) -> no_signals& = delete;
    ~no_signals() { (void)::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    ::sigset_t before_{};
};

} // namespace

auto start_thread(std::function<void()> body, step_name step) -> result<std::thread> {
    const no_signals blocked;
    try {
        return std::thread{std::move(body)};
    } catch (const std::system_error& problem) {
        return fail_os(step, problem.code().value(), "the machine has no thread to give");
    }
}

} // namespace glove::sys
