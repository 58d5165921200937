// hostile NAME ARGUMENTS...: runs one attack. hostile list: says what there is.
#include "attack.hpp"
#include <algorithm>
#include <array>
#include <cstdio>

namespace {

constexpr std::array themes{
    hostile::file_attacks,     hostile::mode_attacks,    hostile::mount_attacks,
    hostile::process_attacks,  hostile::group_attacks,   hostile::privilege_attacks,
    hostile::socket_attacks,   hostile::syscall_attacks, hostile::descriptor_attacks,
    hostile::terminal_attacks,
};

auto run(std::string_view name, hostile::arguments with) -> hostile::result {
    for (const auto theme : themes)
        for (const auto& attack : theme()) {
            const auto usage = attack.usage;
            if (usage.substr(0, usage.find(' ')) != name) continue;
            if (with.size() + 1 < 1 + static_cast<std::size_t>(std::ranges::count(usage, ' ')))
                return hostile::untried("usage: " + std::string{usage});
            return attack.run(with);
        }
    return hostile::untried("no such attack");
}

} // namespace

int main(int count, char** words) {
    if (count == 2 && std::string_view{words[1]} == "list") {
        for (const auto theme : themes)
            for (const auto& attack : theme())
                std::printf("%-36s %s\n", std::string{attack.usage}.c_str(),
                            std::string{attack.tries}.c_str());
        return 0;
    }
    if (count < 2) return static_cast<int>(hostile::verdict::untried);
    const auto seen = run(words[1], {words + 2, static_cast<std::size_t>(count - 2)});
    std::printf("%s\n", seen.words.c_str());
    return static_cast<int>(seen.what);
}
