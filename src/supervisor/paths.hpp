// Which paths of the host may be handed out, and where inside a sandbox things may stand. Lexical:
// whoever opens a path checks what it really names.
#pragma once
#include <algorithm>
#include <array>
#include <glove/sys/files.hpp>
#include <span>
#include <string_view>

namespace glove::supervisor {

[[nodiscard]] inline auto overlap(std::string_view a, std::string_view b) noexcept -> bool {
    return sys::holds(a, b) || sys::holds(b, a);
}
[[nodiscard]] inline auto inside_any(std::span<const std::string_view> roots,
                                     std::string_view path) noexcept -> bool {
    return std::any_of(roots.begin(), roots.end(),
                       [&](std::string_view root) { return sys::holds(root, path); });
}
[[nodiscard]] inline auto overlaps_any(std::span<const std::string_view> roots,
                                       std::string_view path) noexcept -> bool {
    return std::any_of(roots.begin(), roots.end(),
                       [&](std::string_view root) { return overlap(root, path); });
}

inline constexpr std::array<std::string_view, 4> kernel_directories{"/dev", "/proc", "/run",
                                                                    "/sys"};
inline constexpr std::array<std::string_view, 6> secret_directories{".aws",  ".azure", ".gnupg",
                                                                    ".kube", ".sage",  ".ssh"};
// What a sandbox has of its own, and what its mounts would break.
inline constexpr std::array<std::string_view, 9> system_targets{
    "/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr"};
inline constexpr std::array<std::string_view, 3> scratch_targets{"/proc", "/tmp", "/var/tmp"};
inline constexpr std::array<std::string_view, 6> reserved_targets{"/dev", "/proc", "/run",
                                                                  "/sys", "/tmp",  "/var/tmp"};
inline constexpr std::string_view agent_home = "/home/agent";

[[nodiscard]] inline auto names_secret_directory(std::string_view path) noexcept -> bool {
    while (!path.empty()) {
        const auto part = path.substr(0, std::min(path.find('/'), path.size()));
        if (std::find(secret_directories.begin(), secret_directories.end(), part) !=
            secret_directories.end())
            return true;
        path.remove_prefix(std::min(part.size() + 1, path.size()));
    }
    return false;
}

// The whole home of a user: /root, /home/X.
[[nodiscard]] inline auto is_whole_home(std::string_view path) noexcept -> bool {
    if (path == "/root" || path == "/var/root") return true;
    for (const std::string_view above : {"/home/", "/Users/"})
        if (path.starts_with(above) && path.find('/', above.size()) == path.npos) return true;
    return false;
}

// Empty, or why nothing at this path of the host is handed out.
[[nodiscard]] inline auto fault_of_host_path(std::string_view path) noexcept -> std::string_view {
    if (inside_any(kernel_directories, path)) return "is inside of /dev, /proc, /run or /sys";
    if (names_secret_directory(path)) return "is in a directory that holds credentials";
    return {};
}

} // namespace glove::supervisor
