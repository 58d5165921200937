// The directory is kept open and is the caller's alone; the socket is never open to anybody else.
#include <cerrno>
#include <fcntl.h>
#include <glove/base/wipe.hpp>
#include <glove/control/protocol.hpp>
#include <glove/control/runtime_directory.hpp>
#include <glove/sys/clock.hpp>
#include <glove/wire/crypto.hpp>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace glove::control {

namespace {

constexpr int backlog = 128;

[[nodiscard]] auto open_directory(const std::string& path) -> result<sys::unique_fd> {
    sys::unique_fd directory{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (!directory) {
        auto refused = fail_os("runtime.directory", errno, path);
        refused.error().remedy = "gloved --init-state, or mkdir -m 700 " + path;
        return refused;
    }
    GLOVE_TRY(const auto facts, sys::inspect(directory));
    if (facts.owner != ::geteuid())
        return fail(errc::not_permitted, "runtime.directory", path + " belongs to another user");
    if (facts.permissions != 0700)
        return fail(errc::not_permitted, "runtime.directory", path + " has not mode 0700",
                    "chmod 700 " + path);
    return directory;
}

[[nodiscard]] auto lock_in(sys::fd_ref directory, const std::string& path)
    -> result<sys::unique_fd> {
    GLOVE_TRY(auto lock, sys::open_private_append(directory, std::string{lock_name}));
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
    if (errno != EWOULDBLOCK) return fail_os("runtime.locked", errno, path);
    return fail(errc::conflict, "runtime.locked", "another gloved serves in " + path,
                "stop it first, or name another directory");
}

// What the name stands for; nothing when there is no such thing.
[[nodiscard]] auto look_at(sys::fd_ref directory, std::string_view name)
    -> result<std::optional<struct ::stat>> {
    struct ::stat found{};
    if (::fstatat(directory.get(), std::string{name}.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0)
        return found;
    if (errno == ENOENT) return std::nullopt;
    return fail_os("runtime.socket", errno, std::string{name});
}

[[nodiscard]] auto identity(const struct ::stat& of) -> sys::file_identity {
    return {.device = of.st_dev, .inode = of.st_ino, .type = of.st_mode & S_IFMT};
}

[[nodiscard]] auto is_own_socket(const struct ::stat& of) -> bool {
    return S_ISSOCK(of.st_mode) && of.st_uid == ::geteuid() && (of.st_mode & 07777) == 0600 &&
           of.st_nlink == 1;
}

// Closed before there is a name, so that nobody can connect in between.
class closed_umask {
public:
    closed_umask() = default;
    closed_umask(const closed_umask&) = delete;
    auto operator=(const closed_umask&) -> closed_umask& = delete;
    ~closed_umask() { (void)::umask(before_); }

private:
    ::mode_t before_ = ::umask(0177);
};

// In the directory that is open, whatever its name leads to now.
[[nodiscard]] auto bind_in(sys::fd_ref directory, sys::fd_ref socket) -> bool {
    ::sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const auto name =
        "/proc/self/fd/" + std::to_string(directory.get()) + "/" + std::string{socket_name};
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    const closed_umask closed;
    return ::bind(socket.get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address) == 0;
}

} // namespace

auto runtime_directory::open(const std::string& path) -> result<runtime_directory> {
    if (!sys::is_normal_absolute(path) || path == "/")
        return fail(errc::invalid_input, "runtime.path", path + " is no absolute path");
    const auto full = path.size() + 1 + socket_name.size();
    if (full >= sizeof ::sockaddr_un{}.sun_path)
        return fail(errc::limit_exceeded, "runtime.path",
                    path + " is too long: clients could not name the socket in it",
                    "choose a directory whose path has at most " +
                        std::to_string(sizeof ::sockaddr_un{}.sun_path - 2 - socket_name.size()) +
                        " bytes");
    GLOVE_TRY(auto directory, open_directory(path));
    GLOVE_TRY(auto lock, lock_in(directory, path));
    return runtime_directory{path, std::move(directory), std::move(lock)};
}

runtime_directory::~runtime_directory() {
    if (!directory_ || !socket_) return;
    const auto there = look_at(directory_, socket_name);
    if (there && *there && identity(**there) == *socket_)
        (void)::unlinkat(directory_.get(), std::string{socket_name}.c_str(), 0);
}

auto runtime_directory::renew_secret(sys::entropy& random) -> result<bootstrap_secret> {
    wire::digest256 bytes{};
    GLOVE_CHECK(random.fill(std::as_writable_bytes(std::span{bytes})));
    auto text = wire::to_hex(bytes);
    ::explicit_bzero(bytes.data(), bytes.size());
    std::string line;
    line.reserve(text.size() + 1);
    line.append(text).append("\n");
    const wiped_at_end wiped{line};
    const auto now = sys::system_clock{}.wall().count();
    if (auto put = sys::replace_durably(directory_, std::string{secret_name}, line, now); !put) {
        wipe(text);
        put.error().step = "runtime.secret";
        return std::unexpected(std::move(put).error());
    }
    bootstrap_secret out{text};
    wipe(text);
    return out;
}

auto runtime_directory::remove_stale() const -> result<> {
    GLOVE_TRY(const auto there, look_at(directory_, socket_name));
    if (!there) return {};
    const auto name = path_ + "/" + std::string{socket_name};
    if (!is_own_socket(*there))
        return fail(errc::conflict, "runtime.stale",
                    name + " is not a socket that this service made", "look at it, and remove it");
    if (::unlinkat(directory_.get(), std::string{socket_name}.c_str(), 0) == 0) return {};
    return fail_os("runtime.stale", errno, name);
}

auto runtime_directory::listen() -> result<sys::unique_fd> {
    GLOVE_CHECK(remove_stale());
    sys::unique_fd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (!socket || !bind_in(directory_, socket)) return fail_os("runtime.socket", errno, path_);
    GLOVE_TRY(const auto there, look_at(directory_, socket_name));
    if (!there || !is_own_socket(*there))
        return fail(errc::conflict, "runtime.socket", path_ + ": the socket is not as it was made");
    socket_ = identity(*there);
    if (::listen(socket.get(), backlog) != 0) return fail_os("runtime.socket", errno, path_);
    return socket;
}

} // namespace glove::control
