// Looks up what the flags name and refuses what cannot be granted.
#include "container/grants.hpp"
#include "container/control_files.hpp"
#include "container/tree.hpp"
#include <algorithm>
#include <array>
#include <sys/stat.h>

namespace glove::container {

namespace {

// Places of which an inner path may be granted, but which are Glove's as a whole.
constexpr std::array<std::string_view, 10> shared_places{
    "/usr", "/etc",       "/opt",       "/tmp",  "/var/tmp",
    "/run", "/nix/store", "/gnu/store", "/snap", home_directory};
// Places of which nothing can be granted.
constexpr std::array<std::string_view, 6> closed_places{"/proc", "/dev", "/bin",
                                                        "/sbin", "/lib", "/lib64"};
[[nodiscard]] auto check_place(const located_grant& g) -> result<> {
    const std::string_view real{g.where.real};
    if (real == "/")
        return refuse(errc::not_permitted, g.flag, g.given,
                      "the whole file system cannot be granted",
                      "name the directories that the agent needs");
    const auto holds_managed = [&](std::string_view place) { return sys::holds(real, place); };
    for (const auto place : closed_places)
        if (sys::holds(place, real) || holds_managed(place))
            return refuse(errc::not_permitted, g.flag, g.given,
                          "overlaps " + std::string{place} + ", which Glove provides itself");
    for (const auto place : shared_places)
        if (holds_managed(place))
            return refuse(errc::not_permitted, g.flag, g.given,
                          "contains " + std::string{place} + ", which Glove provides itself",
                          "name the paths below it that the agent needs");
    if (sys::holds("/sys", real) && g.mode == access::write)
        return refuse(errc::not_permitted, g.flag, g.given, "/sys can only be read",
                      "use --read " + g.given);
    return {};
}

[[nodiscard]] auto check_type(const located_grant& g) -> result<> {
    switch (g.identity.type) {
    case S_IFDIR:
    case S_IFREG: return {};
    case S_IFSOCK:
        return refuse(errc::not_permitted, g.flag, g.given,
                      "is a socket: it would connect the agent to a process of the host");
    case S_IFIFO:
        return refuse(errc::not_permitted, g.flag, g.given,
                      "is a FIFO: it would connect the agent to a process of the host");
    default: return refuse(errc::not_permitted, g.flag, g.given, "is a device");
    }
}

[[nodiscard]] auto refuse_control(const located_grant& g, const std::string& file) {
    return refuse(errc::not_permitted, g.flag, g.given,
                  "would show Glove's own files at " + file + " to the agent",
                  "grant a directory that does not hold them, or put them elsewhere");
}

// By name, and by identity under any other name.
[[nodiscard]] auto check_control(const located_grant& g, const control_files& own) -> result<> {
    if (const auto file = own.touching(g.where.real, g.mode)) return refuse_control(g, *file);
    if (const auto file = own.held_by(g.identity, g.mode)) return refuse_control(g, *file);
    return {};
}

// A grant is bound with everything mounted in it, so what is mounted decides as well.
[[nodiscard]] auto check_mounts(const located_grant& g, const mount_table& mounts,
                                const control_files& own) -> result<> {
    const bool of_sys = sys::holds("/sys", g.where.real); // read-only there, see `check_place`
    auto seen = mounts.below(g.where.real);
    seen.push_back(mounts.holding(g.where.real));
    for (const auto& mount : seen) {
        if (is_kernel_filesystem(mount.type) && !of_sys)
            return refuse(errc::not_permitted, g.flag, g.given,
                          "would show the kernel's " + mount.type + " at " + mount.path,
                          "unmount it, or grant a directory that does not hold it");
        if (!sys::holds(g.where.real, mount.path)) continue;
        const auto root = sys::pin(mount.path, sys::follow::no);
        if (!root) continue; // what the invoker cannot reach, the agent cannot
        GLOVE_TRY(const auto facts, sys::inspect(*root));
        if (const auto file = own.held_by(facts.identity, g.mode)) return refuse_control(g, *file);
    }
    return {};
}

// What a program needs is left out where something else shows it.
[[nodiscard]] auto check_overlap(std::vector<located_grant>& sorted) -> result<> {
    const located_grant* outer = nullptr;
    for (auto& inner : sorted) {
        if (inner.is_shown) continue;
        if (outer == nullptr || !sys::holds(outer->where.real, inner.where.real)) {
            outer = &inner;
            continue;
        }
        inner.is_shown = inner.for_program;
        if (!inner.is_shown)
            return refuse(errc::conflict, inner.flag, inner.given,
                          "overlaps " + std::string{outer->flag} + " " + outer->given,
                          "give each path once; use --hide for what must not be seen");
    }
    return {};
}

[[nodiscard]] auto comes_before(const located_grant& a, const located_grant& b) -> bool {
    if (a.where.real == b.where.real) return !a.for_program && b.for_program;
    return path_order{}(a.where.real, b.where.real);
}

} // namespace

auto refuse(errc code, std::string_view flag, std::string_view path, std::string_view why,
            std::string remedy) -> std::unexpected<error> {
    return fail(code, "grant.check",
                std::string{flag}.append(" ").append(path).append(": ").append(why),
                std::move(remedy));
}

auto locate(std::string_view flag, const std::string& given, access mode) -> result<located_grant> {
    auto where = resolve(given);
    if (!where) {
        auto problem = std::move(where).error();
        problem.detail = std::string{flag} + " " + given;
        return std::unexpected(std::move(problem));
    }
    auto pin = sys::pin(where->real, sys::follow::never);
    if (!pin) {
        auto problem = std::move(pin).error();
        problem.detail = std::string{flag} + " " + given;
        return std::unexpected(std::move(problem));
    }
    GLOVE_TRY(const auto facts, sys::inspect(*pin));
    return located_grant{flag, given, mode, *std::move(where), facts.identity, *std::move(pin)};
}

auto locate_grants(const profile& wish, const mount_table& mounts)
    -> result<std::vector<located_grant>> {
    std::vector<located_grant> out;
    out.reserve(wish.grants.size() + 1);
    if (wish.workspace) {
        GLOVE_TRY(auto found, locate("--workspace", *wish.workspace, access::write));
        if (found.identity.type != S_IFDIR)
            return refuse(errc::invalid_input, "--workspace", *wish.workspace,
                          "is not a directory");
        out.push_back(std::move(found));
    }
    for (const auto& asked : wish.grants) {
        GLOVE_TRY(auto found, locate(asked.flag, asked.path, asked.mode));
        found.for_program = asked.for_program;
        found.is_shown = asked.for_program && is_system_place(found.where.real);
        out.push_back(std::move(found));
    }
    if (out.empty()) return out;
    GLOVE_TRY(const auto own, control_files::locate(wish.control_paths));
    for (const auto& g : out) {
        if (g.is_shown) continue;
        GLOVE_CHECK(check_place(g));
        GLOVE_CHECK(check_type(g));
        GLOVE_CHECK(check_control(g, own));
        GLOVE_CHECK(check_mounts(g, mounts, own));
    }
    std::ranges::sort(out, comes_before);
    GLOVE_CHECK(check_overlap(out));
    return out;
}

} // namespace glove::container
