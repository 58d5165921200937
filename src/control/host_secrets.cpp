// Directories on the way to a secret are made one by one, and none of them through a link.
#include "control/host_secrets.hpp"
#include "supervisor/paths.hpp"
#include <algorithm>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <sys/stat.h>

namespace glove::control {

namespace {

[[nodiscard]] auto relative(const std::string& target) -> result<std::string> {
    if (target.size() <= supervisor::agent_home.size() + 1 ||
        !sys::holds(supervisor::agent_home, target))
        return fail(errc::not_permitted, "prepare.secret",
                    "the target of a secret is not below " + std::string{supervisor::agent_home});
    return target.substr(supervisor::agent_home.size() + 1);
}

[[nodiscard]] auto lend(const supervisor::secret_mount& what, const supervisor::lease_store& store)
    -> result<session_secret> {
    GLOVE_TRY(const auto path, relative(what.target_path));
    const auto pin = sys::pin(what.source_path, sys::follow::never);
    if (!pin) return fail_os("prepare.secret", pin.error().os, "the source of " + what.handle);
    GLOVE_TRY(const auto facts, sys::inspect(*pin));
    GLOVE_TRY(auto lease, store.lend(what));
    const auto slash = path.rfind('/');
    const bool deep = slash != std::string::npos;
    return session_secret{.what = &what,
                          .source = {facts.identity.device, facts.identity.inode,
                                     facts.identity.type | facts.permissions},
                          .directory = deep ? path.substr(0, slash) : std::string{},
                          .name = deep ? path.substr(slash + 1) : path,
                          .lease = std::move(lease)};
}

[[nodiscard]] auto made(sys::fd_ref home, const std::string& path) -> result<sys::unique_fd> {
    GLOVE_TRY(auto at, sys::open_beneath(home, "", O_RDONLY | O_DIRECTORY));
    for (std::string_view rest{path}; !rest.empty();) {
        const auto name = rest.substr(0, rest.find('/'));
        rest.remove_prefix(std::min(name.size() + 1, rest.size()));
        auto next = sys::make_directory_in(at, std::string{name});
        if (!next)
            return fail_os("prepare.secret", next.error().os,
                           "a directory on the way to a secret: " + printable(path));
        at = *std::move(next);
    }
    return at;
}

} // namespace

auto lend_secrets(const supervisor::session_plan& plan, const supervisor::session_rules& rules,
                  const supervisor::lease_store& store) -> result<std::vector<session_secret>> {
    std::vector<session_secret> out;
    for (const auto& handle : plan.secret_handles) {
        const auto found = std::ranges::find_if(rules.secret_mounts, [&](const auto& mount) {
            return mount.handle == handle && mount.runtime_id == plan.runtime_id;
        });
        if (found == rules.secret_mounts.end())
            return fail(errc::unsupported, "prepare.secret",
                        "nothing says where " + handle + " goes for " + plan.runtime_id);
        GLOVE_TRY(auto lent, lend(*found, store));
        out.push_back(std::move(lent));
    }
    return out;
}

auto give(std::vector<session_secret>& secrets, sys::fd_ref home) -> result<> {
    for (auto& secret : secrets) {
        GLOVE_TRY(const auto directory, made(home, secret.directory));
        GLOVE_CHECK(secret.lease.give(directory, secret.name));
        secret.given = true;
    }
    return {};
}

auto take_back(std::vector<session_secret>& secrets, sys::fd_ref home) -> std::vector<error> {
    std::vector<error> out;
    for (auto& secret : secrets) {
        if (!secret.given) continue;
        secret.given = false;
        const auto directory =
            sys::open_beneath(home, secret.directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        const auto taken = directory ? secret.lease.take_back(*directory, secret.name)
                                     : result<bool>{std::unexpected(directory.error())};
        if (taken) continue;
        auto why = taken.error();
        why.detail = "the secret " + secret.what->handle + ": " + why.detail;
        out.push_back(std::move(why));
    }
    return out;
}

} // namespace glove::control
