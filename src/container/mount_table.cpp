// Reads /proc/self/mountinfo once. A line that cannot be read is an error: a mount that is not seen
// could not be refused.
#include "container/mount_table.hpp"
#include <algorithm>
#include <array>
#include <glove/sys/files.hpp>

namespace glove::container {

namespace {

constexpr std::size_t table_limit = 64UL * 1024 * 1024; // bytes

constexpr auto kernel_filesystems = std::to_array<std::string_view>({
    "binder",     "binfmt_misc", "bpf",      "cgroup",   "cgroup2",    "configfs",
    "debugfs",    "devpts",      "devtmpfs", "efivarfs", "functionfs", "fusectl",
    "mqueue",     "nsfs",        "proc",     "pstore",   "resctrl",    "rpc_pipefs",
    "securityfs", "selinuxfs",   "smackfs",  "sysfs",    "tracefs",    "xenfs",
});

[[nodiscard]] auto next_word(std::string_view& line) -> std::string_view {
    const auto word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(word.size() + 1, line.size()));
    return word;
}

// Space, tab, newline and backslash are written as three octal digits.
[[nodiscard]] auto unescape(std::string_view text) -> std::string {
    const auto digit = [](char c) { return c >= '0' && c <= '7'; };
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 3 < text.size() && digit(text[i + 1]) && digit(text[i + 2]) &&
            digit(text[i + 3])) {
            out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                     (text[i + 3] - '0'));
            i += 3;
        } else out += text[i];
    }
    return out;
}

} // namespace

auto is_kernel_filesystem(std::string_view type) noexcept -> bool {
    return std::ranges::binary_search(kernel_filesystems, type);
}
static_assert(std::ranges::is_sorted(kernel_filesystems));

auto mount_table::read() -> result<mount_table> {
    GLOVE_TRY(const auto lines, sys::read_file("/proc/self/mountinfo", table_limit));
    return parse(lines);
}

auto mount_table::parse(std::string_view lines) -> result<mount_table> {
    mount_table out;
    while (!lines.empty()) {
        auto line = lines.substr(0, lines.find('\n'));
        lines.remove_prefix(std::min(line.size() + 1, lines.size()));
        // id parent device root PATH options [optional...] - TYPE source options
        for (int skipped = 0; skipped < 4; ++skipped) (void)next_word(line);
        auto path = unescape(next_word(line));
        while (!line.empty() && next_word(line) != "-") {
        }
        const auto type = next_word(line);
        if (!path.starts_with('/') || type.empty())
            return fail(errc::corrupt, "plan.mounts",
                        "a line of /proc/self/mountinfo makes no sense");
        out.types_[std::move(path)] = type;
    }
    return out;
}

auto mount_table::holding(std::string_view path) const -> mount {
    for (auto at = std::string{path};; at = sys::parent_of(at)) {
        const auto found = types_.find(at);
        if (found != types_.end()) return {found->first, found->second};
        if (at == "/") return {"/", {}};
    }
}

auto mount_table::below(std::string_view path) const -> std::vector<mount> {
    std::vector<mount> out;
    for (auto at = types_.upper_bound(path); at != types_.end() && sys::holds(path, at->first);
         ++at)
        out.push_back({at->first, at->second});
    return out;
}

auto mount_table::covers_proc() const -> bool {
    constexpr std::string_view kept_empty[] = {"/proc/fs/nfsd", "/proc/sys/fs/binfmt_misc"};
    return std::ranges::any_of(below("/proc"), [&](const mount& at) {
        return std::ranges::find(kept_empty, at.path) == std::end(kept_empty);
    });
}

} // namespace glove::container
