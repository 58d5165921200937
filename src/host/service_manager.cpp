// One child at a time, in a session of its own, read to its end by two pipes.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <glove/base/numbers.hpp>
#include <glove/base/text.hpp>
#include <glove/host/service_manager.hpp>
#include <glove/host/service_unit.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/spawn.hpp>
#include <poll.h>
#include <span>
#include <sys/stat.h>

namespace glove::host {

namespace {

constexpr const char* no_manager_mend =
    "log in on a machine with systemd, or have one without a login: loginctl enable-linger; or run "
    "it by hand: gloved --config FILE";

constexpr std::array load_words{"loaded", "not-found", "bad-setting", "error",
                                "masked", "merged",    "stub"};
constexpr std::array active_words{"active",     "reloading",    "inactive",    "failed",
                                  "activating", "deactivating", "maintenance", "refreshing"};

// What the program says, as far as it may.
struct stream {
    sys::unique_fd read, write;
    std::string said;

    [[nodiscard]] static auto open() -> result<stream> {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return fail_os("service.manager");
        stream out{sys::unique_fd{ends[0]}, sys::unique_fd{ends[1]}, {}};
        if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return fail_os("service.manager");
        return out;
    }
    // What is there now; at its end the pipe is let go.
    [[nodiscard]] auto take() -> result<> {
        std::array<char, 4096> part{};
        while (read) {
            const auto got = ::read(read.get(), part.data(), part.size());
            if (got < 0 && errno == EINTR) continue;
            if (got < 0 && errno == EAGAIN) return {};
            if (got < 0) return fail_os("service.manager");
            if (got == 0) read = sys::unique_fd{};
            said.append(part.data(), static_cast<std::size_t>(got));
            if (said.size() > most_manager_bytes)
                return fail(errc::limit_exceeded, "service.manager",
                            "systemctl printed more than " + std::to_string(most_manager_bytes) +
                                " bytes");
        }
        return {};
    }
};

// Waits for the end of both streams and of the program, which may close them long before.
[[nodiscard]] auto hear(const sys::child_process& child, stream& out, stream& err,
                        std::chrono::milliseconds patience) -> result<> {
    const sys::system_clock clock;
    const auto end = clock.monotonic() + patience;
    for (;;) {
        GLOVE_TRY(const auto over, child.has_ended());
        GLOVE_CHECK(out.take());
        GLOVE_CHECK(err.take());
        // Whatever it left behind and holds the pipes open is not waited for.
        if (over) return {};
        const auto left = end - clock.monotonic();
        if (left <= left.zero())
            return fail(errc::timed_out, "service.manager",
                        "systemctl did not end within " + std::to_string(patience.count()) + " ms",
                        "look at the user's service manager: systemctl --user status");
        std::array<::pollfd, 3> watched{{{child.descriptor().get(), POLLIN, 0},
                                         {out.read.get(), POLLIN, 0},
                                         {err.read.get(), POLLIN, 0}}};
        const auto wait = std::chrono::ceil<std::chrono::milliseconds>(left).count();
        if (::poll(watched.data(), watched.size(), static_cast<int>(wait)) < 0 && errno != EINTR)
            return fail_os("service.manager");
    }
}

// The group is killed while its leader is not reaped, so its number is nobody else's.
[[nodiscard]] auto finish(sys::child_process& child) -> result<int> {
    (void)child.signal_group(SIGKILL);
    GLOVE_TRY(const auto how, child.wait());
    return how.si_code == CLD_EXITED ? how.si_status : 128 + how.si_status;
}

[[nodiscard]] auto variable(const char* name) -> std::string {
    const char* const set = std::getenv(name);
    return set == nullptr ? "" : set;
}

[[nodiscard]] auto own_runtime_directory() -> result<std::string> {
    auto path = variable("XDG_RUNTIME_DIR");
    if (path.empty()) path = "/run/user/" + std::to_string(::geteuid());
    const auto none = [&](std::string_view why) {
        return fail(errc::unsupported, "service.manager",
                    "there is no service manager of this user: " + printable(path) + " " +
                        std::string{why},
                    no_manager_mend);
    };
    if (!sys::is_normal_absolute(path)) return none("is not an absolute path");
    struct ::stat found{};
    if (::stat(path.c_str(), &found) != 0) return none("cannot be looked at");
    if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid())
        return none("is not a directory of this user");
    return path;
}

// The last line that says something, or what can be told instead.
[[nodiscard]] auto complaint_of(const manager_answer& of) -> std::string {
    constexpr std::size_t longest = 400;
    std::string_view text = of.complaint;
    while (text.ends_with('\n')) text.remove_suffix(1);
    if (text.empty()) return "status " + std::to_string(of.status);
    std::string out = printable(text.substr(0, longest));
    for (std::size_t at = 0; (at = out.find("\\x0a", at)) != std::string::npos;)
        out.replace(at, 4, "; ");
    return out;
}

[[nodiscard]] auto property(std::string_view shown, std::string_view name) -> std::string_view {
    while (!shown.empty()) {
        const auto line = shown.substr(0, shown.find('\n'));
        shown.remove_prefix(std::min(line.size() + 1, shown.size()));
        if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == '=')
            return line.substr(name.size() + 1);
    }
    return {};
}

