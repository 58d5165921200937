// The directory in which the service can be found: its lock, its secret and its socket.
//
// Guarantees: the directory is the caller's alone and is kept open, so everything happens in it
// whatever becomes of its name; one service at a time; the secret is new at every start, on the
// disk before the socket can be connected to, and in no other file; the socket is never open to
// anybody else, not even for a moment; a socket that a dead service left is removed, and nothing
// else ever is.
#pragma once
#include <glove/base/error.hpp>
#include <glove/control/methods.hpp>
#include <glove/sys/entropy.hpp>
#include <glove/sys/fd.hpp>
#include <glove/sys/files.hpp>
#include <optional>
#include <string>

namespace glove::control {

class runtime_directory {
public:
    // An absolute path of a directory with mode 0700. Steps: runtime.path, runtime.directory,
    // runtime.locked.
    [[nodiscard]] static auto open(const std::string& path) -> result<runtime_directory>;
    runtime_directory(runtime_directory&&) = default;
    auto operator=(runtime_directory&&) -> runtime_directory& = delete;
    // Removes the socket, if that is the one which was made here.
    ~runtime_directory();

    // Step: runtime.secret.
    [[nodiscard]] auto renew_secret(sys::entropy& random) -> result<bootstrap_secret>;
    // Listens, and does not block. Steps: runtime.stale, runtime.socket.
    [[nodiscard]] auto listen() -> result<sys::unique_fd>;

private:
    runtime_directory(std::string path, sys::unique_fd directory, sys::unique_fd lock)
        : path_{std::move(path)}, directory_{std::move(directory)}, lock_{std::move(lock)} {}
    [[nodiscard]] auto remove_stale() const -> result<>;

    std::string path_;
    sys::unique_fd directory_, lock_;
    std::optional<sys::file_identity> socket_;
};

} // namespace glove::control
