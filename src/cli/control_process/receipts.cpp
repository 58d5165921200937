// What was printed and verified moves the anchor, page by page; nothing else does. So a receipt
// that somebody did not get is fetched again.
#include "cli/control_process/receipts.hpp"
#include "cli/columns.hpp"
#include "cli/control_process/anchor_file.hpp"
#include <algorithm>
#include <glove/base/text.hpp>
#include <glove/base/times.hpp>
#include <glove/control/receipt_journal.hpp>
#include <glove/wire/json.hpp>
#include <variant>

namespace glove::cli {

namespace {

using control::audit_key;
using control::receipt_anchor;
using control::receipt_page;
using either = std::variant<const control::resource_envelope*, const control::refinement_envelope*>;

[[nodiscard]] auto sequence_of(const either& one) -> std::uint64_t {
    return std::visit([](const auto* envelope) { return envelope->sequence; }, one);
}

// Both kinds share one sequence.
[[nodiscard]] auto in_order(const receipt_page& page) -> std::vector<either> {
    std::vector<either> out;
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

[[nodiscard]] auto resource_of(const either& one) -> const control::resource_receipt& {
    if (const auto* const* plain = std::get_if<0>(&one)) return (*plain)->receipt;
    return std::get<1>(one)->receipt.resource;
}

using line = std::array<std::string, 6>;
[[nodiscard]] auto line_of(const either& one) -> line {
    const auto& receipt = resource_of(one);
    const auto ended = std::min<std::uint64_t>(receipt.finished_at_ms, 9'000'000'000'000);
    return {std::to_string(sequence_of(one)),
            std::visit([](const auto* e) { return printable(e->session_id); }, one),
            utc_text(static_cast<std::int64_t>(ended) * 1'000'000),
            std::string{to_string(receipt.cause)},
            receipt.exit_code ? std::to_string(*receipt.exit_code) : "-",
            one.index() == 0 ? "session" : "refinement"};
}

[[nodiscard]] auto json_of(const std::vector<either>& all) -> result<std::string> {
    std::string out;
    for (const auto& one : all) {
        GLOVE_TRY(const auto text,
                  std::visit([](const auto* envelope) { return control::encode(*envelope); }, one));
        out += printable_json(text) + "\n";
    }
    return out;
}

[[nodiscard]] auto text_of(const std::vector<either>& all, bool head) -> std::string {
    std::vector<line> rows;
    if (head) rows.push_back({"RECEIPT", "SESSION", "ENDED", "CAUSE", "EXIT", "KIND"});
    for (const auto& one : all) rows.push_back(line_of(one));
    return in_columns(rows);
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

[[nodiscard]] auto anchor_file_of(const session_words& words) -> result<std::string> {
    if (words.anchor.empty()) return default_anchor_file();
    return words.anchor;
}

class fetcher {
public:
    fetcher(const session_words& words, const service& asks, const audit_key* key, std::string file,
            receipt_anchor from)
        : words_{words}, asks_{asks}, key_{key}, file_{std::move(file)}, anchor_{std::move(from)} {}

    [[nodiscard]] auto run() -> result<int> {
        for (bool more = true; more;) {
            GLOVE_TRY(const auto answer,
                      asks_.ask("verify_audit_chain",
                                R"({"sage_anchor":)" + anchor_json(anchor_) + R"(,"limit":1000})"));
            if (!answer) return told(answer.error());
            const auto page = control::decode_receipt_page(*answer);
            if (!page) return strange_answer(page.error().detail);
            GLOVE_CHECK(take(*page));
            more = page->has_more;
        }
        tell();
        return done;
    }

private:
    [[nodiscard]] auto take(const receipt_page& page) -> result<> {
        const auto all = in_order(page);
        if (all.empty() && page.has_more)
            return fail(errc::corrupt, "client.reply",
                        "a page without receipts says that there are more");
        auto after = anchor_;
        for (const auto& one : all) {
            GLOVE_TRY(after,
                      std::visit([&](const auto* e) { return next_anchor(*e, key_, after); }, one));
        }
        if (!page.has_more && after != page.local_anchor)
            return fail(
                errc::corrupt, "receipts.head",
                "the service says that receipt " + std::to_string(page.local_anchor.sequence) +
                    " is its last, and the last that it gave is " + std::to_string(after.sequence));
        if (words_.service.json) {
            GLOVE_TRY(const auto text, json_of(all));
            GLOVE_CHECK(print(text));
        } else if (!all.empty()) {
            GLOVE_CHECK(print(text_of(all, count_ == 0)));
        }
        count_ += all.size();
        // An empty chain has a place as well, and a service waits until it is acknowledged.
        if (key_ != nullptr && (!all.empty() || !page.has_more))
            GLOVE_CHECK(write_anchor(file_, after));
        anchor_ = std::move(after);
        return {};
    }
    void tell() const {
        const auto number = std::to_string(count_) + (count_ == 1 ? " receipt" : " receipts");
        if (key_ != nullptr)
            note(number + " verified, up to " + std::to_string(anchor_.sequence) + "; " + file_);
        else note(number + ", not verified: that takes the audit key, with --key");
    }

    const session_words& words_;
    const service& asks_;
    const audit_key* key_;
    std::string file_;
    receipt_anchor anchor_;
    std::size_t count_ = 0;
};

} // namespace

auto fetch_receipts(const session_words& words) -> result<int> {
    std::optional<audit_key> key;
    if (!words.key.empty()) {
        GLOVE_TRY(key, audit_key::load(words.key));
    }
    GLOVE_TRY(auto file, anchor_file_of(words));
    GLOVE_TRY(auto kept, read_anchor(file));
    GLOVE_TRY(const auto asks, service::of(words.service));
    receipt_anchor from;
    if (kept) {
        from = *std::move(kept);
    } else if (key) {
        from.key_id = key->id();
    } else {
        GLOVE_TRY(const auto answer, asks->ask("capabilities"));
        if (!answer) return told(answer.error());
        auto id = told_key_id(*answer);
        if (!id) return strange_answer(id.error().detail);
        from.key_id = *std::move(id);
    }
    if (key && from.key_id != key->id())
        return fail(errc::conflict, "anchor.key", file + " is of another audit key",
                    "name another file with --anchor");
    return fetcher{words, *asks, key ? &*key : nullptr, std::move(file), std::move(from)}.run();
}

auto acknowledge(const session_words& words) -> result<int> {
    GLOVE_TRY(const auto file, anchor_file_of(words));
    GLOVE_TRY(const auto kept, read_anchor(file));
    if (!kept)
        return fail(errc::not_found, "anchor.file", "there is no " + file,
                    "verify the receipts first: glove session receipts --key FILE");
    GLOVE_TRY(const auto asks, service::of(words.service));
    GLOVE_TRY(const auto answer,
              asks->change("acknowledge_audit_chain", R"({"anchor":)" + anchor_json(*kept) + "}",
                           words.request_key));
    if (!answer) return told(answer.error());
    GLOVE_CHECK(print(words.service.json
                          ? printable_json(*answer) + "\n"
                          : "receipts up to " + std::to_string(kept->sequence) + " are safe\n"));
    return done;
}

} // namespace glove::cli
