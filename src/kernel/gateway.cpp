// The turn, time, and the end.
#include "kernel/core.hpp"
#include "kernel/texts.hpp"
#include <algorithm>
#include <glove/base/text.hpp>
#include <glove/wire/json_writer.hpp>

namespace glove::kernel {

auto hash_of(std::string_view id) noexcept -> std::uint32_t {
    return static_cast<std::uint32_t>(std::hash<std::string_view>{}(id));
}

auto excerpt(std::string_view text, std::size_t longest) -> std::string {
    std::string out;
    for (const char c : text.substr(0, longest)) detail::put_printable(out, c, 0x7f);
    return text.size() > longest ? out + "..." : out;
}

void put_members(std::string& to, std::span<const wire::json::slice> members,
                 std::string_view without) {
    for (const auto& each : members) {
        if (each.name == without) continue;
        if (!to.ends_with('{')) to += ',';
        wire::json::append_quoted(to, each.name);
        to += ':';
        append_safe(to, each.text);
    }
}

namespace {

[[nodiscard]] auto check_renames(const gateway_options& options) -> result<> {
    const auto refuse = [](const std::string& name, std::string why) {
        return fail(errc::invalid_input, "mcp.rename", name + ": " + std::move(why));
    };
    const auto& all = options.renames;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto& [agents, servers] = all[i];
        if (!is_tool_name(agents))
            return refuse(in_quotes(agents),
                          "a name for agents is 1 to 128 of A-Z, a-z, 0-9, '_', '-' and '.'");
        const auto dot = servers.find('.');
        const auto is_named = [&](const auto& each) { return each.name == servers.substr(0, dot); };
        if (dot == servers.npos || dot + 1 == servers.size() ||
            std::ranges::none_of(options.upstreams, is_named))
            return refuse(in_quotes(servers), "is not UPSTREAM.TOOL of an upstream that is there");
        for (std::size_t j = 0; j < i; ++j)
            if (all[j].first == agents || all[j].second == servers)
                return refuse(in_quotes(agents), "a name and a tool can be in one rename only");
    }
    return {};
}

} // namespace

gateway::state::state(gateway_options wanted, const gateway_parts& given)
    : options{std::move(wanted)}, parts{given}, out{given.out},
      log{given.log, options.run, options.call_prefix}, names{options.names, options.renames} {
    options.relay.add(mcp::feature::base);
    options.relay.add(mcp::feature::tools);
    for (const auto& wish : options.upstreams) {
        auto& made = ups.emplace_back();
        made.wish = wish;
        made.start_timeout = wish.start_timeout.value_or(options.start_timeout);
        made.call_timeout = wish.call_timeout.value_or(options.call_timeout);
    }
}

auto gateway::state::is_ready() const -> bool {
    return std::ranges::all_of(ups, [&](const upstream& each) {
        return each.settled || (!each.wish.required && now - began >= options.optional_patience);
    });
}

auto gateway::state::deadline() -> std::optional<nanoseconds> {
    std::optional<nanoseconds> out_time;
    const auto add = [&](nanoseconds when) {
        if (!out_time || when < *out_time) out_time = when;
    };
    if (const auto* first = calls.first_due()) add(first->deadline);
    for (session_id i = 0; lists_wait > 0 && i < sessions.size(); ++i)
        for (const auto& each : sessions[i].lists)
            add(lists_held && may_answer(i, each.kind) ? now : each.deadline);
    bool waits = false;
    for (const auto& each : ups) {
        if (each.now == upstream::phase::resting) add(each.rest_until);
        if (each.now == upstream::phase::up)
            for (const auto& list : each.lists)
                if (list.again && !list.running) add(list.began + between_listings);
        waits = waits || !each.settled;
    }
    if (waits && now - began < options.optional_patience) add(began + options.optional_patience);
    return out_time;
}

void gateway::state::advance() {
    if (is_over()) return;
    for (auto* first = calls.first_due(); first != nullptr && first->deadline <= now && !is_over();
         first = calls.first_due())
        due(*first);
    if (lists_held) answer_waiting_lists();
    end_waiting_lists(); // of those that could not be answered
    for (std::size_t i = 0; i < ups.size() && !is_over(); ++i) {
        auto& each = ups[i];
        if (each.now == upstream::phase::resting && each.rest_until <= now) start_upstream(i);
        if (each.now != upstream::phase::up) continue;
        for (std::size_t kind = 0; kind < listing_kinds; ++kind)
            if (each.lists[kind].again) relist(i, static_cast<listing_kind>(kind));
    }
    let_agents_in();
}

