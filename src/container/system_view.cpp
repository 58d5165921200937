// What of the host's system an agent needs to run programs, found rather than assumed.
//
// Never exposes: homes, /root, /run, /var, /sys, private keys under /etc/ssl, or anything that is
// not in the two tables below. A row that the host does not have is left out.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <dirent.h>
#include <fnmatch.h>
#include <glove/container/plan.hpp>
#include <memory>
#include <optional>
#include <sys/stat.h>

namespace glove::container {

namespace {

// Programs and libraries. Links (merged /usr) stay links.
constexpr std::array system_places{
    "/usr",    "/bin", "/sbin", "/lib",       "/lib32",     "/lib64",
    "/libx32", "/opt", "/snap", "/nix/store", "/gnu/store", "/run/current-system",
};

// Public configuration that programs read.
constexpr std::array public_configuration{
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/os-release",
    "/etc/debian_version",
    "/etc/lsb-release",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ssl/cert.pem",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/pki/ca-trust",
    "/etc/crypto-policies",
    "/etc/static",
    "/etc/bash.bashrc",
    "/etc/profile",
    "/etc/inputrc",
    "/etc/zsh",
    "/etc/zshrc",
    "/etc/fish",
    "/etc/services",
    "/etc/protocols",
    "/etc/mime.types",
    "/etc/magic",
    "/etc/terminfo",
    "/etc/fonts",
    "/etc/chromium.d",
    "/etc/.java",
    "/etc/maven",
    "/etc/perl",
};
constexpr std::string_view configuration_directory = "/etc";
constexpr std::array configuration_patterns{"/etc/java*", "/etc/python3*"};

// What stands at a path of `root`, pinned; a link is itself, not what it leads to.
struct found_place {
    sys::unique_fd pin;
    sys::file_identity identity;
};

// Nothing there, or nothing that the invoker may look at. Any other failure is no answer.
[[nodiscard]] auto is_absence(int os) noexcept -> bool {
    return os == ENOENT || os == ENOTDIR || os == EACCES || os == ELOOP;
}

// Empty when there is nothing, or nothing that the invoker may look at.
[[nodiscard]] auto look(const std::string& host_path) -> result<std::optional<found_place>> {
    auto pin = sys::pin(host_path, sys::follow::never);
    if (!pin) {
        // A link on the way makes the whole path one.
        if (pin.error().os == ELOOP) return found_place{{}, {.type = S_IFLNK}};
        if (is_absence(pin.error().os)) return std::nullopt;
        return std::unexpected(std::move(pin).error());
    }
    GLOVE_TRY(const auto facts, sys::inspect(*pin));
    return found_place{*std::move(pin), facts.identity};
}

[[nodiscard]] auto bind_entry(std::string inside, std::string host_path, found_place found)
    -> tree_entry {
    return {.path = std::move(inside),
            .kind = entry_kind::bind,
            .origin = origin::system,
            .text = std::move(host_path),
            .identity = found.identity,
            .pin = std::move(found.pin)};
}

[[nodiscard]] auto link_entry(std::string inside, std::string target) -> tree_entry {
    return {.path = std::move(inside),
            .kind = entry_kind::link,
            .origin = origin::system,
            .text = std::move(target)};
}

// Where a link of `root` leads, as a path inside `root`; empty when it leads nowhere.
[[nodiscard]] auto real_inside(const std::string& root, const std::string& path)
    -> result<std::string> {
    const std::unique_ptr<char, decltype(&::free)> real{::realpath((root + path).c_str(), nullptr),
                                                        ::free};
    if (real == nullptr) {
        if (is_absence(errno)) return std::string{};
        return fail_os("source.system", errno, root + path);
    }
    const std::string_view found{real.get()};
    if (!sys::holds(root.empty() ? "/" : root, found)) return std::string{};
    return std::string{found.substr(root.size())};
}

[[nodiscard]] auto covered(const std::vector<tree_entry>& tree, std::string_view path) -> bool {
    for (const auto& entry : tree)
        if (entry.kind == entry_kind::bind && sys::holds(entry.path, path)) return true;
    return false;
}

enum class links : std::uint8_t { as_they_are, resolved };

// What a link leads to is shown under the link's name, unless it is visible anyway: then the link
// is.
[[nodiscard]] auto add_linked(std::vector<tree_entry>& tree, const std::string& root,
                              const std::string& path) -> result<> {
    GLOVE_TRY(auto real, real_inside(root, path));
    if (real.empty()) return {}; // dangling on the host, so absent inside
    if (covered(tree, real)) {
        tree.push_back(link_entry(path, std::move(real)));
        return {};
    }
    GLOVE_TRY(auto found, look(root + real));
    if (found && (found->identity.type == S_IFREG || found->identity.type == S_IFDIR))
        tree.push_back(bind_entry(path, root + real, *std::move(found)));
    return {};
}

[[nodiscard]] auto add_found(std::vector<tree_entry>& tree, const std::string& root,
                             const std::string& path, links how) -> result<> {
    GLOVE_TRY(auto found, look(root + path));
    if (!found) return {};
    if (found->identity.type == S_IFLNK) {
        // Merged /usr: /bin may lead to a place that is added later, and stays a link.
        if (how == links::as_they_are && found->pin) {
            GLOVE_TRY(auto target, sys::read_link(root + path));
            tree.push_back(link_entry(path, std::move(target)));
            return {};
        }
        return add_linked(tree, root, path);
    }
    const bool wanted = found->identity.type == S_IFDIR ||
                        (how == links::resolved && found->identity.type == S_IFREG);
    if (wanted) tree.push_back(bind_entry(path, root + path, *std::move(found)));
    return {};
}

// All names in the configuration's directory, for the patterns. glob(3) would take a listing that
// broke off for one that ended.
[[nodiscard]] auto list_configuration(const std::string& root) -> result<std::vector<std::string>> {
    struct closer {
        void operator()(::DIR* open) const noexcept { (void)::closedir(open); }
    };
    std::vector<std::string> out;
    const auto path = root + std::string{configuration_directory};
    const std::unique_ptr<::DIR, closer> directory{::opendir(path.c_str())};
    if (directory == nullptr) {
        if (is_absence(errno)) return out;
        return fail_os("source.system", errno, path);
    }
    for (;;) {
        errno = 0;
        const auto* const entry = ::readdir(directory.get());
        if (entry == nullptr) break;
        out.push_back(std::string{configuration_directory} + "/" + entry->d_name);
    }
    if (errno != 0) return fail_os("source.system", errno, path);
    return out;
}

} // namespace

auto is_system_place(std::string_view real) noexcept -> bool {
    return std::ranges::any_of(system_places,
                               [&](const char* place) { return sys::holds(place, real); });
}

auto discover_system(const std::string& root) -> result<std::vector<tree_entry>> {
    std::vector<tree_entry> tree;
    for (const auto* const place : system_places)
        GLOVE_CHECK(add_found(tree, root, place, links::as_they_are));
    for (const auto* const path : public_configuration)
        GLOVE_CHECK(add_found(tree, root, path, links::resolved));
    GLOVE_TRY(const auto names, list_configuration(root));
    for (const auto& name : names)
        if (std::ranges::any_of(configuration_patterns, [&](const char* pattern) {
                return ::fnmatch(pattern, name.c_str(), FNM_PATHNAME) == 0;
            }))
            GLOVE_CHECK(add_found(tree, root, name, links::resolved));
    return tree;
}

} // namespace glove::container
