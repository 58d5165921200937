// Hands out the generated arrays, and holds the one program that is short enough to be read as it
// is.
#include "container/linux/seccomp_bpf.hpp"
#include "sys/seccomp.hpp"
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace glove::container::seccomp {
namespace {
#if defined(__x86_64__)
#include "seccomp_bpf_x86_64.inc"
#else
#include "seccomp_bpf_arm64.inc"
#endif

using sys::seccomp::argument;

constexpr ::sock_filter load(std::uint32_t offset) {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset);
}
// Goes on with the next instruction when equal, else `skip` instructions further.
constexpr ::sock_filter unless_equal(std::uint32_t value, std::uint8_t skip) {
    return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip);
}
constexpr ::sock_filter pass = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
constexpr ::sock_filter end_process = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);

constexpr auto bridge_calls = std::to_array<std::uint32_t>({
    SYS_accept4,
    SYS_bind,
    SYS_close_range,
    SYS_connect,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
    SYS_exit_group,
    SYS_getsockopt,
    SYS_listen,
    SYS_recvfrom,
    SYS_restart_syscall,
    SYS_sendmsg,
    SYS_sendto,
#ifdef GLOVE_SANITIZED
    // The sanitizers look at memory through pipes, and write what they find.
    SYS_close,
    SYS_getpid,
    SYS_gettid,
    SYS_madvise,
    SYS_mmap,
    SYS_munmap,
    SYS_pipe2,
    SYS_read,
    SYS_sigaltstack,
    SYS_write,
#ifdef SYS_pipe
    SYS_pipe,
#endif
#endif
});

// The list above, and socket(2) for streams of the two internet families.
constexpr auto bridge_program = [] {
    std::array<::sock_filter, 3 + 1 + bridge_calls.size() * 2 + 9> out{};
    std::size_t at = 0;
    out[at++] = load(offsetof(::seccomp_data, arch));
    out[at++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, sys::seccomp::machine, 1, 0);
    out[at++] = end_process;
    out[at++] = load(offsetof(::seccomp_data, nr));
    for (const auto number : bridge_calls) {
        out[at++] = unless_equal(number, 1);
        out[at++] = pass;
    }
    out[at++] = unless_equal(SYS_socket, 7);
    out[at++] = load(argument(0));
    out[at++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 1, 0);
    out[at++] = unless_equal(AF_INET6, 4);
    out[at++] = load(argument(1));
    out[at++] = BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf);
    out[at++] = unless_equal(SOCK_STREAM, 1);
    out[at++] = pass;
    out[at++] = end_process;
    return out;
}();
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

auto bridge_filter() noexcept -> program { return bridge_program; }

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
