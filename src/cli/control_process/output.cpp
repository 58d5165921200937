// What could not be printed is an error; nothing that came from outside draws on a terminal.
#include "cli/control_process/output.hpp"
#include <algorithm>
#include <cstdio>
#include <glove/base/text.hpp>
#include <glove/run/exec.hpp>
#include <glove/sys/files.hpp>

namespace glove::cli {

auto print(std::string_view text) -> result<> {
    auto written = sys::write_all(sys::fd_ref::standard_output(), text);
    if (!written) return fail_os("output", written.error().os, "standard output");
    return {};
}

void note(std::string_view text) {
    (void)std::fputs(("glove: " + printable(text) + "\n").c_str(), stderr);
}

auto wrong_usage(std::string what, std::string usage) -> std::unexpected<error> {
    return fail(errc::invalid_input, "usage", std::move(what), std::move(usage));
}

auto check_options(const CLI::App& app, std::string_view verb, std::string_view action,
                   const std::vector<std::string_view>& all_take,
                   const std::vector<std::string_view>& it_takes) -> result<> {
    for (const auto* const option : app.get_options()) {
        if (option->count() == 0 || option->get_lnames().empty()) continue;
        const std::string name = "--" + option->get_lnames().front();
        if (std::ranges::find(all_take, name) != all_take.end() ||
            std::ranges::find(it_takes, name) != it_takes.end())
            continue;
        return fail(errc::invalid_input, "usage",
                    name + " does not go with " + std::string{verb} + " " + std::string{action},
                    "glove " + std::string{verb} + " --help");
    }
    return {};
}

auto status_of(const result<int>& outcome) -> int {
    if (outcome) return *outcome;
    report_error(outcome.error());
    return static_cast<int>(outcome.error().step == "usage" ? run::exit_status::usage
                                                            : run::exit_status::refused);
}

} // namespace glove::cli
