#include "container/linux/seccomp_bpf.hpp"
#include <cerrno>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace glove::container::seccomp {
namespace {
#if defined(__x86_64__) && !defined(__ILP32__)
#include "seccomp_bpf_x86_64.inc"
#elif defined(__aarch64__) && !defined(__ILP32__)
#include "seccomp_bpf_arm64.inc"
#else
#error "there is no system call table for this machine"
#endif
} // namespace

auto program_for(network_tier tier, unsigned declared) noexcept -> program {
    switch (tier) {
    case network_tier::offline: return offline;
    case network_tier::local: return local;
    case network_tier::egress: return egress;
    case network_tier::sealed:
        if (declared == 0) return sealed_0;
        if (declared == 1) return sealed_1;
        break;
    }
    return {};
}

auto install(program filter) noexcept -> int {
    if (filter.empty()) return EINVAL;
    const ::sock_fprog code{static_cast<unsigned short>(filter.size()),
                            const_cast<::sock_filter*>(filter.data())}; // the kernel only reads it
    const auto answer =
        ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &code);
    if (answer < 0) return errno;
    return answer == 0 ? 0 : ESRCH; // a thread that could not take the filter is named by its id
}

} // namespace glove::container::seccomp
