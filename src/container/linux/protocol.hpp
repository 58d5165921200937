// What supervisor and init say to each other over one SOCK_SEQPACKET pair. The pair is also the
// lifetime channel: its end of file, on either side, ends the other.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace glove::container {

enum class order : std::uint8_t {
    maps_written, // the id maps are in place: start building
    release,      // the intent is on record: start the agent; `value` is when init itself ends it,
                  // in seconds from then, and 0 when nothing does
    signal,       // pass `value` on to the agent
    signal_group, // pass `value` on to the agent's whole process group
    signal_foreground, // pass `value` on to the group in the foreground of the private terminal
    foreground,        // give the private terminal back to its foreground, and go on with the agent
    background,        // take the private terminal from its foreground, and go on with the agent
    heard,             // `stopped` was heard, and the agent does not go on for now
};
struct order_message {
    order what;
    std::int32_t value;
};

// System calls that can fail between clone and exec, so that a report can name them.
enum class call : std::uint8_t {
    none,
    bind,
    capset,
    chdir,
    clone,
    close_range,
    dup2,
    dup3,
    epoll_create1,
    epoll_ctl,
    execve,
    fchdir,
    fsconfig,
    fsmount,
    fsopen,
    fstatfs,
    getdents64,
    ioctl,
    keyctl,
    listen,
    mkdirat,
    mount_setattr,
    move_mount,
    open_tree,
    openat,
    openat2,
    pivot_root,
    prctl,
    recv,
    seccomp,
    sendmsg,
    setpgid,
    setrlimit,
    setsid,
    sethostname,
    sigaction,
    signalfd,
    sigprocmask,
    socket,
    statx,
    symlinkat,
    umount2,
    unlinkat,
    unshare,
    write,
};
inline constexpr auto call_names = std::to_array<std::string_view>({
    "",         "bind",        "capset",        "chdir",         "clone",       "close_range",
    "dup2",     "dup3",        "epoll_create1", "epoll_ctl",     "execve",      "fchdir",
    "fsconfig", "fsmount",     "fsopen",        "fstatfs",       "getdents64",  "ioctl",
    "keyctl",   "listen",      "mkdirat",       "mount_setattr", "move_mount",  "open_tree",
    "openat",   "openat2",     "pivot_root",    "prctl",         "recv",        "seccomp",
    "sendmsg",  "setpgid",     "setrlimit",     "setsid",        "sethostname", "sigaction",
    "signalfd", "sigprocmask", "socket",        "statx",         "symlinkat",   "umount2",
    "unlinkat", "unshare",     "write",
});
static_assert(call_names.size() == static_cast<std::size_t>(call::write) + 1);

// os == 0 is success. `index` is the entry of the tree, of the programs or of the listeners that
// failed.
struct failure {
    int os = 0;
    call where = call::none;
    std::uint32_t index = no_index;
    static constexpr std::uint32_t no_index = ~0U;
};

enum class news : std::uint8_t {
    failed,   // a step was refused; nothing of the agent ever ran
    listener, // comes with a listening socket: number `index` of the plan
    terminal, // comes with the private terminal's master
    started,  // every step was carried out and the agent runs
    stopped,  // signal `value` stopped the agent, which has a private terminal; the next one is
              // told when this was answered, by `foreground`, `background` or `heard`
    went_on,  // `foreground` or `background` was carried out
    ended,    // the agent ended with wait status `value`
};
struct news_message {
    news what;
    std::uint8_t step; // of `failed`
    call where;
    std::int32_t value; // errno, signal, or wait status
    std::uint32_t index;
    std::uint64_t armed; // bit n: step n was carried out
};

} // namespace glove::container
