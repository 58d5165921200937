// What the operator's flags name, looked up, pinned and checked.
//
// Never widens a grant: a path that cannot be granted exactly as asked is refused with its flag.
#pragma once
#include "container/mount_table.hpp"
#include <expected>
#include <glove/container/plan.hpp>

namespace glove::container {

struct located_grant {
    std::string_view flag;
    std::string given;
    access mode;
    resolved_path where;
    sys::file_identity identity;
    sys::unique_fd pin;
    bool for_program = false;
    bool is_shown = false; // by another grant or by the system: only its links count
};

// One flag's path. Missing paths and loops name the flag.
[[nodiscard]] auto locate(std::string_view flag, const std::string& given, access mode)
    -> result<located_grant>;

// All grants of a profile in tree order. Refused are: the whole file system, places that Glove
// provides, overlaps, sockets, FIFOs and devices, mounts of the kernel's own file systems, and
// whatever would show Glove's own files by any name.
[[nodiscard]] auto locate_grants(const profile& wish, const mount_table& mounts)
    -> result<std::vector<located_grant>>;

// "FLAG PATH: why", for refusals about one flag.
[[nodiscard]] auto refuse(errc code, std::string_view flag, std::string_view path,
                          std::string_view why, std::string remedy = {}) -> std::unexpected<error>;

} // namespace glove::container
