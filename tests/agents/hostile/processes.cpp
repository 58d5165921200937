// Attacks other processes: Glove's own init, which is process 1, and whatever of the host is in
// sight.
//
// Where a process number is taken, 1 names init and "child" a child that the attack makes itself:
// the twin, which a debugger needs.
#include "attack.hpp"
#include <array>
#include <csignal>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hostile {
namespace {

volatile long marker = 1;

class target {
public:
    explicit target(std::string_view word) {
        if (word == "self") pid_ = ::getpid();
        else if (word != "child") pid_ = std::atoi(std::string{word}.c_str());
        else {
            pid_ = child_ = ::fork();
            if (pid_ == 0)
                for (;;) (void)::pause();
        }
    }
    target(const target&) = delete;
    auto operator=(const target&) = delete;
    ~target() {
        if (child_ <= 0) return;
        (void)::kill(child_, SIGKILL);
        (void)::waitpid(child_, nullptr, 0);
    }
    [[nodiscard]] auto pid() const -> ::pid_t { return pid_; }

private:
    ::pid_t pid_ = -1;
    ::pid_t child_ = -1;
};

auto slurp(const std::string& path) -> std::string {
    std::ifstream file{path};
    return {std::istreambuf_iterator<char>{file}, {}};
}

auto trace(arguments with) -> result {
    const target victim{with[0]};
    if (::ptrace(PTRACE_ATTACH, victim.pid(), nullptr, nullptr) != 0) return denied();
    (void)::waitpid(victim.pid(), nullptr, __WALL);
    return judge(::ptrace(PTRACE_DETACH, victim.pid(), nullptr, nullptr));
}

auto seize(arguments with) -> result {
    const target victim{with[0]};
    return judge(::ptrace(PTRACE_SEIZE, victim.pid(), nullptr, nullptr));
}

auto write_memory(arguments with) -> result {
    const target victim{with[0]};
    long value = 2;
    const ::iovec from{&value, sizeof value};
    const ::iovec to{const_cast<long*>(&marker), sizeof marker};
    return judge(::process_vm_writev(victim.pid(), &from, 1, &to, 1, 0));
}

auto read_memory(arguments with) -> result {
    const target victim{with[0]};
    long value = 0;
    const ::iovec to{&value, sizeof value};
    const ::iovec from{const_cast<long*>(&marker), sizeof marker};
    return judge(::process_vm_readv(victim.pid(), &to, 1, &from, 1, 0));
}

auto take_descriptor(arguments with) -> result {
    const target victim{with[0]};
    const auto handle = ::syscall(SYS_pidfd_open, victim.pid(), 0);
    if (handle < 0) return denied();
    for (int number = 0; number < 16; ++number)
        if (::syscall(SYS_pidfd_getfd, handle, number, 0) >= 0)
            return worked(std::to_string(number));
    return denied();
}

// Reads from /proc/PID/NAME, or with a third word writes that to it.
auto process_file(arguments with) -> result {
    const target victim{with[0]};
    const auto path = "/proc/" + std::to_string(victim.pid()) + "/" + with[1];
    const int how = with.size() > 2 ? O_WRONLY : O_RDONLY;
    const int file = ::open(path.c_str(), how | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return denied();
    if (how == O_WRONLY) return judge(::write(file, with[2], std::strlen(with[2])));
    std::array<char, 8> some{};
    const auto got = ::read(file, some.data(), some.size());
    // Open it was: the first page is not mapped, and a directory has no bytes.
    return got < 0 && errno != EIO && errno != EISDIR ? denied() : worked();
}

auto process_link(arguments with) -> result {
    const target victim{with[0]};
    const auto path = "/proc/" + std::to_string(victim.pid()) + "/" + with[1];
    std::array<char, 4096> to{};
    return judge(::readlink(path.c_str(), to.data(), to.size()));
}

// Root may list the numbers of a process it cannot open anything of; what they lead to is the
// attack.
auto follow_descriptors(arguments with) -> result {
    const target victim{with[0]};
    const auto place = "/proc/" + std::to_string(victim.pid()) + "/fd/";
    for (int number = 0; number < 64; ++number) {
        std::array<char, 4096> to{};
        const auto name = place + std::to_string(number);
        if (::readlink(name.c_str(), to.data(), to.size()) >= 0) return worked(to.data());
        if (::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC) >= 0) return worked(name);
    }
    return denied("none");
}

// Looks for TEXT in everything that /proc shows of a process to others.
auto spoken_words(arguments with) -> result {
    const target victim{with[0]};
    std::string seen;
    for (const char* const name : {"cmdline", "environ", "comm", "status", "stat", "mountinfo"})
        seen += slurp("/proc/" + std::to_string(victim.pid()) + "/" + name);
    return seen.find(with[1]) == std::string::npos ? denied("not there") : worked();
}

auto find_process(arguments with) -> result {
    auto* const open = ::opendir("/proc");
    if (open == nullptr) return untried("opendir");
    const auto own = std::to_string(::getpid());
    while (const auto* const entry = ::readdir(open)) {
        const std::string name{entry->d_name};
        if (name.find_first_not_of("0123456789") != std::string::npos || name == own) continue;
        if (slurp("/proc/" + name + "/cmdline").find(with[0]) != std::string::npos)
            return worked(name);
    }
    return denied("not there");
}

auto signal_process(arguments with) -> result {
    const target victim{with[0]};
    return judge(::kill(victim.pid(), 0));
}

// Each signal that could end or stop process 1, one after the other.
auto end_process(arguments with) -> result {
    const target victim{with[0]};
    for (const int number : {SIGKILL, SIGSTOP, SIGTERM, SIGABRT, SIGSEGV, SIGUSR1, SIGRTMIN})
        (void)::kill(victim.pid(), number);
    (void)::usleep(50'000);
    if (victim.pid() == 1) return denied("still there"); // or nobody would be here to say so
    int status = 0;
    return ::waitpid(victim.pid(), &status, WNOHANG) == victim.pid() ? worked()
                                                                     : denied("still there");
}

auto is_process_one(arguments) -> result {
    return ::getpid() == 1 ? worked() : denied(std::to_string(::getpid()));
}

auto inside_another_group(arguments) -> result {
    const auto group = slurp("/proc/self/cgroup");
    return group.find("0::/\n") == std::string::npos ? worked(group) : denied("the root group");
}

// Opens every program that runs for writing, by name and by way of a descriptor.
auto overwrite_programs(arguments) -> result {
    auto* const open = ::opendir("/proc");
    if (open == nullptr) return untried("opendir");
    int looked_at = 0;
    while (const auto* const entry = ::readdir(open)) {
        const std::string name{entry->d_name};
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        const auto path = "/proc/" + name + "/exe";
        ++looked_at;
        if (::open(path.c_str(), O_WRONLY | O_CLOEXEC) >= 0) return worked(path);
        // Busy is asked first and passes; only a read-only mount lasts.
        const int handle = ::open(path.c_str(), O_PATH | O_CLOEXEC);
        struct ::statvfs mount{};
        if (handle >= 0 && errno == ETXTBSY && ::fstatvfs(handle, &mount) == 0 &&
            (mount.f_flag & ST_RDONLY) == 0)
            return worked(path + " is only busy");
    }
    return looked_at == 0 ? untried("no process") : denied("none");
}

// Leaves a daemon behind that would write the file a second later.
auto outlive(arguments with) -> result {
    if (::fork() == 0) {
        (void)::setsid();
        if (::fork() != 0) ::_exit(0);
        for (int fd = 0; fd < 3; ++fd) (void)::close(fd);
        (void)::signal(SIGHUP, SIG_IGN);
        (void)::usleep(600'000);
        (void)::open(with[0], O_CREAT | O_WRONLY, 0600);
        ::_exit(0);
    }
    return worked();
}

auto wait_long(arguments) -> result {
    (void)::write(1, "here\n", 5);
    for (;;) (void)::pause();
}

constexpr std::array attacks{
    attack{"trace PID", "attach a debugger", trace},
    attack{"seize PID", "attach a newer debugger", seize},
    attack{"write_memory PID", "write into its memory", write_memory},
    attack{"read_memory PID", "read its memory", read_memory},
    attack{"take_descriptor PID", "take one of its descriptors", take_descriptor},
    attack{"process_file PID NAME", "open a file of /proc/PID", process_file},
    attack{"process_link PID NAME", "follow a link of /proc/PID", process_link},
    attack{"follow_descriptors PID", "learn or open what it has open", follow_descriptors},
    attack{"spoken_words PID TEXT", "find words of the caller in /proc/PID", spoken_words},
    attack{"find_process TEXT", "find a process by its command", find_process},
    attack{"signal PID", "be permitted to signal it", signal_process},
    attack{"end PID", "end it by any signal", end_process},
    attack{"is_process_one", "be process 1 of the namespace", is_process_one},
    attack{"control_group", "see where the host keeps it", inside_another_group},
    attack{"overwrite_programs", "open a running program for writing", overwrite_programs},
    attack{"outlive PATH", "act after the run has ended", outlive},
    attack{"wait_long", "stay, for others to look at it", wait_long},
};

} // namespace

auto process_attacks() -> std::span<const attack> { return attacks; }

} // namespace hostile
