// Looks at nothing but the words; what is not known or comes twice is an error that names it.
#include "daemon/options.hpp"
#include <algorithm>
#include <array>
#include <glove/base/numbers.hpp>

namespace glove::daemon {

namespace {

using control::service_config;
using text = std::string;
using optional_text = std::optional<std::string>;

// An option with a value, and which setting it is. `config` is none, and stands alone.
struct row {
    std::string_view name;
    std::string_view value;
    std::string_view says;
    text service_config::* needed = nullptr;
    optional_text service_config::* optional = nullptr;
};
constexpr std::array table{
    row{"--config", "FILE", "the settings, as JSON; instead of all that follows", nullptr, nullptr},
    row{"--runtime-dir", "DIR", "for the socket, the secret and the lock",
        &service_config::runtime_directory, nullptr},
    row{"--audit-key", "FILE", "the key of the receipts", &service_config::audit_key, nullptr},
    row{"--journal", "FILE", "the journal of receipts", &service_config::receipt_journal, nullptr},
    row{"--session-policy", "FILE", "what sessions may be", nullptr,
        &service_config::session_policy},
    row{"--session-store", "FILE", "the journal of sessions", nullptr,
        &service_config::session_store},
    row{"--materialization-root", "DIR", "for the files of sessions", nullptr,
        &service_config::materialization_root},
    row{"--library-bundle-root", "DIR", "where libraries are", nullptr,
        &service_config::library_bundle_root},
    row{"--path-exposure-policy", "FILE", "below which directories paths may be exposed", nullptr,
        &service_config::path_exposure_policy},
    row{"--path-exposure-journal", "FILE", "the journal of exposures", nullptr,
        &service_config::path_exposure_journal},
    row{"--exchange-timeout-ms", "N", "for a client to ask and to take its answer (5000)", nullptr,
        nullptr},
};

[[nodiscard]] auto usage(std::string what) {
    return fail(errc::invalid_input, "usage", std::move(what), "gloved --help");
}

[[nodiscard]] auto quoted(std::string_view word) -> std::string {
    return "'" + std::string{word} + "'";
}

[[nodiscard]] auto take(const row& option, std::string value, invocation& out) -> result<> {
    if (value.empty()) return usage(std::string{option.name} + " has an empty value");
    if (option.needed != nullptr) {
        out.settings.*option.needed = std::move(value);
    } else if (option.optional != nullptr) {
        out.settings.*option.optional = std::move(value);
    } else if (option.name == "--config") {
        out.config_file = std::move(value);
    } else {
        const auto number = parse_decimal(value, 60'000);
        if (!number || *number == 0)
            return usage(std::string{option.name} + " " + quoted(value) + " is not 1 to 60000");
        out.settings.exchange_timeout_ms = *number;
    }
    return {};
}

[[nodiscard]] auto check_together(const invocation& out, std::size_t options) -> result<> {
    if (out.what == action::init_state && options > (out.config_file ? 1U : 0U))
        return usage("--init-state takes no option but --config");
    if (out.what == action::init_state) return {};
    if (out.config_file && options > 1) return usage("--config takes no other option beside it");
    if (out.config_file) return {};
    for (const auto& option : table)
        if (option.needed != nullptr && (out.settings.*option.needed).empty())
            return usage(options == 0 ? "--config is missing"
                                      : std::string{option.name} + " is missing");
    return control::check_config(out.settings);
}

} // namespace

auto parse_options(std::span<const char* const> words) -> result<invocation> {
    invocation out;
    std::array<bool, table.size()> seen{};
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string_view word{words[i]};
        if (word == "-V" || word == "--version") return invocation{.what = action::print_version};
        if (word == "-h" || word == "--help") return invocation{.what = action::print_help};
        if (word == "--init-state") {
            if (out.what == action::init_state) return usage("--init-state comes twice");
            out.what = action::init_state;
            continue;
        }
        const auto name = word.substr(0, word.find('='));
        const auto* option = std::ranges::find(table, name, &row::name);
        if (option == table.end()) return usage(quoted(word) + " is not an option of gloved");
        auto& again = seen[static_cast<std::size_t>(option - table.begin())];
        if (std::exchange(again, true)) return usage(std::string{name} + " comes twice");
        if (name.size() < word.size()) {
            GLOVE_CHECK(take(*option, std::string{word.substr(name.size() + 1)}, out));
        } else if (++i < words.size()) {
            GLOVE_CHECK(take(*option, words[i], out));
        } else {
            return usage(std::string{name} + " lacks its value");
        }
    }
    const auto options = static_cast<std::size_t>(std::ranges::count(seen, true));
    GLOVE_CHECK(check_together(out, options));
    return out;
}

auto help_text() -> std::string {
    std::string out =
        "The control service of Glove: plans, sessions, exposures and receipts, over a "
        "socket\nof its owner alone.\n\nusage: gloved --config FILE\n"
        "       gloved --runtime-dir DIR --audit-key FILE --journal FILE [OPTIONS]\n"
        "       gloved --init-state [--config FILE]\n\nOptions:\n";
    const auto line = [&](std::string words, std::string_view says) {
        words.resize(std::max(words.size() + 2, std::size_t{34}), ' ');
        out.append("  ").append(words).append(says).append("\n");
    };
    for (const auto& option : table)
        line(std::string{option.name} + " " + std::string{option.value}, option.says);
    line("--init-state", "make directories, a key and a configuration, and end");
    line("-V, --version", "print the version");
    line("-h, --help", "print this");
    return out;
}

} // namespace glove::daemon
