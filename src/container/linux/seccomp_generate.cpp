// Build-time tool: compiles the table with libseccomp into the arrays that the binary carries.
//
//   seccomp_generate --bpf x86_64|arm64 FILE    write the arrays
//   seccomp_generate --list PROGRAM             print the table
//
// Guarantees: a program is refused when the table has a fault, when libseccomp knows a call by
// another number, or when the kernel would not take the result.
//
// In libseccomp an unconditional rule swallows the conditional ones of its call, and a call with
// only conditional rules falls to the filter's default. So each program is built in layers: first
// the clauses, then the answers by number; what a layer does not decide it hands to the next.
// libseccomp exports that as a return of `undecided`, which becomes a jump. The last stage is
// written here: calls that this libseccomp cannot name, and ENOSYS.
#include "container/linux/seccomp_rules.hpp"
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <glove/sys/fd.hpp>
#include <iostream>
#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <memory>
#include <optional>
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

namespace glove::container::seccomp {
namespace {

using code = std::vector<::sock_filter>;

constexpr std::uint32_t undecided_action = SCMP_ACT_TRACE(0x7a7a);
constexpr std::uint16_t load = BPF_LD | BPF_W | BPF_ABS;
constexpr std::uint16_t mask = BPF_ALU | BPF_AND | BPF_K;
constexpr std::uint16_t equal = BPF_JMP | BPF_JEQ | BPF_K;
constexpr std::uint16_t jump = BPF_JMP | BPF_JA;
constexpr std::uint16_t give = BPF_RET | BPF_K;

[[noreturn]] void refuse_build(const std::string& why) {
    std::cerr << "seccomp_generate: " << why << '\n';
    std::exit(1);
}

void must(int answer, std::string_view what) {
    if (answer < 0) refuse_build(std::string{what} + ": " + std::strerror(-answer));
}

auto action(const decision& d) -> std::uint32_t {
    switch (d.outcome) {
    case verdict::allow: return SCMP_ACT_ALLOW;
    case verdict::refuse: return SCMP_ACT_ERRNO(static_cast<std::uint32_t>(d.error));
    case verdict::kill: return SCMP_ACT_KILL_PROCESS;
    }
    return SCMP_ACT_KILL_PROCESS;
}

auto token(machine on) -> std::uint32_t {
    return on == machine::x86_64 ? SCMP_ARCH_X86_64 : SCMP_ARCH_AARCH64;
}

// A filter for another machine takes the number of *this* machine and translates it by name, so a
// call can be added only when the library knows the name on both.
struct target {
    machine on;
    [[nodiscard]] auto handle(const rule& r) const -> std::optional<int> {
        const auto name = std::string{r.call.name};
        const int known = ::seccomp_syscall_resolve_name_arch(token(on), name.c_str());
        if (known < 0) return std::nullopt;
        if (known != r.number(on))
            refuse_build(name + ": libseccomp has number " + std::to_string(known));
        const int here = ::seccomp_syscall_resolve_name(name.c_str());
        if (here == __NR_SCMP_ERROR) return std::nullopt;
        return here;
    }
};

constexpr std::uint64_t upper_half = 0xffffffff00000000;

class layer {
public:
    explicit layer(machine on) : filter_{::seccomp_init(undecided_action)} {
        if (!filter_) refuse_build("seccomp_init");
        if (token(on) != ::seccomp_arch_native()) {
            must(::seccomp_arch_remove(filter_.get(), SCMP_ARCH_NATIVE), "arch_remove");
            must(::seccomp_arch_add(filter_.get(), token(on)), "arch_add");
        }
        must(::seccomp_attr_set(filter_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS),
             "badarch");
        must(::seccomp_attr_set(filter_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2), "optimize");
    }

    void add(std::string_view name, int handle, const decision& then, const clause* when) {
        std::vector<::scmp_arg_cmp> compare;
        if (when != nullptr)
            for (const auto& test : when->all)
                if (test.mask != 0)
                    compare.push_back({test.argument, SCMP_CMP_MASKED_EQ,
                                       test.mask | (test.is_pointer ? upper_half : 0), test.value});
        must(::seccomp_rule_add_array(filter_.get(), action(then), handle,
                                      static_cast<unsigned>(compare.size()), compare.data()),
             name);
    }

