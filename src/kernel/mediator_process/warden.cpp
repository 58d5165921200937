// The kernel hands the orphans of a process to its nearest subreaper, so whoever is one can end all
// that is left by ending its own children again and again.
#include "kernel/mediator_process/warden.hpp"
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <ctime>
#include <glove/sys/clock.hpp>
#include <glove/sys/files.hpp>
#include <new>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace glove::kernel {

namespace {

using std::chrono::seconds;

constexpr seconds patience{5};
constexpr int failed = 125;
constexpr std::size_t longest_list = 1UL << 20;

[[nodiscard]] auto watched_signals() -> ::sigset_t {
    ::sigset_t out;
    ::sigemptyset(&out);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) ::sigaddset(&out, number);
    return out;
}

// Of this process, which has one thread. They are not reaped, so their numbers are theirs.
[[nodiscard]] auto children() -> std::vector<::pid_t> {
    std::vector<::pid_t> out;
    const auto self = std::to_string(::getpid());
    const auto text = sys::read_file("/proc/" + self + "/task/" + self + "/children", longest_list);
    if (!text) return out;
    const auto* at = text->data();
    const auto* const end = at + text->size();
    while (at < end) {
        ::pid_t number = 0;
        const auto [next, problem] = std::from_chars(at, end, number);
        if (problem == std::errc{} && number > 0) out.push_back(number);
        at = std::find(next, end, ' ');
        if (at < end) ++at;
    }
    return out;
}

void pause_a_moment() {
    constexpr ::timespec moment{0, 2'000'000};
    (void)::nanosleep(&moment, nullptr);
}

[[nodiscard]] auto status_of(const ::siginfo_t& end) -> int {
    return end.si_code == CLD_EXITED ? end.si_status : 128 + end.si_status;
}

// What is typed at a terminal reaches the worker by itself.
[[nodiscard]] auto pass_signals_until_end(::pid_t worker) -> int {
    const auto watched = watched_signals();
    for (;;) {
        ::siginfo_t end{};
        if (::waitid(P_PID, static_cast<::id_t>(worker), &end, WEXITED | WNOHANG) == 0 &&
            end.si_pid == worker)
            return status_of(end);
        ::siginfo_t news{};
        const int number = ::sigwaitinfo(&watched, &news);
        if (number > 0 && number != SIGCHLD && news.si_code != SI_KERNEL)
            (void)::kill(worker, number); // not reaped yet
    }
}

[[noreturn]] void be_worker(::pid_t warden, const std::function<int()>& work) {
    int status = failed;
    if (::prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) == 0 &&
        ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 && ::getppid() == warden)
        status = work();
    kill_descendants();
    ::_exit(status);
}

// What the wardens know of the one that works: one page, which they all share.
class worker_note {
public:
    [[nodiscard]] static auto make() -> result<worker_note> {
        void* const page = ::mmap(nullptr, sizeof(number), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) return fail_os("mcp.warden");
        return worker_note{::new (page) number{0}};
    }
    void write(::pid_t worker) const noexcept { worker_->store(worker); }
    [[nodiscard]] auto read() const noexcept -> ::pid_t { return worker_->load(); }

private:
    using number = std::atomic<::pid_t>;
    static_assert(number::is_always_lock_free);
    explicit worker_note(number* worker) : worker_{worker} {}
    number* worker_; // as long as the process
};

// The worker, when its own warden has died. It ends its servers itself, and is told to hurry: would
// it be killed first, then whoever kills this process now would leave the servers to nobody.
void await_heir(::pid_t heir) {
    const sys::system_clock time;
    const auto deadline = time.monotonic() + patience;
    ::siginfo_t end{};
    while (heir > 0 && time.monotonic() < deadline &&
           ::waitid(P_PID, static_cast<::id_t>(heir), &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           end.si_pid == 0) {
        (void)::kill(heir, SIGTERM); // this process's child, and not reaped
        pause_a_moment();
    }
}

// Makes this process the warden of one that works.
[[nodiscard]] auto watch(bool dies_with_parent, const worker_note& note,
                         const std::function<int()>& work) -> result<int> {
    const auto parent = ::getppid();
    const auto watched = watched_signals();
    if (::sigprocmask(SIG_BLOCK, &watched, nullptr) != 0 ||
        ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return fail_os("mcp.warden");
    if (dies_with_parent &&
        (::prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) != 0 || ::getppid() != parent))
        return fail(errc::wrong_state, "mcp.warden", "whoever started it has gone");
    const auto self = ::getpid();
    const auto worker = ::fork();
    if (worker < 0) return fail_os("mcp.warden");
    if (worker == 0) be_worker(self, work); // not dumpable, and with the signals blocked, too
    const int status = pass_signals_until_end(worker);
    if (note.read() == worker) note.write(0);
    await_heir(note.read());
    kill_descendants();
    return status;
}

} // namespace

void kill_descendants() {
    const sys::system_clock time;
    const auto deadline = time.monotonic() + patience;
    for (auto left = children(); !left.empty() && time.monotonic() < deadline; left = children()) {
        for (const auto each : left) (void)::kill(each, SIGKILL);
        // Those of one that dies become this process's own.
        bool reaped = false;
        while (::waitpid(-1, nullptr, WNOHANG) > 0) reaped = true;
        if (reaped) continue;
        pause_a_moment();
    }
}

auto under_warden(bool dies_with_parent, const std::function<int()>& work) -> result<int> {
    GLOVE_TRY(const auto note, worker_note::make());
    const auto noted = [&] {
        note.write(::getpid());
        return work();
    };
    return watch(dies_with_parent, note, [&] {
        const auto status = watch(false, note, noted); // of its own warden's death it hears already
        return status ? *status : failed;
    });
}

} // namespace glove::kernel
