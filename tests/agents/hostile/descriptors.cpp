// Looks for what was handed over by accident: descriptors, a working directory, words, signals.
#include "attack.hpp"
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char** environ;

namespace hostile {
namespace {

auto open_descriptors(arguments) -> result {
    std::string extra;
    ::rlimit most{};
    if (::getrlimit(RLIMIT_NOFILE, &most) != 0) return untried("getrlimit");
    const auto end = std::min<::rlim_t>(most.rlim_max, 1 << 16);
    for (int fd = 3; fd < static_cast<int>(end); ++fd)
        if (::fcntl(fd, F_GETFD) >= 0) extra += std::to_string(fd) + " ";
    return extra.empty() ? denied("0, 1 and 2") : worked(extra);
}

auto leave_by_directory(arguments) -> result {
    for (int fd = 0; fd < 4096; ++fd)
        if (::openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC) >= 0)
            return worked(std::to_string(fd));
    return denied("no directory");
}

auto outer_directory(arguments with) -> result {
    std::array<char, 4096> here{};
    if (::getcwd(here.data(), here.size()) == nullptr) return worked("no name");
    if (here[0] != '/') return worked(here.data());
    if (std::string_view{here.data()} != with[0]) return worked(here.data());
    return denied(here.data());
}

auto reopen_for_writing(arguments with) -> result {
    const auto name = std::string{"/proc/self/fd/"} + with[0];
    const int file = ::open(name.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) return denied();
    return judge(::write(file, "owned\n", 6));
}

auto change_mode_of_stream(arguments with) -> result {
    constexpr int octal = 8;
    return judge(::fchmod(0, static_cast<::mode_t>(std::strtol(with[0], nullptr, octal))));
}

auto environment(arguments with) -> result {
    const char* const value = std::getenv(with[0]);
    if (value == nullptr) return denied("not set");
    return worked(value);
}

auto in_environment(arguments with) -> result {
    for (char** at = environ; *at != nullptr; ++at)
        if (std::strstr(*at, with[0]) != nullptr) return worked(*at);
    std::ifstream shown{"/proc/self/environ"};
    for (std::string word; std::getline(shown, word, '\0');)
        if (word.find(with[0]) != std::string::npos) return worked(word);
    return denied("not there");
}

auto inherited_signals(arguments) -> result {
    std::ifstream status{"/proc/self/status"};
    for (std::string line; std::getline(status, line);)
        if ((line.starts_with("SigBlk:") || line.starts_with("SigIgn:") ||
             line.starts_with("SigCgt:")) &&
            line.find_first_not_of("0\t ", 7) != std::string::npos)
            return worked(line);
    return denied("none");
}

auto core_dumps(arguments) -> result {
    ::rlimit core{};
    if (::getrlimit(RLIMIT_CORE, &core) != 0) return untried("getrlimit");
    const bool none = core.rlim_cur <= 1 && core.rlim_max <= 1;
    return none ? denied(std::to_string(core.rlim_cur)) : worked();
}

// With that a crash would start the host's program for core files.
auto lower_core_limit(arguments) -> result {
    constexpr ::rlimit zero{0, 0};
    // An address whose lower half is zero.
    void* const far = ::mmap(reinterpret_cast<void*>(1UL << 32U), 4096, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (far == MAP_FAILED) return untried("mmap");
    std::memcpy(far, &zero, sizeof zero);
    for (const void* const place :
         {static_cast<const void*>(&zero), static_cast<const void*>(far)}) {
        (void)::syscall(SYS_prlimit64, 0, RLIMIT_CORE, place, nullptr);
        (void)::syscall(SYS_prlimit64, ::getpid(), RLIMIT_CORE | 1UL << 32U, place, nullptr);
        (void)::syscall(SYS_setrlimit, RLIMIT_CORE, place);
    }
    ::rlimit now{};
    if (::getrlimit(RLIMIT_CORE, &now) != 0) return untried("getrlimit");
    return now.rlim_cur == 0 ? worked() : denied(std::to_string(now.rlim_cur));
}

auto more_files(arguments with) -> result {
    ::rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return untried("getrlimit");
    return files.rlim_cur != std::stoull(with[0]) ? worked(std::to_string(files.rlim_cur))
                                                  : denied("as the caller's");
}

constexpr std::array attacks{
    attack{"open_descriptors", "find a descriptor that was left open", open_descriptors},
    attack{"leave_by_directory", "walk up from a descriptor", leave_by_directory},
    attack{"outer_directory EXPECTED", "stand somewhere else", outer_directory},
    attack{"reopen_for_writing FD", "write to a file given for reading", reopen_for_writing},
    attack{"change_mode_of_stream MODE", "change what is standard input", change_mode_of_stream},
    attack{"environment NAME", "read a variable", environment},
    attack{"in_environment TEXT", "find a secret in any variable", in_environment},
    attack{"inherited_signals", "find signals blocked or ignored", inherited_signals},
    attack{"core_dumps", "leave a core dump", core_dumps},
    attack{"lower_core_limit", "have the host's program for core files started", lower_core_limit},
    attack{"other_open_files LIMIT", "have another limit than the caller", more_files},
};

} // namespace

auto descriptor_attacks() -> std::span<const attack> { return attacks; }

} // namespace hostile
