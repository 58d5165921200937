// Joins by run and call. The order of the rows is that of their first records.
#include <algorithm>
#include <glove/audit/names.hpp>
#include <glove/audit/rows.hpp>

namespace glove::audit {

namespace {

[[nodiscard]] auto is_plain(char c) noexcept -> bool {
    constexpr std::string_view others = "@%+=:,./-_";
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
}

[[nodiscard]] auto quoted(const std::string& word) -> std::string {
    if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
    std::string out{"'"};
    for (const char c : word) {
        if (c == '\'') out += "'\\''";
        else out += c;
    }
    return out += "'";
}

[[nodiscard]] auto detail_of(const record& outcome) -> std::string {
    if (!outcome.cause.empty() && outcome.cause != "exited" && outcome.cause != "signaled")
        return outcome.cause;
    if (outcome.signal) return "signal " + std::to_string(*outcome.signal);
    if (outcome.code.value_or(0) != 0) return "exit " + std::to_string(*outcome.code);
    return {};
}

[[nodiscard]] auto subject_of(const record& of) -> std::string {
    if (!of.data.tool) return command_text(of.argv);
    if (of.data.action != action::call_tool || of.data.arguments.value_or("{}") == "{}")
        return *of.data.tool;
    return *of.data.tool + " " + *of.data.arguments;
}

} // namespace

auto command_text(std::span<const std::string> argv) -> std::string {
    std::string out;
    for (const auto& word : argv) out.append(out.empty() ? "" : " ").append(quoted(word));
    return out;
}

auto state_word(const row& of) noexcept -> std::string_view {
    switch (of.state) {
    case row_state::open: return "open";
    case row_state::lost: return "lost";
    case row_state::ended: break;
    }
    return to_string(of.status);
}

auto row_joiner::add(const record& what, std::size_t number) -> const row& {
    const auto& data = what.data;
    if (data.action == action::agent_exit) ended_runs_.insert(data.run);
    key name{data.run, data.call};
    const auto waiting = open_.find(name);
    const bool is_intent = data.status == status::pending;
    if (is_intent || waiting == open_.end()) {
        rows_.push_back({.run = data.run,
                         .call = data.call,
                         .action = data.action,
                         .has_intent = is_intent,
                         .began_ns = data.timestamp_ns,
                         .duration_ns = {},
                         .what = subject_of(what),
                         .detail = {},
                         .sent = {},
                         .received = {},
                         .error = {},
                         .numbers = {}});
        if (is_intent) open_.insert_or_assign(std::move(name), rows_.size() - 1);
    }
    auto& at = is_intent || waiting == open_.end() ? rows_.back() : rows_[waiting->second];
    at.numbers.push_back(number);
    if (is_intent) return at;
    at.state = row_state::ended;
    at.status = data.status;
    if (at.has_intent || data.latency_ns != 0) at.duration_ns = data.latency_ns;
    at.detail = detail_of(what);
    at.sent = what.sent;
    at.received = what.received;
    at.error = data.error.value_or(std::string{});
    if (at.what.empty()) at.what = subject_of(what);
    if (waiting != open_.end()) open_.erase(waiting);
    return at;
}

void row_joiner::settle(std::int64_t started_ns) {
    for (const auto& [name, index] : open_) {
        auto& at = rows_[index];
        const bool gone = ended_runs_.contains(at.run) || at.began_ns < started_ns;
        at.state = gone ? row_state::lost : row_state::open;
    }
}

void row_joiner::forget_ended() {
    std::vector<row> kept;
    for (auto& [name, index] : open_) {
        kept.push_back(std::move(rows_[index]));
        index = kept.size() - 1;
    }
    rows_ = std::move(kept);
}

auto row_filter::matches(const row& candidate) const -> bool {
    const auto any_of = [](const std::vector<std::string>& wanted, std::string_view word) {
        return wanted.empty() || std::ranges::find(wanted, word) != wanted.end();
    };
    return any_of(states, state_word(candidate)) && any_of(actions, to_string(candidate.action)) &&
           candidate.began_ns >= since_ns.value_or(INT64_MIN) &&
           candidate.began_ns <= until_ns.value_or(INT64_MAX) && candidate.run.starts_with(run);
}

} // namespace glove::audit
