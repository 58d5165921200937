// What every hostile program is made of: one purpose, one word, one exit status.
//
// 0 "worked": the attack did what it tries. 10 "denied": it was refused, with the errno's name.
// 20 "untried": the attempt itself was broken, which a test must never take for a denial.
//
// A test must be safe on the day it fails: an attack that works changes nothing of a machine but
// what its test made. What belongs to the system is opened and never written to, and what was made
// beside it is removed again.
#pragma once
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace hostile {

enum class verdict : int { worked = 0, denied = 10, untried = 20 };

struct result {
    verdict what;
    std::string words;
};

using arguments = std::span<const char* const>;

struct attack {
    std::string_view usage; // the name, then what it takes
    std::string_view tries;
    result (*run)(arguments);
};

inline auto worked(std::string words = {}) -> result { return {verdict::worked, std::move(words)}; }
inline auto untried(std::string words) -> result { return {verdict::untried, std::move(words)}; }
inline auto denied(std::string words) -> result { return {verdict::denied, std::move(words)}; }
inline auto denied(int error = errno) -> result {
    const char* const name = ::strerrorname_np(error);
    return {verdict::denied, name == nullptr ? std::to_string(error) : name};
}
// A system call that is the whole attack.
inline auto judge(long returned) -> result { return returned < 0 ? denied() : worked(); }

auto file_attacks() -> std::span<const attack>;
auto mode_attacks() -> std::span<const attack>;
auto mount_attacks() -> std::span<const attack>;
auto process_attacks() -> std::span<const attack>;
auto group_attacks() -> std::span<const attack>;
auto privilege_attacks() -> std::span<const attack>;
auto socket_attacks() -> std::span<const attack>;
auto syscall_attacks() -> std::span<const attack>;
auto descriptor_attacks() -> std::span<const attack>;
auto terminal_attacks() -> std::span<const attack>;

} // namespace hostile
