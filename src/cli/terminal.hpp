// What a stream can show.
#pragma once
#include <cstdlib>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

namespace glove::cli {

// On a terminal that knows colours, unless NO_COLOR is set to something.
[[nodiscard]] inline auto has_colours(int stream) -> bool {
    const char* const refused = std::getenv("NO_COLOR");
    const char* const kind = std::getenv("TERM");
    return ::isatty(stream) == 1 && (refused == nullptr || *refused == '\0') && kind != nullptr &&
           std::string_view{kind} != "dumb";
}

// Columns of a terminal; 0 when the stream is none, or does not tell.
[[nodiscard]] inline auto width_of(int stream) -> std::size_t {
    struct ::winsize size{};
    return ::ioctl(stream, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

} // namespace glove::cli
