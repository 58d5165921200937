// A folder of one test's own, gone with the object, and the things a test puts into it.
//
// Guarantees: its path is canonical, so that it can be compared with what a resolver answers; a
// failed preparation ends the program, never only the case.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <glove/sys/fd.hpp>
#include <iterator>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace glove::test {

inline void prepared(bool done, std::string_view what) {
    if (done) return;
    std::perror(std::string{what}.c_str());
    std::abort();
}

class folder {
public:
    folder() {
        std::string name = std::filesystem::canonical(std::filesystem::temp_directory_path());
        name += "/glove-unit-XXXXXX";
        prepared(::mkdtemp(name.data()) != nullptr, name);
        path_ = name;
    }
    folder(const folder&) = delete;
    auto operator=(const folder&) -> folder& = delete;
    ~folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] auto path() const -> const std::string& { return path_; }
    [[nodiscard]] auto operator/(std::string_view name) const -> std::string {
        return path_ + "/" + std::string{name};
    }
    // Each makes the missing parents and returns the path.
    auto directory(std::string_view name, ::mode_t mode = 0755) const -> std::string {
        auto at = *this / name;
        std::filesystem::create_directories(at);
        prepared(::chmod(at.c_str(), mode) == 0, at);
        return at;
    }
    auto file(std::string_view name, std::string_view content = {}, ::mode_t mode = 0644) const
        -> std::string {
        auto at = place(name);
        std::ofstream{at} << content;
        prepared(::chmod(at.c_str(), mode) == 0, at);
        return at;
    }
    auto link(std::string_view name, const std::string& target) const -> std::string {
        auto at = place(name);
        prepared(::symlink(target.c_str(), at.c_str()) == 0, at);
        return at;
    }
    auto fifo(std::string_view name) const -> std::string {
        auto at = place(name);
        prepared(::mkfifo(at.c_str(), 0600) == 0, at);
        return at;
    }

private:
    [[nodiscard]] auto place(std::string_view name) const -> std::string {
        auto at = *this / name;
        std::filesystem::create_directories(std::filesystem::path{at}.parent_path());
        return at;
    }
    std::string path_;
};

// A listening socket with the name as it is given; a leading NUL makes it an abstract one.
inline auto bound_socket(std::string_view name) -> sys::unique_fd {
    sys::unique_fd out{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    ::sockaddr_un address{};
    address.sun_family = AF_UNIX;
    prepared(name.size() < sizeof address.sun_path, "a name too long for a socket");
    name.copy(address.sun_path, name.size());
    prepared(::bind(out.get(), reinterpret_cast<const ::sockaddr*>(&address),
                    static_cast<::socklen_t>(offsetof(::sockaddr_un, sun_path) + name.size())) == 0,
             "bind");
    prepared(::listen(out.get(), 1) == 0, "listen");
    return out;
}

inline auto content_of(const std::string& path) -> std::string {
    std::ifstream in{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
}

inline auto names_in(const std::string& path) -> std::size_t {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator{path}, {}));
}

} // namespace glove::test
