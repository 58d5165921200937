// What the programs that measure MCP share: whole writes, and a child that speaks on its stdio.
#pragma once
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <unistd.h>

namespace bench {

[[noreturn]] inline void die(const std::string& what) {
    (void)std::fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what.c_str(),
                       std::strerror(errno));
    std::_Exit(1);
}

inline void write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const auto put = ::write(fd, bytes.data(), bytes.size());
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) die("writing");
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
}

struct child {
    int input = -1;  // its stdin
    int output = -1; // its stdout
};

// Ends with its starter.
[[nodiscard]] inline auto start(char* const* command) -> child {
    int to[2], from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) die("pipe2");
    const auto pid = ::fork();
    if (pid < 0) die("fork");
    if (pid == 0) {
        (void)::prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (::dup2(to[0], 0) < 0 || ::dup2(from[1], 1) < 0) die("dup2");
        (void)::execvp(command[0], command);
        die(command[0]);
    }
    (void)::close(to[0]);
    (void)::close(from[1]);
    return {.input = to[1], .output = from[0]};
}

} // namespace bench
