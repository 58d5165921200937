// The kernel says which device is free, and somebody else may have it by then: another one is asked
// for, a bounded number of times.
#include "container/linux/loop_device.hpp"
#include <fcntl.h>
#include <glove/sys/files.hpp>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

namespace glove::container {

namespace {

constexpr int most_attempts = 64;

[[nodiscard]] auto is_read_only(sys::fd_ref image) -> bool {
    return (::fcntl(image.get(), F_GETFL) & O_ACCMODE) == O_RDONLY;
}

[[nodiscard]] auto open_device(const std::string& path, int flags) -> sys::unique_fd {
    return sys::unique_fd{::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW)};
}

} // namespace

auto attach_loop(sys::fd_ref image) -> result<loop_device> {
    constexpr const char* node = "/dev/loop-control";
    const auto control = open_device(node, O_RDWR);
    if (!control) return fail_os("files.loop", errno, node);
    const bool read_only = is_read_only(image);
    ::loop_config wanted{};
    wanted.fd = static_cast<__u32>(image.get());
    wanted.info.lo_flags = LO_FLAGS_AUTOCLEAR | (read_only ? LO_FLAGS_READ_ONLY : 0);
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
        const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
        if (number < 0) return fail_os("files.loop", errno, "LOOP_CTL_GET_FREE");
        auto path = "/dev/loop" + std::to_string(number);
        auto device = open_device(path, read_only ? O_RDONLY : O_RDWR);
        if (!device) return fail_os("files.loop", errno, path);
        if (::ioctl(device.get(), LOOP_CONFIGURE, &wanted) == 0)
            return loop_device{.path = std::move(path), .device = std::move(device)};
        if (errno != EBUSY) return fail_os("files.loop", errno, path + ": LOOP_CONFIGURE");
    }
    return fail(errc::conflict, "files.loop",
                "each loop device that was free was taken by another");
}

auto is_attached(const std::string& path, sys::fd_ref image) -> result<bool> {
    const auto device = open_device(path, O_RDONLY);
    if (!device && errno == ENOENT) return false;
    if (!device) return fail_os("files.loop", errno, path);
    ::loop_info64 now{};
    if (::ioctl(device.get(), LOOP_GET_STATUS64, &now) != 0) {
        if (errno == ENXIO) return false;
        return fail_os("files.loop", errno, path + ": LOOP_GET_STATUS64");
    }
    GLOVE_TRY(const auto facts, sys::inspect(image));
    return now.lo_inode == facts.identity.inode;
}

} // namespace glove::container
