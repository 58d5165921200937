// The least that a daemon behind a Unix socket can be, to compare with: it reads one frame, looks
// at none of it, writes a record and waits for the disk, and gives the same answer every time.
//
//   control_echo SOCKET FILE BYTES ANSWER
//
// One thread, one connection at a time, nothing checked. With BYTES 0 it writes nothing and asks
// the disk for nothing; else each request appends so many bytes to FILE.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace {

[[noreturn]] void die(const char* what) {
    std::perror(what);
    std::exit(1);
}

[[nodiscard]] auto listen_at(std::string_view path) -> int {
    ::sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
    if (path.size() >= sizeof name.sun_path) die(path.data());
    path.copy(name.sun_path, path.size());
    const int out = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (out < 0 || ::bind(out, reinterpret_cast<const ::sockaddr*>(&name), sizeof name) != 0 ||
        ::chmod(path.data(), 0600) != 0 || ::listen(out, 16) != 0)
        die(path.data());
    return out;
}

[[nodiscard]] auto framed(std::string_view body) -> std::string {
    std::string out;
    for (const unsigned shift : {24U, 16U, 8U, 0U})
        out += static_cast<char>(body.size() >> shift & 0xffU);
    return out.append(body);
}

// False when the client left.
[[nodiscard]] auto take_frame(int from) -> bool {
    unsigned char head[4];
    if (::recv(from, head, sizeof head, MSG_WAITALL) != sizeof head) return false;
    std::string body((std::size_t{head[0]} << 24U) + (std::size_t{head[1]} << 16U) +
                         (std::size_t{head[2]} << 8U) + head[3],
                     '\0');
    return ::recv(from, body.data(), body.size(), MSG_WAITALL) == std::ssize(body);
}

} // namespace

auto main(int count, char** words) -> int {
    if (count != 5) {
        (void)std::fputs("control_echo SOCKET FILE BYTES ANSWER\n", stderr);
        return 2;
    }
    const std::string record(std::strtoul(words[3], nullptr, 10), 'x'), answer = framed(words[4]);
    const int file = ::open(words[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) die(words[2]);
    const int listener = listen_at(words[1]);
    for (;;) {
        const int client = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (client < 0) die("accept");
        if (take_frame(client)) {
            if (!record.empty() &&
                (::write(file, record.data(), record.size()) != std::ssize(record) ||
                 ::fdatasync(file) != 0))
                die(words[2]);
            (void)!::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
        }
        (void)::close(client);
    }
}
