// Runs a command under ptrace, lets one chosen system call of one chosen process fail, and reports
// what was left when the command had ended.
//
//   fault_injector [--role ROLE] [--fail CALL:N:ERRNO | --kill CALL:N] [--limit SECONDS] --out FILE
//                  -- COMMAND...
//
// Processes go by what they are to Glove: "supervisor" is the command itself, "init" its first
// child, "agent" the child of that one until it has executed a program. strace injects too, but
// counts in each process by itself: the fifth openat of init cannot be reached without failing the
// fifth of the supervisor first, and those are most of the calls that build a perimeter.
//
// FILE gets one line a call ("call ROLE NAME N FIRST SECOND THIRD PATH"), for ROLE alone when it is
// given, and a last one: "end STATUS HIT LEFT EXECUTED", where LEFT counts the processes that
// outlived the command by more than the grace, and STATUS is as waitpid gives it. Every process
// ends with this one.
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <map>
#include <optional>
#include <seccomp.h>
#include <set>
#include <string>
#include <string_view>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr unsigned grace_seconds = 5;

enum class role : std::uint8_t { supervisor, init, agent, bridge, other };
constexpr std::array<std::string_view, 5> role_names{"supervisor", "init", "agent", "bridge",
                                                     "other"};

struct fault {
    std::string call;
    unsigned occurrence = 0;
    int error = 0; // 0: kill instead
};

struct options {
    std::optional<std::string> role;
    std::optional<fault> wanted;
    unsigned limit = 20;
    const char* out = nullptr;
    char** command = nullptr;
};

[[noreturn]] void die(const char* what) {
    std::perror(what);
    std::exit(70);
}

[[nodiscard]] auto call_name(std::uint64_t number) -> std::string {
    char* const found =
        ::seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, static_cast<int>(number));
    std::string name = found != nullptr ? found : std::to_string(number);
    std::free(found);
    return name;
}

// Where a call has the path that tells its occurrences apart.
[[nodiscard]] auto path_argument(std::string_view name) -> int {
    constexpr std::array<std::string_view, 8> first{"open",  "access", "readlink", "mkdir",
                                                    "chdir", "execve", "fsopen",   "stat"};
    constexpr std::array<std::string_view, 11> second{
        "openat",     "openat2", "newfstatat", "statx",    "readlinkat", "faccessat",
        "faccessat2", "mkdirat", "unlinkat",   "renameat", "open_tree"};
    constexpr std::array<std::string_view, 2> third{"symlinkat", "fsconfig"};
    for (const auto each : first)
        if (each == name) return 0;
    for (const auto each : second)
        if (each == name) return 1;
    for (const auto each : third)
        if (each == name) return 2;
    return -1;
}

[[nodiscard]] auto read_text(::pid_t pid, std::uint64_t address) -> std::string {
    std::array<char, 256> bytes{};
    ::iovec here{bytes.data(), bytes.size() - 1};
    ::iovec there{reinterpret_cast<void*>(address), bytes.size() - 1};
    if (::process_vm_readv(pid, &here, 1, &there, 1, 0) < 0) {
        // The text may end before a page that is not mapped.
        there.iov_len = here.iov_len = 4096 - (address & 4095U) < bytes.size() - 1
                                           ? 4096 - (address & 4095U)
                                           : bytes.size() - 1;
        if (::process_vm_readv(pid, &here, 1, &there, 1, 0) < 0) return "?";
    }
    std::string text{bytes.data()};
    for (auto& c : text)
        if (c == '\n' || c == ' ') c = '_';
    return text;
}

