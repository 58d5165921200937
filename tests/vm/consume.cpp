// Takes exactly as much of something as it is told, and says how far it came.
//
//   consume memory MIB       private memory            consume shared MIB        a file without a
//   name consume file MIB PATH    a file, all of it written consume child MIB         memory of a
//   child consume processes COUNT  children beside itself    consume threads COUNT     threads
//   beside its own consume spin MS COUNT    processor time, in COUNT threads; 0 ms is for ever
//   consume forks MS         processor time of children, one after another; 0 ms is for ever
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::size_t mebibyte = 1UL << 20U;

int said(const char* what) {
    std::printf("%s\n", what);
    return 0;
}

int fill(int fd, std::size_t size) {
    void* const place = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                               fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    if (place == MAP_FAILED) return said(std::strerror(errno));
    for (std::size_t at = 0; at < size; at += 4096) static_cast<volatile char*>(place)[at] = 1;
    return said("had it");
}

int shared(std::size_t size) {
    const int fd = ::memfd_create("consume", MFD_CLOEXEC);
    if (fd < 0 || ::ftruncate(fd, static_cast<::off_t>(size)) != 0)
        return said(std::strerror(errno));
    return fill(fd, size);
}

int file(std::size_t size, const char* path) {
    const int fd = ::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const std::vector<char> block(mebibyte, 'x');
    for (std::size_t at = 0; at < size; at += mebibyte)
        if (::write(fd, block.data(), block.size()) != static_cast<::ssize_t>(block.size()))
            return said(std::strerror(errno));
    return said("had it");
}

int child(std::size_t size) {
    if (::fork() == 0) {
        (void)fill(-1, size);
        (void)std::fflush(stdout);
        ::_exit(0);
    }
    (void)::wait(nullptr);
    return said("its parent goes on");
}

int processes(int count) {
    int made = 0;
    for (; made < count; ++made) {
        const auto one = ::fork();
        if (one < 0) break;
        if (one == 0)
            for (;;) (void)::pause();
    }
    std::printf("%d%s\n", made, made < count ? " and no more" : "");
    return 0;
}

void* wait_for_ever(void*) {
    for (;;) (void)::pause();
}

int threads(int count) {
    int made = 0;
    for (; made < count; ++made)
        if (::pthread_t one{}; ::pthread_create(&one, nullptr, wait_for_ever, nullptr) != 0) break;
    std::printf("%d%s\n", made, made < count ? " and no more" : "");
    (void)std::fflush(stdout);
    ::_exit(0);
}

void use_processor(std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (time.count() == 0 || std::chrono::steady_clock::now() < end)
        for (volatile int i = 0; i < 100'000;) i = i + 1;
}

int spin(std::chrono::milliseconds time, int count) {
    std::vector<std::thread> all;
    for (int i = 0; i < count; ++i) all.emplace_back(use_processor, time);
    for (auto& one : all) one.join();
    return said("done");
}

int forks(std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (time.count() == 0 || std::chrono::steady_clock::now() < end) {
        if (::fork() == 0) {
            use_processor(std::chrono::milliseconds{50});
            ::_exit(0);
        }
        (void)::wait(nullptr);
    }
    return said("done");
}

} // namespace

int main(int count, char** words) {
    if (count < 3) return 2;
    const std::string_view what = words[1];
    const int number = std::atoi(words[2]);
    const auto size = static_cast<std::size_t>(number) * mebibyte;
    if (what == "memory") return fill(-1, size);
    if (what == "shared") return shared(size);
    if (what == "file" && count > 3) return file(size, words[3]);
    if (what == "child") return child(size);
    if (what == "processes") return processes(number);
    if (what == "threads") return threads(number);
    if (what == "spin" && count > 3)
        return spin(std::chrono::milliseconds{number}, std::atoi(words[3]));
    if (what == "forks") return forks(std::chrono::milliseconds{number});
    return 2;
}
