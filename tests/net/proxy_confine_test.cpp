// What the confined process can still do, each denial beside its allowed twin.
#include "net/proxy/confine.hpp"
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <support/forked.hpp>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace glove;

// The error number of what `attempt` answers in a confined child; 0 when it works.
auto confined(const std::function<long()>& attempt) -> std::string {
    return test::said_by([&] {
        if (!net::proxy::harden() || !net::proxy::confine()) return std::string{"not confined"};
        errno = 0;
        return std::to_string(attempt() < 0 ? errno : 0);
    });
}
auto opened(const char* path, int flags) -> std::function<long()> {
    return [=] { return static_cast<long>(::open(path, flags | O_CLOEXEC, 0600)); };
}
auto socket_of(int domain, int type, int protocol = 0) -> std::function<long()> {
    return [=] { return static_cast<long>(::socket(domain, type | SOCK_CLOEXEC, protocol)); };
}
const std::string fine = "0";
const std::string denied = std::to_string(EPERM);

TEST(ProxyConfine, OnlyTheSocketsOfTheInternetAreOpened) {
    EXPECT_EQ(confined(socket_of(AF_INET, SOCK_STREAM)), fine);
    EXPECT_EQ(confined(socket_of(AF_INET6, SOCK_DGRAM)), fine);
    EXPECT_EQ(confined(socket_of(AF_NETLINK, SOCK_RAW, 0)), fine); // the list of interfaces
    EXPECT_EQ(confined(socket_of(AF_NETLINK, SOCK_RAW, 9)), denied);
    EXPECT_EQ(confined(socket_of(AF_INET, SOCK_STREAM, IPPROTO_TCP)), fine);
    EXPECT_EQ(confined(socket_of(AF_INET6, SOCK_DGRAM, IPPROTO_UDP)), fine);
    EXPECT_EQ(confined(socket_of(AF_INET, SOCK_STREAM, 262)), denied); // MPTCP
    EXPECT_EQ(confined(socket_of(AF_INET, SOCK_DGRAM, 136)), denied);  // UDP-Lite
    EXPECT_EQ(confined(socket_of(AF_INET, SOCK_RAW, 1)), denied);
    EXPECT_EQ(confined(socket_of(AF_UNIX, SOCK_STREAM)), denied);
    EXPECT_EQ(confined(socket_of(AF_PACKET, SOCK_DGRAM)), denied);
    EXPECT_EQ(confined(socket_of(AF_VSOCK, SOCK_STREAM)), denied);
}

TEST(ProxyConfine, NothingIsWrittenAndOnlySettingsAreRead) {
    EXPECT_EQ(confined(opened("/etc/hosts", O_RDONLY)), fine);
    EXPECT_EQ(confined(opened("/etc/hosts", O_WRONLY)), denied);
    EXPECT_EQ(confined(opened("/etc/hosts", O_RDWR)), denied);
    EXPECT_EQ(confined(opened("/tmp/glove-confine", O_RDONLY | O_CREAT)), denied);
    EXPECT_EQ(confined(opened("/etc/hosts", O_RDONLY | O_TRUNC)), denied);
    EXPECT_EQ(confined(opened("/proc/self/mem", O_RDWR)), denied);
    const auto elsewhere = confined(opened("/proc/version", O_RDONLY));
    if (elsewhere == fine) GTEST_SKIP() << "this kernel has no Landlock";
    EXPECT_EQ(elsewhere, std::to_string(EACCES));
}

TEST(ProxyConfine, NoProgramAndNoOtherProcess) {
    EXPECT_EQ(confined([] { return static_cast<long>(::getpid()); }), fine);
    EXPECT_EQ(confined([] {
                  const char* const words[] = {"true", nullptr};
                  return static_cast<long>(::execv("/bin/true", const_cast<char* const*>(words)));
              }),
              denied);
    EXPECT_EQ(confined([] { return static_cast<long>(::kill(::getpid(), 0)); }), denied);
    EXPECT_EQ(confined([] { return static_cast<long>(::fork()); }), denied);
    EXPECT_EQ(confined([] { return ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); }), denied);
}

TEST(ProxyConfine, NoMemoryBecomesCode) {
    const auto mapped = [](int protection) {
        return [=]() -> long {
            return ::mmap(nullptr, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
                           MAP_FAILED
                       ? -1
                       : 0;
        };
    };
    EXPECT_EQ(confined(mapped(PROT_READ | PROT_WRITE)), fine);
    EXPECT_EQ(confined(mapped(PROT_READ | PROT_EXEC)), denied);
}

TEST(ProxyConfine, ASignalCannotBeAskedFor) {
    EXPECT_EQ(confined([] { return static_cast<long>(::fcntl(1, F_GETFL)); }), fine);
    EXPECT_EQ(confined([] { return static_cast<long>(::fcntl(1, F_SETOWN, 1)); }), denied);
}

} // namespace
