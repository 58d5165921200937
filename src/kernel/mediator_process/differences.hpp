// What differs between two JSON values, a place a line, for people.
#pragma once
#include <glove/wire/json.hpp>
#include <string>
#include <vector>

namespace glove::kernel {

struct difference {
    std::string place;      // /inputSchema/properties/path/description
    std::string old, fresh; // JSON texts; empty: not there
};

// At most `most` of them.
[[nodiscard]] auto differences(const wire::json::value& old, const wire::json::value& fresh,
                               std::size_t most = 100) -> std::vector<difference>;

} // namespace glove::kernel
