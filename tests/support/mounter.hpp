// A test program that may mount: root as it is, anybody else as the root of a user and mount
// namespace of its own, as a service of one's user is.
#pragma once
#include <gtest/gtest.h>
#include <sched.h>
#include <string>
#include <support/folder.hpp>
#include <sys/mount.h>
#include <unistd.h>

namespace glove::test {

inline void write_setting(const char* path, const std::string& value) {
    const sys::unique_fd file{::open(path, O_WRONLY | O_CLOEXEC)};
    prepared(::write(file.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size()),
             path);
}

// Before there is a second thread.
inline void become_mounter() {
    const auto uid = ::geteuid();
    const auto gid = ::getegid();
    prepared(::unshare((uid == 0 ? 0 : CLONE_NEWUSER) | CLONE_NEWNS) == 0, "unshare");
    if (uid != 0) {
        write_setting("/proc/self/setgroups", "deny");
        write_setting("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1");
        write_setting("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1");
    }
    prepared(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "private mounts");
}

// Whether this is root of the machine.
inline auto outer_root() -> bool {
    std::ifstream map{"/proc/self/uid_map"};
    unsigned long inside = 1, outside = 1;
    map >> inside >> outside;
    return ::geteuid() == 0 && outside == 0;
}

class mounter : public testing::Environment {
public:
    void SetUp() override { become_mounter(); }
};
inline const auto* const is_mounter = testing::AddGlobalTestEnvironment(new mounter);

} // namespace glove::test
