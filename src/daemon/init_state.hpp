// The first start: the directories, the audit key and a configuration, all of the caller alone.
//
// Guarantees: nothing is ever written over. What is there already is kept when it is what would
// have been made, and is an error that says the mend when it is not; a configuration that differs
// is found before anything is made.
#pragma once
#include <glove/base/error.hpp>
#include <glove/sys/entropy.hpp>
#include <optional>
#include <string>
#include <vector>

namespace glove::daemon {

struct made_thing {
    bool is_new = false; // else it was there
    std::string path;
};

// Steps: init.directory, init.key, init.config.
[[nodiscard]] auto init_state(const std::optional<std::string>& config_file, sys::entropy& random)
    -> result<std::vector<made_thing>>;

} // namespace glove::daemon
