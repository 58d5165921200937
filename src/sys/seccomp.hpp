// What every classic BPF program over `seccomp_data` begins with: which machine it is for, and
// where the arguments lie. It holds no program and installs none.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <linux/audit.h>
#include <linux/seccomp.h>

namespace glove::sys::seccomp {

#if defined(__x86_64__) && !defined(__ILP32__)
constexpr std::uint32_t machine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__) && !defined(__ILP32__)
constexpr std::uint32_t machine = AUDIT_ARCH_AARCH64;
#else
#error "there is no filter for this machine"
#endif

// The offset of the low half of an argument: the kernel takes an int and ignores the rest.
static_assert(std::endian::native == std::endian::little);
constexpr auto argument(unsigned index) -> std::uint32_t {
    return static_cast<std::uint32_t>(offsetof(::seccomp_data, args) +
                                      index * sizeof(std::uint64_t));
}

} // namespace glove::sys::seccomp
