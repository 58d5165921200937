// The mounts that the caller sees, for the questions a name alone cannot answer.
#pragma once
#include "container/tree.hpp"
#include <glove/base/error.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace glove::container {

class mount_table {
public:
    [[nodiscard]] static auto read() -> result<mount_table>;
    // Lines as of /proc/PID/mountinfo.
    [[nodiscard]] static auto parse(std::string_view lines) -> result<mount_table>;

    struct mount {
        std::string path;
        std::string type; // "ext4", "proc", ...
    };
    // The one that `path` is on.
    [[nodiscard]] auto holding(std::string_view path) const -> mount;
    // Those mounted strictly below `path`.
    [[nodiscard]] auto below(std::string_view path) const -> std::vector<mount>;
    // Whether something hides a part of /proc. A mount at a place that the kernel keeps empty for
    // it hides nothing.
    [[nodiscard]] auto covers_proc() const -> bool;

private:
    std::map<std::string, std::string, path_order> types_; // the topmost of each path
};

// File systems whose files are the kernel's own controls or other processes: a bind of one is not a
// bind of files.
[[nodiscard]] auto is_kernel_filesystem(std::string_view type) noexcept -> bool;

} // namespace glove::container
