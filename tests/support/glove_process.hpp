// Runs the program under test, or any other, as a test's child and brings back all that it did.
//
// Guarantees: both outputs are collected whole; a child that does not end in time is killed and
// fails the test; temporary folders are gone afterwards; nothing of the caller's environment
// reaches the child but what the test hands over.
#pragma once
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace glove::test {

using words = std::vector<std::string>;

[[nodiscard]] inline auto operator+(words left, const words& right) -> words {
    left.insert(left.end(), right.begin(), right.end());
    return left;
}

[[nodiscard]] inline auto is_root() -> bool { return ::geteuid() == 0; }

// How many times longer than on an ordinary machine everything takes here: under emulation, ten.
[[nodiscard]] inline auto slowness() -> int {
    const char* const text = std::getenv("GLOVE_SLOWNESS");
    return text == nullptr ? 1 : std::max(1, std::atoi(text));
}

[[nodiscard]] inline auto glove_binary() -> std::string {
    const char* const path = std::getenv("GLOVE_BIN");
    if (path == nullptr) std::abort(); // CTest sets it
    return path;
}

[[nodiscard]] inline auto contents(const std::string& path) -> std::string {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
}

inline void put(const std::string& path, std::string_view text) {
    std::ofstream file{path, std::ios::binary | std::ios::trunc};
    file << text;
    file.close();
    ASSERT_TRUE(file) << path;
}

class temporary_directory {
public:
    temporary_directory() {
        std::string name = "/tmp/glove-test-XXXXXX"; // short: a socket's name has 107 bytes
        if (::mkdtemp(name.data()) == nullptr) std::abort();
        path_ = std::filesystem::canonical(name);
    }
    temporary_directory(const temporary_directory&) = delete;
    auto operator=(const temporary_directory&) = delete;
    ~temporary_directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] auto path() const -> const std::string& { return path_; }
    // The path of `name` in it.
    [[nodiscard]] auto operator/(std::string_view name) const -> std::string {
        return path_ + "/" + std::string{name};
    }
    // Makes a directory and returns its path.
    [[nodiscard]] auto make(std::string_view name) const -> std::string {
        auto made = *this / name;
        std::filesystem::create_directories(made);
        return made;
    }
    auto file(std::string_view name, std::string_view text) const -> std::string {
        auto made = *this / name;
        put(made, text);
        return made;
    }

private:
    std::string path_;
};

