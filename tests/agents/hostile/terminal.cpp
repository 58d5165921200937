// Types into, pastes into or takes over the operator's terminal, which is descriptor 0.
#include "attack.hpp"
#include <array>
#include <cstdint>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hostile {
namespace {

constexpr std::uint64_t high = 1ULL << 32; // the kernel looks at the low half only

auto control(std::uint64_t what, void* with, int fd = 0) -> result {
    return judge(::syscall(SYS_ioctl, fd, what, with));
}

auto type_in(arguments) -> result {
    char byte = 'x';
    return control(TIOCSTI, &byte);
}

auto type_in_high(arguments) -> result {
    char byte = 'x';
    return control(TIOCSTI | high, &byte);
}

auto type_in_by_name(arguments) -> result {
    const int terminal = ::open("/dev/tty", O_RDWR | O_CLOEXEC);
    if (terminal < 0) return denied();
    char byte = 'x';
    return control(TIOCSTI, &byte, terminal);
}

auto paste(arguments) -> result {
    std::array<char, 2> paste_selection{3, 0};
    return control(TIOCLINUX, paste_selection.data());
}

auto paste_high(arguments) -> result {
    std::array<char, 2> paste_selection{3, 0};
    return control(TIOCLINUX | high, paste_selection.data());
}

auto discipline(arguments) -> result {
    int number = 0; // the ordinary one: harmless where it works
    return control(TIOCSETD, &number);
}

auto window_size(arguments) -> result {
    ::winsize size{};
    return control(TIOCGWINSZ, &size);
}

auto own_terminal(arguments) -> result {
    const int master = ::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0) return denied();
    int unlock = 0;
    if (::ioctl(master, TIOCSPTLCK, &unlock) != 0) return denied();
    return judge(::ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY));
}

constexpr std::array attacks{
    attack{"type_in", "type a character", type_in},
    attack{"type_in_high", "the same with rubbish above", type_in_high},
    attack{"type_in_by_name", "the same by /dev/tty", type_in_by_name},
    attack{"paste", "paste the selection", paste},
    attack{"paste_high", "the same with rubbish above", paste_high},
    attack{"discipline", "load a line discipline", discipline},
    attack{"window_size", "ask for the size", window_size},
    attack{"own_terminal", "make a terminal of one's own", own_terminal},
};

} // namespace

auto terminal_attacks() -> std::span<const attack> { return attacks; }

} // namespace hostile
