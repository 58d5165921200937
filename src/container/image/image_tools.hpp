// The programs of e2fsprogs that make images into file systems, and what is needed for each.
#pragma once
#include "container/image/image_process.hpp"
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/container/session_files.hpp>
#include <glove/sys/fd.hpp>
#include <optional>
#include <stop_token>
#include <string>

namespace glove::container {

// What one of the means takes; absolute paths.
struct image_tools {
    std::string make, check;
    std::string serve;  // of `fuse`
    std::string helper; // glove-image
};
// Step: files.means (errc::unsupported).
[[nodiscard]] auto find_tools(image_means means, const std::string& helper) -> result<image_tools>;

// The whole of `image`, which is open for writing and holds zeros. Its first content is that of the
// directory `content`. Step: files.format.
[[nodiscard]] auto format_image(const image_tools& with, image_means means, sys::fd_ref image,
                                std::uint64_t bytes, sys::fd_ref content) -> result<>;

// Mends what loses nothing. Told to stop, it ends with errc::wrong_state. Steps: files.program,
// files.check (it was not done), files.quarantined (errc::corrupt: it was, and this is no file
// system to be used).
[[nodiscard]] auto check_image(const image_tools& with, sys::fd_ref image,
                               std::optional<sys::fd_ref> entry, const std::stop_token& stop = {})
    -> result<image_state>;

} // namespace glove::container
