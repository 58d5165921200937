// File systems of Glove's own, as mounts that stand nowhere.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/sys/fd.hpp>
#include <span>
#include <string>

namespace glove::container {

// Without a value it is a flag.
struct mount_option {
    const char* key;
    const char* value = nullptr;
};

// Without set-id programs and devices, whatever the attributes say. `type` is a literal.
[[nodiscard]] auto make_mount(const char* type, std::span<const mount_option> options,
                              std::uint64_t attributes, step_name step) -> result<sys::unique_fd>;

enum class cloning : std::uint8_t {
    direct,   // and where the kernel refuses that, attached
    attached, // while it stands in a mount namespace that is made for this, and ends with it
};
// Another mount of the same file system, of what `part` leads to, which is on `mount`. A descriptor
// on `mount` stays good.
[[nodiscard]] auto second_mount(sys::fd_ref mount, sys::fd_ref part, cloning how, step_name step)
    -> result<sys::unique_fd>;

struct room {
    std::uint64_t block = 0; // bytes
    std::uint64_t bytes = 0, bytes_used = 0;
    std::uint64_t bytes_left = 0; // for whoever is not root
    std::uint64_t files = 0, files_left = 0;
};
// Asks a process when one serves the file system.
[[nodiscard]] auto room_in(sys::fd_ref directory, step_name step) -> result<room>;

} // namespace glove::container
