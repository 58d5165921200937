// Runs a program whose standard output is a terminal, and brings back what the terminal was given.
//
// Guarantees: its standard input is empty and its errors are dropped; it is reaped.
#pragma once
#include <support/program.hpp>
#include <sys/ioctl.h>
#include <termios.h>

namespace glove::test {

inline auto run_on_terminal(const std::vector<std::string>& argv, const variables& extra,
                            const std::string& directory, unsigned short columns) -> ran {
    const sys::unique_fd master{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
    prepared(master && ::grantpt(master.get()) == 0 && ::unlockpt(master.get()) == 0, "pty");
    char name[128];
    prepared(::ptsname_r(master.get(), name, sizeof name) == 0, "ptsname");
    sys::unique_fd slave{::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)};
    const ::winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    prepared(slave && ::ioctl(slave.get(), TIOCSWINSZ, &size) == 0, name);
    ::termios how{};
    prepared(::tcgetattr(slave.get(), &how) == 0, "tcgetattr");
    ::cfmakeraw(&how); // no carriage returns in what comes back
    prepared(::tcsetattr(slave.get(), TCSANOW, &how) == 0, "tcsetattr");
    const auto child = ::fork();
    prepared(child >= 0, "fork");
    if (child == 0) {
        const sys::unique_fd nothing{::open("/dev/null", O_RDWR | O_CLOEXEC)};
        (void)::dup2(nothing.get(), 0);
        (void)::dup2(slave.get(), 1);
        (void)::dup2(nothing.get(), 2);
        ::clearenv();
        ::setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
        ::setenv("TERM", "xterm-256color", 1);
        for (const auto& [key, value] : extra) ::setenv(key.c_str(), value.c_str(), 1);
        std::vector<char*> words;
        for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        if (::chdir(directory.c_str()) == 0) (void)::execvp(words.front(), words.data());
        ::_exit(124);
    }
    slave = {};
    ran result;
    result.out = hear(master); // ends with EIO when the last writer is gone
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return result;
}

} // namespace glove::test
