// Tables and lexical work: every path made here is judged by the caller before it counts.
#include "host/program_places.hpp"
#include <algorithm>
#include <array>
#include <cstdlib>
#include <dirent.h>
#include <glove/base/ascii.hpp>
#include <glove/base/numbers.hpp>
#include <glove/container/plan.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/user_directories.hpp>
#include <glove/wire/json.hpp>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::host {

namespace {

constexpr step_name step{"profile.program"};
constexpr std::size_t most_versions = 256;
constexpr std::size_t largest_accounts = 4UL << 20;
constexpr std::size_t largest_npmrc = 64UL * 1024;
constexpr std::size_t largest_manifest = 1UL << 20;

// Below the home. "*" stands for a version, the highest first.
constexpr std::array<std::string_view, 13> program_directories{
    ".local/bin",
    ".npm-global/bin",
    ".npm-packages/bin",
    ".npm/bin",
    ".bun/bin",
    ".yarn/bin",
    ".nvm/versions/node/*/bin",
    ".local/share/fnm/node-versions/*/installation/bin",
    ".fnm/node-versions/*/installation/bin",
    ".volta/tools/image/node/*/bin",
    ".asdf/installs/nodejs/*/bin",
    ".local/share/mise/installs/node/*/bin",
    ".local/share/nvm/versions/node/*/bin",
};
constexpr std::array<std::string_view, 3> system_directories{"/usr/local/bin", "/usr/bin", "/bin"};
// Each program in them starts its manager, which looks at the working directory for what to do.
constexpr std::array<std::string_view, 3> shim_directories{".asdf/shims", ".volta/bin",
                                                           ".local/share/mise/shims"};

// Numbers in names are compared as numbers: v9 comes before v22.
[[nodiscard]] auto version_less(std::string_view a, std::string_view b) -> bool {
    const auto digits = [](std::string_view text) {
        std::size_t count = 0;
        while (count < text.size() && is_digit(text[count])) ++count;
        return count;
    };
    while (!a.empty() && !b.empty()) {
        const auto left = digits(a);
        const auto right = digits(b);
        if (left > 0 && right > 0) {
            if (left != right) return left < right;
            const auto order = a.substr(0, left).compare(b.substr(0, right));
            if (order != 0) return order < 0;
            a.remove_prefix(left);
            b.remove_prefix(right);
            continue;
        }
        if (a.front() != b.front()) return a.front() < b.front();
        a.remove_prefix(1);
        b.remove_prefix(1);
    }
    return a.size() < b.size();
}

[[nodiscard]] auto names_in(const std::string& directory, std::size_t most)
    -> std::vector<std::string> {
    struct closer {
        void operator()(::DIR* open) const noexcept { (void)::closedir(open); }
    };
    std::vector<std::string> out;
    const std::unique_ptr<::DIR, closer> open{::opendir(directory.c_str())};
    while (open != nullptr && out.size() < most) {
        const auto* const entry = ::readdir(open.get());
        if (entry == nullptr) break;
        if (entry->d_name[0] != '.') out.emplace_back(entry->d_name);
    }
    return out;
}

// The paths that a pattern with at most one component "*" stands for, the highest version first.
[[nodiscard]] auto expand(const std::string& pattern) -> std::vector<std::string> {
    const auto star = pattern.find("/*");
    if (star == std::string::npos) return {pattern};
    const auto above = pattern.substr(0, star);
    auto versions = names_in(above, most_versions);
    std::ranges::sort(versions, [](const auto& a, const auto& b) { return version_less(b, a); });
    std::vector<std::string> out;
    for (const auto& version : versions)
        out.push_back(above + "/" + version + pattern.substr(star + 2));
    return out;
}

[[nodiscard]] auto without_slashes(std::string path) -> std::string {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    return path;
}

[[nodiscard]] auto set_directory(const char* name) -> std::string {
    const char* const value = std::getenv(name);
    auto path = without_slashes(value == nullptr ? "" : value);
    return sys::is_normal_absolute(path) ? path : std::string{};
}

// A regular file that others could not have written, pinned: a FIFO in its place stops nothing.
[[nodiscard]] auto text_of(const std::string& path, std::size_t limit, const program_search& search)
    -> std::string {
    const auto file = find_trusted(path, own_group::allowed, step);
    if (!file || file->facts.identity.type != S_IFREG || is_written(path, *file, search)) return {};
    return read_pinned(*file, limit).value_or(std::string{});
}

// The prefix that the caller's ~/.npmrc names; empty when it names none.
[[nodiscard]] auto npmrc_prefix(const program_search& search) -> std::string {
    const auto& home = search.home;
    const auto text = text_of(home + "/.npmrc", largest_npmrc, search);
    std::string out;
    for (std::string_view rest{text}; !rest.empty();) {
        auto line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        const auto equals = line.find('=');
        if (equals == std::string_view::npos) continue;
        const auto bare = [](std::string_view part) {
            constexpr std::string_view blank = " \t\r\"'";
            const auto first = std::min(part.find_first_not_of(blank), part.size());
            part.remove_prefix(first);
            return part.substr(0, part.find_last_not_of(blank) + 1);
        };
        if (bare(line.substr(0, equals)) != "prefix") continue;
        out = bare(line.substr(equals + 1));
        for (const std::string_view mark : {"~", "${HOME}", "$HOME"})
            if (out.starts_with(mark)) out = home + out.substr(mark.size());
    }
    out = without_slashes(std::move(out));
    return sys::is_normal_absolute(out) ? out : std::string{};
}

// Whether a package depends on one that stands beside it, and not below it.
[[nodiscard]] auto needs_siblings(const std::string& package, const std::string& holder) -> bool {
    const auto text = text_of(package + "/package.json", largest_manifest, {});
    const auto manifest = wire::json::read(text, {.form = wire::json::numbers::any});
    if (!manifest) return false;
    for (const auto* const kind : {"dependencies", "optionalDependencies", "peerDependencies"}) {
        const auto* const member = manifest->find(kind);
        const auto* const names = member == nullptr ? nullptr : member->as_object();
        if (names == nullptr) continue;
        for (const auto& dependency : *names)
            if (!sys::exists(package + "/node_modules/" + dependency.name) &&
                sys::exists(holder + "/" + dependency.name))
                return true;
    }
    return false;
}

[[nodiscard]] auto real_of(const std::string& path) -> std::string {
    const auto found = container::resolve(path);
    return found ? found->real : std::string{};
}

} // namespace

