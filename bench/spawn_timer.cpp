// Times whole commands against each other: from posix_spawn to the end of the process.
//
//   spawn_timer [--rounds N] [--warm-up N] [--at-once N] FILE
//
// FILE describes the commands, one word a line: "command NAME", then its words as "arg WORD" and
// descriptors to open for it as "fd NUMBER PATH". Each round runs every command once, in an order
// that turns around every round, so that a slow moment of the machine meets all of them. With
// --at-once, a run is that many processes started together, and its time ends with the last one.
//
// Prints JSON: for each command the 10th, 50th and 90th percentile in microseconds and the median
// of its time divided by the first command's in the same round. A command that does not end with 0
// ends the benchmark: a time of something that failed is no time.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <spawn.h>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

struct command {
    std::string name{};
    std::vector<std::string> words{};
    std::vector<std::pair<int, std::string>> descriptors{};
    std::vector<char*> argv{};
    ::posix_spawn_file_actions_t actions{};
    std::vector<double> microseconds{};
};

struct options {
    unsigned rounds = 200, warm_up = 10, at_once = 1;
    const char* file = nullptr;
};

[[noreturn]] void die(const std::string& what) {
    (void)std::fprintf(stderr, "spawn_timer: %s\n", what.c_str());
    std::exit(1);
}

[[nodiscard]] auto read_commands(const char* path) -> std::vector<command> {
    std::ifstream in{path};
    if (!in) die(std::string{"cannot read "} + path);
    std::vector<command> out;
    for (std::string line; std::getline(in, line);) {
        const auto space = line.find(' ');
        const std::string_view key = std::string_view{line}.substr(0, space);
        const auto value = space == std::string::npos ? std::string{} : line.substr(space + 1);
        if (key == "command") out.push_back({.name = value});
        else if (out.empty()) die("a word before the first command");
        else if (key == "arg") out.back().words.push_back(value);
        else if (key == "fd") {
            const auto end = value.find(' ');
            if (end == std::string::npos) die("fd NUMBER PATH");
            out.back().descriptors.emplace_back(std::stoi(value), value.substr(end + 1));
        } else die("what is " + line + "?");
    }
    if (out.empty()) die("no command");
    return out;
}

void prepare(command& what) {
    for (auto& word : what.words) what.argv.push_back(word.data());
    what.argv.push_back(nullptr);
    (void)::posix_spawn_file_actions_init(&what.actions);
    for (const auto& [number, path] : what.descriptors)
        (void)::posix_spawn_file_actions_addopen(&what.actions, number, path.c_str(), O_RDONLY, 0);
}

[[nodiscard]] auto run(const command& what, unsigned at_once) -> double {
    std::vector<::pid_t> started(at_once);
    const auto begin = clock_type::now();
    for (auto& pid : started) {
        const int bad =
            ::posix_spawn(&pid, what.argv[0], &what.actions, nullptr, what.argv.data(), ::environ);
        if (bad != 0) die(what.name + ": " + std::strerror(bad));
    }
    for (const auto pid : started) {
        int status = 0;
        while (::waitpid(pid, &status, 0) < 0)
            if (errno != EINTR) die("waitpid");
        if (status != 0) die(what.name + " ended with wait status " + std::to_string(status));
    }
    return std::chrono::duration<double, std::micro>(clock_type::now() - begin).count();
}

[[nodiscard]] auto percentile(std::vector<double> values, double share) -> double {
    std::ranges::sort(values);
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

[[nodiscard]] auto ratios(const command& what, const command& first) -> std::vector<double> {
    std::vector<double> out;
    for (std::size_t i = 0; i < what.microseconds.size(); ++i)
        out.push_back(what.microseconds[i] / first.microseconds[i]);
    return out;
}

[[nodiscard]] auto parse(int argc, char** argv) -> options {
    options out;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word{argv[i]};
        const auto number = [&] {
            if (++i == argc) die(std::string{word} + " wants a number");
            return static_cast<unsigned>(std::stoul(argv[i]));
        };
        if (word == "--rounds") out.rounds = number();
        else if (word == "--warm-up") out.warm_up = number();
        else if (word == "--at-once") out.at_once = number();
        else out.file = argv[i];
    }
    if (out.file == nullptr || out.rounds == 0 || out.at_once == 0)
        die("usage: spawn_timer [--rounds N] [--warm-up N] [--at-once N] FILE");
    return out;
}

} // namespace

auto main(int argc, char** argv) -> int {
    const auto wish = parse(argc, argv);
    auto commands = read_commands(wish.file);
    for (auto& each : commands) prepare(each);
    for (unsigned round = 0; round < wish.warm_up + wish.rounds; ++round) {
        for (std::size_t i = 0; i < commands.size(); ++i) {
            auto& next = commands[round % 2 == 0 ? i : commands.size() - 1 - i];
            const auto took = run(next, wish.at_once);
            if (round >= wish.warm_up) next.microseconds.push_back(took);
        }
    }
    (void)std::printf("{");
    for (const auto& each : commands)
        (void)std::printf("%s\"%s\":{\"p10\":%.1f,\"p50\":%.1f,\"p90\":%.1f,\"ratio\":%.4f}",
                          &each == &commands.front() ? "" : ",", each.name.c_str(),
                          percentile(each.microseconds, 0.1), percentile(each.microseconds, 0.5),
                          percentile(each.microseconds, 0.9),
                          percentile(ratios(each, commands.front()), 0.5));
    (void)std::printf("}\n");
    return 0;
}
