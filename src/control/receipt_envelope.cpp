// Envelopes of both kinds and pages of them: their texts, and what makes one believed.
#include "control/refinement_fields.hpp"
#include "supervisor/refusal.hpp"
#include <glove/control/protocol.hpp>
#include <glove/journal/format.hpp>
#include <glove/wire/digest.hpp>
#include <limits>

namespace glove::control {

using supervisor::element_of;
using supervisor::member_of;
using supervisor::refuse;

// A page of the longest records fits into a frame, with the envelope of the protocol around it.
static_assert(most_receipts_of_a_page * (journal::receipts.most.record_bytes + 1) + 4096 <=
              most_frame_bytes);

namespace {

[[nodiscard]] auto domain_of(const resource_receipt&) -> std::string_view {
    return "glove.receipt-audit-envelope";
}
[[nodiscard]] auto domain_of(const refinement_receipt&) -> std::string_view {
    return "glove.refinement-receipt-audit-envelope";
}

template<class Receipt> [[nodiscard]] auto hmac_of(const envelope_of<Receipt>& of,
                                                   const audit_key& key) -> result<std::string> {
    wire::digest_encoder out;
    out.str(domain_of(of.receipt)).u8(1).u64(of.sequence).str(of.key_id).str(of.session_id);
    out.str(of.controller_plan_digest).str(of.receipt_digest).str(of.previous_hmac);
    GLOVE_TRY(const auto bytes, out.bytes());
    return key.authenticate(bytes);
}

template<class Receipt> [[nodiscard]] auto check_envelope(const envelope_of<Receipt>& of,
                                                          const wire::place& at) -> result<> {
    GLOVE_CHECK(check_rules(of.receipt, member_of(at, "receipt")));
    GLOVE_TRY(const auto digest, receipt_digest(of.receipt));
    if (!wire::equal_in_constant_time(digest, of.receipt_digest))
        return refuse(errc::corrupt, "receipt.digest", member_of(at, "receipt_digest"),
                      "is not that of the receipt");
    return {};
}

template<class Receipt, std::size_t N>
[[nodiscard]] auto verified(const envelope_of<Receipt>& next,
                            const wire::fields<envelope_of<Receipt>, N>& rows, const audit_key& key,
                            const receipt_anchor& after) -> result<receipt_anchor> {
    const wire::place root;
    GLOVE_CHECK(wire::check_object(next, rows, root));
    GLOVE_CHECK(check_envelope(next, root));
    if (next.key_id != key.id() || after.key_id != key.id())
        return refuse(errc::conflict, "receipt.key", member_of(root, "key_id"),
                      "is that of another key");
    if (after.sequence == std::numeric_limits<std::uint64_t>::max() ||
        next.sequence != after.sequence + 1)
        return refuse(errc::corrupt, "receipt.chain", member_of(root, "sequence"),
                      "is not the next one");
    if (!wire::equal_in_constant_time(next.previous_hmac, after.head_hmac))
        return refuse(errc::corrupt, "receipt.chain", member_of(root, "previous_hmac"),
                      "is not that of the anchor");
    GLOVE_TRY(const auto own, hmac_of(next, key));
    if (!wire::equal_in_constant_time(own, next.this_hmac))
        return refuse(errc::corrupt, "receipt.hmac", member_of(root, "this_hmac"),
                      "is not that of the envelope");
    return receipt_anchor{next.key_id, next.sequence, next.this_hmac};
}

template<class Receipt> [[nodiscard]] auto check_list(const std::vector<envelope_of<Receipt>>& list,
                                                      const receipt_page& page,
                                                      const wire::place& at) -> result<> {
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const auto here = element_of(at, i);
        GLOVE_CHECK(check_envelope(list[i], here));
        if (list[i].sequence <= last || list[i].sequence > page.local_anchor.sequence)
            return refuse(errc::invalid_input, "receipt.order", member_of(here, "sequence"),
                          "is not between the one before it and the head");
        if (list[i].key_id != page.local_anchor.key_id)
            return refuse(errc::invalid_input, "receipt.key", member_of(here, "key_id"),
                          "is not that of the head");
        last = list[i].sequence;
    }
    return {};
}

} // namespace

auto check_rules(const resource_envelope& of, const wire::place& at) -> result<> {
    return check_envelope(of, at);
}
auto check_rules(const refinement_envelope& of, const wire::place& at) -> result<> {
    return check_envelope(of, at);
}

auto encode(const resource_envelope& what) -> result<std::string> {
    return checked_text(what, resource_envelope_fields);
}
auto encode(const refinement_envelope& what) -> result<std::string> {
    return checked_text(what, refinement_envelope_fields);
}
auto decode_resource_envelope(std::string_view text) -> result<resource_envelope> {
    return checked_value(text, resource_envelope_fields);
}
auto decode_refinement_envelope(std::string_view text) -> result<refinement_envelope> {
    return checked_value(text, refinement_envelope_fields);
}

auto envelope_hmac(const resource_envelope& of, const audit_key& key) -> result<std::string> {
    return hmac_of(of, key);
}
auto envelope_hmac(const refinement_envelope& of, const audit_key& key) -> result<std::string> {
    return hmac_of(of, key);
}

auto verify(const resource_envelope& next, const audit_key& key, const receipt_anchor& after)
    -> result<receipt_anchor> {
    return verified(next, resource_envelope_fields, key, after);
}
auto verify(const refinement_envelope& next, const audit_key& key, const receipt_anchor& after)
    -> result<receipt_anchor> {
    return verified(next, refinement_envelope_fields, key, after);
}

// Both lists merge into one run of the chain without a gap.
auto check_rules(const receipt_page& of, const wire::place& at) -> result<> {
    const auto resources = member_of(at, "envelopes");
    const auto refinements = member_of(at, "refinement_envelopes");
    GLOVE_CHECK(check_list(of.envelopes, of, resources));
    GLOVE_CHECK(check_list(of.refinement_envelopes, of, refinements));
    const auto count = of.envelopes.size() + of.refinement_envelopes.size();
    if (count > most_receipts_of_a_page)
        return refuse(errc::limit_exceeded, "receipt.page", at, "holds more than 15 receipts");
    std::vector<std::uint64_t> all;
    for (const auto& e : of.envelopes) all.push_back(e.sequence);
    for (const auto& e : of.refinement_envelopes) all.push_back(e.sequence);
    std::ranges::sort(all);
    for (std::size_t i = 1; i < all.size(); ++i)
        if (all[i] != all[i - 1] + 1)
            return refuse(errc::invalid_input, "receipt.page", at,
                          "holds a sequence twice, or lacks one");
    if (of.has_more && (all.empty() || all.back() >= of.local_anchor.sequence))
        return refuse(errc::invalid_input, "receipt.page", member_of(at, "has_more"),
                      "is not what the head says");
    if (!of.has_more && !all.empty() && all.back() != of.local_anchor.sequence)
        return refuse(errc::invalid_input, "receipt.page", member_of(at, "has_more"),
                      "is not what the head says");
    return {};
}

auto encode(const receipt_page& what) -> result<std::string> {
    return checked_text(what, page_fields);
}
auto decode_receipt_page(std::string_view text) -> result<receipt_page> {
    return checked_value(text, page_fields);
}

} // namespace glove::control
