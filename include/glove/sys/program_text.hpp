// The code of this program in memory.
#pragma once

namespace glove::sys {

// Gives back what is mapped of it. What is used again comes back from the page cache by itself, so
// this is for a process that has done most of its work and will wait for long.
void let_go_of_program_text() noexcept;

} // namespace glove::sys
