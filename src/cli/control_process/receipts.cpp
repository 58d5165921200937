// What was printed and verified moves the anchor, page by page; nothing else does. So a receipt
// that somebody did not get is fetched again.
#include "cli/control_process/receipts.hpp"
#include "cli/columns.hpp"
#include "cli/control_process/anchor_file.hpp"
#include "cli/control_process/receipt_chain.hpp"
#include <algorithm>
#include <glove/base/text.hpp>
#include <glove/base/times.hpp>

namespace glove::cli {

namespace {

using control::audit_key;
using control::receipt_anchor;

using line = std::array<std::string, 6>;
[[nodiscard]] auto line_of(const any_receipt& one) -> line {
    const auto& receipt = resource_of(one);
    const auto ended = std::min<std::uint64_t>(receipt.finished_at_ms, 9'000'000'000'000);
    return {std::to_string(sequence_of(one)),
            std::visit([](const auto* e) { return printable(e->session_id); }, one),
            utc_text(static_cast<std::int64_t>(ended) * 1'000'000),
            std::string{to_string(receipt.cause)},
            receipt.exit_code ? std::to_string(*receipt.exit_code) : "-",
            one.index() == 0 ? "session" : "refinement"};
}

[[nodiscard]] auto json_of(const std::vector<any_receipt>& all) -> result<std::string> {
    std::string out;
    for (const auto& one : all) {
        GLOVE_TRY(const auto text,
                  std::visit([](const auto* envelope) { return control::encode(*envelope); }, one));
        out += printable_json(text) + "\n";
    }
    return out;
}

[[nodiscard]] auto text_of(const std::vector<any_receipt>& all, bool head) -> std::string {
    std::vector<line> rows;
    if (head) rows.push_back({"RECEIPT", "SESSION", "ENDED", "CAUSE", "EXIT", "KIND"});
    for (const auto& one : all) rows.push_back(line_of(one));
    return in_columns(rows);
}

class fetcher {
public:
    fetcher(const session_words& words, const service& asks, const audit_key* key, std::string file,
            receipt_anchor from)
        : words_{words}, walk_{asks, key, std::move(from)}, verifies_{key != nullptr},
          file_{std::move(file)} {}

    [[nodiscard]] auto run() -> result<int> {
        for (bool more = true; more;) {
            GLOVE_TRY(const auto page, walk_.next());
            if (!page) return told(page.error());
            GLOVE_CHECK(take(*page));
            more = page->page.has_more;
        }
        tell();
        return done;
    }

private:
    [[nodiscard]] auto take(const chain_page& what) -> result<> {
        const auto& all = what.receipts;
        if (words_.service.json) {
            GLOVE_TRY(const auto text, json_of(all));
            GLOVE_CHECK(print(text));
        } else if (!all.empty()) {
            GLOVE_CHECK(print(text_of(all, count_ == 0)));
        }
        count_ += all.size();
        // An empty chain has a place as well, and a service waits until it is acknowledged.
        if (verifies_ && (!all.empty() || !what.page.has_more))
            GLOVE_CHECK(write_anchor(file_, what.after));
        return {};
    }
    void tell() const {
        const auto number = std::to_string(count_) + (count_ == 1 ? " receipt" : " receipts");
        if (verifies_)
            note(number + " verified, up to " + std::to_string(walk_.at().sequence) + "; " + file_);
        else note(number + ", not verified: that takes the audit key, with --key");
    }

    const session_words& words_;
    chain_walk walk_;
    bool verifies_;
    std::string file_;
    std::size_t count_ = 0;
};

} // namespace

auto fetch_receipts(const session_words& words) -> result<int> {
    std::optional<audit_key> key;
    if (!words.key.empty()) {
        GLOVE_TRY(key, audit_key::load(words.key));
    }
    GLOVE_TRY(auto file, anchor_file_of(words));
    GLOVE_TRY(const auto asks, service::of(words.service));
    const auto* const with = key ? &*key : nullptr;
    GLOVE_TRY(auto from, beginning(*asks, file, with));
    if (!from) return told(from.error());
    return fetcher{words, *asks, with, std::move(file), *std::move(from)}.run();
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