void gateway::state::note(upstream& of, std::string words) {
    if (of.said.size() > most_notes_of_server || of.said.contains(words)) return;
    if (of.said.size() == most_notes_of_server)
        words = "there is more to say of the server " + of.wish.name + ", which is left out";
    of.said.insert(words);
    out.note(std::move(words));
}

void gateway::state::let_agents_in() {
    if (unwelcome == 0 || is_over() || !is_ready()) return;
    for (session_id i = 0; i < sessions.size(); ++i)
        if (sessions[i].now == session::phase::waiting) welcome(i);
}

void gateway::state::end(std::string_view why) {
    if (is_over()) return;
    for (std::size_t i = 0; i < ups.size(); ++i) {
        fail_calls_of(i, mcp::code::upstream_gone, "the mediation has ended", why);
        if (ups[i].number != 0) record_start_failure(ups[i], why);
        if (ups[i].now != upstream::phase::gone && ups[i].now != upstream::phase::resting)
            out.stop_upstream(i);
        ups[i].now = upstream::phase::gone;
    }
    for (session_id i = 0; i < sessions.size(); ++i) {
        auto& each = sessions[i];
        if (each.now == session::phase::absent) continue;
        if (each.now == session::phase::waiting)
            refuse(i, each.initialize_id, mcp::code::upstream_gone, "the mediation has ended");
        for (const auto& list : each.lists)
            refuse(i, list.id, mcp::code::upstream_gone, "the mediation has ended");
        for (const auto& line : each.held)
            if (!line.id.empty())
                refuse(i, line.id, mcp::code::upstream_gone, "the mediation has ended");
        lists_wait -= each.lists.size();
        each.lists.clear();
        each.held.clear();
        each.held_bytes = 0;
        each.now = session::phase::closing;
        out.close_agent(i);
    }
    ended = true;
}

void outlet::to_agent(session_id to, std::string head, mcp::shared_text body, std::string tail) {
    to_agent(to, head.append(body.text).append(tail));
}

void outlet::to_upstream(std::size_t to, std::string message, std::uint64_t) {
    to_upstream(to, std::move(message));
}
auto outlet::take_back(std::size_t, std::uint64_t) -> bool { return false; }

gateway::gateway(std::unique_ptr<state> made) : state_{std::move(made)} {}
gateway::gateway(gateway&&) noexcept = default;
gateway::~gateway() = default;

auto check_names(const gateway_options& options) -> result<> {
    GLOVE_CHECK(check_renames(options));
    if (options.names == tool_names::bare && options.upstreams.size() > 1)
        return fail(errc::invalid_input, "mcp.tool_names",
                    "bare names need exactly one upstream, and there are " +
                        std::to_string(options.upstreams.size()),
                    "--tool-names qualified, or --rename for the tools that need a name");
    return {};
}

auto gateway::make(gateway_options options, const gateway_parts& parts) -> result<gateway> {
    GLOVE_CHECK(check_names(options));
    return gateway{std::make_unique<state>(std::move(options), parts)};
}

auto gateway::begin_turn() -> nanoseconds {
    state_->now = state_->parts.time.monotonic();
    state_->log.begin_turn(state_->parts.time.wall());
    return state_->now;
}

void gateway::start() {
    state_->began = state_->now;
    for (std::size_t i = 0; i < state_->ups.size(); ++i) state_->start_upstream(i);
}

auto gateway::is_ready() const -> bool { return state_->is_ready(); }

auto gateway::problem() const -> const std::optional<error>& {
    return state_->log.problem() ? state_->log.problem() : state_->problem;
}

auto gateway::open_session() -> std::optional<session_id> {
    auto& all = state_->sessions;
    const auto free = std::ranges::find(all, session::phase::absent, &session::now);
    if (free == all.end() || state_->is_over()) return std::nullopt;
    *free = session{};
    free->now = session::phase::fresh;
    return static_cast<session_id>(free - all.begin());
}