auto places_of(const std::string& name, std::span<const std::string_view> own_places,
               const program_search& search) -> std::vector<std::string> {
    std::vector<std::string> out;
    for (const auto& directory : search.path) out.push_back(directory + "/" + name);
    if (!search.home.empty())
        for (const auto place : own_places)
            for (auto& path : expand(search.home + "/" + std::string{place}))
                out.push_back(std::move(path));
    for (const auto& prefix : search.prefixes)
        for (const auto& directory : expand(prefix)) out.push_back(directory + "/" + name);
    if (!search.home.empty())
        for (const auto place : program_directories)
            for (const auto& directory : expand(search.home + "/" + std::string{place}))
                out.push_back(directory + "/" + name);
    for (const auto directory : system_directories)
        out.push_back(std::string{directory} + "/" + name);
    return out;
}

auto is_shim(std::string_view path, const std::string& home) -> bool {
    if (home.empty()) return false;
    return std::ranges::any_of(shim_directories, [&](std::string_view directory) {
        return sys::holds(home + "/" + std::string{directory}, path);
    });
}

auto version_directory(const std::string& real, const program_search& search) -> std::string {
    std::vector<std::string> patterns = search.prefixes;
    if (!search.home.empty())
        for (const auto place : program_directories)
            patterns.push_back(search.home + "/" + std::string{place});
    for (const auto& pattern : patterns) {
        const auto star = pattern.find("/*/");
        if (star == std::string::npos) continue;
        const auto above = pattern.substr(0, star + 1);
        const auto end = real.find('/', above.size());
        if (!real.starts_with(above) || end == std::string::npos) continue;
        // Between the version and its bin, for fnm.
        auto out = real.substr(0, end) + sys::parent_of(pattern.substr(star + 2));
        if (out.ends_with('/')) out.pop_back();
        if (sys::holds(out, real)) return out;
    }
    return {};
}

auto is_writable(std::string_view path, const program_search& search) -> bool {
    return std::ranges::any_of(search.writable,
                               [&](const auto& place) { return sys::holds(place, path); });
}

auto is_written(const std::string& path, const trusted_file& file, const program_search& search)
    -> bool {
    return is_writable(path, search) || is_writable(file.real, search) ||
           std::ranges::any_of(file.links,
                               [&](const auto& link) { return is_writable(link.first, search); });
}

auto is_closed_to_others(const std::string& directory) -> bool {
    const auto found = find_trusted(directory, own_group::allowed, step);
    return found && (found->facts.permissions & S_IWOTH) == 0;
}

