// The receipts behind an anchor, page by page.
#pragma once
#include "cli/control_process/service.hpp"
#include <functional>
#include <glove/control/receipt.hpp>

namespace glove::cli {

[[nodiscard]] auto fetch_receipts(const session_words& words) -> result<int>;
[[nodiscard]] auto acknowledge(const session_words& words) -> result<int>;

} // namespace glove::cli
