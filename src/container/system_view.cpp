// What of the host's system an agent needs to run programs, found rather than assumed.
//
// Never exposes: homes, /root, /run, /var, /sys, private keys under /etc/ssl, or anything that is
// not in the two tables below. A row that the host does not have is left out.
#include <array>
#include <cstdlib>
#include <glob.h>
#include <glove/container/plan.hpp>
#include <memory>
#include <sys/stat.h>

namespace glove::container {

namespace {

// Programs and libraries. Links (merged /usr) stay links.
constexpr std::array system_places{
    "/usr",    "/bin", "/sbin", "/lib",       "/lib32",     "/lib64",
    "/libx32", "/opt", "/snap", "/nix/store", "/gnu/store", "/run/current-system",
};

// Public configuration that programs read. A star is a shell pattern.
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
    "/etc/java*",
    "/etc/.java",
    "/etc/maven",
    "/etc/perl",
    "/etc/python3*",
};

[[nodiscard]] auto bind_entry(const std::string& root, std::string inside, std::string source)
    -> result<tree_entry> {
    const auto host_path = root + source;
    auto pin = sys::pin(host_path, sys::follow::yes);
    if (!pin) return std::unexpected(std::move(pin).error());
    GLOVE_TRY(const auto facts, sys::inspect(*pin));
    return tree_entry{.path = std::move(inside),
                      .kind = entry_kind::bind,
                      .origin = origin::system,
                      .text = host_path,
                      .identity = facts.identity,
                      .pin = *std::move(pin)};
}

// Where a link of `root` leads, as a path inside `root`; empty when it leads nowhere.
[[nodiscard]] auto real_inside(const std::string& root, const std::string& path) -> std::string {
    const std::unique_ptr<char, decltype(&::free)> real{::realpath((root + path).c_str(), nullptr),
                                                        ::free};
    if (real == nullptr) return {};
    const std::string_view found{real.get()};
    if (!sys::holds(root.empty() ? "/" : root, found)) return {};
    return std::string{found.substr(root.size())};
}

[[nodiscard]] auto covered(const std::vector<tree_entry>& tree, std::string_view path) -> bool {
    for (const auto& entry : tree)
        if (entry.kind == entry_kind::bind && sys::holds(entry.path, path)) return true;
    return false;
}

[[nodiscard]] auto add_place(std::vector<tree_entry>& tree, const std::string& root,
                             const std::string& path) -> result<> {
    struct ::stat found{};
    if (::lstat((root + path).c_str(), &found) != 0) return {};
    if (S_ISLNK(found.st_mode)) {
        GLOVE_TRY(auto target, sys::read_link(root + path));
        tree.push_back({.path = path,
                        .kind = entry_kind::link,
                        .origin = origin::system,
                        .text = std::move(target)});
        return {};
    }
    if (!S_ISDIR(found.st_mode)) return {};
    GLOVE_TRY(auto entry, bind_entry(root, path, path));
    tree.push_back(std::move(entry));
    return {};
}

// A configuration file may be a link into the store or into /usr: the link is kept when what it
// leads to is visible, and what it leads to is shown under the link's name when it is not.
[[nodiscard]] auto add_configuration(std::vector<tree_entry>& tree, const std::string& root,
                                     const std::string& path) -> result<> {
    struct ::stat found{};
    if (::lstat((root + path).c_str(), &found) != 0) return {};
    if (!S_ISLNK(found.st_mode)) {
        if (!S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode)) return {};
        GLOVE_TRY(auto entry, bind_entry(root, path, path));
        tree.push_back(std::move(entry));
        return {};
    }
    auto real = real_inside(root, path);
    if (real.empty()) return {}; // dangling on the host, so absent inside
    if (covered(tree, real)) {
        tree.push_back({.path = path,
                        .kind = entry_kind::link,
                        .origin = origin::system,
                        .text = std::move(real)});
        return {};
    }
    GLOVE_TRY(auto entry, bind_entry(root, path, std::move(real)));
    tree.push_back(std::move(entry));
    return {};
}

[[nodiscard]] auto expand(const std::string& root, std::string_view pattern)
    -> std::vector<std::string> {
    if (pattern.find('*') == std::string_view::npos) return {std::string{pattern}};
    std::vector<std::string> out;
    ::glob_t found{};
    if (::glob((root + std::string{pattern}).c_str(), GLOB_NOSORT, nullptr, &found) == 0)
        for (std::size_t i = 0; i < found.gl_pathc; ++i)
            out.emplace_back(found.gl_pathv[i] + root.size());
    ::globfree(&found);
    return out;
}

} // namespace

auto discover_system(const std::string& root) -> result<std::vector<tree_entry>> {
    std::vector<tree_entry> tree;
    for (const auto* const place : system_places) GLOVE_CHECK(add_place(tree, root, place));
    for (const auto* const pattern : public_configuration)
        for (const auto& path : expand(root, pattern))
            GLOVE_CHECK(add_configuration(tree, root, path));
    return tree;
}

} // namespace glove::container
