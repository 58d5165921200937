// Judges by descriptor: the file that was judged is the one that is read, whatever its name
// becomes.
#include "host/trusted.hpp"
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace glove::host {

namespace {

// A pin reads nothing; this is the same file, opened once more without its name.
[[nodiscard]] auto name_of(const sys::unique_fd& pin) -> std::string {
    return "/proc/self/fd/" + std::to_string(pin.get());
}

// With a list of its own, the bits of the group stand for everybody who is in the list.
[[nodiscard]] auto has_access_list(const sys::unique_fd& pin) -> bool {
    return ::getxattr(name_of(pin).c_str(), "system.posix_acl_access", nullptr, 0) >= 0 ||
           (errno != ENODATA && errno != EOPNOTSUPP);
}

[[nodiscard]] auto is_own_group(const sys::file_facts& facts, const sys::unique_fd& pin) -> bool {
    return facts.group == ::getegid() && facts.group == ::geteuid() && facts.owner == ::geteuid() &&
           !has_access_list(pin);
}

// Where root cannot be told apart from others, who can be is the caller alone.
[[nodiscard]] auto is_foreign(::uid_t owner) -> bool {
    return owner != ::geteuid() && !sys::is_system(owner);
}

// Empty, or why others could change what is there.
[[nodiscard]] auto fault_of(const sys::file_facts& facts, const sys::unique_fd& pin,
                            own_group group) -> std::string_view {
    if (is_foreign(facts.owner)) return "belongs to another user";
    // Others may add to such a directory, and not replace what is not theirs.
    const bool sticky = facts.identity.type == S_IFDIR && (facts.permissions & S_ISVTX) != 0;
    if (sticky) return {};
    if ((facts.permissions & S_IWOTH) != 0) return "can be written by everybody";
    const bool group_counts = group == own_group::refused || !is_own_group(facts, pin);
    if ((facts.permissions & S_IWGRP) != 0 && group_counts) return "can be written by its group";
    return {};
}

[[nodiscard]] auto judge(const std::string& path, const sys::file_facts& facts,
                         const sys::unique_fd& pin, own_group group, step_name step) -> result<> {
    const auto fault = fault_of(facts, pin, group);
    if (fault.empty()) return {};
    const bool foreign = is_foreign(facts.owner);
    return fail(errc::not_permitted, step, path + " " + std::string{fault},
                foreign ? "use a file and directories of your own" : "chmod go-w " + path);
}

[[nodiscard]] auto judge_directories(const std::string& path, own_group group, step_name step)
    -> result<> {
    for (auto up = sys::parent_of(path);; up = sys::parent_of(up)) {
        GLOVE_TRY(const auto pin, sys::pin(up, sys::follow::never));
        GLOVE_TRY(const auto facts, sys::inspect(pin));
        GLOVE_CHECK(judge(up, facts, pin, group, step));
        if (up == "/") return {};
    }
}

// Whoever made a link decides where it leads, also in a directory that takes files of everybody.
[[nodiscard]] auto judge_link(const std::string& link, own_group group, step_name step)
    -> result<> {
    GLOVE_TRY(const auto pin, sys::pin(link, sys::follow::never));
    GLOVE_TRY(auto facts, sys::inspect(pin));
    facts.permissions = 0; // a link has none of its own
    GLOVE_CHECK(judge(link, facts, pin, group, step));
    return judge_directories(link, group, step);
}

} // namespace

auto find_trusted(const std::string& path, own_group group, step_name step)
    -> result<trusted_file> {
    auto where = container::resolve(path);
    if (!where) return fail_os(step, where.error().os, path);
    auto pin = sys::pin(where->real, sys::follow::never);
    if (!pin) return fail_os(step, pin.error().os, path);
    GLOVE_TRY(const auto facts, sys::inspect(*pin));
    GLOVE_CHECK(judge(where->real, facts, *pin, group, step));
    GLOVE_CHECK(judge_directories(where->real, group, step));
    for (const auto& [link, target] : where->links) GLOVE_CHECK(judge_link(link, group, step));
    return trusted_file{std::move(where->real), std::move(where->links), facts, *std::move(pin)};
}

auto read_head(const trusted_file& file, std::size_t bytes) -> std::string {
    const sys::unique_fd open{
        ::open(name_of(file.pin).c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
    std::string out(bytes, '\0');
    const auto got = open ? ::pread(open.get(), out.data(), out.size(), 0) : -1;
    out.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return out;
}

auto read_pinned(const trusted_file& file, std::size_t limit) -> result<std::string> {
    return sys::read_file(name_of(file.pin), limit);
}

} // namespace glove::host
