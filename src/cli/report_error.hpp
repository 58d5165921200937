// How every failure of Glove itself looks on stderr.
#pragma once
#include <glove/base/error.hpp>

namespace glove::cli {

// error[CODE]: what failed, with the value
// Try: the mend, when it is certain
void report_error(const error& problem);

} // namespace glove::cli
