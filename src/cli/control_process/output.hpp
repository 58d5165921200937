// What glove-control tells, and the status that it ends with.
#pragma once
#include "cli/report_error.hpp"
#include "cli/values.hpp"
#include "cli/verbs.hpp"
#include <glove/base/error.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace glove::cli {

inline constexpr int done = 0;
inline constexpr int answer_is_no = 1;

// Standard output takes all of it, or it is an error: what is printed may be the only copy.
[[nodiscard]] auto print(std::string_view text) -> result<>;
// A remark for people, on standard error.
void note(std::string_view text);

// One action of a verb: what runs it, and what it takes.
template<class Words> struct action_row {
    std::string_view name;
    auto (*run)(const Words&) -> result<int>;
    std::size_t least_words, most_words;
    std::string_view words;                // as they are called in a complaint
    std::vector<std::string_view> options; // beside those that every action takes
};

[[nodiscard]] auto wrong_usage(std::string what, std::string usage) -> std::unexpected<error>;
// Options that would do nothing are mistakes.
[[nodiscard]] auto check_options(const CLI::App& app, std::string_view verb,
                                 std::string_view action,
                                 const std::vector<std::string_view>& all_take,
                                 const std::vector<std::string_view>& it_takes) -> result<>;

// Status of an outcome; the error is told.
[[nodiscard]] auto status_of(const result<int>& outcome) -> int;

template<class Words>
[[nodiscard]] auto act(const CLI::App& app, std::string_view verb, const char* usage,
                       const std::vector<action_row<Words>>& rows, const Words& words,
                       const std::vector<std::string_view>& all_take) -> result<int> {
    for (const auto& row : rows) {
        if (row.name != words.action) continue;
        GLOVE_CHECK(check_options(app, verb, row.name, all_take, row.options));
        if (words.words.size() < row.least_words || words.words.size() > row.most_words)
            return wrong_usage("glove " + std::string{verb} + " " + words.action + " takes " +
                                   std::string{row.words},
                               usage);
        return row.run(words);
    }
    if (words.action.empty()) return wrong_usage("no action was given", usage);
    return wrong_usage("'" + words.action + "' is not an action of glove " + std::string{verb},
                       usage);
}

} // namespace glove::cli
