// Secrets in a page of their own, overwritten in a way that no compiler leaves out.
#include <cstring>
#include <glove/sys/secret_memory.hpp>
#include <sys/mman.h>

namespace glove::sys {

namespace {
constexpr std::size_t page_bytes = 4096;
}

auto secret_memory::make(std::size_t bytes) -> result<secret_memory> {
    if (bytes == 0 || bytes > page_bytes)
        return fail(errc::invalid_input, "secret.memory",
                    std::to_string(bytes) + " bytes, and 1 to 4096 are allowed");
    secret_memory out;
    void* const page =
        ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return fail_os("secret.memory");
    out.page_ = static_cast<char*>(page);
    out.size_ = bytes;
    if (::madvise(page, page_bytes, MADV_DONTDUMP) != 0 ||
        ::madvise(page, page_bytes, MADV_WIPEONFORK) != 0)
        return fail_os("secret.memory");
    out.locked_ = ::mlock(page, page_bytes) == 0;
    return out;
}

void secret_memory::release() noexcept {
    if (page_ == nullptr) return;
    ::explicit_bzero(page_, page_bytes);
    ::munmap(page_, page_bytes);
    page_ = nullptr;
    size_ = 0;
    locked_ = false;
}

} // namespace glove::sys
