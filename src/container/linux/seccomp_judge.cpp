// Reads the table: the answer to one call, and the listing of all of them. Never consults a kernel.
#include "container/linux/seccomp_rules.hpp"
#include <algorithm>
#include <linux/audit.h>
#include <sstream>

namespace glove::container::seccomp {
namespace {

// On x86-64 the x32 entry is this bit of the number, not another architecture. The number -1 is
// what a tracer writes to skip a call, so it is no x32 call.
constexpr std::uint32_t x32_bit = 0x40000000;
constexpr std::uint32_t skipped = 0xffffffff;

auto holds(const clause& c, const entry& call) -> bool {
    return std::ranges::all_of(c.all, [&](const condition& test) {
        if (test.is_pointer && call.arguments.at(test.argument) >> 32 != 0) return false;
        return (static_cast<std::uint32_t>(call.arguments.at(test.argument)) & test.mask) ==
               test.value;
    });
}

auto name_of(const decision& d) -> std::string_view {
    if (d.outcome == verdict::allow) return "allow";
    if (d.outcome == verdict::kill) return "kill";
    switch (d.error) {
    case 0: return "pretend";
    case EPERM: return "EPERM";
    case EACCES: return "EACCES";
    case ENOSYS: return "ENOSYS";
    case EAFNOSUPPORT: return "EAFNOSUPPORT";
    case EPROTONOSUPPORT: return "EPROTONOSUPPORT";
    default: return "another errno";
    }
}

void print(std::ostream& out, const clause& c) {
    std::string_view joint;
    for (const auto& test : c.all) {
        if (test.mask == 0) continue;
        out << joint << "arg" << std::dec << test.argument << std::hex << std::showbase;
        if (test.mask != 0xffffffff) out << '&' << test.mask;
        out << "==" << test.value << std::dec;
        if (test.is_pointer) out << " of 64 bits";
        joint = " and ";
    }
    out << ": " << name_of(c.then) << "; ";
}

auto number_text(int number) -> std::string {
    return number == no_number ? "-" : std::to_string(number);
}

} // namespace

auto to_string(machine on) noexcept -> std::string_view {
    return on == machine::x86_64 ? "x86_64" : "arm64";
}

auto audit_arch(machine on) noexcept -> std::uint32_t {
    return on == machine::x86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64;
}

auto judge(machine on, const variant& program, const entry& call) -> decision {
    if (call.arch != audit_arch(on)) return kill;
    if (on == machine::x86_64 && call.number != skipped && call.number >= x32_bit) return kill;
    const auto& rules = rules_of(program);
    const auto row = std::ranges::find_if(rules, [&](const rule& r) {
        return r.number(on) != no_number && static_cast<std::uint32_t>(r.number(on)) == call.number;
    });
    if (row == rules.end()) return absent;
    for (const auto& c : row->clauses)
        if (holds(c, call)) return c.then;
    return row->otherwise;
}

auto listing(const variant& program) -> std::string {
    std::ostringstream out;
    out << "# tier " << to_string(program.tier) << ", declared descriptors " << program.declared
        << "\n# call, number on x86-64, number on arm64, answer (the first that holds)\n"
           "# conditions read the low 32 bits; every other number: ENOSYS; every other entry, x32 "
           "and "
           "32-bit: kill\n";
    for (const auto& row : rules_of(program)) {
        out << row.call.name << ' ' << number_text(row.call.x86_64) << ' '
            << number_text(row.call.arm64) << "  ";
        for (const auto& c : row.clauses) print(out, c);
        if (!row.clauses.empty()) out << "otherwise ";
        out << name_of(row.otherwise) << '\n';
    }
    return std::move(out).str();
}

} // namespace glove::container::seccomp
