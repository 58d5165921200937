#include "cli/report_error.hpp"
#include <cstdio>
#include <cstring>
#include <glove/base/text.hpp>

namespace glove::cli {

void report_error(const error& problem) {
    std::string text = "error[";
    text.append(to_string(problem.code)).append("]: ").append(problem.step);
    if (!problem.detail.empty()) text.append(": ").append(printable(problem.detail));
    if (problem.os != 0) text.append(": ").append(std::strerror(problem.os));
    text += '\n';
    if (!problem.remedy.empty())
        text.append("Try: ").append(printable(problem.remedy)).append("\n");
    (void)std::fputs(text.c_str(), stderr);
}

} // namespace glove::cli
