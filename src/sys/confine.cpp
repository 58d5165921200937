// Restrictions that a process puts on itself and cannot take off again.
#include "sys/confine.hpp"
#include "sys/seccomp.hpp"
#include "sys/syscalls.hpp"
#include <algorithm>
#include <csignal>
#include <glove/sys/fd.hpp>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace glove::sys {

namespace {

static_assert(call_filter::refusal == (SECCOMP_RET_ERRNO | EPERM));

// What the running kernel can refuse: more with each version of the interface.
[[nodiscard]] auto handled_access(int version) -> std::uint64_t {
    constexpr std::uint64_t first = (1ULL << 13) - 1;
    auto out = first;
    if (version >= 2) out |= 1ULL << 13; // linking between directories
    if (version >= 3) out |= 1ULL << 14; // truncating
    if (version >= 5) out |= 1ULL << 15; // device controls
    return out;
}

void let_read(int ruleset, const std::string& path) {
    const unique_fd place{::open(path.c_str(), O_PATH | O_CLOEXEC)};
    if (!place) return; // this host has none
    struct ::stat found{};
    const bool directory = ::fstat(place.get(), &found) == 0 && S_ISDIR(found.st_mode);
    ::landlock_path_beneath_attr rule{};
    rule.allowed_access =
        LANDLOCK_ACCESS_FS_READ_FILE | (directory ? LANDLOCK_ACCESS_FS_READ_DIR : 0U);
    rule.parent_fd = place.get();
    (void)landlock_add_path(ruleset, rule);
}

} // namespace

auto forbid_core_files() noexcept -> bool {
    ::rlimit limit{};
    if (::getrlimit(RLIMIT_CORE, &limit) != 0) return false;
    limit.rlim_max = std::min<::rlim_t>(limit.rlim_max, 1);
    limit.rlim_cur = limit.rlim_max;
    return ::setrlimit(RLIMIT_CORE, &limit) == 0;
}

auto harden(step_name step) -> result<> {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::prctl(PR_SET_DUMPABLE, 0) != 0)
        return fail_os(step);
    if (!forbid_core_files()) return fail_os(step);
    if (::signal(SIGPIPE, SIG_IGN) == SIG_ERR) return fail_os(step);
    return {};
}

auto block_farewells(step_name step) -> result<> {
    ::sigset_t blocked;
    ::sigemptyset(&blocked);
    for (const int one : farewells) ::sigaddset(&blocked, one);
    if (::sigprocmask(SIG_BLOCK, &blocked, nullptr) != 0) return fail_os(step);
    return {};
}

auto restrict_files(step_name step, std::span<const std::string> places) -> result<> {
    const int version = landlock_create_ruleset(nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version <= 0) return {}; // this kernel has none
    ::landlock_ruleset_attr wanted{};
    wanted.handled_access_fs = handled_access(version);
    const unique_fd ruleset{landlock_create_ruleset(&wanted, sizeof wanted.handled_access_fs, 0)};
    if (!ruleset) return fail_os(step);
    for (const auto& path : places) let_read(ruleset.get(), path);
    if (landlock_restrict_self(ruleset.get()) != 0) return fail_os(step);
    return {};
}

call_filter::call_filter() {
    load(offsetof(::seccomp_data, arch));
    append(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, seccomp::machine, 1, 0));
    answer(SECCOMP_RET_KILL_PROCESS);
    load_number();
}

void call_filter::allow(long number) {
    unless_equal(number, 1);
    answer(SECCOMP_RET_ALLOW);
}

void call_filter::allow_without(long number, unsigned index, std::uint32_t bits) {
    unless_equal(number, 4);
    load_argument(index);
    append(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
    answer(refusal);
    answer(SECCOMP_RET_ALLOW);
}

void call_filter::allow_values(long number, unsigned index,
                               const std::vector<std::uint32_t>& values) {
    unless_equal(number, 2 + 2 * values.size());
    load_argument(index);
    for (const auto value : values) {
        unless_equal(value, 1);
        answer(SECCOMP_RET_ALLOW);
    }
    answer(refusal);
}

void call_filter::allow_memory() {
    for (const long number : {SYS_munmap, SYS_mremap, SYS_brk, SYS_madvise}) allow(number);
    allow_without(SYS_mmap, 2, PROT_EXEC);
    allow_without(SYS_mprotect, 2, PROT_EXEC);
}

auto call_filter::install(step_name step) -> result<> {
    answer(refusal);
    const ::sock_fprog code{static_cast<unsigned short>(code_.size()), code_.data()};
    if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &code) != 0) return fail_os(step);
    return {};
}

void call_filter::load(std::size_t offset) {
    append(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
}
void call_filter::load_number() { load(offsetof(::seccomp_data, nr)); }
void call_filter::load_argument(unsigned index) { load(seccomp::argument(index)); }
void call_filter::answer(std::uint32_t what) { append(BPF_STMT(BPF_RET | BPF_K, what)); }
void call_filter::unless_equal(long value, std::size_t skip) {
    append(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(value), 0,
                    static_cast<std::uint8_t>(skip)));
}

} // namespace glove::sys
