// Kernel interfaces with a history, each asked for in the form that works for those who may.
#include "attack.hpp"
#include <array>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <sys/klog.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hostile {
namespace {

auto bpf_map(arguments) -> result {
    ::bpf_attr wanted{};
    wanted.map_type = BPF_MAP_TYPE_ARRAY;
    wanted.key_size = 4;
    wanted.value_size = 4;
    wanted.max_entries = 1;
    return judge(::syscall(SYS_bpf, BPF_MAP_CREATE, &wanted, sizeof wanted));
}

auto perf(arguments) -> result {
    ::perf_event_attr wanted{};
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_SOFTWARE;
    wanted.config = PERF_COUNT_SW_TASK_CLOCK;
    wanted.exclude_kernel = 1;
    wanted.exclude_hv = 1;
    return judge(::syscall(SYS_perf_event_open, &wanted, 0, -1, -1, 0));
}

auto user_faults(arguments) -> result {
    return judge(::syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
}

auto io_ring(arguments) -> result {
    ::io_uring_params wanted{};
    return judge(::syscall(SYS_io_uring_setup, 4, &wanted));
}

auto key_of_session(arguments) -> result {
    return judge(::syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1));
}

auto new_key(arguments) -> result {
    return judge(::syscall(SYS_add_key, "user", "hostile", "x", 1, KEY_SPEC_PROCESS_KEYRING));
}

auto find_key(arguments with) -> result {
    return judge(::syscall(SYS_request_key, "user", with[0], nullptr, 0));
}

auto by_handle(arguments with) -> result {
    alignas(::file_handle) std::array<char, sizeof(::file_handle) + MAX_HANDLE_SZ> bytes{};
    auto* const handle = reinterpret_cast<::file_handle*>(bytes.data());
    handle->handle_bytes = MAX_HANDLE_SZ;
    int mount = 0;
    if (::name_to_handle_at(AT_FDCWD, with[0], handle, &mount, 0) != 0) return untried("handle");
    const int place = ::open(with[0], O_RDONLY | O_CLOEXEC);
    if (place < 0) return untried("open");
    return judge(::open_by_handle_at(place, handle, O_RDONLY));
}

auto kernel_log(arguments) -> result {
    constexpr int size_of_buffer = 10;
    return judge(::klogctl(size_of_buffer, nullptr, 0));
}

auto other_personality(arguments) -> result { return judge(::personality(READ_IMPLIES_EXEC)); }

auto host_name(arguments) -> result { return judge(::sethostname("owned", 5)); }

auto open_behind_pointer(arguments with) -> result {
    const std::array<std::uint64_t, 3> how{O_RDONLY, 0, 0};
    return judge(::syscall(SYS_openat2, AT_FDCWD, with[0], how.data(), sizeof how));
}

// The two other doors into the x86-64 kernel. Going through one is the attack.
template<class Enter> auto enter(Enter&& by) -> result {
    const auto child = ::fork();
    if (child == 0) ::_exit(by() > 0 ? 0 : 1);
    int status = 0;
    if (::waitpid(child, &status, 0) != child) return untried("waitpid");
    if (WIFSIGNALED(status)) return denied("signal " + std::to_string(WTERMSIG(status)));
    return WEXITSTATUS(status) == 0 ? worked() : denied("no such door");
}

auto old_door(arguments) -> result {
#if defined(__x86_64__)
    return enter([] {
        long answer = 20; // getpid of i386
        asm volatile("int $0x80" : "+a"(answer) : : "memory", "r8", "r9", "r10", "r11");
        return answer;
    });
#else
    return denied("no such door");
#endif
}

auto x32_door(arguments) -> result {
    return enter([] { return ::syscall(0x40000000L | SYS_getpid); });
}

constexpr std::array attacks{
    attack{"bpf_map", "load something into the kernel", bpf_map},
    attack{"perf", "watch the processor", perf},
    attack{"user_faults", "stop the kernel in the middle of a copy", user_faults},
    attack{"io_ring", "make calls past the filter", io_ring},
    attack{"session_key", "name the session's keyring", key_of_session},
    attack{"new_key", "put a key into a keyring", new_key},
    attack{"find_key NAME", "find a key of the invoker", find_key},
    attack{"by_handle PATH", "open a file by its inode", by_handle},
    attack{"kernel_log", "ask the kernel's log", kernel_log},
    attack{"other_personality", "make all memory executable", other_personality},
    attack{"host_name", "rename the host", host_name},
    attack{"open_behind_pointer PATH", "open with a mode the filter cannot see",
           open_behind_pointer},
    attack{"old_door", "enter by int 0x80", old_door},
    attack{"x32_door", "enter by the x32 numbers", x32_door},
};

} // namespace

auto syscall_attacks() -> std::span<const attack> { return attacks; }

} // namespace hostile
