// Servers: how one is started, greeted, given up and started again.
//
// Starts are bounded: after a death Glove waits, twice as long each time, and gives up when there
// were too many. A call is never sent again.
#include "kernel/core.hpp"
#include "kernel/texts.hpp"
#include "kernel/visible_text.hpp"
#include <algorithm>
#include <glove/wire/digest.hpp>
#include <glove/wire/json_writer.hpp>

namespace glove::kernel {

using mcp::code;
namespace {

constexpr seconds first_rest{1}, longest_rest{30}, long_life{60};
constexpr std::chrono::minutes restart_window{10};
constexpr std::size_t most_restarts = 5;
constexpr std::size_t most_instructions = 64UL << 10;

// Of what is started; values of variables may be secrets and may change.
[[nodiscard]] auto server_digest(const mcp::upstream_wish& what) -> result<std::string> {
    std::vector<std::string> names = what.passed;
    for (const auto& [name, value] : what.environment) names.push_back(name);
    std::ranges::sort(names);
    wire::digest_encoder bytes;
    bytes.str("upstream").list(what.argv).opt_str(what.directory).list(names);
    return bytes.sha256_hex();
}

[[nodiscard]] auto flag_in(const wire::json::value* object, std::string_view name) -> bool {
    const auto* found = object != nullptr ? object->find(name) : nullptr;
    return found != nullptr && found->as_bool().value_or(false);
}

} // namespace

void gateway::state::start_upstream(std::size_t which) {
    auto& up = ups[which];
    if (up.server.empty()) {
        auto digest = server_digest(up.wish);
        if (!digest) {
            problem = digest.error();
            return;
        }
        up.server = *std::move(digest);
    }
    up.now = upstream::phase::starting;
    up.began = now;
    up.malformed = 0;
    up.level = -1;
    up.unsettled.clear();
    up.number = log.next_number();
    if (log.stage({.action = audit::action::initialize,
                   .subject = up.wish.name,
                   .status = audit::status::pending,
                   .number = up.number}))
        out.start_upstream(which);
}

void gateway::state::upstream_started(std::size_t which) {
    auto& up = ups[which];
    if (up.now != upstream::phase::starting) return;
    up.now = upstream::phase::initializing;
    auto* made = calls.open(now, std::max(up.began + up.start_timeout - now, nanoseconds{}));
    if (made == nullptr)
        return fail_upstream(which, code::too_many_calls, "too many requests are open",
                             "too many requests are open");
    made->kind = call_kind::initialize;
    made->upstream = static_cast<std::uint32_t>(which);
    std::string params;
    {
        wire::json::writer to{params};
        to.begin_object();
        to.member("protocolVersion", mcp::latest_revision);
        to.begin_object("capabilities");
        const auto offer = [&](std::string_view name, bool offered) {
            if (!offered) return;
            to.begin_object(name);
            to.end_object();
        };
        offer("roots", !parts.rules.roots(up.wish.name).empty());
        offer("sampling", options.relay.has(mcp::feature::sampling));
        offer("elicitation", options.relay.has(mcp::feature::elicitation));
        to.end_object();
        to.begin_object("clientInfo");
        to.member("name", "glove");
        to.member("version", options.version);
        to.end_object();
        to.end_object();
    }
    out.to_upstream(which, mcp::request_text(std::to_string(made->id), "initialize", params));
}

void gateway::state::initialized(call& of, const mcp::message& answer) {
    const std::size_t which = of.upstream;
    auto& up = ups[which];
    calls.close(of);
    const auto wrong = [&](std::string why) {
        fail_upstream(which, code::upstream_gone, "the server " + up.wish.name + " does not run",
                      why);
    };
    if (answer.kind == mcp::message_kind::failure)
        return wrong("it answered initialize with an error: " + excerpt(answer.error->text));
    auto tree = wire::json::read(answer.result->text, mcp::message_limits());
    const auto* revision = tree ? tree->find("protocolVersion") : nullptr;
    if (revision == nullptr || revision->as_string() == nullptr)
        return wrong("its answer to initialize names no protocolVersion");
    if (!mcp::speaks(*revision->as_string()))
        return wrong("it speaks revision " + excerpt(*revision->as_string(), 40) +
                     ", which Glove does not");
    up.revision = mcp::negotiated(*revision->as_string());
    const auto* offers = tree->find("capabilities");
    if (offers == nullptr || offers->as_object() == nullptr)
        return wrong("its answer to initialize has no capabilities");
    take_capabilities(up, *offers);
    const auto* words = tree->find("instructions");
    if (!take_instructions(up, words != nullptr ? words->as_string() : nullptr))
        return wrong("its instructions could not be pinned");
    if (!log.stage({.action = audit::action::initialize,
                    .subject = up.wish.name,
                    .status = audit::status::ok,
                    .latency = now - up.began,
                    .number = up.number}))
        return;
    up.number = 0;
    up.now = upstream::phase::listing;
    out.to_upstream(which, mcp::notification_text("notifications/initialized", {}));
    for (std::size_t i = 0; i < listing_kinds; ++i) {
        const auto kind = static_cast<listing_kind>(i);
        up.lists[i].again = false;
        if (lists(up, kind)) begin_listing(which, kind);
        else forget_list(which, kind);
        if (!up.is_alive()) return;
    }
    come_up_when_listed(which);
}

void gateway::state::take_capabilities(upstream& of, const wire::json::value& offers) {
    const auto* found = offers.find("tools");
    of.has_tools = found != nullptr;
    of.tells_changes[static_cast<std::size_t>(listing_kind::tools)] = flag_in(found, "listChanged");
    found = offers.find("resources");
    of.has_resources = found != nullptr;
    of.subscribes = flag_in(found, "subscribe");
    of.tells_changes[static_cast<std::size_t>(listing_kind::resources)] =
        of.tells_changes[static_cast<std::size_t>(listing_kind::templates)] =
            flag_in(found, "listChanged");
    found = offers.find("prompts");
    of.has_prompts = found != nullptr;
    of.tells_changes[static_cast<std::size_t>(listing_kind::prompts)] =
        flag_in(found, "listChanged");
    of.has_completions = offers.find("completions") != nullptr;
    of.has_logging = offers.find("logging") != nullptr;
}

// False when they cannot be compared with what they were.
auto gateway::state::take_instructions(upstream& of, const std::string* words) -> bool {
    of.instructions.clear();
    of.instructions_raw.clear();
    of.instructions_pin = policy::pin_state::first_use;
    if (words == nullptr || words->empty()) return true;
    of.instructions_raw = wire::json::to_text(*words);
    of.instructions_digest = policy::definition_digest(wire::json::value{*words});
    if (parts.pins != nullptr) {
        const auto compare = [&] {
            return parts.pins->compare(of.server, {}, of.instructions_digest);
        };
        of.instructions_pin = compare();
        if (of.instructions_pin == policy::pin_state::first_use && options.pins_first_use) {
            const auto added = parts.pins->add(
                {{of.server, of.wish.name, {}, of.instructions_digest, of.instructions_raw}});
            if (!added) return false;
            of.instructions_pin = compare();
        }
    }
    if (of.instructions_pin == policy::pin_state::changed) {
        note(of,
             "the instructions of " + of.wish.name +
                 " have changed since they were pinned and are not shown; `glove mcp pin` shows "
                 "the change");
        return true;
    }
    if (words->size() > most_instructions)
        note(of, "the instructions of " + of.wish.name + " are longer than 64 KiB and not shown");
    else of.instructions = visible_text(*words);
    return true;
}

void gateway::state::come_up_when_listed(std::size_t which) {
    auto& up = ups[which];
    if (up.now != upstream::phase::listing ||
        std::ranges::any_of(up.lists, [](const listing& each) { return each.running; }))
        return;
    up.now = upstream::phase::up;
    up.problem.clear();
    up.came_up = now;
    settle(which);
    send_level(which);
    subscribe_again(which);
}

void gateway::state::settle(std::size_t which) {
    ups[which].settled = true;
    let_agents_in();
}

void gateway::state::fail_calls_of(std::size_t which, code number, std::string_view words,
                                   std::string_view why) {
    const auto whole = ups[which].wish.name + ": " + std::string{why};
    for (auto& each : calls.slots()) {
        if (each.id == 0 || each.upstream != which) continue;
        fail_call(each, number, words, whole);
    }
    for (auto& list : ups[which].lists) list.running = false;
    for (session_id i = 0; i < sessions.size(); ++i) drop_asks(i, which, false);
}

void gateway::state::fail_upstream(std::size_t which, code number, std::string_view words,
                                   std::string_view why) {
    auto& up = ups[which];
    if (up.now == upstream::phase::stopping || up.now == upstream::phase::gone) return;
    const bool was_starting =
        up.now == upstream::phase::starting || up.now == upstream::phase::initializing;
    up.now = upstream::phase::stopping;
    up.problem = why;
    fail_calls_of(which, number, words, why);
    if (was_starting && up.number != 0) record_start_failure(up, why);
    answer_waiting_lists();
    if (!is_over()) out.stop_upstream(which);
}

void gateway::state::record_start_failure(upstream& of, std::string_view why) {
    (void)log.stage({.action = audit::action::initialize,
                     .subject = of.wish.name,
                     .status = audit::status::transport_error,
                     .why = excerpt(why),
                     .latency = now - of.began,
                     .number = of.number});
    of.number = 0;
}

void gateway::state::upstream_ended(std::size_t which, std::string_view how,
                                    std::string_view tail) {
    auto& up = ups[which];
    if (up.now == upstream::phase::gone || up.now == upstream::phase::resting) return;
    const bool fell = up.now != upstream::phase::stopping;
    if (fell) up.problem = how;
    up.now = upstream::phase::stopping;
    fail_calls_of(which, code::upstream_gone, "the server " + up.wish.name + " has ended", how);
    if (up.number != 0) record_start_failure(up, how);
    if (is_over()) return;
    up.tail = tail;
    const bool never_up = !up.settled;
    if (never_up) {
        up.now = upstream::phase::gone;
        note(up, "the server " + up.wish.name + " could not be started: " + up.problem);
        if (up.wish.required) {
            problem = start_problem(up);
            return;
        }
    } else rest(which);
    answer_waiting_lists();
    settle(which);
}

auto gateway::state::start_problem(const upstream& of) const -> error {
    std::string detail = "the server " + of.wish.name + " could not be started: " + of.problem;
    // What it had to say, in lines of their own.
    if (!of.tail.empty()) detail += "\n" + of.tail;
    return {errc::wrong_state, step_name{"mcp.start"}.text, 0, std::move(detail),
            "start " + of.wish.argv.front() +
                " by hand to see why; a slow start needs a longer --start-timeout"};
}

void gateway::state::rest(std::size_t which) {
    auto& up = ups[which];
    const bool lived = up.came_up >= up.began && now - up.came_up >= long_life;
    up.pause = lived || up.pause == nanoseconds{}
                   ? first_rest
                   : std::min<nanoseconds>(2 * up.pause, longest_rest);
    while (!up.restarts.empty() && now - up.restarts.front() >= restart_window)
        up.restarts.pop_front();
    if (lived) up.restarts.clear();
    if (up.restarts.size() >= most_restarts) {
        up.now = upstream::phase::gone;
        note(up, "the server " + up.wish.name + " " + up.problem +
                     " and is not started again: it was started again " +
                     std::to_string(most_restarts) + " times in 10 minutes");
        return;
    }
    up.restarts.push_back(now);
    up.now = upstream::phase::resting;
    up.rest_until = now + up.pause;
    // Each time, since it cannot be often.
    out.note("the server " + up.wish.name + " " + up.problem + " and is started again in " +
             std::to_string(std::chrono::duration_cast<seconds>(up.pause).count()) + " s");
}

} // namespace glove::kernel
