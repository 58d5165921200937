// One place where the option library's errors become Glove's.
#include "cli/options.hpp"
#include "cli/report_error.hpp"
#include <CLI/CLI.hpp>
#include <cstdio>
#include <glove/run/exec.hpp>

namespace glove::cli {

namespace {

class help_layout final : public CLI::Formatter {
public:
    explicit help_layout(std::string usage) : usage_{std::move(usage)} { column_width(32); }
    auto make_usage(const CLI::App*, std::string) const -> std::string override {
        return "usage: " + usage_ + "\n";
    }
    // What excludes what is said by the words of the options.
    auto make_option_opts(const CLI::Option* option) const -> std::string override {
        const auto all = CLI::Formatter::make_option_opts(option);
        return all.substr(0, all.find(" Excludes:"));
    }
    auto make_footer(const CLI::App* app) const -> std::string override {
        return app->get_footer() + "\n";
    }

private:
    std::string usage_;
};

[[nodiscard]] auto refuse(std::string what, std::string remedy) -> int {
    return usage_failure({.code = errc::invalid_input,
                          .step = "usage",
                          .os = 0,
                          .detail = std::move(what),
                          .remedy = std::move(remedy)});
}

} // namespace

auto usage_failure(const error& problem) -> int {
    report_error(problem);
    return static_cast<int>(run::exit_status::usage);
}

auto parse_options(CLI::App& app, const char* usage, const invocation& call) -> std::optional<int> {
    const auto name = "glove " + std::string{call.verb};
    app.allow_extras();
    app.formatter(std::make_shared<help_layout>(usage));
    try {
        // The library takes its words from the back.
        app.parse(std::vector<std::string>{call.options.rbegin(), call.options.rend()});
    } catch (const CLI::CallForHelp&) {
        (void)std::fputs(app.help().c_str(), stdout);
        return 0;
    } catch (const CLI::ParseError& problem) {
        return refuse(problem.what(), name + " --help");
    }
    const auto left = app.remaining();
    if (left.empty()) return std::nullopt;
    if (left.front().starts_with('-'))
        return refuse("'" + left.front() + "' is not an option of " + name, name + " --help");
    return refuse("'" + left.front() + "' is not expected here", usage);
}

auto unexpected_command(const invocation& call, const char* usage) -> int {
    return refuse("glove " + std::string{call.verb} + " takes no command", usage);
}

} // namespace glove::cli
