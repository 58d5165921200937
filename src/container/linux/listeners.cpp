// Sockets that stand inside and are accepted on outside.
//
// Guarantees: each is made in the sandbox's own network namespace, is bound by its bare name in a
// directory that was opened beneath the new root without following a link, and listens before its
// descriptor goes out over the control channel; init keeps none. Afterwards the directory is
// mounted on itself as read-only, so that nobody inside can unlink, replace or change a socket, and
// because it is a mount point nobody can move it.
//
// Runs between clone and exec: system calls only.
#include "container/linux/mount_calls.hpp"
#include <cstring>
#include <glove/container/plan.hpp>
#include <sys/socket.h>

namespace glove::container {

namespace {

// In the working directory.
[[nodiscard]] auto open_one(const listener_setup& wanted, std::uint32_t index) noexcept -> failure {
    const scoped socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (!socket) return broken(call::socket);
    ::umask(~wanted.permissions & 0777U); // the kernel asks for no other word on the mode
    const int bound =
        ::bind(socket.get(), reinterpret_cast<const ::sockaddr*>(&wanted.name), wanted.name_size);
    const int os = errno;
    ::umask(0);
    if (bound != 0) return {.os = os, .where = call::bind};
    if (::listen(socket.get(), listener_backlog) != 0) return broken(call::listen);
    return tell_with(socket.get(), {.what = news::listener,
                                    .step = 0,
                                    .where = call::none,
                                    .value = 0,
                                    .index = index,
                                    .armed = 0});
}

} // namespace

failure open_listeners(setup_state& state) noexcept {
    const auto& plan = *state.plan;
    if (plan.listeners.empty()) return {};
    const scoped directory{open_without_links(state.root, plan.listener_place)};
    if (!directory) return broken(call::openat2);
    if (::fchdir(directory.get()) != 0) return broken(call::fchdir);
    for (std::uint32_t i = 0; i < plan.listeners.size(); ++i) {
        auto bad = open_one(plan.listeners[i], i);
        if (bad.os == 0) continue;
        bad.index = i;
        return bad;
    }
    const scoped tree{clone_tree(directory.get(), "")};
    if (!tree) return broken(call::open_tree);
    // Not of a program of Glove's own that is mounted in there.
    ::mount_attr no_programs{};
    no_programs.attr_set = MOUNT_ATTR_NOEXEC;
    if (sys::mount_setattr(tree.get(), "", AT_EMPTY_PATH, no_programs) != 0)
        return broken(call::mount_setattr);
    return attach(tree.get(), {directory.get(), ""}, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV);
}

} // namespace glove::container