struct command {
    words argv{};
    std::map<std::string, std::string> environment{};
    std::string input{};                 // all of standard input
    int standard_input = -1;             // instead of `input`; borrowed
    std::string directory = "/";         // where it starts
    std::function<void()> before_exec{}; // in the child
    std::chrono::milliseconds patience{60'000};
};

struct finished {
    int wait_status = -1;
    std::string output, errors;
    // As a shell says it: 128 and the signal's number.
    [[nodiscard]] auto status() const -> int {
        return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
    }
};

inline auto operator<<(std::ostream& out, const finished& seen) -> std::ostream& {
    return out << "status " << seen.status() << "\noutput: " << seen.output
               << "\nerrors: " << seen.errors;
}

// A child that is still going on. Killed and reaped when the object goes away.
class started {
public:
    explicit started(const command& what) {
        std::array<int, 2> in{}, out{}, err{};
        if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0 ||
            ::pipe2(err.data(), O_CLOEXEC) != 0)
            std::abort();
        pid_ = ::fork();
        if (pid_ == 0)
            become(what, what.standard_input >= 0 ? what.standard_input : in[0], out[1], err[1]);
        for (const int end : {in[0], out[1], err[1]}) ::close(end);
        input_ = in[1];
        out_ = out[0];
        err_ = err[0];
        (void)::signal(SIGPIPE, SIG_IGN);
        (void)!::write(input_, what.input.data(), what.input.size()); // tests send a few bytes
        close_input();
    }
    started(const started&) = delete;
    auto operator=(const started&) = delete;
    ~started() {
        if (pid_ > 0) {
            (void)::kill(pid_, SIGKILL);
            (void)::waitpid(pid_, nullptr, 0);
        }
        close_input();
        ::close(out_);
        ::close(err_);
    }
    [[nodiscard]] auto pid() const -> ::pid_t { return pid_; }
    // Waits until its output holds `text`.
    [[nodiscard]] auto says(std::string_view text,
                            std::chrono::milliseconds patience = std::chrono::seconds{20}) -> bool {
        const auto end = std::chrono::steady_clock::now() + patience * slowness();
        while (seen_.output.find(text) == std::string::npos)
            if (!collect(end)) return false;
        return true;
    }
    [[nodiscard]] auto finish(std::chrono::milliseconds patience) -> finished {
        const auto end = std::chrono::steady_clock::now() + patience * slowness();
        while (collect(end)) continue;
        while (::waitpid(pid_, &seen_.wait_status, WNOHANG) == 0) {
            if (std::chrono::steady_clock::now() > end) {
                ADD_FAILURE() << "it did not end in time\n" << seen_;
                (void)::kill(pid_, SIGKILL);
                (void)::waitpid(pid_, &seen_.wait_status, 0);
                break;
            }
            (void)::usleep(1000);
        }
        pid_ = -1;
        return seen_;
    }

private:
    [[noreturn]] static void become(const command& what, int in, int out, int err) {
        if (::dup2(in, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) ::_exit(121);
        if (::chdir(what.directory.c_str()) != 0) ::_exit(122);
        std::vector<std::string> variables;
        for (const auto& [name, value] : what.environment) variables.push_back(name + "=" + value);
        const auto pointers = [](const auto& texts) {
            std::vector<char*> list;
            for (const auto& text : texts) list.push_back(const_cast<char*>(text.c_str()));
            list.push_back(nullptr);
            return list;
        };
        const auto argv = pointers(what.argv);
        const auto environment = pointers(variables);
        (void)::signal(SIGPIPE, SIG_DFL);
        if (what.before_exec) what.before_exec();
        ::execvpe(argv[0], argv.data(), environment.data());
        ::_exit(123);
    }
    // False when both outputs ended or time is up.
    auto collect(std::chrono::steady_clock::time_point end) -> bool {
        if (out_ < 0 && err_ < 0) return false;
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            end - std::chrono::steady_clock::now());
        std::array<::pollfd, 2> sources{::pollfd{out_, POLLIN, 0}, ::pollfd{err_, POLLIN, 0}};
        if (left.count() <= 0 || ::poll(sources.data(), 2, static_cast<int>(left.count())) <= 0)
            return false;
        for (const auto& source : sources) {
            if (source.fd < 0 || source.revents == 0) continue;
            std::array<char, 65536> some{};
            const auto got = ::read(source.fd, some.data(), some.size());
            if (got > 0) {
                (source.fd == out_ ? seen_.output : seen_.errors)
                    .append(some.data(), static_cast<std::size_t>(got));
            } else {
                ::close(source.fd);
                (source.fd == out_ ? out_ : err_) = -1;
            }
        }
        return true;
    }
    void close_input() {
        if (input_ >= 0) ::close(input_);
        input_ = -1;
    }

    ::pid_t pid_ = -1;
    int input_ = -1, out_ = -1, err_ = -1;
    finished seen_;
};

[[nodiscard]] inline auto run(const command& what) -> finished {
    started child{what};
    return child.finish(what.patience);
}

// Where Glove keeps its records in a test, and the environment that says so.
[[nodiscard]] inline auto environment_in(const std::string& home)
    -> std::map<std::string, std::string> {
    return {{"HOME", home},
            {"PATH", "/usr/bin:/bin:/usr/sbin:/sbin"},
            {"XDG_STATE_HOME", home + "/.state"},
            {"XDG_CONFIG_HOME", home + "/.config"}};
}

// `glove exec OPTIONS -- AGENT`, with its records in `home`.
[[nodiscard]] inline auto glove_exec(const std::string& home, const words& options,
                                     const words& agent) -> command {
    return {.argv = words{glove_binary(), "exec"} + options + words{"--"} + agent,
            .environment = environment_in(home)};
}

} // namespace glove::test