// A harmless call instead of the wanted one, which any filter lets through; then its result.
#if defined(__x86_64__)
void replace_call(::pid_t pid) {
    ::user_regs_struct all{};
    if (::ptrace(PTRACE_GETREGS, pid, nullptr, &all) != 0) die("getregs");
    all.orig_rax = SYS_getpid;
    if (::ptrace(PTRACE_SETREGS, pid, nullptr, &all) != 0) die("setregs");
}
void set_result(::pid_t pid, long value) {
    ::user_regs_struct all{};
    if (::ptrace(PTRACE_GETREGS, pid, nullptr, &all) != 0) die("getregs");
    all.rax = static_cast<unsigned long long>(value);
    if (::ptrace(PTRACE_SETREGS, pid, nullptr, &all) != 0) die("setregs");
}
#elif defined(__aarch64__)
void replace_call(::pid_t pid) {
    int number = SYS_getpid;
    ::iovec one{&number, sizeof number};
    if (::ptrace(PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL, &one) != 0) die("setregset");
}
void set_result(::pid_t pid, long value) {
    ::user_regs_struct all{};
    ::iovec one{&all, sizeof all};
    if (::ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &one) != 0) die("getregset");
    all.regs[0] = static_cast<unsigned long long>(value);
    if (::ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &one) != 0) die("setregset");
}
#else
#error "this machine's registers are not known here"
#endif

class session {
public:
    explicit session(const options& wish) : wish_{wish} {
        out_ = std::fopen(wish.out, "we");
        if (out_ == nullptr) die(wish.out);
    }

    void start() {
        int gate[2];
        if (::pipe2(gate, O_CLOEXEC) != 0) die("pipe2");
        main_ = ::fork();
        if (main_ < 0) die("fork");
        if (main_ == 0) {
            char byte = 0;
            if (::read(gate[0], &byte, 1) != 1) ::_exit(70);
            ::execvp(wish_.command[0], wish_.command);
            ::_exit(71);
        }
        constexpr long traced = PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK |
                                PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
        if (::ptrace(PTRACE_SEIZE, main_, nullptr, traced) != 0) die("seize");
        processes_[main_].is = role::supervisor;
        if (::write(gate[1], "", 1) != 1) die("gate");
    }

    void follow() {
        struct ::sigaction interrupt{};
        interrupt.sa_handler = [](int) {};
        (void)::sigaction(SIGALRM, &interrupt, nullptr); // no SA_RESTART
        (void)::alarm(wish_.limit);
        for (;;) {
            int status = 0;
            const auto pid = ::waitpid(-1, &status, __WALL);
            if (pid < 0 && errno == EINTR) break; // out of time
            if (pid < 0) break;                   // ECHILD: all have ended
            if (WIFSTOPPED(status)) stopped(pid, status);
            else ended(pid, status);
        }
        const auto left = processes_.size();
        (void)std::fprintf(out_, "end %d %d %zu %d\n", status_, hit_ ? 1 : 0, left,
                           executed_ ? 1 : 0);
        (void)std::fclose(out_);
    }

private:
    struct process {
        role is = role::other;
        bool known = false;   // its maker has told who it is
        bool waiting = false; // stopped until then
        bool fail_now = false;
        std::map<std::uint64_t, unsigned> counts;
    };

    [[nodiscard]] auto watched(const process& p) const -> bool {
        if (p.is == role::other) return false;
        return !wish_.role || *wish_.role == role_names[static_cast<std::size_t>(p.is)];
    }

    void go_on(::pid_t pid, const process& p, int number = 0) {
        // After the one fault there is nothing to count any more.
        const bool calls = watched(p) && (!hit_ || p.fail_now);
        (void)::ptrace(calls ? PTRACE_SYSCALL : PTRACE_CONT, pid, nullptr, number);
    }

