// A test program that may mount: root as it is, anybody else as the root of a user and mount
// namespace of its own, as a service of one's user is.
#pragma once
#include <fstream>
#include <gtest/gtest.h>
#include <support/forked.hpp>

namespace glove::test {

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
