// Where Glove's own programs and files are, and the terminal.
#include "host/doctor_checks.hpp"
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <glove/net/egress_service.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/user_directories.hpp>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::host {

namespace {

// Whether the directory could be made: its nearest ancestor that exists takes new names.
[[nodiscard]] auto can_be_made(const std::string& path) -> bool {
    for (auto up = sys::parent_of(path);; up = sys::parent_of(up)) {
        if (::access(up.c_str(), W_OK | X_OK) == 0) return true;
        if (errno != ENOENT || up == "/") return false;
    }
}

[[nodiscard]] auto look_at_directory(result<std::string> place) -> directory_facts {
    directory_facts out;
    if (!place) {
        out.problem = std::move(place).error();
        return out;
    }
    out.path = *std::move(place);
    struct ::stat found{};
    if (::fstatat(AT_FDCWD, out.path.c_str(), &found, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) {
        out.os = errno;
        out.can_be_made = out.os == ENOENT && can_be_made(out.path);
        return out;
    }
    out.is_directory = S_ISDIR(found.st_mode);
    out.is_own = found.st_uid == ::geteuid();
    out.permissions = found.st_mode & 07777U;
    out.takes_files = out.is_directory && ::access(out.path.c_str(), W_OK | X_OK) == 0;
    return out;
}

[[nodiscard]] auto look_at_terminal() -> terminal_facts {
    terminal_facts out;
    out.input = ::isatty(0) == 1;
    out.output = ::isatty(1) == 1;
    if (const char* const kind = std::getenv("TERM"); kind != nullptr) out.kind = kind;
    struct ::winsize size{};
    for (const int stream : {1, 0})
        if (out.columns == 0 && ::ioctl(stream, TIOCGWINSZ, &size) == 0) {
            out.columns = size.ws_col;
            out.rows = size.ws_row;
        }
    return out;
}

[[nodiscard]] auto octal(::mode_t mode) -> std::string {
    std::string out;
    for (unsigned shift = 9; shift > 0; shift -= 3)
        out += static_cast<char>('0' + (mode >> (shift - 3) & 7U));
    return "0" + out;
}

// What keeps every command from being started: its records could not be written.
[[nodiscard]] auto fault_of(const directory_facts& place) -> std::optional<verdict> {
    if (place.problem) return failed(place.problem->detail, place.problem->remedy);
    if (place.os == ENOENT) {
        if (place.can_be_made) return std::nullopt;
        return failed(
            place.path + " does not exist and cannot be made",
            "give its parent directory to this user, or set XDG_STATE_HOME to a directory "
            "that can be written");
    }
    if (place.os != 0)
        return failed(place.path + ": " + std::strerror(place.os),
                      "set XDG_STATE_HOME to a directory that this user may enter");
    if (!place.is_directory)
        return failed(place.path + " is not a directory",
                      "move it away: mv " + place.path + " " + place.path + ".old");
    if (!place.is_own)
        return failed(place.path + " belongs to another user",
                      "as root run: chown -R \"$USER\" " + place.path);
    if ((place.permissions & 0700U) != 0700U)
        return failed(place.path + " has mode " + octal(place.permissions),
                      "chmod 700 " + place.path);
    if (!place.takes_files)
        return failed(
            place.path + " takes no files",
            "mount its file system for writing, or set XDG_STATE_HOME to a directory that "
            "can be written");
    return std::nullopt;
}

[[nodiscard]] auto open_to_others(const directory_facts& place) -> std::optional<verdict> {
    if (place.os != 0 || (place.permissions & 077U) == 0) return std::nullopt;
    return warning(place.path + " has mode " + octal(place.permissions) +
                       ((place.permissions & 022U) != 0 ? ": others can change it"
                                                        : ": others can look into it"),
                   "chmod 700 " + place.path);
}

} // namespace

auto look_at_places() -> place_facts {
    place_facts out;
    if (auto found = net::find_egress_program(); found) out.egress_program = *std::move(found);
    else out.egress_problem = std::move(found).error();
    if (!out.egress_program.empty() && ::access(out.egress_program.c_str(), X_OK) != 0)
        out.egress_problem = fail_os("egress.program", errno, out.egress_program).error();
    out.state = look_at_directory(sys::state_directory());
    if (out.state.problem) out.audit = out.state;
    else out.audit = look_at_directory(out.state.path + "/audit");
    out.configuration = look_at_directory(sys::configuration_directory());
    out.terminal = look_at_terminal();
    return out;
}

auto judge_egress(const facts& seen) -> verdict {
    const auto& problem = seen.places.egress_problem;
    if (!problem) return passed(seen.places.egress_program + " is there");
    if (problem->code == errc::not_found)
        return warning("not there: " + problem->detail, problem->remedy);
    return warning(problem->detail + ": " + std::strerror(problem->os),
                   "as its owner run: chmod 755 " + problem->detail);
}

auto judge_terminal(const facts& seen) -> verdict {
    const auto& terminal = seen.places.terminal;
    if (!terminal.input && !terminal.output)
        return passed("neither standard input nor standard output is a terminal");
    const std::string which = terminal.input && terminal.output ? "standard input and output"
                              : terminal.input                  ? "standard input"
                                                                : "standard output";
    if (terminal.kind.empty() || terminal.kind == "dumb")
        return warning(which + ": a terminal, and TERM is " +
                           (terminal.kind.empty() ? "not set" : terminal.kind),
                       "export TERM=xterm-256color");
    if (terminal.columns <= 0 || terminal.rows <= 0)
        return warning(which + ": a terminal without a size", "stty cols 80 rows 24");
    return passed(which + ": " + terminal.kind + ", " + std::to_string(terminal.columns) +
                  " columns, " + std::to_string(terminal.rows) + " rows");
}

auto judge_state(const facts& seen) -> verdict {
    const auto& state = seen.places.state;
    const auto& audit = seen.places.audit;
    // A run needs the one that takes its record.
    if (auto fault = fault_of(audit)) return *std::move(fault);
    if (audit.os == 0 && (audit.permissions & 022U) != 0)
        return failed(audit.path + " has mode " + octal(audit.permissions) +
                          ": others can change it",
                      "chmod go-w " + audit.path);
    if (state.os == ENOENT) return passed(state.path + " will be made by the first run");
    if (auto fault = fault_of(state)) return warning(fault->message, fault->recovery);
    if (auto open = open_to_others(state)) return *std::move(open);
    if (auto open = open_to_others(audit)) return *std::move(open);
    return passed(state.path + " is yours alone");
}

auto judge_configuration(const facts& seen) -> verdict {
    const auto& place = seen.places.configuration;
    // Without a name for it, no run can keep a command away from it.
    if (place.problem) return failed(place.problem->detail, place.problem->remedy);
    if (place.os == ENOENT) return passed(place.path + " does not exist: the defaults hold");
    if (place.os != 0)
        return warning(place.path + ": " + std::strerror(place.os),
                       "set XDG_CONFIG_HOME to a directory that this user may enter");
    if (auto fault = fault_of(place)) return warning(fault->message, fault->recovery);
    if (auto open = open_to_others(place)) return *std::move(open);
    return passed(place.path + " is yours alone");
}

} // namespace glove::host
