// What the child needs between clone and exec, as plain values and pointers into memory that the
// parent has finished writing. The child reads it; it never allocates, locks or destroys anything.
#pragma once
#include "container/linux/bridge.hpp"
#include <array>
#include <cstdint>
#include <glove/container/plan.hpp>
#include <linux/filter.h>
#include <span>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <termios.h>

namespace glove::container {

// One entry of the tree, ready for the child. `path` has no leading slash: it is relative to the
// new root's descriptor.
struct tree_operation {
    entry_kind kind;
    const char* path;
    const char* text;
    std::size_t text_size;
    ::mode_t permissions;
    bool is_directory;
    bool writable;
    bool make_point; // the mount point does not exist yet and lies in Glove's own file system
    bool may_vanish; // a guarded socket that is gone needs no mask
    sys::file_identity identity;
    int mount; // of `mounted`; -1: `text` names what is lent
};

// The name is relative to the directory of all of them.
struct listener_setup {
    ::sockaddr_un name;
    ::socklen_t name_size;
    ::mode_t permissions;
};

// The terminal that is made inside.
struct terminal_setup {
    bool wanted;
    std::array<bool, 3> streams; // of the agent, that become it
    bool foreground;             // the agent begins in its foreground
    bool has_modes;              // else the kernel's own
    bool quiet;                  // what writes to it in its background is stopped
    ::termios modes;
    ::winsize size;
};

struct setup_plan {
    std::array<int, 3> streams; // become 0, 1 and 2
    std::array<int, 3> nothing; // open flags of streams that are /dev/null, -1 for others
    int control;                // the child's end; becomes descriptor 3
    std::span<const int> kept;  // descriptors of mounts, in rising order, until the root is entered
    int root;                   // one of them: the file system that is the root; -1: a new one
    const tree_operation* tree;
    std::uint32_t tree_size;
    const char* scratch_bytes;
    const char* scratch_inodes;
    std::uint64_t scratch_size; // which the kernel must say it holds, but for its rounding to pages
    const char* work_directory;
    const char* const* programs; // tried in order
    const char* const* argv;
    const char* const* environment;
    std::span<const ::sock_filter> filter;
    ::rlimit open_files; // the caller's, which the supervisor may have raised for its pins
    unsigned long blocked_signals; // of the agent, in the kernel's own form
    bool loopback;
    bridge_setup bridge;
    terminal_setup terminal;
    std::span<const listener_setup> listeners;
    const char* listener_place; // relative to the new root, as a tree operation's path
    bool host_root;  // uid 0, perhaps of the host: owns the files of /proc that are not a process's
    char* arguments; // the argument and environment area, to be wiped
    std::size_t arguments_size;
};

} // namespace glove::container
