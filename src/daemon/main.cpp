// `gloved`: the control service of one user.
//
// Guarantees: whatever a client does, the service goes on; SIGTERM, SIGINT and SIGHUP end it after
// what is being answered, and every session, with its receipt; no core file ever holds the keys
// that it works with. What starts sessions was made before it had any. It takes no privilege and
// reads no variable of the environment but $NOTIFY_SOCKET and, with
// --init-state, the places of the user's directories.
#include "daemon/composition.hpp"
#include "daemon/init_state.hpp"
#include "daemon/notify.hpp"
#include "daemon/options.hpp"
#include "sys/confine.hpp"
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <glove/base/error_text.hpp>
#include <glove/container/launch.hpp>
#include <glove/control/runtime_directory.hpp>
#include <glove/control/server.hpp>
#include <glove/run/exec.hpp>
#include <glove/sys/files.hpp>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::daemon {

namespace {

enum class status : int { clean = 0, failed = 1, usage = 2 };

// For the ends of sessions and their receipts; the unit's own limit is 15 s (host/service_unit).
constexpr std::chrono::seconds longest_farewell{10};

// The signals that end the service, as a descriptor. Before any thread is made, so that all have
// them blocked.
[[nodiscard]] auto stop_signals() -> result<sys::unique_fd> {
    ::sigset_t set{};
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP); // the terminal is closed
    if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return fail_os("start.signals");
    sys::unique_fd out{::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
    if (!out) return fail_os("start.signals");
    return out;
}

[[nodiscard]] auto harden() -> result<> {
    (void)::umask(0077);
    // Whoever reads the log may stop reading.
    if (std::signal(SIGPIPE, SIG_IGN) == SIG_ERR) return fail_os("start.signals");
    // A program that core files are handed to gets none either, and no process of the same user
    // looks into the memory, unless it may look into everybody's.
    if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return fail_os("start.no_core");
    if (!sys::forbid_core_files()) return fail_os("start.no_core");
    return {};
}

[[nodiscard]] auto config_file_of(const invocation& asked) -> result<std::optional<std::string>> {
    if (!asked.config_file) return std::nullopt;
    GLOVE_TRY(auto path, sys::absolute(*asked.config_file));
    return path;
}

[[nodiscard]] auto settings_of(const invocation& asked) -> result<control::service_config> {
    if (!asked.config_file) return asked.settings;
    return control::load_service_config(*asked.config_file);
}

[[nodiscard]] auto server_settings_of(const control::service_config& config)
    -> control::server_settings {
    control::server_settings out;
    if (config.exchange_timeout_ms)
        out.exchange = std::chrono::milliseconds{*config.exchange_timeout_ms};
    return out;
}

// From which sessions are started. Before there is a key, a secret or a second thread.
[[nodiscard]] auto launcher_for(const control::service_config& config)
    -> result<std::optional<container::launcher>> {
    if (!config.materialization_root) return std::nullopt;
    GLOVE_TRY(auto made, container::launcher::start());
    return made;
}

[[nodiscard]] auto serve(const invocation& asked) -> result<control::ending> {
    GLOVE_CHECK(harden());
    GLOVE_TRY(const auto config, settings_of(asked));
    GLOVE_TRY(const auto config_file, config_file_of(asked));
    GLOVE_TRY(auto launcher, launcher_for(config));
    // After the launcher, which finds what agents get by what is usual here. What it is for: there.
    GLOVE_CHECK(container::raise_open_files());
    const sys::system_clock clock;
    sys::system_entropy random;
    GLOVE_TRY(const auto stop, stop_signals());
    control::standard_error_log log;
    GLOVE_TRY(auto place, control::runtime_directory::open(config.runtime_directory));
    // A controller that has just started the service waits for these two; whoever calls is answered
    // when the parts are there.
    GLOVE_TRY(auto secret, place.renew_secret(random));
    GLOVE_TRY(auto listener, place.listen());
    GLOVE_TRY(const auto made,
              composition::open(config, config_file, std::move(launcher), clock, log));
    control::service answers{made->parts(), std::move(secret)};
    GLOVE_TRY(const auto server,
              control::server::open(std::move(listener), server_settings_of(config), answers, clock,
                                    log));
    log.write({.name = "service.ready", .text = config.runtime_directory});
    notify("READY=1");
    GLOVE_TRY(const auto ending, server->run(stop, [] { notify("STOPPING=1"); }));
    made->end_sessions(clock.monotonic() + longest_farewell);
    log.write({.name = "service.stopped"});
    // A worker that does not come back would be waited for: only the end of the process ends it.
    if (ending == control::ending::late) {
        log.flush();
        std::_Exit(static_cast<int>(status::failed));
    }
    return ending;
}

[[nodiscard]] auto initialise(const invocation& asked) -> result<> {
    sys::system_entropy random;
    GLOVE_CHECK(harden()); // it makes a key
    GLOVE_TRY(const auto made, init_state(asked.config_file, random));
    for (const auto& one : made)
        (void)std::printf("%s %s\n", one.is_new ? "made" : "kept", one.path.c_str());
    return {};
}

[[nodiscard]] auto report(const error& problem, status as) -> int {
    (void)std::fputs(error_text(problem).c_str(), stderr);
    return static_cast<int>(as);
}

template<class T> [[nodiscard]] auto outcome_of(const result<T>& done) -> int {
    return done ? static_cast<int>(status::clean) : report(done.error(), status::failed);
}

[[nodiscard]] auto run(std::span<const char* const> words) -> int {
    const auto asked = parse_options(words);
    if (!asked) return report(asked.error(), status::usage);
    switch (asked->what) {
    case action::print_version: return std::puts("gloved " GLOVE_VERSION) < 0 ? 1 : 0;
    case action::print_help: return std::fputs(help_text().c_str(), stdout) < 0 ? 1 : 0;
    case action::init_state: return outcome_of(initialise(*asked));
    case action::serve: return outcome_of(serve(*asked));
    }
    return static_cast<int>(status::failed);
}

} // namespace

} // namespace glove::daemon

auto main(int argc, char** argv) -> int {
    using namespace glove;
    // All threads share one heap: what is kept of requests would make a heap of each thread's own
    // grow by a page and a system call at a time.
    (void)::mallopt(M_ARENA_MAX, 1);
    if (const auto claimed = run::claim_standard_streams(); !claimed)
        return daemon::report(claimed.error(), daemon::status::failed);
    return daemon::run(std::span<const char* const>{argv, static_cast<std::size_t>(argc)}.subspan(
        argc > 0 ? 1 : 0));
}
