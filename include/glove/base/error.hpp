// One error type for every layer. Programs branch on `code`; people read the rest.
//
// An outcome that a caller acts on is a value, not an error. `detail` is prose for the operator: it
// never reaches an agent, and comparing it is a review defect.
#pragma once
#include <cerrno>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace glove {

enum class errc : std::uint8_t {
    invalid_input,
    limit_exceeded,
    not_permitted,
    not_found,
    conflict,
    wrong_state,
    corrupt,
    unsupported,
    timed_out,
    io,
};

// The name a person or a script sees: `error[not_permitted]: ...`.
[[nodiscard]] constexpr auto to_string(errc code) noexcept -> std::string_view {
    switch (code) {
    case errc::invalid_input: return "invalid_input";
    case errc::limit_exceeded: return "limit_exceeded";
    case errc::not_permitted: return "not_permitted";
    case errc::not_found: return "not_found";
    case errc::conflict: return "conflict";
    case errc::wrong_state: return "wrong_state";
    case errc::corrupt: return "corrupt";
    case errc::unsupported: return "unsupported";
    case errc::timed_out: return "timed_out";
    case errc::io: return "io";
    }
    return "io";
}

// Accepts string literals only, so an error never points at freed memory.
struct step_name {
    consteval step_name(const char* literal) : text{literal} {}
    std::string_view text;
};

struct error {
    errc code = errc::io;
    std::string_view step;   // "journal.sync": stable, greppable, asserted by tests
    int os = 0;              // errno, or 0 when the kernel was not involved
    std::string detail;      // what failed, and the value that made it fail
    std::string remedy = {}; // what the operator can do; empty when that is not certain
};

template<class T = void> using result = std::expected<T, error>;

[[nodiscard]] inline auto fail(errc code, step_name step, std::string detail = {},
                               std::string remedy = {}) {
    return std::unexpected(error{code, step.text, 0, std::move(detail), std::move(remedy)});
}

[[nodiscard]] constexpr auto classify(int os) noexcept -> errc {
    switch (os) {
    case EPERM:
    case EACCES:
    case EROFS: return errc::not_permitted;
    case ENOENT:
    case ESRCH:
    case ENOTDIR: return errc::not_found;
    case EEXIST:
    case EBUSY: return errc::conflict;
    case ENOSYS:
    case EOPNOTSUPP: return errc::unsupported;
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case ENOMEM:
    case EDQUOT: return errc::limit_exceeded;
    case ELOOP:
    case ENAMETOOLONG:
    case EINVAL: return errc::invalid_input;
    default: return errc::io;
    }
}

[[nodiscard]] inline auto fail_os(step_name step, int os = errno, std::string detail = {}) {
    return std::unexpected(error{classify(os), step.text, os, std::move(detail), {}});
}

} // namespace glove

// GCC 12's std::expected has no and_then; two macros keep the happy path flat.
#define GLOVE_CAT_(a, b) a##b
#define GLOVE_CAT(a, b) GLOVE_CAT_(a, b)
#define GLOVE_TRY_(tmp, decl, ...)                                                                 \
    auto tmp = (__VA_ARGS__);                                                                      \
    if (!tmp) return std::unexpected(std::move(tmp).error());                                      \
    decl = *std::move(tmp)
#define GLOVE_TRY(decl, ...) GLOVE_TRY_(GLOVE_CAT(try_, __LINE__), decl, __VA_ARGS__)
#define GLOVE_CHECK(...)                                                                           \
    if (auto checked = (__VA_ARGS__); !checked) return std::unexpected(std::move(checked).error())
