// Tries to leave a set-uid or set-gid file, a device or a changed node, by every call with a mode.
#include "attack.hpp"
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hostile {
namespace {

constexpr ::mode_t set_id = S_ISUID | S_ISGID;
constexpr long nr_fchmodat2 = 452;

struct way {
    std::string_view name;
    // Makes or changes `path`; returns an open descriptor of an unnamed file, or what the call did.
    long (*take)(const char* path, std::uint64_t mode);
};

void prepare(const char* path) {
    (void)::unlink(path);
    (void)::close(::open(path, O_CREAT | O_WRONLY, 0600));
}

constexpr std::array ways{
#ifdef SYS_chmod
    way{"chmod",
        [](const char* path, std::uint64_t mode) {
            prepare(path);
            return ::syscall(SYS_chmod, path, mode);
        }},
    way{"open",
        [](const char* path, std::uint64_t mode) {
            return ::syscall(SYS_open, path, O_CREAT | O_WRONLY, mode);
        }},
    way{"creat",
        [](const char* path, std::uint64_t mode) { return ::syscall(SYS_creat, path, mode); }},
    way{"mknod", [](const char* path,
                    std::uint64_t mode) { return ::syscall(SYS_mknod, path, S_IFREG | mode, 0); }},
    way{"mkdir",
        [](const char* path, std::uint64_t mode) { return ::syscall(SYS_mkdir, path, mode); }},
#endif
    way{"fchmod",
        [](const char* path, std::uint64_t mode) {
            prepare(path);
            return ::syscall(SYS_fchmod, ::open(path, O_RDONLY), mode);
        }},
    way{"fchmodat",
        [](const char* path, std::uint64_t mode) {
            prepare(path);
            return ::syscall(SYS_fchmodat, AT_FDCWD, path, mode);
        }},
    way{"fchmodat2",
        [](const char* path, std::uint64_t mode) {
            prepare(path);
            const auto done = ::syscall(nr_fchmodat2, AT_FDCWD, path, mode, 0);
            if (done != 0 && errno == ENOSYS && (mode & set_id) == 0) return 0L; // an older kernel
            return done;
        }},
    way{"openat",
        [](const char* path, std::uint64_t mode) {
            return ::syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_WRONLY, mode);
        }},
    way{"openat of an unnamed file",
        [](const char*, std::uint64_t mode) {
            return ::syscall(SYS_openat, AT_FDCWD, ".", O_TMPFILE | O_RDWR, mode);
        }},
    way{"mknodat",
        [](const char* path, std::uint64_t mode) {
            return ::syscall(SYS_mknodat, AT_FDCWD, path, S_IFREG | mode, 0);
        }},
    way{"mkdirat", [](const char* path,
                      std::uint64_t mode) { return ::syscall(SYS_mkdirat, AT_FDCWD, path, mode); }},
};

void remove(const char* path) {
    (void)::unlink(path);
    (void)::rmdir(path);
}

// Whether the call succeeded, and the mode that it left.
auto take(const way& by, std::uint64_t mode, ::mode_t& left) -> bool {
    constexpr const char* name = "set-id";
    remove(name);
    const auto done = by.take(name, mode);
    struct ::stat found{};
    const bool seen =
        (done > 2 && ::fstat(static_cast<int>(done), &found) == 0) || ::lstat(name, &found) == 0;
    left = seen ? found.st_mode & 07777U : 0;
    if (done > 2) (void)::close(static_cast<int>(done));
    remove(name);
    return done >= 0;
}

auto set_id_modes(arguments with) -> result {
    if (::chdir(with[0]) != 0) return untried("chdir");
    (void)::umask(0);
    constexpr std::uint64_t rubbish[] = {0, 1ULL << 32, 0xffffffff00000000};
    for (const auto& by : ways)
        for (const ::mode_t bits : {::mode_t{S_ISUID}, ::mode_t{S_ISGID}, set_id})
            for (const auto above : rubbish) {
                ::mode_t left = 0;
                (void)take(by, 0755U | bits | above, left);
                if ((left & set_id) != 0) return worked(std::string{by.name});
            }
    return denied("all of them");
}

// The same calls without the bits.
auto plain_modes(arguments with) -> result {
    if (::chdir(with[0]) != 0) return untried("chdir");
    (void)::umask(0);
    for (const auto& by : ways) {
        ::mode_t left = 0;
        if (!take(by, 0755, left) || left != 0755) return denied(std::string{by.name});
    }
    return worked();
}

auto same_mode(arguments with) -> result {
    struct ::stat found{};
    if (::stat(with[0], &found) != 0) return untried("stat");
    return judge(::chmod(with[0], found.st_mode & 07777U));
}

auto same_owner(arguments with) -> result {
    struct ::stat found{};
    if (::stat(with[0], &found) != 0) return untried("stat");
    return judge(::chown(with[0], found.st_uid, found.st_gid));
}

auto give_away(arguments with) -> result { return judge(::chown(with[0], 12345, 12345)); }

auto device_node(arguments with) -> result {
    constexpr unsigned memory_major = 1, zero_minor = 5;
    if (::mknod(with[0], S_IFCHR | 0666, ::makedev(memory_major, zero_minor)) != 0) return denied();
    const int node = ::open(with[0], O_RDONLY | O_CLOEXEC);
    (void)::unlink(with[0]);
    return judge(node);
}

auto fifo_node(arguments with) -> result { return judge(::mkfifo(with[0], 0600)); }

// Runs a program and watches whether it ever has another effective identity than this one.
auto set_id_program(arguments with) -> result {
    std::array<int, 2> quiet{};
    if (::pipe(quiet.data()) != 0) return untried("pipe");
    const auto child = ::fork();
    if (child == 0) {
        (void)::dup2(quiet[0], 0);
        (void)::dup2(::open("/dev/null", O_RDWR), 1);
        (void)::dup2(1, 2);
        ::execl(with[0], with[0], with.size() > 1 ? with[1] : nullptr, nullptr);
        ::_exit(99);
    }
    const auto place = "/proc/" + std::to_string(child);
    bool gained = false;
    for (int i = 0; i < 100 && !gained; ++i) {
        std::array<char, 4096> text{};
        const int status = ::open((place + "/status").c_str(), O_RDONLY | O_CLOEXEC);
        if (status < 0 || ::read(status, text.data(), text.size() - 1) <= 0) break;
        (void)::close(status);
        unsigned real = 0, effective = 0;
        const char* const line = std::strstr(text.data(), "\nUid:");
        if (line == nullptr || std::sscanf(line, "\nUid: %u %u", &real, &effective) != 2)
            return untried("status");
        gained = effective != ::geteuid();
        (void)::usleep(5000);
    }
    (void)::kill(child, SIGKILL);
    int status = 0;
    (void)::waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 99) return untried("exec");
    return gained ? worked() : denied("same identity");
}

auto wait_for_input(arguments) -> result {
    char byte = 0;
    return judge(::read(0, &byte, 1));
}

constexpr std::array attacks{
    attack{"set_id_modes DIR", "leave a set-id file by any call", set_id_modes},
    attack{"plain_modes DIR", "the same calls without those bits", plain_modes},
    attack{"same_mode PATH", "change the mode of a node", same_mode},
    attack{"same_owner PATH", "change the owner of a node", same_owner},
    attack{"give_away PATH", "give a file to somebody else", give_away},
    attack{"device_node PATH", "make a device and open it", device_node},
    attack{"fifo_node PATH", "make a FIFO", fifo_node},
    attack{"set_id_program PATH", "gain an identity from a set-id program", set_id_program},
    attack{"wait_for_input", "wait, for others to look at it", wait_for_input},
};

} // namespace

auto mode_attacks() -> std::span<const attack> { return attacks; }

} // namespace hostile
