// glove-egress: the relay and the proxy of one run. Started by `glove`, never by people.
//
// Guarantees: it reads no argument and no environment; what it needs comes by descriptors whose
// numbers are fixed. It confines itself before the first byte of the agent is read, and ends with
// its starter.
#include "net/proxy/confine.hpp"
#include "net/proxy/server.hpp"
#include "sys/syscalls.hpp"
#include <fcntl.h>
#include <linux/close_range.h>

namespace {

using namespace glove;
using namespace glove::net;

// Empty when there is none.
[[nodiscard]] auto inherited(int number) -> sys::unique_fd {
    if (::fcntl(number, F_SETFD, FD_CLOEXEC) != 0) return {};
    return sys::unique_fd{number};
}

[[nodiscard]] auto serve() -> int {
    proxy::server_channels channels{.control = inherited(egress_control),
                                    .bridge = inherited(egress_bridge),
                                    .listener = inherited(egress_listener)};
    auto settings_file = inherited(egress_settings);
    (void)sys::close_range(egress_listener + 1, ~0U, 0);
    if (!channels.control || !settings_file) return 2;
    const sys::unique_fd control{::fcntl(channels.control.get(), F_DUPFD_CLOEXEC, 0)};
    if (!control) return 2;
    const auto failed = [&](const error& problem) {
        proxy::tell_failure(control, 0, problem);
        return 1;
    };
    if (const auto hardened = proxy::harden(); !hardened) return failed(hardened.error());
    auto settings = unseal(settings_file);
    if (!settings) return failed(settings.error());
    settings_file = {};
    auto server = proxy::server::open(*std::move(settings), std::move(channels));
    if (!server) return 1; // it was told
    if (const auto confined = proxy::confine(); !confined) return failed(confined.error());
    (*server)->run();
    ::_exit(0); // the connections end with the process
}

} // namespace

auto main() -> int {
    try {
        return serve();
    } catch (...) {
        return 3;
    }
}
