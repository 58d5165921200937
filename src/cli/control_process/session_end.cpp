// A receipt is of a session when both its name and the controller's digest are.
#include "cli/control_process/session_end.hpp"
#include <algorithm>

namespace glove::cli {

auto status_of_end(control::termination_cause cause, std::optional<std::uint32_t> exit_code)
    -> int {
    constexpr std::uint32_t most = 255;
    if (cause == control::termination_cause::exited)
        return static_cast<int>(std::min(exit_code.value_or(most), most));
    const auto* const row = std::ranges::find(end_statuses, cause, &end_status::cause);
    return row == end_statuses.end() ? static_cast<int>(most) : row->status;
}

auto find_end(const service& asks, const control::session_view& of, control::receipt_anchor from)
    -> result<or_refused<std::optional<found_end>>> {
    chain_walk walk{asks, nullptr, std::move(from)};
    std::optional<found_end> out;
    for (bool more = true; more;) {
        GLOVE_TRY(const auto page, walk.next());
        if (!page) return or_refused<std::optional<found_end>>{std::unexpected(page.error())};
        for (const auto& one : page->receipts) {
            const bool is_its = std::visit(
                [&](const auto* e) {
                    return e->session_id == of.session_id &&
                           e->controller_plan_digest == of.controller_plan_digest;
                },
                one);
            if (!is_its) continue;
            const auto& receipt = resource_of(one);
            out = found_end{receipt.cause, receipt.exit_code};
        }
        more = page->page.has_more;
    }
    return or_refused<std::optional<found_end>>{out};
}

} // namespace glove::cli