[[nodiscard]] auto known(std::string_view word, std::span<const char* const> words) -> std::string {
    return std::ranges::find(words, word) == words.end() ? "unknown" : std::string{word};
}

} // namespace

auto service_manager::of_caller() -> result<service_manager> {
    manager_settings how;
    GLOVE_TRY(const auto there, sys::is_there(how.program));
    if (!there)
        return fail(errc::unsupported, "service.manager",
                    "there is no " + how.program + " on this machine",
                    "run it by hand: gloved --config FILE");
    GLOVE_TRY(how.runtime_directory, own_runtime_directory());
    how.bus = variable("DBUS_SESSION_BUS_ADDRESS");
    return service_manager{std::move(how)};
}

auto service_manager::ask(const std::vector<std::string>& words) const -> result<manager_answer> {
    GLOVE_TRY(auto out, stream::open());
    GLOVE_TRY(auto err, stream::open());
    const sys::unique_fd nothing{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    if (!nothing) return fail_os("service.manager", errno, "/dev/null");
    sys::spawn_request what{.program = how_.program,
                            .arguments = {"systemctl", "--user", "--no-pager", "--no-ask-password"},
                            .environment = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8",
                                            "XDG_RUNTIME_DIR=" + how_.runtime_directory},
                            .descriptors = {{0, nothing}, {1, out.write}, {2, err.write}},
                            .own_session = true,
                            .dies_with_parent = true};
    what.arguments.insert(what.arguments.end(), words.begin(), words.end());
    if (!how_.bus.empty()) what.environment.push_back("DBUS_SESSION_BUS_ADDRESS=" + how_.bus);
    auto started = sys::spawn(what);
    if (!started) return fail_os("service.manager", started.error().os, how_.program);
    out.write = sys::unique_fd{};
    err.write = sys::unique_fd{};
    const auto heard = hear(*started, out, err, how_.patience);
    GLOVE_TRY(const auto status, finish(*started));
    if (!heard) return std::unexpected(heard.error());
    return manager_answer{status, std::move(out.said), std::move(err.said)};
}

auto service_manager::tell(const std::vector<std::string>& words) const -> result<std::string> {
    GLOVE_TRY(auto answer, ask(words));
    if (answer.status == 0) return std::move(answer.out);
    std::string asked;
    for (const auto& word : words) asked += " " + word;
    return fail(errc::wrong_state, "service.manager",
                "systemctl --user" + asked + ": " + complaint_of(answer),
                "journalctl --user --unit=" + std::string{service_unit_name} +
                    " says what the service said");
}

auto service_manager::version() const -> result<std::uint64_t> {
    GLOVE_TRY(const auto answer, ask({"show", "--property=Version"}));
    if (answer.status != 0)
        return fail(errc::unsupported, "service.manager",
                    "no service manager of this user answers: " + complaint_of(answer),
                    no_manager_mend);
    return systemd_version_of(property(answer.out, "Version"));
}

auto service_manager::look_at(std::string_view unit) const -> result<unit_facts> {
    GLOVE_TRY(
        const auto answer,
        ask({"show", "--property=LoadState,ActiveState,FragmentPath,MainPID", std::string{unit}}));
    if (answer.status != 0)
        return fail(errc::unsupported, "service.manager",
                    "no service manager of this user answers: " + complaint_of(answer),
                    no_manager_mend);
    unit_facts out{.load = known(property(answer.out, "LoadState"), load_words),
                   .active = known(property(answer.out, "ActiveState"), active_words),
                   .fragment = std::string{property(answer.out, "FragmentPath")},
                   .main_pid = 0};
    constexpr std::uint64_t most_pid = 1UL << 22;
    const auto pid = parse_decimal(property(answer.out, "MainPID"), most_pid);
    if (pid) out.main_pid = *pid;
    if (out.load == "unknown" || out.active == "unknown")
        return fail(errc::corrupt, "service.unit",
                    "systemctl does not say how " + std::string{unit} +
                        " is: " + in_quotes(std::string_view{answer.out}.substr(0, 200)));
    return out;
}

} // namespace glove::host
