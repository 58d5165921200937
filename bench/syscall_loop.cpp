// What a system call costs where this runs: prints the nanoseconds of one getpid and of one read of
// a byte of /dev/zero, each the best of a few loops.
//
//   syscall_loop [CALLS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr int loops = 5;

template<class F> [[nodiscard]] auto best(long calls, F call) -> double {
    double least = 1e18;
    for (int loop = 0; loop < loops; ++loop) {
        const auto begin = std::chrono::steady_clock::now();
        for (long i = 0; i < calls; ++i) call();
        const std::chrono::duration<double, std::nano> took =
            std::chrono::steady_clock::now() - begin;
        least = std::min(least, took.count() / static_cast<double>(calls));
    }
    return least;
}

} // namespace

auto main(int argc, char** argv) -> int {
    const long calls = argc > 1 ? std::atol(argv[1]) : 200'000;
    const int zero = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
    if (zero < 0 || calls <= 0) return 1;
    char byte = 0;
    const auto getpid = best(calls, [] { (void)::syscall(SYS_getpid); });
    const auto read = best(calls, [&] { (void)!::read(zero, &byte, 1); });
    (void)std::printf("%.2f %.2f\n", getpid, read);
    return 0;
}
