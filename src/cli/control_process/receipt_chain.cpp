// One page at a time; the next one begins where the last was found to end.
#include "cli/control_process/receipt_chain.hpp"
#include "cli/control_process/anchor_file.hpp"
#include <algorithm>
#include <glove/wire/json.hpp>

namespace glove::cli {

using control::audit_key;
using control::receipt_anchor;
using control::receipt_page;
namespace {

// Both kinds share one sequence.
[[nodiscard]] auto in_order(const receipt_page& page) -> std::vector<any_receipt> {
    std::vector<any_receipt> out;
    for (const auto& each : page.envelopes) out.emplace_back(&each);
    for (const auto& each : page.refinement_envelopes) out.emplace_back(&each);
    std::ranges::sort(out, {}, sequence_of);
    return out;
}

// Without a key only that each says that it follows the one before.
template<class Envelope>
[[nodiscard]] auto next_anchor(const Envelope& envelope, const audit_key* key,
                               const receipt_anchor& after) -> result<receipt_anchor> {
    if (key != nullptr) return control::verify(envelope, *key, after);
    if (envelope.sequence != after.sequence + 1 || envelope.key_id != after.key_id ||
        envelope.previous_hmac != after.head_hmac)
        return fail(errc::corrupt, "receipts.order",
                    "receipt " + std::to_string(envelope.sequence) + " does not follow receipt " +
                        std::to_string(after.sequence));
    return receipt_anchor{envelope.key_id, envelope.sequence, envelope.this_hmac};
}

// The key of the service, when nobody here holds it.
[[nodiscard]] auto told_key_id(const std::string& capabilities) -> result<std::string> {
    GLOVE_TRY(const auto tree, wire::json::read(capabilities));
    const auto* const audit = tree.find("receipt_audit");
    const auto* const id = audit == nullptr ? nullptr : audit->find("key_id");
    if (id == nullptr || id->as_string() == nullptr)
        return fail(errc::corrupt, "client.reply", "it has no receipt_audit.key_id");
    return *id->as_string();
}

} // namespace

auto sequence_of(const any_receipt& one) -> std::uint64_t {
    return std::visit([](const auto* envelope) { return envelope->sequence; }, one);
}

auto resource_of(const any_receipt& one) -> const control::resource_receipt& {
    if (const auto* const* plain = std::get_if<0>(&one)) return (*plain)->receipt;
    return std::get<1>(one)->receipt.resource;
}

auto chain_walk::next(std::uint64_t limit) -> result<or_refused<chain_page>> {
    GLOVE_TRY(const auto answer,
              asks_.ask("verify_audit_chain", R"({"sage_anchor":)" + anchor_json(at_) +
                                                  R"(,"limit":)" + std::to_string(limit) + "}"));
    if (!answer) return or_refused<chain_page>{std::unexpected(answer.error())};
    auto page = control::decode_receipt_page(*answer);
    if (!page) return strange_answer(page.error().detail);
    chain_page out{*std::move(page), {}, at_};
    out.receipts = in_order(out.page);
    if (out.receipts.empty() && out.page.has_more)
        return fail(errc::corrupt, "client.reply",
                    "a page without receipts says that there are more");
    for (const auto& one : out.receipts) {
        GLOVE_TRY(out.after,
                  std::visit([&](const auto* e) { return next_anchor(*e, key_, out.after); }, one));
    }
    if (!out.page.has_more && out.after != out.page.local_anchor)
        return fail(
            errc::corrupt, "receipts.head",
            "the service says that receipt " + std::to_string(out.page.local_anchor.sequence) +
                " is its last, and the last that it gave is " + std::to_string(out.after.sequence));
    at_ = out.after;
    return or_refused<chain_page>{std::move(out)};
}

auto beginning(const service& asks, const std::string& anchor_file, const audit_key* key)
    -> result<or_refused<receipt_anchor>> {
    GLOVE_TRY(auto kept, read_anchor(anchor_file));
    receipt_anchor out;
    if (kept) {
        out = *std::move(kept);
    } else if (key != nullptr) {
        out.key_id = key->id();
    } else {
        GLOVE_TRY(const auto answer, asks.ask("capabilities"));
        if (!answer) return or_refused<receipt_anchor>{std::unexpected(answer.error())};
        auto id = told_key_id(*answer);
        if (!id) return strange_answer(id.error().detail);
        out.key_id = *std::move(id);
    }
    if (key != nullptr && out.key_id != key->id())
        return fail(errc::conflict, "anchor.key", anchor_file + " is of another audit key",
                    "name another file with --anchor");
    return or_refused<receipt_anchor>{std::move(out)};
}

auto anchor_file_of(const session_words& words) -> result<std::string> {
    if (words.anchor.empty()) return default_anchor_file();
    return words.anchor;
}

} // namespace glove::cli
