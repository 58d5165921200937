// A descriptor's present name leads to the directories above it; each of them is asked by identity.
#include "control/host_own_files.hpp"
#include <algorithm>
#include <cerrno>
#include <glove/base/text.hpp>

namespace glove::control {

namespace {

[[nodiscard]] auto refused(std::string_view what, const std::string& own) {
    return fail(errc::not_permitted, "prepare.own_files",
                std::string{what} + " holds or lies in " + printable(own) +
                    ", which is Glove's own",
                "grant a place apart from it");
}

} // namespace

auto own_files::locate(const std::vector<std::string>& paths) -> result<own_files> {
    own_files out;
    GLOVE_TRY(out.files_, container::control_files::locate(paths));
    for (const auto& path : paths) {
        const auto pin = sys::pin(path, sys::follow::yes);
        if (!pin && pin.error().code == errc::not_found) continue;
        if (!pin) return std::unexpected(pin.error());
        GLOVE_TRY(const auto facts, sys::inspect(*pin));
        out.there_.push_back({path, facts.identity});
    }
    return out;
}

auto own_files::check_apart(sys::fd_ref pin, container::access mode, std::string_view what) const
    -> result<> {
    GLOVE_TRY(const auto facts, sys::inspect(pin));
    if (const auto held = files_.held_by(facts.identity, mode)) return refused(what, *held);
    GLOVE_TRY(const auto real, sys::read_link("/proc/self/fd/" + std::to_string(pin.get())));
    if (!sys::is_normal_absolute(real))
        return fail(errc::conflict, "prepare.own_files",
                    std::string{what} + " has no name any more");
    if (const auto touched = files_.touching(real, mode)) return refused(what, *touched);
    for (auto at = real; at != "/"; at = sys::parent_of(at)) {
        const auto above = sys::pin(at, sys::follow::never);
        if (!above) return fail_os("prepare.own_files", above.error().os, printable(at));
        GLOVE_TRY(const auto here, sys::inspect(*above));
        const auto own = std::ranges::find(there_, here.identity, &place::identity);
        if (own != there_.end()) return refused(what, own->path);
    }
    return {};
}

} // namespace glove::control
