// Words for the operator while the command runs, which shares the stream they go to.
#pragma once
#include <glove/sys/fd.hpp>
#include <string>

namespace glove::sys {

// The command can stop a terminal or fill a pipe that it shares, and the run must be ended all the
// same: nothing here may wait. So such a stream is opened once more, because the flags of the one
// that was inherited are the caller's as well. Of a terminal, nothing can be read through it.
struct error_stream {
    bool is_socket = false, can_wait = false;
    unique_fd own; // when it can; empty when it cannot be opened

    error_stream();
};

// "glove: WORDS" in a line, or as much of it as goes without waiting.
void say_line(const std::string& words);

} // namespace glove::sys
