// Links are followed once, to a canonical name; from then on there is a descriptor.
#include "control/host_program.hpp"
#include <algorithm>
#include <array>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/container/plan.hpp>
#include <glove/wire/crypto.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::control {

namespace {

struct discovered_name {
    std::string_view runtime, program;
};
constexpr std::array discovered_names{
    discovered_name{"codex", "codex"},
    discovered_name{"claude-code", "claude"},
    discovered_name{"pi", "pi"},
    discovered_name{"copilot", "copilot"},
    discovered_name{"opencode", "opencode"},
};
constexpr std::size_t piece_bytes = 1UL << 20U;

[[nodiscard]] auto changed(const std::string& path) {
    return fail(errc::conflict, "program.changed",
                printable(path) + " changed while a session was being made ready",
                "replace a program by renaming a new file over it");
}

[[nodiscard]] auto pinned(const std::string& name) -> result<session_program> {
    auto real = container::resolve(name);
    if (!real) return fail_os("program.find", real.error().os, printable(name));
    auto pin = sys::pin(real->real, sys::follow::never);
    if (!pin) return fail_os("program.find", pin.error().os, printable(name));
    GLOVE_TRY(const auto facts, sys::inspect(*pin));
    if (facts.identity.type != S_IFREG || (facts.permissions & 0111U) == 0)
        return fail(errc::not_permitted, "program.kind",
                    printable(name) + " is not a file that can be executed");
    if (facts.size == 0 || facts.size > most_executable_bytes)
        return fail(errc::limit_exceeded, "program.size",
                    printable(name) + " has " + std::to_string(facts.size) +
                        " bytes, and not 1 to " + std::to_string(most_executable_bytes));
    return session_program{name, std::move(real->real), *std::move(pin), facts};
}

// Where a link leads out of the directory, whoever can write there could choose what runs as well.
[[nodiscard]] auto check_way_to(const session_program& found) -> result<> {
    supervisor::launch_template there;
    there.executable_search_paths = {sys::parent_of(found.path)};
    return supervisor::check_search_paths(there);
}

[[nodiscard]] auto discovered(const supervisor::launch_template& launch)
    -> result<session_program> {
    const auto row =
        std::ranges::find(discovered_names, launch.runtime_discovery, &discovered_name::runtime);
    if (row == discovered_names.end())
        return fail(errc::unsupported, "program.find",
                    "nobody knows the program of " + launch.runtime_discovery);
    GLOVE_CHECK(supervisor::check_search_paths(launch));
    for (const auto& directory : launch.executable_search_paths) {
        auto found = pinned((directory == "/" ? "" : directory) + "/" + std::string{row->program});
        if (!found && found.error().code == errc::not_found) continue;
        if (!found) return found;
        GLOVE_CHECK(check_way_to(*found));
        return found;
    }
    return fail(errc::not_found, "program.find",
                std::string{row->program} + " is in none of the template's search paths",
                "install it there, or name another directory in executable_search_paths");
}

[[nodiscard]] auto hash_of(sys::fd_ref file, const std::string& path, std::uint64_t size)
    -> result<std::string> {
    GLOVE_TRY(auto stream, wire::sha256_stream::start());
    std::string piece(piece_bytes, '\0');
    for (std::uint64_t left = size;;) {
        const auto got = ::read(file.get(), piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_os("program.read", errno, printable(path));
        if (got == 0 && left == 0) break;
        if (got == 0 || static_cast<std::uint64_t>(got) > left) return changed(path);
        left -= static_cast<std::uint64_t>(got);
        GLOVE_CHECK(stream.update({piece.data(), static_cast<std::size_t>(got)}));
    }
    GLOVE_TRY(const auto digest, std::move(stream).finish());
    return wire::to_hex(digest);
}

[[nodiscard]] auto time_of(std::int64_t ns) -> file_time {
    constexpr std::int64_t second = 1'000'000'000;
    const auto since = std::max<std::int64_t>(ns, 0); // a time before 1970 is the owner's own doing
    return {static_cast<std::uint64_t>(since / second), static_cast<std::uint32_t>(since % second)};
}

} // namespace

auto find_program(const supervisor::launch_template& launch) -> result<session_program> {
    return launch.runtime_discovery.empty() ? pinned(launch.executable_path) : discovered(launch);
}

auto measure(const session_program& program) -> result<bound_executable> {
    auto file = sys::reopen(program.pin, O_RDONLY);
    if (!file) return fail_os("program.read", file.error().os, printable(program.path));
    GLOVE_TRY(auto hash, hash_of(*file, program.path, program.facts.size));
    GLOVE_CHECK(check_unchanged(program));
    const auto& facts = program.facts;
    return bound_executable{.device = facts.identity.device,
                            .inode = facts.identity.inode,
                            .mode = facts.identity.type | facts.permissions,
                            .size = facts.size,
                            .modified = time_of(facts.written_ns),
                            .changed = time_of(facts.changed_ns),
                            .sha256 = std::move(hash)};
}

auto check_unchanged(const session_program& program) -> result<> {
    GLOVE_TRY(const auto now, sys::inspect(program.pin));
    if (!(now == program.facts)) return changed(program.path);
    return {};
}

} // namespace glove::control
