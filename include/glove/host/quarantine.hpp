// `glove quarantine`: what runs left at protected places, listed or moved away.
//
// Guarantees: everything is reached by descriptor below the grant of the run, and moved, never
// opened as what it claims to be; nothing that was already there is replaced.
#pragma once
#include <functional>
#include <glove/base/error.hpp>
#include <string>

namespace glove::host {

struct quarantine_request {
    std::string state; // Glove's own directory
    std::string run;   // empty: list
    std::function<void(const std::string&)> print;
    std::function<void(const error&)> tell; // what could not be read or moved
};

// Whether all that was found could be moved, or listed.
[[nodiscard]] auto quarantine(const quarantine_request& request) -> result<bool>;

} // namespace glove::host