    [[nodiscard]] auto compile() const -> code {
        const sys::unique_fd file{::memfd_create("bpf", MFD_CLOEXEC)};
        if (!file) refuse_build("memfd_create");
        must(::seccomp_export_bpf(filter_.get(), file.get()), "export");
        code out(static_cast<std::size_t>(::lseek(file.get(), 0, SEEK_END)) /
                 sizeof(::sock_filter));
        const auto bytes = out.size() * sizeof(::sock_filter);
        if (::pread(file.get(), out.data(), bytes, 0) != static_cast<::ssize_t>(bytes))
            refuse_build("reading the export");
        return out;
    }

private:
    struct release {
        void operator()(void* filter) const noexcept { ::seccomp_release(filter); }
    };
    std::unique_ptr<void, release> filter_;
};

// Clauses of one answer share a layer, where their order cannot matter; another answer begins the
// next.
auto depth_of(const rule& r, std::size_t clause_index) -> std::size_t {
    std::size_t depth = 0;
    for (std::size_t i = 1; i <= clause_index; ++i)
        if (r.clauses[i].then != r.clauses[i - 1].then) ++depth;
    return depth;
}

void append_by_hand(code& out, const rule& r, int number) {
    code body;
    for (const auto& c : r.clauses) {
        code tests;
        for (const auto& test : c.all) {
            if (test.mask == 0) continue;
            const auto low = static_cast<std::uint32_t>(offsetof(::seccomp_data, args)) +
                             8 * test.argument; // both machines are little-endian
            tests.push_back({load, 0, 0, low});
            tests.push_back({mask, 0, 0, test.mask});
            tests.push_back({equal, 0, 0, test.value});
            if (!test.is_pointer) continue;
            tests.push_back({load, 0, 0, low + 4});
            tests.push_back({equal, 0, 0, 0});
        }
        for (std::size_t i = 0; i != tests.size(); ++i)
            if (tests[i].code == equal) tests[i].jf = static_cast<std::uint8_t>(tests.size() - i);
        body.insert(body.end(), tests.begin(), tests.end());
        body.push_back({give, 0, 0, action(c.then)});
    }
    body.push_back({give, 0, 0, action(r.otherwise)});
    if (body.size() > 255) refuse_build(std::string{r.call.name} + ": too long to jump over");
    out.push_back(
        {equal, 0, static_cast<std::uint8_t>(body.size()), static_cast<std::uint32_t>(number)});
    out.insert(out.end(), body.begin(), body.end());
}

auto compile(machine on, const variant& program) -> code {
    const target here{on};
    std::vector<layer> layers;
    layer by_number{on};
    code last{{load, 0, 0, offsetof(::seccomp_data, nr)}};
    for (const auto& r : rules_of(program)) {
        if (r.number(on) == no_number) continue;
        const auto handle = here.handle(r);
        if (!handle) {
            append_by_hand(last, r, r.number(on));
            continue;
        }
        for (std::size_t i = 0; i != r.clauses.size(); ++i) {
            const auto depth = depth_of(r, i);
            while (layers.size() <= depth) layers.emplace_back(on);
            layers[depth].add(r.call.name, *handle, r.clauses[i].then, &r.clauses[i]);
        }
        by_number.add(r.call.name, *handle, r.otherwise, nullptr);
    }
    last.push_back({give, 0, 0, action(absent)});
    layers.push_back(std::move(by_number));

    code out;
    for (const auto& l : layers) {
        auto part = l.compile();
        for (std::size_t i = 0; i != part.size(); ++i)
            if (part[i].code == give && part[i].k == undecided_action)
                part[i] = {jump, 0, 0, static_cast<std::uint32_t>(part.size() - i - 1)};
        out.insert(out.end(), part.begin(), part.end());
    }
    out.insert(out.end(), last.begin(), last.end());
    if (out.size() > BPF_MAXINSNS)
        refuse_build(std::string{program.name} + ": " + std::to_string(out.size()) +
                     " instructions, the kernel takes " + std::to_string(BPF_MAXINSNS));
    return out;
}

void write(machine on, const std::string& path) {
    std::ofstream file{path, std::ios::trunc};
    file << "// Generated from seccomp_rules.cpp; do not edit.\n";
    for (const auto& program : variants) {
        const auto compiled = compile(on, program);
        file << "constexpr ::sock_filter " << program.name << "[] = { // " << compiled.size()
             << '\n';
        for (const auto& i : compiled)
            file << '{' << i.code << ',' << unsigned{i.jt} << ',' << unsigned{i.jf} << ',' << i.k
                 << "},\n";
        file << "};\n";
    }
    if (!file.flush()) refuse_build("cannot write " + path);
}

auto run(std::span<const std::string_view> words) -> int {
    if (const auto found = faults(); !found.empty()) {
        for (const auto& fault : found) std::cerr << "seccomp_generate: " << fault << '\n';
        return 1;
    }
    if (words.size() == 2 && words[0] == "--list")
        for (const auto& program : variants)
            if (program.name == words[1]) {
                std::cout << listing(program);
                return 0;
            }
    if (words.size() == 3 && words[0] == "--bpf")
        for (const auto on : machines)
            if (to_string(on) == words[1]) {
                write(on, std::string{words[2]});
                return 0;
            }
    std::cerr << "usage: seccomp_generate --bpf x86_64|arm64 FILE | --list PROGRAM\n";
    return 2;
}

} // namespace
} // namespace glove::container::seccomp

auto main(int count, char** words) -> int {
    // Otherwise libseccomp offers KILL_PROCESS only where the build host's kernel has it.
    (void)::seccomp_api_set(3);
    const std::vector<std::string_view> rest(words + 1, words + count);
    return glove::container::seccomp::run(rest);
}
