// Guarantees: the launcher keeps no descriptor but its channel, has no thread but one, cannot be
// traced or read, and ends with the service. A keeper is forked by it for one session: it keeps
// nothing of the launcher's channel, makes init, hands over what leads to it, forgets what it was
// given, and waits. It outlives the launcher; init, and so the session, never outlives its keeper,
// nor the service, whose end of init's channel nobody else has.
//
// Neither executes anything, opens a file by a name that somebody gave it, or answers a signal but
// SIGKILL.
#include "container/linux/session_keeper.hpp"
#include "container/linux/launch_message.hpp"
#include "container/linux/launch_parts.hpp"
#include "sys/syscalls.hpp"
#include <array>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <glove/base/numbers.hpp>
#include <glove/base/wipe.hpp>
#include <glove/sys/sockets.hpp>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

namespace glove::container {

namespace {

constexpr step_name keeper_step{"launcher.keeper"};

// --- what the launcher takes away from itself

[[nodiscard]] auto number_at(std::string_view line, unsigned field) -> std::uintptr_t {
    for (; field > 0; --field) {
        const auto space = line.find(' ');
        if (space == std::string_view::npos) return 0;
        line.remove_prefix(space + 1);
    }
    return parse_decimal(line.substr(0, line.find(' ')), UINTPTR_MAX).value_or(0);
}

// Where the kernel shows arguments and environment from.
[[nodiscard]] auto own_arguments() -> argument_area {
    const auto stat = sys::read_file("/proc/self/stat", 4096).value_or("");
    const auto name_end = stat.rfind(") ");
    if (name_end == std::string::npos) return {};
    const auto line = std::string_view{stat}.substr(name_end + 2); // from the third field on
    const auto begin = number_at(line, 48 - 3), end = number_at(line, 51 - 3);
    if (begin == 0 || end <= begin) return {};
    return {.begin = reinterpret_cast<char*>(begin), .size = end - begin};
}

void put_title(const argument_area& area, std::string_view title) noexcept {
    (void)::prctl(PR_SET_NAME, title.data());
    if (area.size <= title.size()) return;
    std::memset(area.begin, 0, area.size);
    title.copy(area.begin, title.size());
}

// Nothing that is typed or sent to a group ends it: only the service does, or SIGKILL.
[[nodiscard]] auto reset_signals(int child_flags) noexcept -> bool {
    struct ::sigaction standard{};
    standard.sa_handler = SIG_DFL;
    for (int number = 1; number < NSIG; ++number)
        if (number != SIGKILL && number != SIGSTOP) (void)::sigaction(number, &standard, nullptr);
    standard.sa_flags = child_flags;
    ::sigset_t all;
    ::sigfillset(&all);
    return ::sigaction(SIGCHLD, &standard, nullptr) == 0 &&
           ::sigprocmask(SIG_SETMASK, &all, nullptr) == 0;
}

[[nodiscard]] auto keep_only(int channel) noexcept -> bool {
    const int moved = ::fcntl(channel, F_DUPFD_CLOEXEC, launcher_channel + 1);
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (moved < 0 || nothing < 0) return false;
    for (int stream = 0; stream < 3; ++stream)
        if (nothing != stream && ::dup2(nothing, stream) < 0) return false;
    // `moved` is above all four, so none of these was it.
    return ::dup3(moved, launcher_channel, O_CLOEXEC) >= 0 &&
           sys::close_range(launcher_channel + 1, ~0U, 0) == 0;
}

[[nodiscard]] auto become_launcher(int channel, ::pid_t service) noexcept -> bool {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != service) return false;
    if (::prctl(PR_SET_DUMPABLE, 0) != 0 || ::setsid() < 0) return false;
    if (!reset_signals(SA_NOCLDWAIT) || !keep_only(channel) || ::chdir("/") != 0) return false;
    ::umask(022); // what the agent gets
    return true;
}

// --- one session

struct given {
    launch_message launch;
    sys::unique_fd bridge, entry;
};

[[nodiscard]] auto broken_off() {
    return fail(errc::corrupt, keeper_step, "what came is no launch");
}

template<class T> [[nodiscard]] auto value_of(std::string_view bytes) -> std::optional<T> {
    T out{};
    if (bytes.size() != sizeof out) return std::nullopt;
    std::memcpy(&out, bytes.data(), sizeof out);
    return out;
}

// One more byte than there should be shows that there is one.
template<class T> [[nodiscard]] auto receive(sys::fd_ref channel, std::vector<sys::unique_fd>& came)
    -> result<T> {
    std::array<char, sizeof(T) + 1> room;
    GLOVE_TRY(auto message, sys::receive_message(channel, room, keeper_step));
    const auto value = value_of<T>(std::string_view{room.data(), message.size});
    if (!value) return broken_off();
    came = std::move(message.descriptors);
    return *value;
}

[[nodiscard]] auto receive_descriptors(sys::fd_ref channel, std::size_t count)
    -> result<std::vector<sys::unique_fd>> {
    std::vector<sys::unique_fd> out;
    while (out.size() < count) {
        std::vector<sys::unique_fd> came;
        GLOVE_TRY(const auto piece, receive<launch_piece>(channel, came));
        if (piece.first != out.size() || came.empty() || came.size() > count - out.size())
            return broken_off();
        std::ranges::move(came, std::back_inserter(out));
    }
    return out;
}

[[nodiscard]] auto read_launch(sys::fd_ref file) -> result<launch_message> {
    GLOVE_TRY(auto bytes, sys::read_all(file, longest_launch_message));
    const wiped_at_end forget{bytes};
    return decode_launch(bytes);
}

// Each descriptor has its place, and none is left over.
[[nodiscard]] auto distribute(launch_message message, std::vector<sys::unique_fd> came,
                              bool has_entry) -> result<given> {
    given out{.launch = std::move(message), .bridge = {}, .entry = {}};
    auto& plan = out.launch.plan;
    std::vector<sys::unique_fd*> places{&plan.scratch_mount};
    for (std::size_t i = 0; i < plan.tree.size(); ++i)
        if (out.launch.has_mount[i]) places.push_back(&plan.tree[i].pin);
    if (plan.bridge) places.push_back(&out.bridge);
    if (has_entry) places.push_back(&out.entry);
    if (places.size() != came.size()) return broken_off();
    for (std::size_t i = 0; i < places.size(); ++i) *places[i] = std::move(came[i]);
    return out;
}

[[nodiscard]] auto receive_launch(sys::fd_ref channel) -> result<given> {
    std::vector<sys::unique_fd> file;
    GLOVE_TRY(const auto opening, receive<launch_opening>(channel, file));
    if (file.size() != 1 || opening.descriptors > most_launch_descriptors + 1) return broken_off();
    GLOVE_TRY(auto message, read_launch(file.front()));
    GLOVE_TRY(auto came, receive_descriptors(channel, opening.descriptors));
    return distribute(std::move(message), std::move(came), opening.has_entry);
}

// What every session begins with, whatever was asked for.
struct begun_with {
    argument_area arguments;
    ::rlimit open_files{}; // of the agent
};

// The kernel counts the descriptors that a user has on their way in sockets, of all sessions and of
// the service together, and refuses one more to whoever's own limit is below that. An agent must
// not be able to keep Glove's own from being passed on: it gets half of what Glove has.
[[nodiscard]] auto divide_open_files(::rlimit& agents) noexcept -> bool {
    if (::getrlimit(RLIMIT_NOFILE, &agents) != 0) return false;
    const ::rlimit own{agents.rlim_max, agents.rlim_max};
    agents.rlim_max /= 2;
    agents.rlim_cur = std::min(agents.rlim_cur, agents.rlim_max);
    return ::setrlimit(RLIMIT_NOFILE, &own) == 0;
}

[[nodiscard]] auto start(given& what, const begun_with& with) -> result<started_init> {
    const auto& plan = what.launch.plan;
    launch_request request{.plan = &plan,
                           .bridge = plan.bridge ? &what.bridge : nullptr,
                           .arguments = with.arguments,
                           .terminal =
                               terminal_request{
                                   .streams = {true, true, true},
                                   .size = {.ws_row = what.launch.rows,
                                            .ws_col = what.launch.columns,
                                            .ws_xpixel = 0,
                                            .ws_ypixel = 0},
                               },
                           .open_files = with.open_files};
    if (what.entry) request.entry.emplace(what.entry);
    // The maps of a process that is not dumpable cannot be written, and init begins as a copy of
    // this one.
    if (::prctl(PR_SET_DUMPABLE, 1) != 0) return fail_os(keeper_step);
    auto started = start_init(request);
    if (::prctl(PR_SET_DUMPABLE, 0) != 0) return fail_os(keeper_step);
    return started;
}

[[nodiscard]] auto hand_over(sys::fd_ref channel, started_init& what) -> result<> {
    constexpr char answer = static_cast<char>(keeper_answer::launched);
    const std::array passed{what.init.descriptor().get(), what.control.get()};
    if (sys::send_descriptors(channel, {&answer, 1}, passed) != 1) return fail_os(keeper_step);
    what.control = {}; // its end of file must tell init that the service is gone
    return {};
}

// Init, which is with the service now.
[[nodiscard]] auto launch_given(sys::fd_ref channel, const begun_with& with)
    -> result<sys::child_process> {
    GLOVE_TRY(auto what, receive_launch(channel));
    GLOVE_TRY(auto started, start(what, with));
    GLOVE_CHECK(hand_over(channel, started));
    for (auto& variable : what.launch.plan.environment) wipe(variable);
    return std::move(started.init);
}

void refuse(sys::fd_ref channel, const error& problem) {
    auto answer = encode_refusal(problem);
    answer.insert(answer.begin(), static_cast<char>(keeper_answer::refused));
    (void)sys::send_descriptors(channel, answer, {});
}

[[noreturn]] void run_keeper(int session, const begun_with& with) noexcept {
    put_title(with.arguments, "glove-keeper");
    if (!reset_signals(0) || ::dup3(session, launcher_channel, O_CLOEXEC) < 0 ||
        sys::close_range(launcher_channel + 1, ~0U, 0) != 0)
        ::_exit(125);
    sys::unique_fd channel{launcher_channel};
    {
        auto init = launch_given(channel, with);
        if (!init) refuse(channel, init.error());
        channel = {};
        if (init) (void)init->wait();
    }
    ::_exit(0);
}

// One byte, and the channel of a session. Whatever else comes is not from the service.
[[nodiscard]] auto next_session(sys::fd_ref channel) -> sys::unique_fd {
    std::array<char, 1> room;
    auto message = sys::receive_message(channel, room, keeper_step);
    if (!message || message->size != 1 || message->descriptors.size() != 1) ::_exit(0);
    return std::move(message->descriptors.front());
}

} // namespace

void run_launcher(int channel, ::pid_t service) noexcept {
    begun_with with{.arguments = own_arguments()};
    if (!become_launcher(channel, service) || !divide_open_files(with.open_files)) ::_exit(125);
    put_title(with.arguments, "glove-launcher");
    const sys::unique_fd own{launcher_channel};
    constexpr char ready = static_cast<char>(keeper_answer::launched);
    if (sys::send_descriptors(own, {&ready, 1}, {}) != 1) ::_exit(125);
    for (;;) {
        const auto session = next_session(own);
        const auto keeper = ::fork();
        if (keeper == 0) run_keeper(session.get(), with);
        if (keeper < 0) refuse(session, fail_os("launcher.fork", errno, "fork").error());
    }
}

} // namespace glove::container
