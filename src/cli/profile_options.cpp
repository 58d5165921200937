// Joins words; looks at nothing itself. What is given on the command line is never dropped.
#include "cli/profile_options.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>

namespace glove::cli {

namespace {

[[nodiscard]] auto variable_name(std::string_view word) -> std::string_view {
    return word.substr(0, word.find('='));
}

// Whether what was given on the command line stands in the place of this word of the profile.
[[nodiscard]] auto is_replaced(const CLI::App& parsed, const host::profile_option& option) -> bool {
    const auto* const given = parsed.get_option_no_throw(std::string{option.row->flag});
    if (given == nullptr) return true; // the verb has no such thing
    const auto* const tier =
        parsed.get_option_no_throw(std::string{host::find_setting(host::network_key)->flag});
    if (tier != nullptr && tier->count() > 0 && host::needs_network(option.row->key)) return true;
    if (std::ranges::any_of(given->get_excludes(),
                            [](const CLI::Option* o) { return o->count() > 0; }))
        return true;
    if (given->count() == 0) return false;
    if (!host::is_list(*option.row)) return true;
    const auto value = std::string_view{option.word}.substr(option.row->flag.size() + 1);
    return std::ranges::any_of(given->results(), [&](const std::string& word) {
        if (option.row->key == "env") return variable_name(word) == variable_name(value);
        return word == value;
    });
}

[[nodiscard]] auto name_of(std::string_view program) -> std::string_view {
    return program.substr(program.rfind('/') + 1);
}

constexpr std::size_t most_told = 8;

// One note, however many there are.
[[nodiscard]] auto told(const std::vector<std::string>& left_out) -> std::string {
    std::string out{"--path leaves out "};
    for (std::size_t i = 0; i < std::min(left_out.size(), most_told); ++i)
        out.append(i > 0 ? ", " : "").append(left_out[i]);
    if (left_out.size() > most_told)
        out += " and " + std::to_string(left_out.size() - most_told) + " more";
    return out;
}

} // namespace

auto with_profile(const CLI::App& parsed, const invocation& call,
                  const host::effective_profile& profile) -> invocation {
    auto out = call;
    out.options.clear();
    for (auto& option : host::options_of(profile))
        if (!is_replaced(parsed, option)) out.options.push_back(std::move(option.word));
    out.options.insert(out.options.end(), call.options.begin(), call.options.end());
    return out;
}

auto command_of(const host::run_profile& profile, const invocation& call)
    -> result<std::vector<std::string>> {
    const auto& words = call.command;
    const bool named = !words.empty() && (words.front() == profile.program ||
                                          words.front() == name_of(profile.program));
    const bool is_program = words.empty() || words.front().starts_with('-') || named;
    if (!is_program) return words;
    if (profile.command.empty())
        return fail(errc::invalid_input, "usage",
                    "the profile " + profile.name + " names no program",
                    "put a command after --, or give the profile a key command");
    if (profile.program_problem) return std::unexpected(*profile.program_problem);
    auto out = profile.command;
    out.insert(out.end(), words.begin() + (named ? 1 : 0), words.end());
    return out;
}

void add_profile(const host::run_profile& profile, container::profile& into) {
    for (const auto& path : profile.files)
        into.grants.push_back({"--profile", path, container::access::read, true});
    into.path_directories.insert(into.path_directories.end(), profile.path_directories.begin(),
                                 profile.path_directories.end());
}

auto add_path_programs(container::profile& into) -> result<> {
    std::vector<std::string> writable;
    if (into.workspace) writable.push_back(*into.workspace);
    for (const auto& grant : into.grants)
        if (grant.mode == container::access::write) writable.push_back(grant.path);
    GLOVE_TRY(const auto found, host::find_path_programs(writable));
    for (const auto& path : found.files)
        into.grants.push_back({"--path", path, container::access::read, true});
    for (const auto& directory : found.directories)
        if (std::ranges::count(into.path_directories, directory) == 0)
            into.path_directories.push_back(directory);
    if (!found.left_out.empty()) into.notes.push_back(told(found.left_out));
    return {};
}

} // namespace glove::cli
