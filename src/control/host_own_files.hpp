// Glove's own files, which no session gets to see: keys, records, leases, the objects of the
// library and the sources of secrets.
//
// Guarantees: what is, holds or lies in one of them is refused, under whatever name it is granted:
// identities of descriptors are compared, up to the root, as well as names.
#pragma once
#include "container/control_files.hpp"
#include <glove/base/error.hpp>
#include <glove/container/profile.hpp>
#include <glove/sys/files.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace glove::control {

class own_files {
public:
    // As they are now; what is not there counts by its name.
    [[nodiscard]] static auto locate(const std::vector<std::string>& paths) -> result<own_files>;

    // `what` names the grant in an error. Step: prepare.own_files.
    [[nodiscard]] auto check_apart(sys::fd_ref pin, container::access mode,
                                   std::string_view what) const -> result<>;

private:
    struct place {
        std::string path;
        sys::file_identity identity;
    };
    container::control_files files_;
    std::vector<place> there_;
};

} // namespace glove::control
