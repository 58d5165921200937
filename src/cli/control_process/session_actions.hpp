// The actions of `glove session`, by family.
#pragma once
#include "cli/control_process/service.hpp"
#include "cli/control_words.hpp"
#include <glove/base/error.hpp>

namespace glove::cli {

// Plans and records.
[[nodiscard]] auto validate_plan(const session_words& words) -> result<int>;
[[nodiscard]] auto create_session(const session_words& words) -> result<int>;
[[nodiscard]] auto list_sessions(const session_words& words) -> result<int>;
[[nodiscard]] auto session_status(const session_words& words) -> result<int>;
// Its life.
[[nodiscard]] auto start_session(const session_words& words) -> result<int>;
[[nodiscard]] auto stop_session(const session_words& words) -> result<int>;
[[nodiscard]] auto cleanup_session(const session_words& words) -> result<int>;
// Its terminal.
[[nodiscard]] auto attach_session(const session_words& words) -> result<int>;
[[nodiscard]] auto send_input(const session_words& words) -> result<int>;
[[nodiscard]] auto resize_terminal(const session_words& words) -> result<int>;
[[nodiscard]] auto signal_session(const session_words& words) -> result<int>;
// What it left.
[[nodiscard]] auto show_changes(const session_words& words) -> result<int>;

} // namespace glove::cli
