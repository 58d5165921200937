// Pure: no value is looked up on the machine.
#include "cli/values.hpp"
#include <glove/base/numbers.hpp>
#include <glove/base/times.hpp>

namespace glove::cli {

auto duration() -> CLI::Validator {
    return CLI::Validator(
        [](std::string& text) -> std::string {
            const auto time = parse_duration(text);
            if (!time.complaint.empty()) return "'" + text + "' " + std::string{time.complaint};
            text = std::to_string(time.ms);
            return {};
        },
        "");
}

auto size() -> CLI::Validator {
    return CLI::Validator(
        [](std::string& text) -> std::string {
            const auto bytes = parse_size(text);
            if (!bytes) return "'" + text + "' is not a size such as 64KB, 10MB or 2GB";
            text = std::to_string(*bytes);
            return {};
        },
        "");
}

auto processors() -> CLI::Validator {
    return CLI::Validator(
        [](std::string& text) -> std::string {
            constexpr std::uint64_t most = 100'000;
            const auto hundredths = parse_hundredths(text, most);
            if (!hundredths || *hundredths == 0)
                return "'" + text + "' is not a number of processors such as 2 or 0.5";
            text = std::to_string(*hundredths);
            return {};
        },
        "");
}

auto one_of(std::vector<std::string> words) -> CLI::Validator {
    CLI::IsMember out(std::move(words));
    out.description("");
    return out;
}

void repeatable(CLI::App& app, const char* name, std::vector<std::string>& into, const char* type,
                const char* help) {
    app.add_option(name, into, help)->type_name(type)->allow_extra_args(false);
}

} // namespace glove::cli
