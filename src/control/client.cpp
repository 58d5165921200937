// The directory is pinned first, and the socket is reached through that descriptor: its name may be
// another's by now, and may be longer than the name of a socket can be.
#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <glove/base/wipe.hpp>
#include <glove/control/client.hpp>
#include <glove/sys/files.hpp>
#include <glove/wire/grammar.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace glove::control {

namespace {

using std::chrono::nanoseconds;

constexpr std::size_t secret_file_bytes = 65; // 64 digits and a newline

[[nodiscard]] auto not_running(const client_settings& how) -> std::string {
    return "start the service with: " + how.start_hint;
}

// --- what must be this user's own ---

[[nodiscard]] auto pin_directory(const client_settings& how) -> result<sys::unique_fd> {
    const auto& path = how.runtime_directory;
    if (!sys::is_normal_absolute(path))
        return fail(errc::invalid_input, "client.directory",
                    "the runtime directory " + path +
                        " is not an absolute path in its shortest form");
    auto pinned = sys::pin(path, sys::follow::no);
    if (!pinned && pinned.error().code == errc::not_found)
        return fail(errc::not_found, "client.directory", "there is no runtime directory " + path,
                    not_running(how));
    if (!pinned) return fail_os("client.directory", pinned.error().os, path);
    GLOVE_TRY(const auto facts, sys::inspect(*pinned));
    if (facts.identity.type != S_IFDIR || facts.owner != ::geteuid() || facts.permissions != 0700)
        return fail(errc::not_permitted, "client.directory",
                    path + " is not a directory of yours alone (mode 0700, no link)",
                    "name the runtime directory of your own gloved with --runtime-dir");
    return *std::move(pinned);
}

[[nodiscard]] auto check_socket(sys::fd_ref directory, const client_settings& how) -> result<> {
    const auto path = how.runtime_directory + "/" + std::string{socket_name};
    struct ::stat facts{};
    if (::fstatat(directory.get(), std::string{socket_name}.c_str(), &facts, AT_SYMLINK_NOFOLLOW) !=
        0) {
        if (errno == ENOENT)
            return fail(errc::not_found, "client.socket",
                        "gloved is not running: there is no " + path, not_running(how));
        return fail_os("client.socket", errno, path);
    }
    if (!S_ISSOCK(facts.st_mode) || facts.st_uid != ::geteuid() || (facts.st_mode & 07777U) != 0600)
        return fail(errc::not_permitted, "client.socket",
                    path + " is not a socket of yours alone (mode 0600)",
                    "find out who put it there, and remove it");
    return {};
}

[[nodiscard]] auto read_secret(const client_settings& how) -> result<std::string> {
    const auto path = how.runtime_directory + "/" + std::string{secret_name};
    auto text = sys::read_private_file(path, secret_file_bytes);
    if (!text) {
        auto& why = text.error();
        if (why.code == errc::not_found)
            return fail(errc::not_found, "client.secret",
                        "gloved is not running: there is no " + path, not_running(how));
        return std::unexpected(
            error{why.code, step_name{"client.secret"}.text, why.os, why.detail, why.remedy});
    }
    if (text->ends_with('\n')) text->pop_back();
    if (wire::conforms(wire::grammar::hex64, *text)) return *std::move(text);
    wipe(*text);
    return fail(errc::corrupt, "client.secret", path + " does not hold 64 hexadecimal digits",
                "start the service again, which writes a new one");
}

[[nodiscard]] auto check_peer(const sys::unique_fd& socket) -> result<> {
    ::ucred peer{};
    ::socklen_t size = sizeof peer;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return fail_os("client.peer");
    if (peer.uid == ::geteuid() && peer.pid > 0) return {};
    return fail(errc::not_permitted, "client.peer",
                "the socket is served by user " + std::to_string(peer.uid));
}

// --- one exchange ---

class exchange {
public:
    exchange(const client_settings& how, const sys::clock& clock)
        : how_{how}, clock_{clock}, end_{clock.monotonic() + how.patience} {}

    [[nodiscard]] auto connect(sys::fd_ref directory) -> result<> {
        socket_ = sys::unique_fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
        if (!socket_) return fail_os("client.socket");
        const auto name =
            "/proc/self/fd/" + std::to_string(directory.get()) + "/" + std::string{socket_name};
        ::sockaddr_un to{};
        to.sun_family = AF_UNIX;
        name.copy(to.sun_path, sizeof to.sun_path - 1);
        while (::connect(socket_.get(), reinterpret_cast<const ::sockaddr*>(&to), sizeof to) != 0) {
            if (errno == EINTR) continue;
            // A full queue has no event to wait for.
            if (errno == EAGAIN) {
                GLOVE_CHECK(rest());
                continue;
            }
            if (errno == ECONNREFUSED || errno == ENOENT)
                return fail(errc::not_found, "client.socket",
                            "gloved is not running: nobody serves " + how_.runtime_directory + "/" +
                                std::string{socket_name},
                            not_running(how_));
            return fail_os("client.socket", errno, how_.runtime_directory);
        }
        return check_peer(socket_);
    }

