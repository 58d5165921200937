// Puts profiles together from the agents' rows and the user's file. Only `prepare_profile` and
// `find_path_programs` look at the machine; nothing is run, and no project is read.
#include "host/configuration.hpp"
#include "host/git_identity.hpp"
#include "host/programs.hpp"
#include <algorithm>
#include <cstdlib>
#include <glove/base/text.hpp>
#include <glove/container/plan.hpp>
#include <glove/host/profiles.hpp>

namespace glove::host {

namespace {

constexpr std::size_t longest_chain = 8;
constexpr std::string_view built_in = "built-in";

[[nodiscard]] auto texts(std::span<const std::string_view> from) -> std::vector<std::string> {
    return {from.begin(), from.end()};
}

// An agent's row in the words of the file.
[[nodiscard]] auto settings_of(const adapters::agent_description& agent) -> settings {
    settings out;
    const auto put = [&](std::string_view key, std::vector<std::string> values) {
        if (!values.empty()) out.set(*find_setting(key), std::move(values));
    };
    put("command", texts(agent.command));
    put("workspace", {"."});
    auto variables = texts(agent.passed_environment);
    for (const auto variable : agent.set_environment) variables.emplace_back(variable);
    put("env", std::move(variables));
    std::vector<std::string> rules;
    for (const auto& destination : agent.destinations) rules.emplace_back(destination.rule);
    put("egress-allow", std::move(rules));
    return out;
}

[[nodiscard]] auto place_of(const configuration& from, const configured_profile& profile)
    -> std::string {
    return from.file + ":" + std::to_string(profile.line);
}

[[nodiscard]] auto find_own(const configuration& from, std::string_view name)
    -> const configured_profile* {
    const auto found = std::ranges::find(from.profiles, name, &configured_profile::name);
    return found == from.profiles.end() ? nullptr : &*found;
}

} // namespace

struct profile_catalogue::content {
    configuration own;
};

profile_catalogue::profile_catalogue(std::unique_ptr<content> made) : content_{std::move(made)} {}
profile_catalogue::profile_catalogue(profile_catalogue&&) noexcept = default;
auto profile_catalogue::operator=(profile_catalogue&&) noexcept -> profile_catalogue& = default;
profile_catalogue::~profile_catalogue() = default;

auto profile_catalogue::load() -> result<profile_catalogue> {
    GLOVE_TRY(auto own, read_configuration());
    profile_catalogue out{std::make_unique<content>(content{std::move(own)})};
    // One wrong profile is found out by whoever uses another.
    for (const auto& name : out.names()) GLOVE_CHECK(out.find(name));
    return out;
}

auto profile_catalogue::parse(std::string_view text, const std::string& file,
                              const std::string& home) -> result<profile_catalogue> {
    GLOVE_TRY(auto own, parse_configuration(text, file, home));
    profile_catalogue out{std::make_unique<content>(content{std::move(own)})};
    for (const auto& name : out.names()) GLOVE_CHECK(out.find(name));
    return out;
}

auto profile_catalogue::file() const -> const std::string& { return content_->own.file; }

auto profile_catalogue::names() const -> std::vector<std::string> {
    std::vector<std::string> out;
    for (const auto* const agent : adapters::agents()) out.emplace_back(agent->name);
    for (const auto& own : content_->own.profiles)
        if (std::ranges::count(out, own.name) == 0) out.push_back(own.name);
    return out;
}

auto profile_catalogue::find(std::string_view name) const -> result<effective_profile> {
    const auto& own = content_->own;
    effective_profile out{
        .name = std::string{name}, .source = std::string{built_in}, .values = {}, .agent = nullptr};
    std::vector<const configured_profile*> chain; // the nearest first
    std::string at{name};
    std::string named_at; // where a name stands that is not there
    for (;;) {
        const auto* const mine = find_own(own, at);
        const bool again = !chain.empty() && chain.back()->name == at;
        if (mine == nullptr || again) {
            out.agent = adapters::find_agent(at);
            if (out.agent == nullptr)
                return fail(again ? errc::conflict : errc::not_found, "profile.name",
                            named_at + (again ? in_quotes(at) + " extends itself"
                                              : "there is no profile " + in_quotes(at)),
                            "glove profile list");
            break;
        }
        if (std::ranges::count(chain, mine) != 0)
            return fail(errc::conflict, "profile.name",
                        named_at + "extends " + in_quotes(at) + ", which extends it",
                        "end the circle: a profile must not extend itself by way of another");
        if (chain.size() == longest_chain)
            return fail(errc::limit_exceeded, "profile.name",
                        named_at + "more than " + std::to_string(longest_chain) +
                            " profiles extend each other");
        chain.push_back(mine);
        // A built-in name is known; it must not come to mean something else.
        if (adapters::find_agent(at) != nullptr && mine->extends != at)
            return fail(errc::conflict, "profile.name",
                        place_of(own, *mine) + ": [profile." + at +
                            "] has the name of a built-in profile and does not extend it",
                        "add extends = \"" + at + "\", or take another name");
        if (mine->extends.empty()) break;
        at = mine->extends;
        named_at = place_of(own, *mine) + ": [profile." + mine->name + "] ";
    }
    if (out.agent != nullptr) out.values = settings_of(*out.agent);
    for (auto one = chain.rbegin(); one != chain.rend(); ++one) out.values.overlay((*one)->values);
    if (!chain.empty()) out.source = place_of(own, *chain.front());
    return out;
}

auto options_of(const effective_profile& profile) -> std::vector<profile_option> {
    std::vector<profile_option> out;
    for (const auto& row : setting_rows()) {
        const auto* const values = profile.values.find(row.key);
        if (values == nullptr || row.flag.empty()) continue;
        for (const auto& value : *values) {
            if (is_switch(row) && value == "false") continue;
            if (is_switch(row) && value == "true") {
                out.push_back({&row, std::string{row.flag}});
                continue;
            }
            const bool passed = row.key == "env" && value.find('=') == std::string::npos;
            if (passed && std::getenv(value.c_str()) == nullptr) continue;
            out.push_back({&row, std::string{row.flag}.append("=").append(value)});
        }
    }
    return out;
}

namespace {

// Where the program is, and what must be seen for it.
[[nodiscard]] auto locate_program(const effective_profile& profile, const program_search& search,
                                  run_profile& out) -> result<> {
    const auto places = profile.agent != nullptr && out.program == profile.agent->command.front()
                            ? profile.agent->own_places
                            : std::span<const std::string_view>{};
    auto found = find_program(out.program, places, search);
    if (!found) {
        out.program_problem = std::move(found).error();
        if (profile.agent != nullptr && out.program_problem->remedy.empty())
            out.program_problem->remedy =
                "install it, as by: " + std::string{profile.agent->install};
        // Others could change it: then nothing of this profile is started.
        if (out.program_problem->code != errc::not_found)
            return std::unexpected(*out.program_problem);
        return {};
    }
    out.command.front() = found->path;
    out.files = std::move(found->needs.files);
    out.path_directories = std::move(found->needs.directories);
    return {};
}

} // namespace

auto credentials_of(const effective_profile& profile) -> std::vector<std::string> {
    if (profile.agent == nullptr) return {};
    return texts(profile.agent->credentials);
}

auto prepare_profile(const effective_profile& profile, std::span<const std::string> writable)
    -> result<run_profile> {
    run_profile out;
    out.name = profile.name;
    if (const auto* const command = profile.values.find("command")) {
        out.command = *command;
        out.program = command->front();
        GLOVE_TRY(const auto search, caller_search(writable));
        GLOVE_CHECK(locate_program(profile, search, out));
    }
    out.credentials = credentials_of(profile);
    if (profile.agent != nullptr) {
        const auto& own = profile.agent->command;
        if (!own.empty() && out.program == own.front()) out.tools = &profile.agent->tools;
        for (const auto place : profile.agent->policy_places)
            if (sys::exists(std::string{place})) out.files.emplace_back(place);
        for (const auto& seed : profile.agent->seeds)
            out.seeds.push_back({std::string{seed.path}, std::string{seed.content}});
    }
    if (auto settings = git_settings(caller_git_identity()); !settings.empty())
        out.seeds.push_back({".gitconfig", std::move(settings)});
    return out;
}

auto find_path_programs(std::span<const std::string> writable) -> result<path_programs> {
    GLOVE_TRY(const auto search, caller_search(writable));
    GLOVE_TRY(auto offer, offer_path(search));
    return path_programs{std::move(offer.needs.files), std::move(offer.needs.directories),
                         std::move(offer.left_out)};
}

auto find_program_view(std::string_view name, std::span<const std::string> writable)
    -> result<program_view> {
    GLOVE_TRY(const auto search, caller_search(writable));
    GLOVE_TRY(auto found, find_program(name, {}, search));
    return program_view{std::move(found.path), std::move(found.needs.files),
                        std::move(found.needs.directories)};
}

auto to_toml(const effective_profile& profile) -> std::string {
    auto out = "[profile." + profile.name + "]\n";
    // What has no key, such as where the program may be, comes with the built-in profile.
    if (profile.agent != nullptr) out += "extends = " + toml_text(profile.agent->name) + "\n";
    for (const auto& row : setting_rows())
        if (const auto* const values = profile.values.find(row.key))
            out += to_toml(row, *values) + "\n";
    return out;
}

} // namespace glove::host