void gateway::agent_line(session_id from, const mcp::line_reader::line& line) {
    if (!state_->is_over()) state_->agent_line(from, line);
}

auto gateway::takes_lines(session_id of) const -> bool {
    const auto& by = state_->sessions[of];
    return by.now == session::phase::ready || !by.is_full();
}
auto gateway::has_held_lines(session_id of) const -> bool {
    const auto& by = state_->sessions[of];
    return by.now == session::phase::ready && !by.held.empty() && !state_->is_over();
}
auto gateway::take_held_line(session_id of) -> bool {
    if (!has_held_lines(of)) return false;
    state_->take_held_line(of);
    return true;
}
auto gateway::held_bytes(session_id of) const -> std::size_t {
    return state_->sessions[of].held_bytes;
}

void gateway::agent_gone(session_id which) { state_->session_gone(which); }

auto gateway::open_requests(session_id of) const -> std::size_t {
    const auto& which = state_->sessions[of];
    return which.requests.size() + which.lists.size() + which.held.size() +
           (which.now == session::phase::waiting ? 1 : 0);
}

auto gateway::has_calls(std::size_t upstream, session_id of) const -> bool {
    return std::ranges::any_of(state_->sessions[of].requests, [&](const open_request& each) {
        const auto* const found = state_->calls.find(each.call);
        return found != nullptr && found->upstream == upstream;
    });
}

void gateway::upstream_started(std::size_t which) {
    if (!state_->is_over()) state_->upstream_started(which);
}

void gateway::upstream_line(std::size_t from, const mcp::line_reader::line& line) {
    if (!state_->is_over()) state_->upstream_line(from, line);
}

void gateway::upstream_ended(std::size_t which, std::string_view how, std::string_view tail) {
    if (!state_->is_over()) state_->upstream_ended(which, how, tail);
}

void gateway::advance() { state_->advance(); }
auto gateway::deadline() const -> std::optional<nanoseconds> { return state_->deadline(); }
auto gateway::has_records() const -> bool { return state_->log.has_staged(); }
auto gateway::commit() -> result<> { return state_->log.commit(); }
void gateway::end(std::string_view why) { state_->end(why); }
auto gateway::counts() const -> const gateway_counts& { return state_->counts; }

auto gateway::tools() const -> std::vector<seen_tool> {
    std::vector<seen_tool> out;
    for (const auto& each : state_->tools.all())
        out.push_back({.upstream = each->server,
                       .tool = each->name,
                       .visible = each->visible,
                       .definition = policy::canonical_definition(each->definition),
                       .shown = each->shown,
                       .why = each->why,
                       .pin = each->pin,
                       .server = state_->ups[each->upstream].server,
                       .digest = each->digest});
    for (const auto& each : state_->ups)
        if (!each.instructions_raw.empty())
            out.push_back({.upstream = each.wish.name,
                           .tool = {},
                           .visible = {},
                           .definition = each.instructions_raw,
                           .shown = !each.instructions.empty(),
                           .why = {},
                           .pin = each.instructions_pin,
                           .server = each.server,
                           .digest = each.instructions_digest});
    return out;
}

auto gateway::missing_tools() const -> std::vector<std::string> {
    auto named = state_->parts.rules.named_tools();
    for (const auto& [agents, servers] : state_->options.renames) named.push_back(servers);
    const auto is_there = [&](const std::string& name) {
        const auto server = name.substr(0, name.find('.'));
        return std::ranges::any_of(state_->tools.all(),
                                   [&](const auto& each) { return each->qualified == name; }) ||
               std::ranges::any_of(state_->ups, [&](const auto& each) {
                   return each.wish.name == server && each.now != kernel::upstream::phase::up;
               });
    };
    std::erase_if(named, is_there);
    std::ranges::sort(named);
    const auto repeated = std::ranges::unique(named);
    named.erase(repeated.begin(), repeated.end());
    return named;
}

auto gateway::upstreams() const -> std::vector<seen_upstream> {
    std::vector<seen_upstream> out;
    for (const auto& each : state_->ups)
        out.push_back({.name = each.wish.name,
                       .up = each.settled && each.problem.empty(),
                       .problem = each.problem,
                       .revision = std::string{each.revision}});
    return out;
}

} // namespace glove::kernel
