// A loop device for one image, which goes away with its last user.
#pragma once
#include <glove/base/error.hpp>
#include <glove/sys/fd.hpp>
#include <string>

namespace glove::container {

struct loop_device {
    std::string path;
    sys::unique_fd device; // until there is a mount of it
};
// Takes root. Nothing can be written when `image` was opened for reading. Steps: files.loop.
[[nodiscard]] auto attach_loop(sys::fd_ref image) -> result<loop_device>;
// Whether the device at the path is still that image's.
[[nodiscard]] auto is_attached(const std::string& path, sys::fd_ref image) -> result<bool>;

} // namespace glove::container
