// The helper's own memory holds nothing of this process: it is executed, not copied.
#include "container/image/image_process.hpp"
#include "container/image/image_protocol.hpp"
#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/sys/spawn.hpp>
#include <glove/sys/threads.hpp>
#include <poll.h>
#include <sys/wait.h>

namespace glove::container {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::size_t most_words = 2048;

} // namespace

auto make_pipe(step_name step) -> result<pipe_pair> {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return fail_os(step, errno, "pipe");
    return pipe_pair{.read = sys::unique_fd{ends[0]}, .write = sys::unique_fd{ends[1]}};
}

auto words_from(sys::fd_ref pipe) -> std::string {
    char text[most_words];
    std::size_t size = 0;
    for (ssize_t got = 0; size < sizeof text; size += static_cast<std::size_t>(got)) {
        got = ::read(pipe.get(), text + size, sizeof text - size);
        if (got <= 0) break;
    }
    std::replace(text, text + size, '\n', ' ');
    return printable({text, size});
}

auto await_end(sys::child_process& process, const sys::clock& time, nanoseconds deadline,
               step_name step, const std::stop_token& stop) -> result<int> {
    for (;;) {
        GLOVE_TRY(const auto ended, process.has_ended());
        if (ended) break;
        const auto left = std::chrono::ceil<milliseconds>(deadline - time.monotonic());
        const bool stopped = stop.stop_requested();
        if (stopped || left.count() <= 0) {
            (void)process.signal(SIGKILL);
            (void)process.wait();
            if (stopped) return fail(errc::wrong_state, step, "it was told to stop");
            return fail(errc::timed_out, step, "it has not ended in time");
        }
        ::pollfd end{process.descriptor().get(), POLLIN, 0};
        // By a clock that is not the machine's, or when it may be stopped, another look is due
        // soon.
        (void)::poll(&end, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1000)));
    }
    GLOVE_TRY(const auto how, process.wait());
    return how.si_code == CLD_EXITED ? how.si_status : 128 + how.si_status;
}

auto image_process::start(const image_job& what) -> result<image_process> {
    GLOVE_TRY(auto life, make_pipe("files.program"));
    GLOVE_TRY(auto words, make_pipe("files.program"));
    const sys::unique_fd nothing{::open("/dev/null", O_RDWR | O_CLOEXEC)};
    if (!nothing) return fail_os("files.program", errno, "/dev/null");
    sys::spawn_request request{.program = what.helper,
                               .arguments = {"glove-image", std::string{what.name}, what.tool},
                               .environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"},
                               .descriptors = {{0, nothing},
                                               {1, nothing},
                                               {image_words, words.write},
                                               {image_file, what.image},
                                               {image_life, life.read}},
                               .own_session = true};
    if (what.fuse) request.descriptors.push_back({image_fuse, *what.fuse});
    if (what.entry) request.descriptors.push_back({image_entry, *what.entry});
    auto started = sys::spawn(request);
    if (!started)
        return std::unexpected(error{started.error().code, "files.program", started.error().os,
                                     what.helper + ": " + started.error().detail,
                                     "install glove-image beside gloved or in libexec/glove"});
    return image_process{*std::move(started), std::move(life.write), std::move(words.read)};
}

void image_process::kill() const { (void)process_.signal(SIGKILL); }

auto image_process::wait(const sys::clock& time, nanoseconds deadline, const std::stop_token& stop)
    -> result<int> {
    return await_end(process_, time, deadline, "files.program", stop);
}

auto watchdog::over(const image_process& process, nanoseconds patience)
    -> result<std::unique_ptr<watchdog>> {
    std::unique_ptr<watchdog> out{new watchdog};
    GLOVE_TRY(out->thread_,
              sys::start_thread(
                  [&self = *out, &process, patience] {
                      std::unique_lock held{self.lock_};
                      if (!self.changed_.wait_for(held, patience, [&] { return self.over_; }))
                          process.kill();
                  },
                  "files.thread"));
    return out;
}

watchdog::~watchdog() {
    {
        const std::scoped_lock held{lock_};
        over_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

} // namespace glove::container
