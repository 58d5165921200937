// The durable chain of receipts, and how far the controller has it.
//
// Guarantees: a receipt is answered for only when it is on the disk; one that was reserved for
// always fits, however large it may legally be; pages hold whole records in order; nothing may be
// started before a controller has shown that its copy of the chain is ours.
//
// Nothing is deleted by an acknowledgement. A file that is full begins anew with every record that
// was not acknowledged and, in a quarter of it, the newest that were; the chain goes on. When that
// gives no room, launches are refused and no receipt is lost.
//
// A write that leaves it unclear what is on the disk ends reconciliation; the next page opens the
// journal again, vouched for by its anchor, and rooms that are held stay held.
//
// Safe for use by several threads.
#pragma once
#include <cstdint>
#include <functional>
#include <glove/control/answer.hpp>
#include <glove/control/receipt.hpp>
#include <glove/control/refinement_receipt.hpp>
#include <glove/control/session_registry.hpp>
#include <glove/journal/storage.hpp>
#include <glove/supervisor/plan.hpp>
#include <glove/supervisor/session_policy.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glove::control {

inline constexpr std::size_t most_receipts_of_a_page = 15;

struct receipt_page {
    std::uint8_t schema_version = 1;
    std::vector<resource_envelope> envelopes;
    std::vector<refinement_envelope> refinement_envelopes;
    bool has_more = false;
    receipt_anchor local_anchor;
};
[[nodiscard]] auto encode(const receipt_page& what) -> result<std::string>;
[[nodiscard]] auto decode_receipt_page(std::string_view text) -> result<receipt_page>;

// How many bytes the longest legal receipt of the plan takes on record. Steps: receipt.size when no
// record may be so long, receipt.target.
[[nodiscard]] auto longest_receipt(const supervisor::session_plan& plan,
                                   const supervisor::session_rules& rules) -> result<std::size_t>;

class receipt_room;

class receipt_journal {
public:
    using make_storage = std::function<result<std::unique_ptr<journal::storage>>()>;

    // Nothing is opened yet: the first page does, because only a controller's anchor may vouch for
    // a chain, or for the beginning of a new one.
    // `file_bytes` as in journal::settings.
    receipt_journal(make_storage store, audit_key key, std::uint64_t file_bytes = 0);
    ~receipt_journal();
    [[nodiscard]] auto key_id() const -> std::string;

    // At most 15 records after the anchor, which must be a place of this chain that is still here.
    [[nodiscard]] auto page(const receipt_anchor& after, std::size_t limit) -> answer<receipt_page>;
    // Exactly the head.
    [[nodiscard]] auto acknowledge(const receipt_anchor& head) -> answer<receipt_anchor>;
    // Whether a controller has the whole chain, so that sessions may be started.
    [[nodiscard]] auto reconciled() const -> bool;

    // Before a launch: so many bytes as the longest legal receipt of this plan takes. invalid_plan
    // when no record may be so long, session_capacity when there is no room.
    [[nodiscard]] auto reserve(const supervisor::session_plan& plan,
                               const supervisor::session_rules& rules) -> answer<receipt_room>;
    // After a refusal the room is still the caller's, who may try again: the same receipt of the
    // same session is put on record once.
    [[nodiscard]] auto append(std::string_view session_id, std::string_view controller_plan_digest,
                              resource_receipt what, receipt_room&& room)
        -> answer<terminal_envelope>;
    [[nodiscard]] auto append(std::string_view session_id, std::string_view controller_plan_digest,
                              refinement_receipt what, receipt_room&& room)
        -> answer<terminal_envelope>;
    // The receipt of a session that was put on record, for recovery. Read from the file: an error
    // does not mean that there is none.
    [[nodiscard]] auto find(std::string_view session_id, std::string_view controller_plan_digest,
                            std::string_view profile_digest) const
        -> result<std::optional<terminal_envelope>>;

private:
    struct state;
    friend class receipt_room;
    template<class Receipt>
    [[nodiscard]] auto append_any(envelope_of<Receipt> what, receipt_room& room)
        -> answer<terminal_envelope>;
    std::shared_ptr<state> state_; // with the rooms
};

// Room for one receipt of one session; given back when it is dropped, also after the journal is.
class receipt_room {
public:
    receipt_room(receipt_room&&) noexcept;
    auto operator=(receipt_room&&) noexcept -> receipt_room&;
    ~receipt_room();

private:
    friend class receipt_journal;
    struct held;
    explicit receipt_room(std::unique_ptr<held> owned);
    std::unique_ptr<held> held_;
};

} // namespace glove::control