    void stopped(::pid_t pid, int status) {
        const int number = WSTOPSIG(status);
        const int event = status >> 16;
        auto& p = processes_[pid];
        if (pid == main_) p.known = true;
        if (number == (SIGTRAP | 0x80)) {
            at_call(pid, p);
        } else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
                   event == PTRACE_EVENT_CLONE) {
            made_child(pid, p, event);
        } else if (event == PTRACE_EVENT_EXEC) {
            if (p.is == role::agent) {
                executed_ = true;
                p.is = role::other;
            }
            go_on(pid, p);
        } else if (event == PTRACE_EVENT_STOP) {
            if (!p.known) p.waiting = true;
            else go_on(pid, p);
        } else {
            go_on(pid, p, number);
        }
    }

    // Whoever is made with vfork is to execute a program.
    void made_child(::pid_t pid, const process& maker, int event) {
        unsigned long child = 0;
        (void)::ptrace(PTRACE_GETEVENTMSG, pid, nullptr, &child);
        auto& p = processes_[static_cast<::pid_t>(child)];
        const bool executes = event == PTRACE_EVENT_VFORK;
        if (maker.is == role::supervisor && !executes) p.is = role::init;
        if (maker.is == role::init) p.is = executes ? role::agent : role::bridge;
        p.known = true;
        if (p.waiting) go_on(static_cast<::pid_t>(child), p);
        go_on(pid, maker);
    }

    void at_call(::pid_t pid, process& p) {
        ::__ptrace_syscall_info info{};
        if (::ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) < 0) return;
        if (info.op == PTRACE_SYSCALL_INFO_EXIT && p.fail_now) {
            p.fail_now = false;
            set_result(pid, -wish_.wanted->error);
        }
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY && watched(p)) entered(pid, p, info);
        go_on(pid, p);
    }

    void entered(::pid_t pid, process& p, const ::__ptrace_syscall_info& info) {
        const auto name = call_name(info.entry.nr);
        const auto occurrence = ++p.counts[info.entry.nr];
        const bool chosen = wish_.wanted && !hit_ && wish_.wanted->call == name &&
                            wish_.wanted->occurrence == occurrence;
        if (!wish_.wanted || chosen) record(pid, p, name, occurrence, info);
        if (!chosen) return;
        hit_ = true;
        if (wish_.wanted->error == 0) {
            (void)::kill(pid, SIGKILL);
            return;
        }
        // The kernel closes and unmaps whatever it then returns; only the result is made up.
        if (name != "close" && name != "munmap") replace_call(pid);
        p.fail_now = true;
    }

    void record(::pid_t pid, const process& p, const std::string& name, unsigned occurrence,
                const ::__ptrace_syscall_info& info) {
        const auto at = path_argument(name);
        const auto text = at < 0 ? std::string{"-"} : read_text(pid, info.entry.args[at]);
        (void)std::fprintf(out_, "call %s %s %u %lld %lld %lld %s\n",
                           role_names[static_cast<std::size_t>(p.is)].data(), name.c_str(),
                           occurrence, static_cast<long long>(info.entry.args[0]),
                           static_cast<long long>(info.entry.args[1]),
                           static_cast<long long>(info.entry.args[2]), text.c_str());
    }

    void ended(::pid_t pid, int status) {
        processes_.erase(pid);
        if (pid != main_) return;
        status_ = status;
        (void)::alarm(grace_seconds);
    }

    const options& wish_;
    std::FILE* out_ = nullptr;
    ::pid_t main_ = -1;
    int status_ = -1;
    bool hit_ = false;
    bool executed_ = false;
    std::map<::pid_t, process> processes_;
};

[[nodiscard]] auto parse_fault(const std::string& text, bool kills) -> fault {
    const auto first = text.find(':');
    if (first == std::string::npos) die("CALL:N");
    const auto second = text.find(':', first + 1);
    if (!kills && second == std::string::npos) die("CALL:N:ERRNO");
    return {.call = text.substr(0, first),
            .occurrence = static_cast<unsigned>(std::stoul(text.substr(first + 1))),
            .error = kills ? 0 : std::stoi(text.substr(second + 1))};
}

[[nodiscard]] auto parse(int argc, char** argv) -> options {
    options out;
    for (int i = 1; i + 1 < argc; ++i) {
        const std::string_view word{argv[i]};
        if (word == "--") {
            out.command = argv + i + 1;
            break;
        }
        const char* const value = argv[++i];
        if (word == "--role") out.role = value;
        else if (word == "--fail") out.wanted = parse_fault(value, false);
        else if (word == "--kill") out.wanted = parse_fault(value, true);
        else if (word == "--limit") out.limit = static_cast<unsigned>(std::stoul(value));
        else if (word == "--out") out.out = value;
    }
    if (out.command == nullptr || out.out == nullptr) {
        (void)std::fputs("usage: fault_injector [--role ROLE] [--fail CALL:N:ERRNO | --kill "
                         "CALL:N] [--limit SECONDS] --out FILE -- COMMAND...\n",
                         stderr);
        std::exit(64);
    }
    return out;
}

} // namespace

auto main(int argc, char** argv) -> int {
    const auto wish = parse(argc, argv);
    session run{wish};
    run.start();
    run.follow();
    return 0;
}
