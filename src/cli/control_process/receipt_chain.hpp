// The chain of receipts as the service gives it, page by page.
//
// Guarantees: a page is given only when it is whole: each receipt follows the one before, and with
// a key its digest and its HMAC were computed again; a chain that ends before what the service
// calls its head is an error. Nothing here moves an anchor.
#pragma once
#include "cli/control_process/service.hpp"
#include <glove/control/receipt_journal.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace glove::cli {

// Of either kind; both share one sequence.
using any_receipt =
    std::variant<const control::resource_envelope*, const control::refinement_envelope*>;
[[nodiscard]] auto sequence_of(const any_receipt& one) -> std::uint64_t;
[[nodiscard]] auto resource_of(const any_receipt& one) -> const control::resource_receipt&;

struct chain_page {
    control::receipt_page page;        // holds what `receipts` point to
    std::vector<any_receipt> receipts; // in their order
    control::receipt_anchor after;     // the place behind the last of them
};
template<class T> using or_refused = std::expected<T, control::remote_error>;

class chain_walk {
public:
    // Without a key nothing but the order is looked at.
    chain_walk(const service& asks, const control::audit_key* key, control::receipt_anchor from)
        : asks_{asks}, key_{key}, at_{std::move(from)} {}
    // At most `limit` receipts behind the last page.
    [[nodiscard]] auto next(std::uint64_t limit = 1000) -> result<or_refused<chain_page>>;
    [[nodiscard]] auto at() const noexcept -> const control::receipt_anchor& { return at_; }

private:
    const service& asks_;
    const control::audit_key* key_;
    control::receipt_anchor at_;
};

// Where to begin: the anchor that is kept in a file, or else the beginning of this service's chain.
[[nodiscard]] auto beginning(const service& asks, const std::string& anchor_file,
                             const control::audit_key* key)
    -> result<or_refused<control::receipt_anchor>>;

// The file that the words name, or the one of this user.
[[nodiscard]] auto anchor_file_of(const session_words& words) -> result<std::string>;

} // namespace glove::cli
