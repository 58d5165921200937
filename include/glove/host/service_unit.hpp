// The definition of the per-user service: the text that a service manager reads.
//
// Guarantees: a text is made of one template and the names of files, which can end no quote, expand
// nothing and begin no further line; there is no way to put another program, option, variable or
// label into it. Nothing here looks at the machine.
//
// Error steps: service.path, service.text, service.version.
#pragma once
#include <cstddef>
#include <cstdint>
#include <glove/base/error.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace glove::host {

inline constexpr std::string_view service_unit_name = "sage-gloved.service";
inline constexpr std::string_view service_label = "org.sage-protocol.gloved"; // of launchd
inline constexpr std::string_view service_subgroup = "glove-host";
inline constexpr std::size_t most_unit_bytes = 64UL << 10;
// From this version on systemd itself starts a service in a group below the one that it delegates.
inline constexpr std::uint64_t subgroup_systemd = 254;

struct service_programs {
    std::string gloved;
    std::string config;
    // Of an older systemd: the program that goes into the subgroup before all else. Empty: none.
    std::string into_subgroup;
    auto operator==(const service_programs&) const -> bool = default;
};

// An absolute path in its shortest form, UTF-8, without control characters and without " \ $ %.
[[nodiscard]] auto check_unit_path(std::string_view path) -> result<>;

[[nodiscard]] auto systemd_unit_text(const service_programs& of) -> result<std::string>;
// The configuration of a text that was made here; nothing of any other text.
[[nodiscard]] auto config_of_unit(std::string_view text) -> std::optional<std::string>;

// The definition for macOS, where gloved needs no namespaces and no groups.
[[nodiscard]] auto launchd_text(const service_programs& of) -> result<std::string>;

// "257.13-1~deb13u1" is 257.
[[nodiscard]] auto systemd_version_of(std::string_view said) -> result<std::uint64_t>;

} // namespace glove::host
