// Whether a directory may be looked in for a program. Judges descriptors, from the root down.
#include "supervisor/host_source.hpp"
#include "supervisor/in_file.hpp"
#include <glove/supervisor/session_policy.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::supervisor {

namespace {

// Empty, or why others could choose what runs.
[[nodiscard]] auto fault_of(const sys::file_facts& facts) -> std::string_view {
    const bool system = sys::is_system(facts.owner);
    if (facts.identity.type != S_IFDIR) return "is not a directory";
    if (!system && facts.owner != ::geteuid()) return "belongs to another user";
    // Others may add to such a directory, and not replace what is not theirs.
    if (system && (facts.permissions & S_ISVTX) != 0) return {};
    if ((facts.permissions & (S_IWGRP | S_IWOTH)) != 0) return "can be written by others";
    return {};
}

[[nodiscard]] auto check_directory(const std::string& path) -> result<> {
    GLOVE_TRY(const auto found, open_host_source(path));
    if (const auto fault = fault_of(found.facts); !fault.empty())
        return fail(errc::not_permitted, "policy.search_path",
                    "it, or a directory above it, " + std::string{fault});
    return {};
}

[[nodiscard]] auto check_way(const std::string& path) -> result<> {
    // The last one is where programs are: a sticky bit keeps nobody from adding one.
    GLOVE_TRY(const auto last, open_host_source(path));
    if ((last.facts.permissions & (S_IWGRP | S_IWOTH)) != 0)
        return fail(errc::not_permitted, "policy.search_path", "it can be written by others");
    for (auto at = path;; at = sys::parent_of(at)) {
        GLOVE_CHECK(check_directory(at));
        if (at == "/") return {};
    }
}

} // namespace

auto check_search_paths(const launch_template& launch) -> result<> {
    for (std::size_t i = 0; i < launch.executable_search_paths.size(); ++i)
        GLOVE_CHECK(in_file("executable_search_paths[" + std::to_string(i) + "]",
                            check_way(launch.executable_search_paths[i])));
    return {};
}

} // namespace glove::supervisor
