// Runs a program to its end, with its output and errors apart.
//
// Guarantees: its environment is what the case gives plus PATH; its standard input is empty; it is
// reaped. Only for programs whose errors fit into a pipe.
#pragma once
#include <cstdlib>
#include <string>
#include <support/folder.hpp>
#include <support/forked.hpp>
#include <sys/wait.h>
#include <utility>
#include <vector>

namespace glove::test {

struct ran {
    int status = -1; // as a shell tells it
    std::string out, err;
};

using variables = std::vector<std::pair<std::string, std::string>>;

inline auto run_program(const std::vector<std::string>& argv, const variables& extra = {},
                        const std::string& directory = "/") -> ran {
    pipe_ends out;
    pipe_ends err;
    const auto child = ::fork();
    prepared(child >= 0, "fork");
    if (child == 0) {
        const sys::unique_fd nothing{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
        (void)::dup2(nothing.get(), 0);
        (void)::dup2(out.write.get(), 1);
        (void)::dup2(err.write.get(), 2);
        ::clearenv();
        ::setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
        for (const auto& [name, value] : extra) ::setenv(name.c_str(), value.c_str(), 1);
        std::vector<char*> words;
        for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        if (::chdir(directory.c_str()) == 0) (void)::execvp(words.front(), words.data());
        ::_exit(124);
    }
    out.write = {};
    err.write = {};
    ran result;
    result.out = hear(out.read);
    result.err = hear(err.read);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return result;
}

// The glove under test, with a home of its own.
class glove_program {
public:
    glove_program() {
        const char* const named = std::getenv("GLOVE_BIN");
        prepared(named != nullptr, "GLOVE_BIN is not set");
        program_ = named;
        place_.directory("desk");
        place_.directory("home");
    }
    [[nodiscard]] auto operator()(std::vector<std::string> words, variables extra = {}) const
        -> ran {
        words.insert(words.begin(), program_);
        extra.emplace_back("HOME", place_ / "home");
        return run_program(words, extra, place_ / "desk");
    }
    [[nodiscard]] auto path() const -> const std::string& { return program_; }
    [[nodiscard]] auto place() const -> const folder& { return place_; }
    [[nodiscard]] auto work(std::string_view name) const -> std::string {
        return (place_ / "desk") + "/" + std::string{name};
    }

private:
    std::string program_;
    folder place_;
};

} // namespace glove::test
