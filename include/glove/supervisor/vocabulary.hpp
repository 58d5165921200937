// The words that plans, policies and exposures share.
//
// The numbers of `access_kind`, `materialization_kind` and `cleanup_kind` are part of digests: they
// never change.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace glove::supervisor {

enum class access_kind : std::uint8_t { read, ephemeral_write, retained_write, direct_write };
enum class materialization_kind : std::uint8_t { bind, snapshot, git_worktree, copy };
enum class cleanup_kind : std::uint8_t { retain, remove };
enum class creation_kind : std::uint8_t { never, empty_directory, git_worktree };
enum class backend_kind : std::uint8_t {
    linux_production,
    remote_linux_container,
    apple_container,
    macos_experimental,
};

// As they stand on the wire.
[[nodiscard]] auto to_string(access_kind of) noexcept -> std::string_view;
[[nodiscard]] auto to_string(materialization_kind of) noexcept -> std::string_view;
[[nodiscard]] auto to_string(cleanup_kind of) noexcept -> std::string_view;
[[nodiscard]] auto to_string(creation_kind of) noexcept -> std::string_view;
[[nodiscard]] auto to_string(backend_kind of) noexcept -> std::string_view;

[[nodiscard]] constexpr auto writes(access_kind of) noexcept -> bool {
    return of != access_kind::read;
}

// What one session may use. Every bound is set; two plans with the same bounds are of one profile.
struct resource_limits {
    std::uint64_t cpu_time_ms = 0;
    std::uint64_t memory_bytes = 0;
    std::uint32_t pids = 0;
    std::uint64_t wall_time_ms = 0;
    std::uint64_t disk_bytes = 0;
    std::uint64_t terminal_output_bytes = 0;
    auto operator==(const resource_limits&) const -> bool = default;
};

} // namespace glove::supervisor