namespace {

constexpr std::string_view modules = "node_modules";

[[nodiscard]] auto is_marked(const std::string& directory, std::string_view marker) -> bool {
    const auto file = find_trusted(directory + "/" + std::string{marker}, own_group::allowed, step);
    return file && file->facts.identity.type == S_IFREG;
}

[[nodiscard]] auto name_of(std::string_view path) -> std::string_view {
    return path.substr(path.rfind('/') + 1);
}

// The node_modules in which a package lies, perhaps in a scope; empty for any other directory.
[[nodiscard]] auto modules_of(const std::string& package) -> std::string {
    auto holder = sys::parent_of(package);
    if (name_of(holder).starts_with('@')) holder = sys::parent_of(holder);
    return name_of(holder) == modules ? holder : std::string{};
}

[[nodiscard]] auto holds_a_home(const std::string& directory, const program_search& search)
    -> bool {
    return std::ranges::any_of(search.homes,
                               [&](const auto& home) { return sys::holds(directory, home); });
}

// The nearest package around `real` that lies in a node_modules.
[[nodiscard]] auto installed_package(const std::string& real, const program_search& search)
    -> std::string {
    for (auto up = sys::parent_of(real); up != "/" && !holds_a_home(up, search);
         up = sys::parent_of(up))
        if (!modules_of(up).empty() && is_marked(up, "package.json")) return up;
    return {};
}

// What is around a bin. Whoever may place a link would else choose what is shown, so the program
// was found in the same tree: around the directory of its name, or in that when it is in the home.
[[nodiscard]] auto around_bin(const std::string& path, const std::string& real,
                              const program_search& search) -> std::string {
    const auto bin = sys::parent_of(real);
    auto whole = sys::parent_of(bin);
    // Without a home, nobody knows what must not be shown.
    if (search.home.empty() || name_of(bin) != "bin" || whole == "/" || holds_a_home(whole, search))
        return {};
    const auto found_in = real_of(sys::parent_of(path));
    auto tree = found_in.empty() ? found_in : sys::parent_of(found_in);
    if (tree == "/" || holds_a_home(tree, search)) tree = found_in;
    if (tree.empty() || !sys::holds(tree, real)) return {};
    if (is_marked(whole, "pyvenv.cfg") || is_marked(whole, "package.json")) return whole;
    return {};
}

} // namespace

auto package_directory(const std::string& path, const std::string& real,
                       const program_search& search) -> std::string {
    const auto package = installed_package(real, search);
    if (package.empty()) return around_bin(path, real, search);
    // pnpm keeps every package, and links to what each depends on, in one place.
    constexpr std::string_view store = "/.pnpm/";
    if (const auto at = package.rfind(store); at != std::string::npos)
        return package.substr(0, at + store.size() - 1);
    auto holder = modules_of(package);
    return needs_siblings(package, holder) ? holder : package;
}

auto is_on_system_path(std::string_view directory) -> bool {
    for (auto rest = container::search_path; !rest.empty();) {
        const auto one = rest.substr(0, rest.find(':'));
        if (one == directory) return true;
        rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    }
    return false;
}

namespace {

// The whole of a run's places that holds Glove's own is refused by its own name.
[[nodiscard]] auto is_refused_anyway(const std::string& place, const program_search& search)
    -> bool {
    return holds_a_home(place, search) && std::ranges::any_of(search.closed, [&](const auto& own) {
               return sys::holds(place, own);
           });
}

void add_homes(program_search& out) {
    if (const auto home = set_directory("HOME"); !home.empty()) out.home = real_of(home);
    if (out.home == "/") out.home.clear();
    if (!out.home.empty()) out.homes.push_back(out.home);
    // Not by the name service, which may ask the network.
    const auto accounts = sys::read_file("/etc/passwd", largest_accounts).value_or(std::string{});
    if (const auto home = real_of(home_in(accounts, ::geteuid())); !home.empty() && home != "/")
        out.homes.push_back(home);
}

} // namespace

auto home_in(std::string_view accounts, unsigned user) -> std::string {
    std::array<std::string_view, 7> fields; // of an account
    for (; !accounts.empty();) {
        auto line = accounts.substr(0, accounts.find('\n'));
        accounts.remove_prefix(std::min(line.size() + 1, accounts.size()));
        if (static_cast<std::size_t>(std::ranges::count(line, ':')) != fields.size() - 1) continue;
        for (auto& field : fields) {
            field = line.substr(0, line.find(':'));
            line.remove_prefix(std::min(field.size() + 1, line.size()));
        }
        if (parse_decimal(fields[2], UINT32_MAX) != user) continue;
        auto home = without_slashes(std::string{fields[5]});
        return sys::is_normal_absolute(home) ? home : std::string{};
    }
    return {};
}

auto caller_search(std::span<const std::string> writable) -> result<program_search> {
    program_search out;
    add_homes(out);
    for (const auto& own : {sys::state_directory(), sys::configuration_directory()})
        if (own) out.closed.push_back(*own);
    for (const auto& given : writable)
        if (auto place = real_of(given); !place.empty() && !is_refused_anyway(place, out))
            out.writable.push_back(std::move(place));
    const char* const path = std::getenv("PATH");
    for (std::string_view rest{path == nullptr ? "" : path}; !rest.empty();) {
        const auto word = rest.substr(0, rest.find(':'));
        rest.remove_prefix(std::min(word.size() + 1, rest.size()));
        auto directory = without_slashes(std::string{word});
        // A relative one means another place in each project.
        if (sys::is_normal_absolute(directory) && std::ranges::count(out.path, directory) == 0)
            out.path.push_back(std::move(directory));
    }
    if (const auto prefix = set_directory("NPM_CONFIG_PREFIX"); !prefix.empty())
        out.prefixes.push_back(prefix + "/bin");
    if (const auto prefix = out.home.empty() ? out.home : npmrc_prefix(out); !prefix.empty())
        out.prefixes.push_back(prefix + "/bin");
    if (const auto nvm = set_directory("NVM_DIR"); !nvm.empty())
        out.prefixes.push_back(nvm + "/versions/node/*/bin");
    return out;
}

} // namespace glove::host
