// A terminal of the test's own.
#pragma once
#include "support/glove_process.hpp"
#include <sys/ioctl.h>

namespace glove::test {

class pseudo_terminal {
public:
    pseudo_terminal() {
        EXPECT_GE(master_, 0);
        EXPECT_EQ(::grantpt(master_), 0);
        EXPECT_EQ(::unlockpt(master_), 0);
        std::array<char, 128> name{};
        EXPECT_EQ(::ptsname_r(master_, name.data(), name.size()), 0);
        slave_ = ::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC);
        EXPECT_GE(slave_, 0);
    }
    pseudo_terminal(const pseudo_terminal&) = delete;
    auto operator=(const pseudo_terminal&) = delete;
    ~pseudo_terminal() {
        ::close(slave_);
        ::close(master_);
    }
    [[nodiscard]] auto end() const -> int { return slave_; }
    // In a child of which it is the standard input: a session of its own, in the foreground here.
    static void take() {
        if (::setsid() < 0 || ::ioctl(0, TIOCSCTTY, 0) != 0) ::_exit(120);
    }

private:
    int master_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    int slave_ = -1;
};

} // namespace glove::test
