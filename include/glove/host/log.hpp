// `glove log`: audit files as a table, or their matching lines as they are.
//
// Guarantees: it only reads; what it prints of a file cannot draw on a terminal; a line that cannot
// be read is told with its file and number and hides no other.
#pragma once
#include <functional>
#include <glove/audit/rows.hpp>
#include <glove/audit/table.hpp>
#include <glove/base/error.hpp>
#include <string>
#include <vector>

namespace glove::host {

inline constexpr std::size_t newest_runs = 20; // shown when nothing else was asked for

struct log_request {
    std::vector<std::string> files; // empty: the newest of `directory`
    std::string directory;          // of the records of runs
    audit::row_filter filter;
    std::optional<std::size_t> limit; // the last so many rows
    bool follow = false;
    bool json = false;
    audit::table_style style;
    std::function<void(const error&)> tell;       // what could not be read
    std::function<void(const std::string&)> note; // what is good to know
};

// Whether everything could be read. An error is one of printing.
[[nodiscard]] auto show_log(const log_request& request) -> result<bool>;

} // namespace glove::host
