// Guarantees: only whole pages between the symbols of the linker are named, and they are clean
// pages of a file, so nothing can be lost by it. A kernel that refuses changes nothing.
#include <cstdint>
#include <glove/sys/program_text.hpp>
#include <sys/mman.h>
#include <unistd.h>

extern "C" {
extern const char __executable_start; // NOLINT: the linker's names
extern const char etext;
}

namespace glove::sys {

void let_go_of_program_text() noexcept {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(&__executable_start) & ~(page - 1);
    const auto end = reinterpret_cast<std::uintptr_t>(&etext) & ~(page - 1);
    if (end > begin) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

} // namespace glove::sys
