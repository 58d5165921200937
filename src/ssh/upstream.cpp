// By the name that /proc gives a descriptor, the only one that no rename can lead elsewhere.
#include "ssh/upstream.hpp"
#include <cstring>
#include <glove/ssh/identity.hpp>
#include <glove/sys/files.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace glove::ssh {

auto pin_agent(const std::string& path) -> result<sys::unique_fd> {
    auto pinned = sys::pin(path, sys::follow::never);
    if (!pinned) return fail_os("ssh.agent", pinned.error().os, "the ssh agent's socket " + path);
    GLOVE_TRY(const auto facts, sys::inspect(*pinned));
    if (facts.identity.type != S_IFSOCK)
        return fail(errc::invalid_input, "ssh.agent",
                    "SSH_AUTH_SOCK: " + path + " is not a socket");
    if (facts.owner != ::geteuid() && facts.owner != 0)
        return fail(errc::not_permitted, "ssh.agent",
                    "the ssh agent's socket " + path + " belongs to user " +
                        std::to_string(facts.owner));
    return *std::move(pinned);
}

auto connect_to(sys::fd_ref socket) -> result<sys::unique_fd> {
    sys::unique_fd out{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (!out) return fail_os("ssh.agent");
    // The very inode that was looked at; its name may be another's by now.
    const auto name = "/proc/self/fd/" + std::to_string(socket.get());
    ::sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    if (::connect(out.get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address) != 0)
        return fail_os("ssh.agent", errno, "the ssh agent of SSH_AUTH_SOCK");
    return out;
}

} // namespace glove::ssh
