// Takes exactly as much of something as it is told, and says how far it came.
//
//   consume memory KIB          private memory
//   consume shared KIB          memory by a file without a name
//   consume shm KIB             a segment of System V
//   consume huge KIB            huge pages
//   consume file KIB PATH       a file, all of it written
//   consume unlinked KIB PATH   the same, of a file that has no name any more
//   consume sparse KIB PATH     a file of that size with nothing in it but its last page
//   consume child KIB           private memory of a child
//   consume children KIB COUNT  private memory, in equal parts of COUNT children at once
//   consume late KIB            private memory, once somebody asks it to end
//   consume processes COUNT     children beside itself
//   consume threads COUNT       threads beside its own
//   consume bomb COUNT          children which make children, and so on, COUNT at the most
//   consume busy MS COUNT       processors, by COUNT threads, for that long
//   consume spin MS COUNT       processor time, by COUNT threads; 0 is for ever
//   consume forks MS COUNT      processor time of children, COUNT at once; 0 is for ever
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <pthread.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using std::chrono::milliseconds;

int said(const char* what) {
    std::printf("%s\n", what);
    return 0;
}

int touch(void* place, std::size_t size) {
    if (place == MAP_FAILED) return said(std::strerror(errno));
    for (std::size_t at = 0; at < size; at += 4096) static_cast<volatile char*>(place)[at] = 1;
    return said("had it");
}

int fill(std::size_t size, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1) {
    return touch(::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, 0), size);
}

int shared(std::size_t size) {
    const int fd = ::memfd_create("consume", MFD_CLOEXEC);
    if (fd < 0 || ::ftruncate(fd, static_cast<::off_t>(size)) != 0)
        return said(std::strerror(errno));
    return fill(size, MAP_SHARED, fd);
}

int segment(std::size_t size) {
    const int id = ::shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
    return touch(id < 0 ? MAP_FAILED : ::shmat(id, nullptr, 0), size);
}

int write_out(int fd, std::size_t size) {
    const std::vector<char> block(4096, 'x');
    for (std::size_t at = 0; at < size; at += block.size())
        if (::write(fd, block.data(), block.size()) != static_cast<::ssize_t>(block.size()))
            return said(std::strerror(errno));
    return said("had it");
}

int file(std::string_view what, std::size_t size, const char* path) {
    const int fd = ::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return said(std::strerror(errno));
    if (what == "unlinked" && ::unlink(path) != 0) return said(std::strerror(errno));
    if (what != "sparse") return write_out(fd, size);
    if (::ftruncate(fd, static_cast<::off_t>(size)) != 0 ||
        ::lseek(fd, static_cast<::off_t>(size - 4096), SEEK_SET) < 0)
        return said(std::strerror(errno));
    return write_out(fd, 4096);
}

int children(std::size_t size, int count) {
    for (int i = 0; i < count; ++i)
        if (::fork() == 0) {
            (void)fill(size / static_cast<std::size_t>(count));
            (void)std::fflush(stdout);
            (void)::sleep(2); // so that they have it at once
            ::_exit(0);
        }
    while (::wait(nullptr) > 0) {
    }
    return said("their parent goes on");
}

int late(std::size_t size) {
    ::sigset_t wanted;
    ::sigemptyset(&wanted);
    ::sigaddset(&wanted, SIGTERM);
    (void)::sigprocmask(SIG_BLOCK, &wanted, nullptr);
    (void)said("waits");
    (void)std::fflush(stdout);
    int number = 0;
    (void)::sigwait(&wanted, &number);
    return fill(size);
}

int told(int made, int count) {
    std::printf("%d%s\n", made, made < count ? " and no more" : "");
    return 0;
}

int processes(int count) {
    int made = 0;
    for (; made < count; ++made) {
        const auto one = ::fork();
        if (one < 0) break;
        if (one == 0)
            for (;;) (void)::pause();
    }
    return told(made, count);
}

void* wait_for_ever(void*) {
    for (;;) (void)::pause();
}

int threads(int count) {
    int made = 0;
    for (; made < count; ++made)
        if (::pthread_t one{}; ::pthread_create(&one, nullptr, wait_for_ever, nullptr) != 0) break;
    (void)told(made, count);
    (void)std::fflush(stdout);
    ::_exit(0);
}

int bomb(int count) {
    struct numbers {
        std::atomic<int> tried, made;
    };
    auto* const all = static_cast<numbers*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const auto first = ::getpid();
    while (all->tried.fetch_add(1) < count) {
        const auto one = ::fork();
        if (one < 0) break;
        if (one > 0) all->made.fetch_add(1);
    }
    if (::getpid() != first)
        for (;;) (void)::pause();
    (void)::sleep(1); // the others go on
    return told(all->made.load(), count);
}

[[nodiscard]] milliseconds used(::clockid_t clock) {
    ::timespec now{};
    (void)::clock_gettime(clock, &now);
    return std::chrono::duration_cast<milliseconds>(std::chrono::seconds{now.tv_sec} +
                                                    std::chrono::nanoseconds{now.tv_nsec});
}

// Until the clock has gone on for so long.
void spin_by(::clockid_t clock, milliseconds time) {
    const auto begin = used(clock);
    while (time.count() == 0 || used(clock) - begin < time)
        for (volatile int i = 0; i < 20'000;) i = i + 1;
}

int spin(::clockid_t clock, milliseconds time, int count) {
    std::vector<std::thread> all;
    for (int i = 0; i < count; ++i) all.emplace_back(spin_by, clock, time);
    for (auto& one : all) one.join();
    return said("done");
}

int forks(milliseconds time, int count) {
    constexpr milliseconds each{50};
    const auto rounds = time / each / count;
    for (int round = 0; time.count() == 0 || round < rounds; ++round) {
        for (int i = 0; i < count; ++i)
            if (::fork() == 0) {
                spin_by(CLOCK_PROCESS_CPUTIME_ID, each);
                ::_exit(0);
            }
        while (::wait(nullptr) > 0) {
        }
    }
    return said("done");
}

} // namespace

int main(int count, char** words) {
    if (count < 3) return 2;
    const std::string_view what = words[1];
    const int number = std::atoi(words[2]), second = count > 3 ? std::atoi(words[3]) : 0;
    const auto size = static_cast<std::size_t>(number) * 1024;
    if (what == "memory") return fill(size);
    if (what == "shared") return shared(size);
    if (what == "shm") return segment(size);
    if (what == "huge") return fill(size, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB);
    if (what == "late") return late(size);
    if (what == "child") return children(size, 1);
    if (what == "processes") return processes(number);
    if (what == "threads") return threads(number);
    if (what == "bomb") return bomb(number);
    if (count < 4) return 2;
    if (what == "file" || what == "unlinked" || what == "sparse") return file(what, size, words[3]);
    if (what == "children") return children(size, second);
    if (what == "busy") return spin(CLOCK_MONOTONIC, milliseconds{number}, second);
    if (what == "spin") return spin(CLOCK_PROCESS_CPUTIME_ID, milliseconds{number}, second);
    if (what == "forks") return forks(milliseconds{number}, second);
    return 2;
}
