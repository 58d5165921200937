// The user namespace that this process is in, as its maps say.
#pragma once
#include <cstdint>
#include <string_view>
#include <sys/types.h>

namespace glove::sys {

// The number that an id of a namespace with this map has one namespace further out: itself when the
// map does not have it, or cannot be read.
[[nodiscard]] auto outer_id(std::string_view map, std::uint32_t id) noexcept -> std::uint32_t;

// Of this process's namespace. The same user and group, inside as outside: what is kept on a disk
// and compared later must not depend on where it was looked at from.
[[nodiscard]] auto outer_user(::uid_t inside) -> ::uid_t;
[[nodiscard]] auto outer_group(::gid_t inside) -> ::gid_t;

} // namespace glove::sys
