// Resolves each control path once. A name may lie: a bind mount or a link shows the same directory
// elsewhere, so identities are kept beside the names.
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

auto control_files::locate(const std::vector<std::string>& paths) -> result<control_files> {
    control_files out;
    for (const auto& path : paths) {
        place found;
        std::string existing;
        GLOVE_TRY(found.real, settle(path, existing));
        for (auto at = existing; at != "/"; at = sys::parent_of(at)) {
            GLOVE_TRY(const auto pin, sys::pin(at, sys::follow::no));
            GLOVE_TRY(const auto facts, sys::inspect(pin));
            found.ancestry.push_back(facts.identity);
        }
        out.places_.push_back(std::move(found));
    }
    return out;
}

auto control_files::held_by(const sys::file_identity& identity) const
    -> std::optional<std::string> {
    for (const auto& p : places_)
        if (std::ranges::count(p.ancestry, identity) != 0) return p.real;
    return std::nullopt;
}

auto control_files::touching(std::string_view real) const -> std::optional<std::string> {
    for (const auto& p : places_)
        if (sys::holds(real, p.real) || sys::holds(p.real, real)) return p.real;
    return std::nullopt;
}

} // namespace glove::container
