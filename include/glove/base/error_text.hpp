// How every failure of Glove itself looks to people:
//
//   error[CODE]: what failed, with the value
//   Try: the mend, when it is certain
#pragma once
#include <cstring>
#include <glove/base/error.hpp>
#include <glove/base/text.hpp>
#include <string>

namespace glove {

// Ends in a newline.
[[nodiscard]] inline auto error_text(const error& problem) -> std::string {
    std::string text = "error[";
    text.append(to_string(problem.code)).append("]: ").append(problem.step);
    if (!problem.detail.empty()) text.append(": ").append(printable(problem.detail));
    if (problem.os != 0) text.append(": ").append(std::strerror(problem.os));
    text += '\n';
    if (!problem.remedy.empty())
        text.append("Try: ").append(printable(problem.remedy)).append("\n");
    return text;
}

} // namespace glove
