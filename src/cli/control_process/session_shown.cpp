// Rows and words; a name that came from the service draws nothing.
#include "cli/control_process/session_shown.hpp"
#include "cli/columns.hpp"
#include <glove/base/text.hpp>
#include <glove/base/times.hpp>
#include <glove/wire/json_writer.hpp>

namespace glove::cli {

using control::session_view;

auto date_of(std::uint64_t ms) -> std::string {
    constexpr std::uint64_t latest = 9'000'000'000'000; // further is not a date
    return ms > latest ? "never" : utc_text(static_cast<std::int64_t>(ms) * 1'000'000);
}

auto table_of(const std::vector<session_view>& all) -> std::string {
    std::vector<std::array<std::string, 5>> rows{{"NAME", "STATE", "CREATED", "EXPIRES", "PLAN"}};
    for (const auto& each : all)
        rows.push_back({printable(each.session_id), std::string{to_string(each.state)},
                        date_of(each.created_at_ms), date_of(each.expires_at_ms),
                        each.plan_content_digest.substr(0, 12)});
    return in_columns(rows);
}

auto named(std::string_view session_id) -> std::string {
    std::string out;
    wire::json::writer w{out};
    w.begin_object();
    w.member("session_id", session_id);
    w.end_object();
    return out;
}

namespace {

[[nodiscard]] auto text_of(const session_view& one) -> std::string {
    return "name             " + printable(one.session_id) + "\nstate            " +
           std::string{to_string(one.state)} + "\nplan             " + one.plan_content_digest +
           "\ncontroller       " + one.controller_plan_digest + "\npolicy revision  " +
           std::to_string(one.policy_revision) + "\ncreated          " +
           date_of(one.created_at_ms) + "\nexpires          " + date_of(one.expires_at_ms) +
           (one.profile_digest ? "\nprofile          " + *one.profile_digest : "") + "\n";
}

} // namespace

auto look_at(const service& asks, std::string_view session_id) -> result<viewed> {
    GLOVE_TRY(const auto answer, asks.ask("session_status", named(session_id)));
    if (!answer) return viewed{std::unexpected(answer.error())};
    auto view = control::decode_session_view(*answer);
    if (!view) return strange_answer(view.error().detail);
    return viewed{*std::move(view)};
}

auto show_session(const result<control::remote_answer>& answer, std::string_view method,
                  bool as_json) -> result<int> {
    if (!answer) return std::unexpected(answer.error());
    if (!*answer) return told(answer->error(), method);
    const auto view = control::decode_session_view(**answer);
    if (!view) return strange_answer(view.error().detail);
    GLOVE_CHECK(print(as_json ? **answer + "\n" : text_of(*view)));
    return done;
}

} // namespace glove::cli
