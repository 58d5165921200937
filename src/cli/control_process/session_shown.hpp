// What `glove session` shows of a session, and how its members go into a request.
#pragma once
#include "cli/control_process/service.hpp"
#include <glove/control/session_record.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace glove::cli {

// Milliseconds since 1970 as a date; "never" when it is too far for one.
[[nodiscard]] auto date_of(std::uint64_t ms) -> std::string;
[[nodiscard]] auto table_of(const std::vector<control::session_view>& all) -> std::string;
// {"session_id":NAME}
[[nodiscard]] auto named(std::string_view session_id) -> std::string;

// The view of a session that the service gave.
using viewed = std::expected<control::session_view, control::remote_error>;
[[nodiscard]] auto look_at(const service& asks, std::string_view session_id) -> result<viewed>;
// Prints the one that the service gave, or tells what it said instead; the status.
[[nodiscard]] auto show_session(const result<control::remote_answer>& answer,
                                std::string_view method, bool as_json) -> result<int>;

} // namespace glove::cli
