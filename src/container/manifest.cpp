// Paths are kept as ASCII with %XX for every other byte, because a name on Linux need not be UTF-8.
#include <algorithm>
#include <glove/base/ascii.hpp>
#include <glove/container/manifest.hpp>
#include <glove/wire/fields.hpp>
#include <sys/stat.h>

namespace glove::container {

namespace {

constexpr std::size_t most_entries = 1UL << 15U;
constexpr std::size_t most_grants = 1024;

[[nodiscard]] auto escaped(std::string_view raw) -> std::string {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    out.reserve(raw.size());
    for (const char c : raw) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte > 0x20 && byte < 0x7f && c != '%') out += c;
        else out.append({'%', digits[byte >> 4U], digits[byte & 15U]});
    }
    return out;
}

[[nodiscard]] auto unescaped(std::string_view text) -> result<std::string> {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
        const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
        if (high < 0 || low < 0)
            return fail(errc::corrupt, "manifest.path", "an escape is not complete");
        out += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return out;
}

// Relative, and stays below where it starts.
[[nodiscard]] auto is_below(const std::string& path) -> bool {
    return path.empty() || sys::is_normal_absolute("/" + path);
}

constexpr wire::text stored_path{wire::grammar::printable, 0, 3UL * 4096};
constexpr wire::integer any_number{};

constexpr auto path_fields = wire::table(wire::row<&watched_path::path, stored_path>("path"),
                                         wire::row<&watched_path::device, any_number>("device"),
                                         wire::row<&watched_path::inode, any_number>("inode"));
constexpr auto grant_fields = wire::table(
    wire::row<&watched_grant::path, stored_path>("path"),
    wire::row<&watched_grant::device, any_number>("device"),
    wire::row<&watched_grant::inode, any_number>("inode"),
    wire::row<&watched_grant::present, wire::list<wire::record<path_fields>{}>{0, most_entries}>(
        "present"),
    wire::row<&watched_grant::absent, wire::list<stored_path>{0, most_entries}>("absent"),
    wire::row<&watched_grant::repositories, wire::list<stored_path>{0, most_entries}>(
        "repositories"),
    wire::defaulted_row<&watched_grant::git_directories, wire::list<stored_path>{0, most_entries}>(
        "git_directories"));
constexpr auto manifest_fields = wire::table(
    wire::row<&run_manifest::run, wire::ident>("run"),
    wire::row<&run_manifest::complete, wire::flag{}>("complete"),
    wire::row<&run_manifest::grants, wire::list<wire::record<grant_fields>{}>{0, most_grants}>(
        "grants"));

// Every path of the manifest, one by one.
template<class Change> [[nodiscard]] auto each_path(run_manifest& in, Change change) -> result<> {
    for (auto& grant : in.grants) {
        GLOVE_CHECK(change(grant.path, true));
        for (auto& row : grant.present) GLOVE_CHECK(change(row.path, false));
        for (auto& path : grant.absent) GLOVE_CHECK(change(path, false));
        for (auto& path : grant.repositories) GLOVE_CHECK(change(path, false));
        for (auto& path : grant.git_directories) GLOVE_CHECK(change(path, false));
    }
    return {};
}

[[nodiscard]] auto relative(const watched_grant& grant, const std::string& path) -> std::string {
    return path.size() > grant.path.size() ? path.substr(grant.path.size() + 1) : std::string{};
}

} // namespace

auto manifest_of(const plan& source, std::string run) -> run_manifest {
    run_manifest out{.run = std::move(run), .complete = source.repositories_known, .grants = {}};
    for (const auto& entry : source.tree)
        if (entry.kind == entry_kind::bind && entry.origin == origin::asked &&
            entry.mode == access::write && entry.identity.type == S_IFDIR)
            out.grants.push_back({.path = entry.path,
                                  .device = entry.identity.device,
                                  .inode = entry.identity.inode,
                                  .present = {},
                                  .absent = {},
                                  .repositories = {}});
    const auto holder = [&](const std::string& path) {
        return std::ranges::find_if(out.grants,
                                    [&](const auto& g) { return sys::holds(g.path, path); });
    };
    for (const auto& each : source.protected_paths) {
        const auto grant = holder(each.path);
        if (grant == out.grants.end()) continue;
        auto path = relative(*grant, each.path);
        if (each.is_there())
            grant->present.push_back({std::move(path), each.identity.device, each.identity.inode});
        else grant->absent.push_back(std::move(path));
    }
    for (const auto& path : source.repositories)
        if (const auto grant = holder(path); grant != out.grants.end())
            grant->repositories.push_back(relative(*grant, path));
    for (const auto& path : source.git_directories)
        if (const auto grant = holder(path); grant != out.grants.end())
            grant->git_directories.push_back(relative(*grant, path));
    return out;
}

auto manifest_text(const run_manifest& from) -> result<std::string> {
    auto copy = from;
    GLOVE_CHECK(each_path(copy, [](std::string& path, bool) -> result<> {
        path = escaped(path);
        return {};
    }));
    GLOVE_TRY(auto text, wire::encode(copy, manifest_fields));
    if (text.size() > most_manifest_bytes) return fail(errc::limit_exceeded, "manifest.size");
    return text;
}

auto read_manifest(std::string_view text) -> result<run_manifest> {
    GLOVE_TRY(auto out,
              wire::decode_text<run_manifest>(
                  text, manifest_fields, {.bytes = most_manifest_bytes, .elements = most_entries}));
    GLOVE_CHECK(each_path(out, [](std::string& path, bool absolute) -> result<> {
        GLOVE_TRY(path, unescaped(path));
        if (!(absolute ? sys::is_normal_absolute(path) : is_below(path)))
            return fail(errc::corrupt, "manifest.path", "a path is not in its normal form");
        return {};
    }));
    return out;
}

} // namespace glove::container
