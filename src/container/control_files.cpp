// Resolves each control path once. A name may lie: a bind mount or a link shows the same directory
// elsewhere, so identities are kept beside the names. Whoever can replace a link on the way decides
// what the path names next, so the links are places, too.
#include "container/control_files.hpp"
#include <algorithm>
#include <glove/container/plan.hpp>

namespace glove::container {

auto settle(const std::string& path, std::string& existing) -> result<std::string> {
    existing = path;
    auto real = resolve(existing);
    while (!real && existing != "/" && real.error().code == errc::not_found) {
        existing = sys::parent_of(existing);
        real = resolve(existing);
    }
    if (!real) return std::unexpected(std::move(real).error());
    const auto rest = path.substr(existing == "/" ? 0 : existing.size());
    if (rest.find("/../") != std::string::npos || rest.ends_with("/.."))
        return fail(errc::invalid_input, "grant.control",
                    path + ": \"..\" after a directory that does not exist leads nowhere");
    existing = real->real;
    return real->real == "/" ? rest : real->real + rest;
}

namespace {

constexpr int most_dangling = 8;

// What exists of `at`, and its parents, without "/".
[[nodiscard]] auto ancestry_of(const std::string& existing)
    -> result<std::vector<sys::file_identity>> {
    std::vector<sys::file_identity> out;
    for (auto at = existing; at != "/"; at = sys::parent_of(at)) {
        GLOVE_TRY(const auto pin, sys::pin(at, sys::follow::no));
        GLOVE_TRY(const auto facts, sys::inspect(pin));
        out.push_back(facts.identity);
    }
    return out;
}

// Where a link at the first name that leads nowhere leads: what is made there is found later.
// Empty when there is none.
[[nodiscard]] auto beyond_dangling(const std::string& existing, const std::string& real)
    -> result<std::string> {
    if (real.size() <= existing.size()) return std::string{};
    const auto above = existing == "/" ? std::string{} : existing;
    const auto name = std::min(real.find_first_not_of('/', above.size()), real.size());
    const auto end = std::min(real.find('/', name), real.size());
    const auto target = sys::read_link(real.substr(0, end));
    if (!target) { // nothing there, or no link
        const int os = target.error().os;
        if (os == EINVAL || os == ENOENT || os == ENOTDIR) return std::string{};
        return std::unexpected(target.error());
    }
    return (target->starts_with('/') ? *target : above + "/" + *target) + real.substr(end);
}

} // namespace

auto control_files::add_links(const std::string& path) -> result<> {
    if (path.empty()) return {}; // only "/" exists of it
    GLOVE_TRY(const auto way, resolve(path));
    for (const auto& [link, target] : way.links) {
        GLOVE_TRY(auto ancestry, ancestry_of(link));
        places_.push_back({.real = link, .ancestry = std::move(ancestry), .is_link = true});
    }
    return {};
}

auto control_files::locate(const std::vector<std::string>& paths) -> result<control_files> {
    control_files out;
    for (const auto& path : paths) {
        auto at = path;
        for (int dangling = 0; !at.empty(); ++dangling) {
            if (dangling == most_dangling)
                return fail(errc::limit_exceeded, "grant.control",
                            path + ": more than " + std::to_string(most_dangling) +
                                " links that lead nowhere",
                            "remove them");
            place found;
            std::string existing;
            GLOVE_TRY(found.real, settle(at, existing));
            GLOVE_TRY(found.ancestry, ancestry_of(existing));
            const auto rest = found.real.size() - (existing == "/" ? 0 : existing.size());
            GLOVE_CHECK(out.add_links(at.substr(0, at.size() - std::min(rest, at.size()))));
            GLOVE_TRY(at, beyond_dangling(existing, found.real));
            out.places_.push_back(std::move(found));
        }
    }
    return out;
}

auto control_files::held_by(const sys::file_identity& identity, access mode) const
    -> std::optional<std::string> {
    for (const auto& p : places_)
        if ((!p.is_link || mode == access::write) && std::ranges::count(p.ancestry, identity) != 0)
            return p.real;
    return std::nullopt;
}

auto control_files::touching(std::string_view real, access mode) const
    -> std::optional<std::string> {
    for (const auto& p : places_)
        if ((!p.is_link || mode == access::write) &&
            (sys::holds(real, p.real) || sys::holds(p.real, real)))
            return p.real;
    return std::nullopt;
}

} // namespace glove::container
