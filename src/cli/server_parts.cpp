// A file of a language that is interpreted loads what stands beside it, so its directory counts,
// unless that is a home or holds one: what lies there is of everything.
#include "cli/server_parts.hpp"
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <glove/container/plan.hpp>
#include <glove/host/profiles.hpp>
#include <glove/sys/files.hpp>
#include <iterator>
#include <span>

namespace glove::cli {

namespace {

using paths = std::vector<std::string>;

constexpr std::array<std::string_view, 16> script_endings{
    ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py",  ".pyz",
    ".rb", ".pl",  ".php", ".sh", ".jar", ".lua", ".jsx", ".tsx"};

[[nodiscard]] auto is_file(const std::string& path) -> bool {
    std::error_code ignored;
    return std::filesystem::is_regular_file(path, ignored);
}

[[nodiscard]] auto holds_home(const std::string& directory) -> bool {
    const char* const home = std::getenv("HOME");
    return directory == "/" || (home != nullptr && sys::holds(directory, real_of(home)));
}

// The words that are paths of files.
[[nodiscard]] auto files_of(const mcp::upstream_wish& server) -> paths {
    paths out;
    for (const auto& word : std::span{server.argv}.subspan(1))
        if (word.starts_with('/') && is_file(real_of(word))) out.push_back(word);
    return out;
}

[[nodiscard]] auto parts_outside(const mcp::upstream_wish& server,
                                 std::span<const std::string> writable) -> paths {
    auto out = files_of(server);
    const auto& program = server.argv.front();
    if (program.contains('/')) out.push_back(program);
    paths beside;
    for (const auto& each : out)
        if (auto directory = sys::parent_of(real_of(each));
            is_script(each) && !holds_home(directory))
            beside.push_back(std::move(directory));
    std::ranges::move(beside, std::back_inserter(out));
    // A program that is not found is told when it is started.
    const bool is_path = program.starts_with('/');
    if (auto found = host::find_program_view(
            program, is_path ? paths{} : paths{writable.begin(), writable.end()})) {
        out.push_back(std::move(found->path));
        std::ranges::move(found->files, std::back_inserter(out));
        std::ranges::move(found->directories, std::back_inserter(out));
    }
    return out;
}

[[nodiscard]] auto parts_inside(const mcp::upstream_wish& server) -> paths {
    const auto& with = *server.perimeter;
    auto out = files_of(server);
    out.push_back(with.program);
    paths shown;
    for (const auto& grant : server.grants.read)
        if (std::ranges::any_of(
                out, [&](const auto& each) { return sys::holds(real_of(grant), real_of(each)); }))
            shown.push_back(grant);
    std::ranges::move(shown, std::back_inserter(out));
    out.insert(out.end(), with.needs.begin(), with.needs.end());
    out.insert(out.end(), with.directories.begin(), with.directories.end());
    return out;
}

} // namespace

auto real_of(const std::string& path) -> std::string {
    auto where = container::resolve(path);
    return where ? std::move(where->real) : path;
}

auto is_script(const std::string& path) -> bool {
    if (std::ranges::any_of(script_endings, [&](auto ending) { return path.ends_with(ending); }))
        return true;
    if (!is_file(path)) return false; // a FIFO would have to be waited for
    std::array<char, 2> first{};
    return std::ifstream{path}.read(first.data(), first.size()) && first[0] == '#' &&
           first[1] == '!';
}

auto parts_of(const mcp::upstream_wish& server, std::span<const std::string> writable)
    -> std::vector<std::string> {
    return server.perimeter ? parts_inside(server) : parts_outside(server, writable);
}

} // namespace glove::cli
