// Values of options that several verbs take.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace glove::cli {

// A length of time becomes its milliseconds; plain numbers are seconds.
[[nodiscard]] auto duration() -> CLI::Validator;
// A size becomes its bytes.
[[nodiscard]] auto size() -> CLI::Validator;

// A number of processors such as 2 or 0.5 becomes its hundredths.
[[nodiscard]] auto processors() -> CLI::Validator;

// One of a few words.
[[nodiscard]] auto one_of(std::vector<std::string> words) -> CLI::Validator;

// One value each time the option is given, never the words that follow it.
void repeatable(CLI::App& app, const char* name, std::vector<std::string>& into, const char* type,
                const char* help);

} // namespace glove::cli
