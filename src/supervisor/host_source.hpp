// A file or directory of the host that may be handed to a session, by descriptor.
//
// Guarantees: no link is followed on the way, and no magic link; what is neither a regular file nor
// a directory, or is of a file system that the kernel makes up, is refused.
#pragma once
#include <glove/sys/files.hpp>
#include <string>

namespace glove::supervisor {

struct host_source {
    sys::unique_fd pin;
    sys::file_facts facts;
};

// `path` is absolute. Mounts are crossed: a volume of its own is where projects often are.
[[nodiscard]] auto open_host_source(const std::string& path) -> result<host_source>;
// `path` is relative, and neither leads out of `root` nor into another mount.
[[nodiscard]] auto open_host_source_beneath(sys::fd_ref root, const std::string& path)
    -> result<host_source>;

} // namespace glove::supervisor
