// glove-control: what `glove daemon`, `glove session`, `glove exposure` and `glove journal` become,
// and what a service of an older systemd begins as. Not for people: the words are those of `glove`,
// and it has checked them.
#include "cli/control_process/daemon.hpp"
#include "cli/control_words.hpp"
#include "cli/report_error.hpp"
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <glove/run/exec.hpp>

namespace {

struct verb_row {
    std::string_view name;
    auto (*run)(const glove::cli::invocation&) -> int;
};
constexpr std::array verbs{
    verb_row{"daemon", glove::cli::run_daemon},
    verb_row{"session", glove::cli::run_session},
    verb_row{"exposure", glove::cli::run_exposure},
    verb_row{"journal", glove::cli::run_journal},
    verb_row{"enter-subgroup", glove::cli::enter_subgroup_and_become},
};

[[nodiscard]] auto split(int argc, char** argv) -> glove::cli::invocation {
    glove::cli::invocation out;
    out.verb = argv[1];
    for (int i = 2; i < argc; ++i) {
        if (out.has_command) out.command.emplace_back(argv[i]);
        else if (std::strcmp(argv[i], "--") == 0) out.has_command = true;
        else out.options.emplace_back(argv[i]);
    }
    return out;
}

} // namespace

auto main(int argc, char** argv) -> int {
    const std::string_view word{argc > 1 ? argv[1] : ""};
    if (word == "--version") {
        (void)std::puts("glove-control " GLOVE_VERSION);
        return 0;
    }
    const auto* const row = std::ranges::find(verbs, word, &verb_row::name);
    if (row != verbs.end()) return row->run(split(argc, argv));
    glove::cli::report_error({.code = glove::errc::invalid_input,
                              .step = "usage",
                              .os = 0,
                              .detail = "glove starts this program itself",
                              .remedy = "glove --help"});
    return static_cast<int>(glove::run::exit_status::usage);
}
