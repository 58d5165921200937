// Which sessions there are, page by page, and one of them.
#include "cli/control_process/session_actions.hpp"
#include "cli/control_process/session_shown.hpp"
#include <algorithm>
#include <glove/wire/json.hpp>
#include <glove/wire/json_writer.hpp>

namespace glove::cli {

using control::session_view;
namespace json = wire::json;

namespace {

constexpr std::size_t page_sessions = 256;

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

} // namespace

auto list_sessions(const session_words& words) -> result<int> {
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

auto session_status(const session_words& words) -> result<int> {
    GLOVE_TRY(const auto asks, service::of(words.service));
    return show_session(asks->ask("session_status", named(words.words[0])), "session_status",
                        words.service.json);
}

} // namespace glove::cli
