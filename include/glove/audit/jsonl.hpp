// The local activity record: one JSON object a line, in a file of the owner alone.
//
// Guarantees: a line is appended whole under a lock, or the append fails; a file that is a link,
// has a second name, belongs to another or can be read by others is refused. It does not protect
// the file from a host process of the same user.
#pragma once
#include <glove/base/audit.hpp>
#include <glove/sys/fd.hpp>
#include <string>

namespace glove::audit {

enum class durability : std::uint8_t {
    process, // survives a crash of Glove
    power,   // survives a power cut: each line is synced
};

[[nodiscard]] auto to_line(const event& what) -> std::string; // ends in a newline

class jsonl_sink final : public sink {
public:
    // `path` is absolute; its directory is made (0700) when it does not exist.
    [[nodiscard]] static auto open(const std::string& path, durability how) -> result<jsonl_sink>;
    [[nodiscard]] auto append(const event& what) -> result<> override;

private:
    jsonl_sink(sys::unique_fd file, durability how) : file_{std::move(file)}, how_{how} {}
    sys::unique_fd file_;
    durability how_;
};

} // namespace glove::audit
