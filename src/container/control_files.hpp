// Where Glove's own files are, by identity: the same directory is the same under any name.
#pragma once
#include <glove/base/error.hpp>
#include <glove/container/profile.hpp>
#include <glove/sys/files.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glove::container {

// The canonical form of a path of which the end may not exist yet; `existing` becomes the canonical
// form of what does.
[[nodiscard]] auto settle(const std::string& path, std::string& existing) -> result<std::string>;

class control_files {
public:
    // `paths` are absolute; what does not exist yet counts through its nearest existing parent.
    [[nodiscard]] static auto locate(const std::vector<std::string>& paths)
        -> result<control_files>;

    // The control path that would be seen through something that is, or holds, `identity`; for
    // writing also a link on the way to one, which would lead elsewhere afterwards.
    [[nodiscard]] auto held_by(const sys::file_identity& identity, access mode) const
        -> std::optional<std::string>;
    // The same for what `real` (canonical) is, holds or lies in, by its name.
    [[nodiscard]] auto touching(std::string_view real, access mode) const
        -> std::optional<std::string>;

private:
    struct place {
        std::string real;                         // canonical
        std::vector<sys::file_identity> ancestry; // it and its existing parents, without "/"
        bool is_link = false;
    };
    // The links on the way to `path`, which exists.
    [[nodiscard]] auto add_links(const std::string& path) -> result<>;

    std::vector<place> places_;
};

} // namespace glove::container
