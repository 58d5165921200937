// `glove session`: an operator's words to requests.
#include "cli/columns.hpp"
#include "cli/control_process/receipts.hpp"
#include "cli/control_process/service.hpp"
#include "cli/options.hpp"
#include <array>
#include <glove/base/text.hpp>
#include <glove/base/times.hpp>
#include <glove/control/session_record.hpp>
#include <glove/supervisor/plan.hpp>
#include <glove/sys/files.hpp>
#include <glove/wire/crypto.hpp>
#include <glove/wire/json.hpp>
#include <glove/wire/json_writer.hpp>

namespace glove::cli {

namespace {

using control::session_view;
namespace json = wire::json;

constexpr std::size_t page_sessions = 256;

// --- plans ---

[[nodiscard]] auto plan_text(const std::string& file) -> result<std::string> {
    const auto limit = control::most_frame_bytes;
    auto text = file == "-" ? sys::read_all(sys::fd_ref::standard_input(), limit)
                            : sys::read_file(file, limit);
    if (!text) {
        text.error().detail = "the plan " + file + ": " + text.error().detail;
        return text;
    }
    if (const auto read = json::read(*text); !read)
        return fail(errc::invalid_input, "plan.json",
                    "the plan " + file + " is not JSON: " + read.error().detail);
    return text;
}

[[nodiscard]] auto own_digest(const std::string& file, const std::string& text)
    -> result<std::string> {
    const auto plan = supervisor::decode_plan(text);
    if (!plan)
        return fail(plan.error().code, "plan.form",
                    "the plan " + file + ": " + plan.error().detail);
    GLOVE_TRY(const auto canonical, supervisor::canonical_text(*plan));
    GLOVE_TRY(const auto digest, wire::sha256(canonical));
    return wire::to_hex(digest);
}

// --- what is shown ---

[[nodiscard]] auto time_of(std::uint64_t ms) -> std::string {
    constexpr std::uint64_t latest = 9'000'000'000'000; // further is not a date
    return ms > latest ? "never" : utc_text(static_cast<std::int64_t>(ms) * 1'000'000);
}

[[nodiscard]] auto table_of(const std::vector<session_view>& all) -> std::string {
    std::vector<std::array<std::string, 5>> rows{{"NAME", "STATE", "CREATED", "EXPIRES", "PLAN"}};
    for (const auto& each : all)
        rows.push_back({printable(each.session_id), std::string{to_string(each.state)},
                        time_of(each.created_at_ms), time_of(each.expires_at_ms),
                        each.plan_content_digest.substr(0, 12)});
    return in_columns(rows);
}

[[nodiscard]] auto text_of(const session_view& one) -> std::string {
    return "name             " + printable(one.session_id) + "\nstate            " +
           std::string{to_string(one.state)} + "\nplan             " + one.plan_content_digest +
           "\ncontroller       " + one.controller_plan_digest + "\npolicy revision  " +
           std::to_string(one.policy_revision) + "\ncreated          " +
           time_of(one.created_at_ms) + "\nexpires          " + time_of(one.expires_at_ms) +
           (one.profile_digest ? "\nprofile          " + *one.profile_digest : "") + "\n";
}

[[nodiscard]] auto show_one(const result<control::remote_answer>& answer, bool as_json)
    -> result<int> {
    if (!answer) return std::unexpected(answer.error());
    if (!*answer) return told(answer->error());
    const auto view = control::decode_session_view(**answer);
    if (!view) return strange_answer(view.error().detail);
    GLOVE_CHECK(print(as_json ? **answer + "\n" : text_of(*view)));
    return done;
}

// --- actions ---

auto validate(const session_words& words) -> result<int> {
    GLOVE_TRY(auto text, plan_text(words.words[0]));
    GLOVE_TRY(const auto digest, own_digest(words.words[0], text));
    GLOVE_TRY(const auto asks, service::of(words.service));
    GLOVE_TRY(const auto answer, asks->ask("validate_plan", std::move(text)));
    if (!answer) return told(answer.error());
    const auto tree = json::read(*answer);
    const auto* const revision = tree ? tree->find("policy_revision") : nullptr;
    if (revision == nullptr || !revision->as_unsigned())
        return strange_answer("it has no policy_revision");
    GLOVE_CHECK(print(words.service.json ? *answer + "\n"
                                         : "the plan is allowed by revision " +
                                               std::to_string(*revision->as_unsigned()) +
                                               " of the policy; its digest is " + digest + "\n"));
    return done;
}

auto create(const session_words& words) -> result<int> {
    GLOVE_TRY(const auto text, plan_text(words.words[1]));
    auto digest = words.digest;
    if (digest.empty()) {
        GLOVE_TRY(digest, own_digest(words.words[1], text));
    }
    std::string payload;
    {
        json::writer w{payload};
        w.begin_object();
        w.member("session_id", words.words[0]);
        w.member("controller_plan_digest", digest);
        w.key("plan");
        w.raw(text);
        w.end_object();
    }
    GLOVE_TRY(const auto asks, service::of(words.service));
    return show_one(asks->change("create_session", std::move(payload), words.request_key),
                    words.service.json);
}

auto status(const session_words& words) -> result<int> {
    std::string payload;
    {
        json::writer w{payload};
        w.begin_object();
        w.member("session_id", words.words[0]);
        w.end_object();
    }
    GLOVE_TRY(const auto asks, service::of(words.service));
    return show_one(asks->ask("session_status", std::move(payload)), words.service.json);
}

struct session_page {
    std::vector<session_view> sessions;
    std::string next_after; // empty: there are no more
};
[[nodiscard]] auto page_of(const std::string& text) -> result<session_page> {
    GLOVE_TRY(const auto tree, json::read(text));
    const auto* const listed = tree.find("sessions");
    if (listed == nullptr || listed->as_array() == nullptr)
        return fail(errc::corrupt, "client.reply", "it has no list of sessions");
    session_page out;
    for (const auto& each : *listed->as_array()) {
        GLOVE_TRY(out.sessions.emplace_back(), control::decode_session_view(json::to_text(each)));
    }
    if (const auto* const next = tree.find("next_after"); next != nullptr) {
        if (next->as_string() == nullptr || out.sessions.empty() ||
            *next->as_string() != out.sessions.back().session_id)
            return fail(errc::corrupt, "client.reply", "next_after is not its last session");
        out.next_after = *next->as_string();
    }
    return out;
}

[[nodiscard]] auto list_request(const std::string& after, std::uint64_t limit) -> std::string {
    std::string out;
    json::writer w{out};
    w.begin_object();
    if (!after.empty()) w.member("after", after);
    w.member("limit", limit);
    w.end_object();
    return out;
}

[[nodiscard]] auto list_json(const std::vector<session_view>& all) -> result<std::string> {
    std::string out = R"({"schema_version":1,"sessions":[)";
    for (const auto& each : all) {
        GLOVE_TRY(const auto text, control::encode(each));
        out += (&each == all.data() ? "" : ",") + text;
    }
    return out + "]}\n";
}

auto list(const session_words& words) -> result<int> {
    const auto most = words.limit == 0 ? UINT64_MAX : words.limit;
    GLOVE_TRY(const auto asks, service::of(words.service));
    std::vector<session_view> all;
    for (auto after = words.after; all.size() < most;) {
        GLOVE_TRY(const auto answer,
                  asks->ask("list_sessions",
                            list_request(
                                after, std::min<std::uint64_t>(most - all.size(), page_sessions))));
        if (!answer) return told(answer.error());
        auto page = page_of(*answer);
        if (!page) return strange_answer(page.error().detail);
        all.insert(all.end(), page->sessions.begin(), page->sessions.end());
        if (page->next_after.empty()) break;
        if (page->next_after <= after) return strange_answer("next_after does not go on");
        after = std::move(page->next_after);
    }
    if (!words.service.json) {
        GLOVE_CHECK(print(table_of(all)));
        return done;
    }
    GLOVE_TRY(const auto text, list_json(all));
    GLOVE_CHECK(print(text));
    return done;
}

} // namespace

auto run_session(const invocation& call) -> int {
    session_words words;
    CLI::App app;
    declare(app, words);
    if (const auto ended = parse_options(app, session_usage, call)) return *ended;
    words.words.insert(words.words.end(), call.command.begin(), call.command.end());
    const std::vector<action_row<session_words>> rows{
        {"validate", validate, 1, 1, "one plan", {}},
        {"create", create, 2, 2, "a name and a plan", {"--digest", "--request-key"}},
        {"list", list, 0, 0, "no name", {"--after", "--limit"}},
        {"status", status, 1, 1, "the name of one session", {}},
        {"receipts", fetch_receipts, 0, 0, "no name", {"--key", "--anchor"}},
        {"ack", acknowledge, 0, 0, "no name", {"--anchor", "--request-key"}},
    };
    return status_of(act(app, "session", session_usage, rows, words, service_options()));
}

} // namespace glove::cli
