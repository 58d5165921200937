#include "cli/report_error.hpp"
#include <cstdio>
#include <glove/base/error_text.hpp>

namespace glove::cli {

void report_error(const error& problem) { (void)std::fputs(error_text(problem).c_str(), stderr); }

} // namespace glove::cli
