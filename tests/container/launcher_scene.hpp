// What a service is that starts managed sessions: in a child of the test, as mapped root with
// mounts of its own where the test runs as an ordinary user, and as root where it runs as root.
#pragma once
#include "container/linux/mount_calls.hpp"
#include <chrono>
#include <functional>
#include <glove/container/launcher.hpp>
#include <glove/container/session_plan.hpp>
#include <poll.h>
#include <support/forked.hpp>
#include <sys/mount.h>
#include <sys/prctl.h>

namespace glove::container::scene {

using test::prepared;

inline auto slowness() -> int {
    const char* const times = std::getenv("GLOVE_SLOWNESS");
    return times == nullptr ? 1 : std::atoi(times);
}

// An error as text, for a body that says what it saw.
template<class T> auto text_of(const result<T>& wrong) -> std::string {
    const auto& e = wrong.error();
    return std::string{e.step} + ": " + e.detail + " [" + std::to_string(e.os) + "] " + e.remedy;
}
template<class T> auto good(result<T> made) -> T {
    if (!made) throw std::runtime_error{text_of(made)};
    if constexpr (!std::is_void_v<T>) return *std::move(made);
}

inline void become_service() {
    test::become_mounter();
    // As it is after the execution of the service's program in there.
    prepared(::prctl(PR_SET_DUMPABLE, 1) == 0, "dumpable");
}

// What `body` says as such a service.
template<class Body> auto as_service(Body body) -> std::string {
    return test::said_by([&] {
        become_service();
        return std::string{body()};
    });
}

inline auto new_tmpfs(const char* bytes = "4m", const char* mode = "0755") -> sys::unique_fd {
    const option options[] = {{"size", bytes}, {"mode", mode}};
    failure bad;
    sys::unique_fd out{new_filesystem("tmpfs", options, std::size(options), MOUNT_ATTR_NODEV, bad)};
    prepared(static_cast<bool>(out), "tmpfs");
    return out;
}

inline void put_file(sys::fd_ref directory, const std::string& name, std::string_view content,
                     ::mode_t mode = 0600) {
    const sys::unique_fd file{
        ::openat(directory.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)};
    prepared(::write(file.get(), content.data(), content.size()) ==
                 static_cast<ssize_t>(content.size()),
             name);
}
inline auto content_in(sys::fd_ref directory, const std::string& name) -> std::string {
    const sys::unique_fd file{::openat(directory.get(), name.c_str(), O_RDONLY | O_CLOEXEC)};
    return file ? good(sys::read_all(file, 1U << 20U)) : "(none)";
}

inline auto open_directory(const std::string& path) -> sys::unique_fd {
    sys::unique_fd out{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    prepared(static_cast<bool>(out), path);
    return out;
}

// A shell that runs `script`, offline, without any mount.
inline auto shell_wish(std::string script) -> session_wish {
    session_wish out;
    out.program = "/bin/sh";
    out.arguments = {"sh", "-c", std::move(script)};
    out.work_directory = std::string{home_directory};
    out.scratch = new_tmpfs();
    return out;
}

// The launcher comes first, as in the service.
class session {
public:
    session(launcher& by, session_wish wish, sys::unique_fd* bridge = nullptr)
        : session{by, good(make_session_plan(std::move(wish))), bridge} {}
    session(launcher& by, plan source, sys::unique_fd* bridge = nullptr)
        : plan_{std::move(source)} {
        launched_.emplace(good(by.launch({.plan = &plan_, .bridge = bridge})));
    }
    [[nodiscard]] auto init() const -> const init_identity& { return launched_->init; }
    [[nodiscard]] auto process() -> running& { return launched_->process; }

    // Until the private terminal is there, which is when all of the perimeter is.
    void await_terminal() {
        while (!terminal_) {
            if (step()) throw std::runtime_error{"ended without a terminal: " + said_};
            if (auto came = process().take_terminal()) terminal_ = std::move(came);
        }
    }
    // What was said on the terminal, and how it ended.
    [[nodiscard]] auto run() -> std::string {
        if (!released_) release();
        listen();
        std::optional<ending> end;
        while (!(end = step())) continue;
        return said_ + "=" + std::to_string(end->wait_status);
    }
    void release() {
        await_terminal();
        good(process().release());
        released_ = true;
    }
    // Until `word` was said on the terminal.
    void await_word(std::string_view word) {
        while (!said_.contains(word))
            if (!hear()) throw std::runtime_error{"never said: " + said_};
    }
    void type(std::string_view keys) { test::say(terminal_, keys); }
    [[nodiscard]] auto last_news() -> result<std::optional<ending>> {
        for (;;) {
            ::pollfd source{process().news().get(), POLLIN, 0};
            if (::poll(&source, 1, 20'000 * slowness()) != 1) throw std::runtime_error{"no news"};
            auto news = process().read_news();
            if (!news || *news) return news;
        }
    }

private:
    auto step() -> std::optional<ending> {
        ::pollfd source{process().news().get(), POLLIN, 0};
        if (::poll(&source, 1, 20'000 * slowness()) != 1) throw std::runtime_error{"no news"};
        return good(process().read_news());
    }
    auto hear() -> bool {
        ::pollfd source{terminal_.get(), POLLIN, 0};
        if (::poll(&source, 1, 20'000 * slowness()) != 1)
            throw std::runtime_error{"no word after " + said_};
        char part[4096];
        const auto got = ::read(terminal_.get(), part, sizeof part);
        if (got <= 0) return false;
        for (const char c : std::string_view{part, static_cast<std::size_t>(got)})
            if (c != '\r') said_ += c;
        return true;
    }
    void listen() {
        while (hear()) continue;
    }

    plan plan_;
    std::optional<launched_session> launched_;
    sys::unique_fd terminal_;
    std::string said_;
    bool released_ = false;
};

} // namespace glove::container::scene