    [[nodiscard]] auto send(std::string_view bytes) -> result<> {
        while (!bytes.empty()) {
            const auto sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent >= 0) {
                bytes.remove_prefix(static_cast<std::size_t>(sent));
                continue;
            }
            if (errno == EPIPE || errno == ECONNRESET) return {}; // it may have said why
            GLOVE_CHECK(again("client.send", POLLOUT));
        }
        return {};
    }

    [[nodiscard]] auto receive(std::size_t bytes) -> result<std::string> {
        std::string out(bytes, '\0');
        std::size_t at = 0;
        while (at < bytes) {
            const auto got = ::recv(socket_.get(), out.data() + at, bytes - at, 0);
            if (got > 0) at += static_cast<std::size_t>(got);
            else if (got == 0 || errno == ECONNRESET)
                return fail(errc::io, "client.receive",
                            "the service closed the connection after " + std::to_string(at) +
                                " of " + std::to_string(bytes) + " bytes of its answer");
            else GLOVE_CHECK(again("client.receive", POLLIN));
        }
        return out;
    }

    // On the wall clock, which is the one that both sides have.
    [[nodiscard]] auto deadline_ms() const -> std::uint64_t {
        const auto left = end_ - clock_.monotonic();
        return static_cast<std::uint64_t>((clock_.wall() + left) / std::chrono::milliseconds{1});
    }

private:
    [[nodiscard]] auto late() const -> std::unexpected<error> {
        return fail(
            errc::timed_out, "client.deadline",
            "no answer within " + std::to_string(how_.patience.count()) + " ms",
            "ask again with the same key: a request that was carried out is answered again");
    }
    [[nodiscard]] auto again(step_name step, short event) -> result<> {
        if (errno == EINTR) return {};
        if (errno != EAGAIN) return fail_os(step);
        return wait(step, event);
    }
    [[nodiscard]] auto left() const -> ::timespec {
        const auto time = std::max(end_ - clock_.monotonic(), nanoseconds{0});
        const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
        return {.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
    }
    [[nodiscard]] auto wait(step_name step, short event) -> result<> {
        // A negative descriptor is watched for nothing.
        std::array watched{::pollfd{socket_.get(), event, 0},
                           ::pollfd{how_.interrupt ? how_.interrupt->get() : -1, POLLIN, 0}};
        const auto time = left();
        const int ready = ::ppoll(watched.data(), watched.size(), &time, nullptr);
        if (ready > 0 && watched[1].revents != 0) return interrupted();
        if (ready > 0 || (ready < 0 && errno == EINTR)) return {};
        if (ready < 0) return fail_os(step);
        return late();
    }
    [[nodiscard]] auto rest() const -> result<> {
        if (clock_.monotonic() >= end_) return late();
        ::pollfd watched{how_.interrupt ? how_.interrupt->get() : -1, POLLIN, 0};
        const ::timespec moment{.tv_sec = 0, .tv_nsec = 5'000'000};
        if (::ppoll(&watched, 1, &moment, nullptr) > 0) return interrupted();
        return {};
    }
    [[nodiscard]] static auto interrupted() -> std::unexpected<error> {
        return fail(errc::io, "client.interrupted", "the request was given up");
    }

    const client_settings& how_;
    const sys::clock& clock_;
    nanoseconds end_;
    sys::unique_fd socket_;
};

[[nodiscard]] auto not_an_answer(std::string why) {
    return fail(errc::corrupt, "client.reply", "the service's answer " + std::move(why));
}

} // namespace

auto client::call(std::string_view method, std::string payload,
                  std::optional<std::string> idempotency_key) const -> result<remote_answer> {
    GLOVE_TRY(const auto directory, pin_directory(how_));
    GLOVE_CHECK(check_socket(directory, how_));
    exchange talk{how_, *clock_};
    GLOVE_CHECK(talk.connect(directory));
    GLOVE_TRY(auto id, sys::random_id(*random_));
    request what{.id = std::move(id),
                 .method = std::string{method},
                 .deadline_ms = talk.deadline_ms(),
                 .idempotency_key = std::move(idempotency_key),
                 .payload = std::move(payload)};
    GLOVE_TRY(what.bootstrap_secret, read_secret(how_));
    const wiped_at_end secret{what.bootstrap_secret};
    GLOVE_TRY(auto text, encode(what));
    const wiped_at_end body{text};
    GLOVE_TRY(const auto header, frame_header(text.size()));
    GLOVE_CHECK(talk.send({header.data(), header.size()}));
    GLOVE_CHECK(talk.send(text));
    GLOVE_TRY(const auto told, talk.receive(frame_header_bytes));
    const auto size = frame_body_bytes(told);
    if (!size) return not_an_answer("has " + size.error().detail);
    GLOVE_TRY(const auto answer, talk.receive(*size));
    auto read = decode_reply(answer);
    if (!read) return not_an_answer("cannot be read: " + read.error().detail);
    // What could not be read has no id to give back.
    if (read->id != what.id && !(read->id.empty() && !read->outcome))
        return not_an_answer("is to another request");
    return std::move(read->outcome);
}

} // namespace glove::control
