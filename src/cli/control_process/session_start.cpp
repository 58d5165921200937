// The authorization of a start is made here, for this machine's own user: whoever may ask the
// service may also approve.
//
// Guarantees: an authorization lasts 120 seconds at most and never longer than the plan. A key that
// is made here says when the start was approved and until when, so the same key is the same
// request. No anchor is moved: receipts that nobody has seen are still shown by `glove session
// receipts`. What is acknowledged was verified with the audit key, or there is nothing to verify.
#include "cli/control_process/anchor_file.hpp"
#include "cli/control_process/receipt_chain.hpp"
#include "cli/control_process/session_actions.hpp"
#include "cli/control_process/session_shown.hpp"
#include <algorithm>
#include <glove/base/numbers.hpp>
#include <glove/base/text.hpp>
#include <glove/wire/json_writer.hpp>

namespace glove::cli {

namespace {

using control::session_state;
using control::session_view;

constexpr std::uint64_t longest_ms = 120'000; // that an authorization may last
constexpr std::chrono::minutes patience{2};   // copies are made before a session runs
constexpr std::uint64_t latest_ms = 9'000'000'000'000'000;

struct start_key {
    std::string text;
    std::uint64_t approved_at_ms = 0, expires_at_ms = 0;
};

// "start.APPROVED.EXPIRES.RANDOM"; nothing for a key of somebody else's making.
[[nodiscard]] auto own_key(const std::string& text) -> std::optional<start_key> {
    std::vector<std::string> parts{""};
    for (const char c : text)
        if (c == '.') parts.emplace_back();
        else parts.back() += c;
    if (parts.size() != 4 || parts[0] != "start" || parts[3].empty()) return std::nullopt;
    const auto approved = parse_decimal(parts[1], latest_ms);
    const auto expires = parse_decimal(parts[2], latest_ms);
    if (!approved || !expires) return std::nullopt;
    return start_key{text, *approved, *expires};
}

[[nodiscard]] auto key_for(const session_words& words, const session_view& of, const service& asks)
    -> result<start_key> {
    if (auto known = own_key(words.request_key)) return *std::move(known);
    const auto now = sys::wall_ms(asks.clock());
    start_key out{words.request_key, now, std::min(now + words.expires_ms, of.expires_at_ms)};
    if (out.expires_at_ms <= now)
        return fail(errc::wrong_state, "start.expired",
                    "the plan of session " + words.words[0] + " expired at " +
                        date_of(of.expires_at_ms),
                    "create another session, of a plan that is valid for longer");
    if (out.text.empty()) {
        GLOVE_TRY(const auto random, asks.fresh_key());
        out.text =
            "start." + std::to_string(now) + "." + std::to_string(out.expires_at_ms) + "." + random;
    }
    return out;
}

[[nodiscard]] auto payload_of(const session_words& words, const session_view& of,
                              const start_key& key) -> std::string {
    std::string out;
    wire::json::writer w{out};
    w.begin_object();
    w.begin_object("authorization");
    w.member("schema_version", 1);
    w.member("authorization_id",
             words.authorization_id.empty() ? key.text : words.authorization_id);
    w.member("session_id", of.session_id);
    w.member("controller_plan_digest", of.controller_plan_digest);
    w.member("plan_content_digest", of.plan_content_digest);
    w.member("approved_at_ms", key.approved_at_ms);
    w.member("expires_at_ms", key.expires_at_ms);
    w.end_object();
    w.end_object();
    return out;
}

// A new request for what has been started is a mistake; the same one again is not.
[[nodiscard]] auto check_state(const session_words& words, const session_view& of) -> result<> {
    if (!words.request_key.empty() || of.state == session_state::created ||
        of.state == session_state::preparing)
        return {};
    const auto& name = words.words[0];
    return fail(errc::wrong_state, "start.state",
                "session " + name + " is " + std::string{to_string(of.state)} +
                    ", and starts only once",
                is_terminal(of.state) ? "create another one: glove session create"
                                      : "glove session attach " + name);
}

// --- receipts ---

[[nodiscard]] auto not_verified(const session_words& words, std::uint64_t count,
                                const std::string& file) -> std::unexpected<error> {
    return fail(errc::wrong_state, "start.receipts",
                "the service starts nothing until its receipts are known to be safe, and " +
                    std::to_string(count) + " or more are behind the anchor " + file,
                "glove session start " + words.words[0] +
                    " --key FILE, with the audit key of gloved");
}

// The service is shown that its whole chain is known here. What it says instead, if it does.
[[nodiscard]] auto reconcile(const session_words& words, const service& asks)
    -> result<std::optional<control::remote_error>> {
    const auto& key_file = words.key.empty() ? asks.audit_key_file() : words.key;
    std::optional<control::audit_key> key;
    if (!key_file.empty()) {
        GLOVE_TRY(key, control::audit_key::load(key_file));
    }
    GLOVE_TRY(const auto file, anchor_file_of(words));
    const auto* const with = key ? &*key : nullptr;
    GLOVE_TRY(auto from, beginning(asks, file, with));
    if (!from) return std::optional{from.error()};
    chain_walk walk{asks, with, *std::move(from)};
    std::uint64_t count = 0;
    for (bool more = true; more;) {
        GLOVE_TRY(const auto page, walk.next());
        if (!page) return std::optional{page.error()};
        count += page->receipts.size();
        if (with == nullptr && count != 0) return not_verified(words, count, file);
        more = page->page.has_more;
    }
    GLOVE_TRY(const auto answer, asks.change("acknowledge_audit_chain",
                                             R"({"anchor":)" + anchor_json(walk.at()) + "}", {}));
    if (!answer) return std::optional{answer.error()};
    if (count != 0)
        note(std::to_string(count) + (count == 1 ? " receipt" : " receipts") +
             " verified and acknowledged, up to " + std::to_string(walk.at().sequence) +
             "; glove session receipts shows what is new");
    return std::nullopt;
}

void tell_retry(const session_words& words, const start_key& key) {
    note("the same request again: glove session start " + words.words[0] + " --request-key " +
         key.text +
         (words.authorization_id.empty() ? "" : " --authorization-id " + words.authorization_id));
}

} // namespace

auto start_session(const session_words& words) -> result<int> {
    if (words.expires_ms > longest_ms)
        return wrong_usage("--expires is at most 120 s", session_usage);
    GLOVE_TRY(const auto asks, service::of(words.service, {.patience = patience}));
    GLOVE_TRY(const auto view, look_at(*asks, words.words[0]));
    if (!view) return told(view.error(), "session_status");
    GLOVE_CHECK(check_state(words, *view));
    GLOVE_TRY(const auto key, key_for(words, *view, *asks));
    const auto ask = [&] {
        return asks->change("start_session", payload_of(words, *view, key), key.text);
    };
    auto answer = ask();
    if (answer && !*answer && answer->error().code == "audit_reconciliation_required") {
        GLOVE_TRY(const auto refused, reconcile(words, *asks));
        if (refused) return told(*refused);
        answer = ask();
    }
    GLOVE_TRY(const auto status, show_session(answer, "start_session", words.service.json));
    if (status != done && answer->error().code == "session_start_failed") tell_retry(words, key);
    return status;
}

} // namespace glove::cli
