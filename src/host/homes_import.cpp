// `glove home import`: chosen files of the operator's own home, once.
#include "host/home_leases.hpp"
#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/container/launch.hpp>
#include <glove/container/plan.hpp>
#include <glove/sys/clock.hpp>
#include <glove/wire/crypto.hpp>
#include <sys/stat.h>

namespace glove::host {

namespace {

struct planned_import {
    std::string source;
    std::string target; // relative to the home
    file_content content;
};

[[nodiscard]] auto real_home() -> result<std::string> {
    const char* const home = std::getenv("HOME");
    if (home == nullptr || *home != '/')
        return fail(errc::invalid_input, "usage", "HOME is not set to an absolute path",
                    "set HOME");
    GLOVE_TRY(auto real, container::resolve(home));
    return std::move(real.real);
}

[[nodiscard]] auto refuse(const std::string& file, const std::string& why,
                          std::string remedy = {}) {
    return fail(errc::invalid_input, "usage", printable(file) + ": " + why, std::move(remedy));
}

// FILE:TARGET where there is no file with the whole name.
[[nodiscard]] auto split_target(const std::string& word) -> std::pair<std::string, std::string> {
    const auto colon = word.rfind(':');
    if (colon == std::string::npos || sys::exists(word)) return {word, {}};
    return {word.substr(0, colon), word.substr(colon + 1)};
}

[[nodiscard]] auto read_source(const std::string& path) -> result<file_content> {
    const sys::unique_fd file{::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
    if (!file) return fail_os("home.import", errno, path);
    GLOVE_TRY(const auto facts, sys::inspect(file));
    if (facts.identity.type != S_IFREG) return refuse(path, "is not a regular file");
    auto bytes = sys::read_all(file, largest_credential);
    if (!bytes && bytes.error().code == errc::limit_exceeded)
        return refuse(path, "is larger than 1 MiB");
    if (!bytes) return std::unexpected(std::move(bytes).error());
    GLOVE_TRY(const auto digest, wire::sha256(*bytes));
    return file_content{*std::move(bytes), wire::to_hex(digest),
                        sys::system_clock{}.wall().count()};
}

[[nodiscard]] auto plan_import(const std::string& word, const std::string& home)
    -> result<planned_import> {
    const auto [file, target] = split_target(word);
    planned_import out{.source = file, .target = target, .content = {}};
    auto real = container::resolve(file);
    if (!real) {
        auto problem = std::move(real).error();
        problem.detail = file;
        return std::unexpected(std::move(problem));
    }
    if (target.empty()) {
        if (!sys::holds(home, real->real) || real->real == home)
            return refuse(file, "is not inside of " + home,
                          "say where it is to be in the home: " + file + ":TARGET");
        out.target = real->real.substr(home.size() + 1);
    }
    if (!is_inner_path(out.target))
        return refuse(word, "'" + printable(out.target) + "' is not a path inside of a home",
                      "give one that is relative, as in " + file + ":.config/tool.json");
    GLOVE_TRY(out.content, read_source(real->real));
    return out;
}

[[nodiscard]] auto into_store(const home_area& area, const std::string& profile,
                              const planned_import& what) -> result<std::string> {
    GLOVE_CHECK(put_into_store(area, profile, what.target, what.content));
    return what.source + " is lent to every home of profile " + profile + " as " + what.target;
}

[[nodiscard]] auto into_home(const home_area& area, const home_entry& home,
                             const planned_import& what) -> result<std::string> {
    const auto& record = home.record;
    if (!record.profile.empty() &&
        std::ranges::count(record.leases, what.target, &lease::path) != 0)
        return into_store(area, record.profile, what);
    GLOVE_TRY(const auto refused,
              put_into_home(home, what.target, what.content.bytes, presence::replace));
    if (refused) return fail(errc::not_permitted, "home.import", *refused);
    return what.source + " was copied to " + what.target + " of home " + home.name;
}

[[nodiscard]] auto check_request(const import_request& request) -> result<> {
    if (request.home.empty() == request.profile.empty())
        return fail(errc::invalid_input, "usage", "give one of --home and --profile");
    if (request.files.empty()) return fail(errc::invalid_input, "usage", "no file was given");
    if (!request.profile.empty() && !is_home_name(request.profile))
        return fail(errc::invalid_input, "usage",
                    in_quotes(request.profile) + " is not a name for a profile");
    if (!request.home.empty() && !is_home_key(request.home)) return check_home_name(request.home);
    return {};
}

} // namespace

auto import_files(const import_request& request) -> result<std::vector<std::string>> {
    GLOVE_CHECK(container::check_identity());
    GLOVE_CHECK(check_request(request));
    GLOVE_TRY(const auto home, real_home());
    std::vector<planned_import> planned;
    for (const auto& word : request.files) {
        GLOVE_TRY(auto next, plan_import(word, home));
        if (!request.profile.empty() && std::ranges::count(request.credentials, next.target) == 0)
            return refuse(word, next.target + " is not a credential of profile " + request.profile,
                          "import it into one home: --home NAME");
        planned.push_back(std::move(next));
    }
    GLOVE_TRY(const auto area, open_area());
    GLOVE_TRY(const auto gate, enter_gate(area));
    std::vector<std::string> told;
    std::optional<home_entry> entry;
    if (!request.home.empty()) {
        // A new home by that name, but not one of a profile: that is made by the profile's run.
        GLOVE_TRY(auto opened, open_entry(area, request.home, is_home_name(request.home)));
        GLOVE_CHECK(save(opened));
        entry.emplace(std::move(opened));
    }
    for (const auto& each : planned) {
        GLOVE_TRY(auto sentence,
                  entry ? into_home(area, *entry, each) : into_store(area, request.profile, each));
        told.push_back(std::move(sentence));
    }
    return told;
}

} // namespace glove::host
