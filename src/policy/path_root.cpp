// All looking up is the kernel's; this only decides which questions to ask it.
#include "policy/path_root.hpp"
#include "sys/syscalls.hpp"
#include <algorithm>
#include <array>
#include <cstdint>
#include <glove/base/text.hpp>
#include <glove/wire/grammar.hpp>
#include <glove/wire/utf8.hpp>
#include <optional>
#include <sys/stat.h>

namespace glove::policy {

namespace {

constexpr std::size_t longest_component = 255;

struct code_range {
    std::uint32_t first, last;
};
// What no reader shows, or some reader takes for a dot, a slash or a backslash.
constexpr std::array deceptive{
    code_range{0x80, 0x9f},       // control
    code_range{0xad, 0xad},       // soft hyphen
    code_range{0x61c, 0x61c},     // direction
    code_range{0x180e, 0x180e},   // no width
    code_range{0x200b, 0x200f},   // no width, direction
    code_range{0x2024, 0x2025},   // one and two dots
    code_range{0x2028, 0x202e},   // line and paragraph separators, direction
    code_range{0x2044, 0x2044},   // fraction slash
    code_range{0x2060, 0x206f},   // no width, direction
    code_range{0x2100, 0x2101},   // decompose to a slash
    code_range{0x2105, 0x2106},   // the same
    code_range{0x2215, 0x2216},   // division slash, set minus
    code_range{0x29f5, 0x29f9},   // slashes and backslashes of mathematics
    code_range{0xfe52, 0xfe52},   // small full stop
    code_range{0xfe68, 0xfe68},   // small backslash
    code_range{0xfeff, 0xfeff},   // no width
    code_range{0xff0e, 0xff0f},   // wide full stop and slash
    code_range{0xff3c, 0xff3c},   // wide backslash
    code_range{0xff61, 0xff61},   // narrow ideographic full stop
    code_range{0xfff9, 0xfffb},   // annotations
    code_range{0xe0000, 0xe007f}, // tags
};

// Of a character that is well formed.
[[nodiscard]] auto code_of(std::string_view character) -> std::uint32_t {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
    if (character.size() == 1) return byte(0);
    std::uint32_t out = byte(0) & (0x7fU >> character.size());
    for (std::size_t i = 1; i < character.size(); ++i) out = out << 6U | (byte(i) & 0x3fU);
    return out;
}

[[nodiscard]] auto is_deceptive(std::uint32_t code) -> bool {
    return std::ranges::any_of(
        deceptive, [&](const code_range& r) { return code >= r.first && code <= r.last; });
}

[[nodiscard]] auto is_plain_text(std::string_view path) -> bool {
    if (path.empty() || path.size() > longest_path) return false;
    while (!path.empty()) {
        const auto step = wire::next_utf8(path);
        if (!step.well_formed) return false;
        const char c = path.front();
        if (wire::detail::is_control(c) || c == '\\') return false;
        if (step.size > 1 && is_deceptive(code_of(path.substr(0, step.size)))) return false;
        if (c == '%' && path.size() > 2 && hex_value(path[1]) >= 0 && hex_value(path[2]) >= 0)
            return false;
        path.remove_prefix(step.size);
    }
    return true;
}

[[nodiscard]] auto is_plain_component(std::string_view part) -> bool {
    if (part == "..") return true;
    if (part.size() > longest_component || part.back() == '.' || part.back() == ' ') return false;
    if (!part.starts_with("..")) return true;
    const char third = part[2]; // "..data" is a name, "..;" is somebody's parent directory
    return wire::detail::is_word(third);
}

// Without what says nothing: empty components and ".".
[[nodiscard]] auto split(std::string_view path) -> path_parts {
    path_parts out;
    while (!path.empty()) {
        const auto part = path.substr(0, path.find('/'));
        path.remove_prefix(std::min(part.size() + 1, path.size()));
        if (!part.empty() && part != ".") out.push_back(part);
    }
    return out;
}

[[nodiscard]] auto join(const path_parts& parts, std::size_t count) -> std::string {
    std::string out;
    for (std::size_t i = 0; i < count; ++i) {
        if (i > 0) out += '/';
        out += parts[i];
    }
    return out.empty() ? "." : out;
}

[[nodiscard]] auto absolute_name(const path_parts& parts) -> std::string {
    return parts.empty() ? "/" : "/" + join(parts, parts.size());
}

[[nodiscard]] auto has_dots(const path_parts& parts) -> bool {
    return std::ranges::count(parts, std::string_view{".."}) > 0;
}

// As readers fold ".." that do not look at links; nothing when it climbs above "/".
[[nodiscard]] auto fold(const path_parts& parts) -> std::optional<path_parts> {
    path_parts out;
    for (const auto part : parts) {
        if (part != "..") {
            out.push_back(part);
            continue;
        }
        if (out.empty()) return std::nullopt;
        out.pop_back();
    }
    return out;
}

[[nodiscard]] auto look(int directory, const std::string& path, std::uint64_t flags,
                        std::uint64_t resolve) -> sys::unique_fd {
    ::open_how how{};
    how.flags = O_PATH | O_CLOEXEC | flags;
    how.resolve = RESOLVE_NO_MAGICLINKS | resolve;
    constexpr int looks = 32; // EAGAIN: a rename kept the kernel from being sure
    sys::unique_fd out;
    for (int i = 0; !out && i < looks; ++i) {
        out = sys::unique_fd{sys::openat2(directory, path.c_str(), how)};
        if (!out && errno != EAGAIN) break;
    }
    return out;
}

[[nodiscard]] auto is_same(const sys::unique_fd& file, const sys::file_identity& wanted) -> bool {
    const auto facts = sys::inspect(file);
    return facts && facts->identity == wanted;
}

} // namespace

auto path_root::pin(const std::string& spelled) -> result<path_root> {
    if (!spelled.starts_with('/'))
        return fail(errc::invalid_input, "policy.path", in_quotes(spelled) + " is not absolute");
    path_root out;
    GLOVE_TRY(out.pin_, sys::pin(spelled, sys::follow::yes));
    GLOVE_TRY(const auto facts, sys::inspect(out.pin_));
    out.identity_ = facts.identity;
    GLOVE_TRY(out.canonical_, sys::read_link("/proc/self/fd/" + std::to_string(out.pin_.get())));
    out.spelled_ = absolute_name(split(spelled));
    return out;
}

auto path_root::is_directory() const noexcept -> bool { return identity_.type == S_IFDIR; }

// How many components of `parts` name this root, now as when it was pinned; npos for none.
auto path_root::begins_with_name(const path_parts& parts) const -> std::size_t {
    for (const auto* const name : {&spelled_, &canonical_}) {
        const auto own = split(*name);
        if (own.size() > parts.size() || !std::equal(own.begin(), own.end(), parts.begin()))
            continue;
        const auto now = sys::pin(*name, name == &spelled_ ? sys::follow::yes : sys::follow::never);
        if (now && is_same(*now, identity_)) return own.size();
    }
    return std::string::npos;
}

auto path_root::holds(std::string_view path) const -> bool {
    if (!path.starts_with('/') || !is_plain_text(path)) return false;
    const auto parts = split(path);
    if (!std::ranges::all_of(parts, is_plain_component)) return false;
    if (!has_dots(parts)) return holds_folded(parts);
    // Some servers fold before they look, others let the kernel walk: both must stay inside.
    const auto folded = fold(parts);
    return folded && holds_folded(*folded) && holds_walked(parts);
}

auto path_root::holds_relative(std::string_view path) const -> bool {
    if (path.empty() || path.size() > longest_path) return false;
    // What a server could take for a home, a variable, an option, a drive or a URL.
    constexpr std::string_view never_first = "/~$-";
    if (never_first.find(path.front()) != std::string_view::npos) return false;
    if (path.substr(0, path.find('/')).find(':') != std::string_view::npos) return false;
    const auto first = split(path);
    if (!first.empty() && has_dots(first)) {
        const auto folded = fold(first);
        if (!folded) return false; // above the root and back: the server's own directory decides
    }
    return holds((spelled_ == "/" ? "/" : spelled_ + "/") + std::string{path});
}

auto path_root::holds_folded(const path_parts& parts) const -> bool {
    const auto named = begins_with_name(parts);
    if (named == std::string::npos) return false;
    return holds_beneath({parts.begin() + static_cast<std::ptrdiff_t>(named), parts.end()});
}

// Walks without following links to the last place where the path is at the root; what is left must
// not leave it again.
auto path_root::holds_walked(const path_parts& parts) const -> bool {
    auto at = begins_with_name(parts);
    std::size_t last = at;
    sys::unique_fd here = at == std::string::npos ? look(AT_FDCWD, "/", O_DIRECTORY, 0)
                                                  : look(pin_.get(), ".", O_DIRECTORY, 0);
    for (at = at == std::string::npos ? 0 : at; here && at < parts.size(); ++at) {
        here = look(here.get(), std::string{parts[at]}, O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
        if (here && is_same(here, identity_)) last = at + 1;
    }
    if (last == std::string::npos) return false;
    return holds_beneath({parts.begin() + static_cast<std::ptrdiff_t>(last), parts.end()});
}

auto path_root::holds_beneath(const path_parts& rest) const -> bool {
    if (rest.empty()) return true;
    if (!is_directory()) return false;
    if (look(pin_.get(), join(rest, rest.size()), 0, RESOLVE_BENEATH)) return true;
    return errno == ENOENT && may_appear(rest);
}

// Whether a name that is not there could be made beneath the root and nowhere else.
auto path_root::may_appear(const path_parts& rest) const -> bool {
    std::size_t there = 0;
    std::size_t missing = rest.size();
    while (missing - there > 1) {
        const auto middle = there + (missing - there) / 2;
        if (look(pin_.get(), join(rest, middle), 0, RESOLVE_BENEATH)) there = middle;
        else if (errno == ENOENT) missing = middle;
        else return false;
    }
    const path_parts tail{rest.begin() + static_cast<std::ptrdiff_t>(there), rest.end()};
    if (has_dots(tail)) return false;
    const auto above = look(pin_.get(), join(rest, there), O_DIRECTORY, RESOLVE_BENEATH);
    if (!above) return false;
    // A link that leads nowhere yet would be written through.
    struct ::stat found{};
    const std::string name{tail.front()};
    return ::fstatat(above.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0 &&
           errno == ENOENT;
}

} // namespace glove::policy
