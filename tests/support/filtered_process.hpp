// A process that puts a filter on itself and is spent on one case: a filter cannot be taken off.
//
// Guarantees: the case runs in a folder of its own, with a fresh stream pair at descriptors 3 and 4
// and a file at 5; how it ended comes back as a value. Any failure of the preparation fails the
// test.
#pragma once
#include "container/linux/seccomp_bpf.hpp"
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace glove::container::seccomp {

inline constexpr ::uid_t nobody = 65534;

struct ending {
    int signal = 0; // the process was killed
    long value = 0; // what the call returned
    int error = 0;  // errno when it returned -1
};

struct setup {
    network_tier tier = network_tier::offline;
    unsigned declared = 0;
    bool filtered = true;
    bool drop = false;
};

class folder {
public:
    folder() {
        std::string name = testing::TempDir() + "/glove-seccomp-XXXXXX";
        if (::mkdtemp(name.data()) == nullptr) std::abort();
        path_ = name;
        std::filesystem::permissions(path_, std::filesystem::perms::all);
    }
    folder(const folder&) = delete;
    auto operator=(const folder&) = delete;
    ~folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] auto path() const -> const std::filesystem::path& { return path_; }

private:
    std::filesystem::path path_;
};

inline void require(bool holds, int code) {
    if (!holds) ::_exit(code);
}

// In the child: own folder with a file, a stream pair at 3 and 4, then identity, then the filter.
inline void enter(const setup& how, const folder& place) {
    const ::rlimit none{0, 0};
    require(::setrlimit(RLIMIT_CORE, &none) == 0, 120);
    require(::chdir(place.path().c_str()) == 0, 121);
    std::array<int, 2> pair{};
    require(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) == 0, 122);
    for (int& end : pair) end = ::fcntl(end, F_DUPFD, 200);
    require(::dup2(pair[0], 3) == 3 && ::dup2(pair[1], 4) == 4, 123);
    if (how.drop)
        require(::setresgid(nobody, nobody, nobody) == 0 &&
                    ::setresuid(nobody, nobody, nobody) == 0,
                124);
    const int file = ::open("file", O_CREAT | O_WRONLY | O_EXCL, 0600);
    require(file >= 0 && ::dup2(file, 5) == 5, 125);
    require(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, 126);
    if (how.filtered) require(install(program_for(how.tier, how.declared)) == 0, 127);
}

inline auto spend(const setup& how, const std::function<long()>& body) -> ending {
    const folder place;
    std::array<int, 2> report{};
    EXPECT_EQ(::pipe2(report.data(), O_CLOEXEC), 0);
    const auto pid = ::fork();
    if (pid == 0) {
        const int out = ::fcntl(report[1], F_DUPFD_CLOEXEC, 100);
        enter(how, place);
        errno = 0;
        ending seen{0, body(), 0};
        if (seen.value == -1) seen.error = errno;
        require(::write(out, &seen, sizeof seen) == sizeof seen, 119);
        ::_exit(0);
    }
    ::close(report[1]);
    ending seen{};
    const auto got = ::read(report[0], &seen, sizeof seen);
    ::close(report[0]);
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) return {WTERMSIG(status), 0, 0};
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(got, static_cast<::ssize_t>(sizeof seen));
    return seen;
}

// Whether to become nobody first: an agent is nobody, but only root shows that it is the filter
// that refuses.
inline auto identities() -> std::vector<bool> {
    return ::geteuid() == 0 ? std::vector{false, true} : std::vector{false};
}

inline constexpr setup offline{network_tier::offline};
inline constexpr setup local{network_tier::local};
inline constexpr setup egress{network_tier::egress};
inline constexpr setup sealed_0{network_tier::sealed, 0};
inline constexpr setup sealed_1{network_tier::sealed, 1};

} // namespace glove::container::seccomp
