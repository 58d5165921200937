// Runs a seccomp filter in user space, as the kernel's verifier and interpreter would.
//
// Guarantees: throws on every program the kernel would refuse to load or that would leave its
// bounds; never touches the kernel.
#pragma once
#include <cstring>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <span>
#include <stdexcept>

namespace glove::test {

struct bpf_run {
    std::uint32_t action;
    unsigned steps;
    bool read_arguments; // the kernel's action cache holds only calls decided without them
};

[[nodiscard]] inline auto run_bpf(std::span<const ::sock_filter> program,
                                  const ::seccomp_data& data) -> bpf_run {
    bpf_run run{};
    std::uint32_t a = 0;
    std::size_t pc = 0;
    while (true) {
        if (pc >= program.size()) throw std::out_of_range{"the program runs off its end"};
        const auto& i = program[pc++];
        ++run.steps;
        switch (i.code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (i.k % 4 != 0 || i.k > sizeof data - 4) throw std::out_of_range{"load"};
            std::memcpy(&a, reinterpret_cast<const char*>(&data) + i.k, sizeof a);
            run.read_arguments |= i.k >= offsetof(::seccomp_data, instruction_pointer);
            break;
        case BPF_ALU | BPF_AND | BPF_K: a &= i.k; break;
        case BPF_JMP | BPF_JA: pc += i.k; break;
        case BPF_JMP | BPF_JEQ | BPF_K: pc += a == i.k ? i.jt : i.jf; break;
        case BPF_JMP | BPF_JGT | BPF_K: pc += a > i.k ? i.jt : i.jf; break;
        case BPF_JMP | BPF_JGE | BPF_K: pc += a >= i.k ? i.jt : i.jf; break;
        case BPF_JMP | BPF_JSET | BPF_K: pc += (a & i.k) != 0 ? i.jt : i.jf; break;
        case BPF_RET | BPF_K: run.action = i.k; return run;
        default: throw std::invalid_argument{"an instruction that seccomp does not take"};
        }
    }
}

} // namespace glove::test
