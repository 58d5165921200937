// How the help of a verb looks: its own usage line once, and an option with the word for its value.
#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace glove::cli {

// The library adds a second usage line, and the checks of an option to the name of its value.
class plain_formatter final : public CLI::Formatter {
    [[nodiscard]] auto make_usage(const CLI::App*, std::string) const -> std::string override {
        return "";
    }
    [[nodiscard]] auto make_option_opts(const CLI::Option* option) const -> std::string override {
        if (option->get_type_size() == 0) return "";
        const auto value = option->get_type_name();
        return " " + value.substr(0, value.find(':'));
    }
};

inline void plain_help(CLI::App& app) { app.formatter(std::make_shared<plain_formatter>()); }

} // namespace glove::cli
