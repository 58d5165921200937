// The relay to compare with: it moves bytes between its stdio and a command's, and looks at none.
//
//   mcp_relay COMMAND...
#include "mcp_stdio.hpp"
#include <poll.h>

namespace {

// False at the end.
[[nodiscard]] auto move(int from, int to, std::string& chunk) -> bool {
    const auto got = ::read(from, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) return true;
    if (got <= 0) return false;
    bench::write_all(to, std::string_view{chunk}.substr(0, static_cast<std::size_t>(got)));
    return true;
}

} // namespace

auto main(int count, char** words) -> int {
    if (count < 2) bench::die("mcp_relay COMMAND...");
    const auto child = bench::start(words + 1);
    std::string chunk(256UL * 1024, '\0');
    ::pollfd ways[] = {{.fd = 0, .events = POLLIN, .revents = 0},
                       {.fd = child.output, .events = POLLIN, .revents = 0}};
    for (;;) {
        if (::poll(ways, 2, -1) < 0 && errno != EINTR) bench::die("poll");
        if (ways[0].revents != 0 && !move(0, child.input, chunk)) {
            (void)::close(child.input);
            ways[0].fd = -1;
        }
        if (ways[1].revents != 0 && !move(child.output, 1, chunk)) return 0;
    }
}
