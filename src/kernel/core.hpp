// The state of the mediation; what is done with it is in the files beside this one, a concern each:
//
//   gateway.cpp       the turn, time, the end
//   sessions.cpp      agents: their lines, initialize, lists
//   tool_calls.cpp    tools/call: the policy, the record, the server, and back
//   relays.cpp        resources, prompts, completion, logging
//   upstreams.cpp     servers: start, initialize, death, rest
//   answers.cpp       lines of servers, and their answers
//   asks.cpp          what servers ask of agents
//   notices.cpp       notifications of servers
//   listings.cpp      lists of servers, drained page by page
//   tools.cpp         a list of tools, judged and pinned
//   recorder.cpp      the audit log
#pragma once
#include "kernel/call_table.hpp"
#include "kernel/catalog.hpp"
#include "kernel/recorder.hpp"
#include <deque>
#include <glove/kernel/gateway.hpp>
#include <glove/mcp/message.hpp>
#include <set>

namespace glove::kernel {

using std::chrono::nanoseconds;
using std::chrono::seconds;

inline constexpr unsigned most_malformed_lines = 100; // of an agent, in a row
inline constexpr unsigned most_banner_lines = 64;     // of a server before its first answer
inline constexpr unsigned most_pages = 1000;
inline constexpr std::size_t most_asks = 64;           // open at one agent
inline constexpr std::size_t most_subscriptions = 256; // of one agent
inline constexpr std::size_t most_unsettled = most_sessions * most_subscriptions; // of a server
inline constexpr std::size_t longest_key = 8UL << 10;      // a URI, or the name of a prompt
inline constexpr std::size_t longest_template = 4UL << 10; // of URIs
inline constexpr std::size_t most_meta = 16UL << 10;
// Slots of the table of calls that are kept for starts and lists of servers.
inline constexpr std::size_t reserved_slots = 512;
inline constexpr std::size_t most_definition = 1UL << 20; // of a tool or another listed thing
inline constexpr std::size_t most_members = 4096;         // of each object in one
inline constexpr std::size_t most_notes_of_server = 64;
// Of one agent that is not welcome yet; the last one may go beyond the bytes.
inline constexpr std::size_t most_held_lines = 256, most_held_bytes = 1UL << 20;
inline constexpr seconds between_listings{1};
inline constexpr seconds list_patience{60}; // of an agent that waits for a list

struct open_request {
    std::uint32_t hash = 0; // of the agent's id
    std::uint64_t call = 0;
};
// A request for a list that is being fetched.
struct waiting_list {
    std::string id;
    listing_kind kind{};
    nanoseconds deadline{};
};
// What came before the agent was welcome.
struct held_line {
    std::string id; // of a request; empty: of something else
    std::string text;
};
struct subscription {
    std::uint32_t upstream = 0;
    std::string uri;
};
// What a server asked, and an agent has not answered.
struct ask {
    std::uint64_t id = 0; // towards the agent
    std::uint32_t upstream = 0;
    std::string upstream_id, token; // raw
    std::string subject;
    std::uint64_t number = 0; // of the record
    nanoseconds began{};
};

struct session {
    enum class phase : std::uint8_t { absent, fresh, waiting, ready, closing };
    phase now = phase::absent;
    std::string initialize_id; // while `waiting`
    std::string_view revision;
    bool samples = false, elicits = false;
    bool listed = false;
    unsigned malformed = 0;
    int level = -1; // of log messages; -1: not set
    std::vector<open_request> requests;
    std::vector<waiting_list> lists;
    std::vector<subscription> subscriptions;
    std::vector<ask> asks;
    std::uint64_t next_ask = 1;
    std::deque<held_line> held;
    std::size_t held_bytes = 0;
    [[nodiscard]] auto is_full() const -> bool {
        return held.size() >= most_held_lines || held_bytes >= most_held_bytes;
    }
};

struct listing {
    bool running = false, again = false, done = false;
    unsigned pages = 0;
    std::vector<std::string> cursors;
    wire::json::array gathered;
    std::size_t bytes = 0;
    nanoseconds began{};            // the last time
    std::vector<listed_item> items; // of all kinds but tools
};

struct upstream {
    enum class phase : std::uint8_t {
        starting,     // its process is being made
        initializing, // asked
        listing,      // for the first time in this life
        up,
        stopping, // until its process has ended
        resting,  // until it is started again
        gone,     // for good
    };
    mcp::upstream_wish wish;
    std::string server; // what its pins are of
    phase now = phase::gone;
    bool settled = false; // up or gone for the first time
    std::string problem;  // why it is not up, for the operator
    std::string_view revision;
    bool has_tools = false, has_resources = false, has_prompts = false, has_completions = false,
         has_logging = false, subscribes = false;
    std::array<bool, listing_kinds> tells_changes{};
    std::string instructions, instructions_digest, instructions_raw;
    policy::pin_state instructions_pin = policy::pin_state::first_use;
    unsigned malformed = 0;
    int level = -1; // of log messages, as it was told
    // One request of Glove's own of each kind is open at a time; what changes meanwhile is sent
    // afterwards, as it is then.
    std::array<bool, own_kinds> own_open{};
    std::set<std::string, std::less<>> unsettled; // URIs of subscriptions to be told of
    nanoseconds began{}, came_up{}, rest_until{}, pause{};
    std::uint64_t number = 0;                // of the record of its start; 0: it has an outcome
    std::set<std::string, std::less<>> said; // to the operator
    std::string tail;                        // of its stderr
    std::deque<nanoseconds> restarts;
    std::array<listing, listing_kinds> lists;
    nanoseconds start_timeout{}, call_timeout{};
    [[nodiscard]] auto at(listing_kind kind) -> listing& {
        return lists[static_cast<std::size_t>(kind)];
    }
    [[nodiscard]] auto is_alive() const -> bool {
        return now == phase::listing || now == phase::up;
    }
};

struct gateway::state {
    gateway_options options;
    gateway_parts parts;
    outlet& out;
    recorder log;
    naming names;
    std::vector<upstream> ups;
    std::vector<session> sessions = std::vector<session>(most_sessions);
    call_table calls;
    catalog tools;
    std::size_t open_calls = 0; // of agents
    std::size_t unwelcome = 0;  // agents that are not welcome yet
    std::size_t lists_wait = 0; // requests for lists that are not answered yet
    bool lists_held = false;    // for agents that have too much to read
    gateway_counts counts;
    nanoseconds now{}, began{};
    bool ended = false;
    std::optional<error> problem;
    mcp::message_reader agent_reader, upstream_reader = mcp::message_reader::of_servers();
    const mcp::line_reader::line* upstream_text = nullptr; // what `upstream_reader` has read
    wire::json::outline meta_outline;
    std::string room, more_room; // reused

    state(gateway_options wanted, const gateway_parts& given);
    [[nodiscard]] auto is_over() const -> bool { return ended || problem || log.problem(); }

    // gateway.cpp
    [[nodiscard]] auto is_ready() const -> bool;
    [[nodiscard]] auto deadline() -> std::optional<nanoseconds>;
    void advance();
    void end(std::string_view why);
    void let_agents_in(); // those that wait for their initialize to be answered

    // sessions.cpp
    void agent_line(session_id from, const mcp::line_reader::line& line);
    void take_message(session_id from, const mcp::message& what);
    void hold_line(session_id from, std::string_view text, const mcp::message& what);
    void take_held_line(session_id from);
    void agent_request(session_id from, const mcp::message& what);
    void agent_notification(session_id from, const mcp::message& what);
    void initialize_agent(session_id from, const mcp::message& what);
    void welcome(session_id which);
    [[nodiscard]] auto instructions_for_agents() const -> std::string;
    void list_for_agent(session_id from, const mcp::message& what, listing_kind kind);
    void answer_list(session_id to, const std::string& id, listing_kind kind);
    void answer_waiting_lists();
    void end_waiting_lists(); // whose time is over
    [[nodiscard]] auto may_answer(session_id to, listing_kind kind) -> bool;
    void cancel_by_agent(session_id from, const mcp::message& what);
    void session_gone(session_id which);
    void refuse(session_id to, std::string_view id, mcp::code number, std::string_view words);
    void malformed_line(session_id from, const mcp::refusal& why);
    [[nodiscard]] auto find_request(const session& of, std::string_view id) -> call*;
    [[nodiscard]] auto is_open(const session& of, std::string_view id) -> bool;
    void tell_ready_agents(std::string_view method);
    [[nodiscard]] auto hears(session_id which) const -> bool; // notifications

    // tool_calls.cpp
    void call_tool(session_id from, const mcp::message& what);
    // The params of a call.
    struct asked_tool {
        std::string_view name;
        const wire::json::slice* arguments = nullptr;
        const wire::json::slice* meta = nullptr;
    };
    [[nodiscard]] auto read_call(const wire::json::slice* params, asked_tool& into)
        -> std::string_view; // a complaint
    [[nodiscard]] auto judge(const tool& called, const wire::json::value* arguments) const
        -> policy::verdict;
    void refuse_unknown(session_id from, std::string_view id, std::string_view name,
                        const std::string* arguments);
    void send_call(call& made, const asked_tool& asked);
    [[nodiscard]] auto take_arguments(const wire::json::slice* from, wire::json::value* tree)
        -> std::string_view; // a complaint
    void finish_tool(call& of, const mcp::message& answer);
    void finish_tool_failure(call& of, const mcp::message& answer);
    void finish_redacted_failure(call& of, std::string_view failure);
    // A call of an agent.
    struct wanted_call {
        session_id from;
        std::string_view id;
        std::size_t upstream;
        nanoseconds patience;
        std::string_view subject;     // of the record
        const std::string* arguments; // of the record; may be null
    };
    // Whether it could be opened; otherwise it was refused, with an answer.
    [[nodiscard]] auto has_room(const wanted_call& what) -> bool;
    // After `has_room`; null when it could not be put on record.
    [[nodiscard]] auto open_call(const wanted_call& what) -> call*;
    // For an agent, whole or in parts; empty: nothing.
    struct outgoing {
        std::string head = {};
        mcp::shared_text body = {};
        std::string tail = {};
    };
    // Of one that is closed: it never leaves, or the server is told with these params.
    void cancel(std::size_t at, std::uint64_t id, const std::string& params);
    // Closes it: the record, and then `message` for the agent.
    void close_call(call& of, audit::status status, std::string_view why, outgoing message);
    // The answer to a call with this part of the server's line as its result.
    [[nodiscard]] auto answer_with(const call& of, std::string_view result) const -> outgoing;
    void fail_call(call& of, mcp::code number, std::string_view words, std::string_view why);
    [[nodiscard]] auto has_call(const session& of, std::size_t at) -> bool; // of the server
    // Rewrites the token of `_meta`; false when it was refused.
    [[nodiscard]] auto put_meta(std::string& to, const wire::json::slice& meta, call& of) -> bool;
    [[nodiscard]] auto check_meta(const wire::json::slice* meta) -> std::string_view; // complaint
    void record_refusal(std::string_view subject, const std::string* arguments,
                        audit::status status, std::string_view why);

    // relays.cpp
    void relay_request(session_id from, const mcp::message& what);
    struct route {
        std::optional<std::size_t> upstream;
        std::string name, problem; // the server's name of a prompt; why there is none
    };
    [[nodiscard]] auto route_of_uri(std::string_view uri) -> route;
    [[nodiscard]] auto route_of_prompt(std::string_view name) -> route;
    struct target {
        bool completes = false, by_prompt = false;
        std::string key;
        route where;
    };
    [[nodiscard]] auto target_of(std::string_view method, const wire::json::value& params)
        -> std::expected<target, std::string_view>; // a complaint
    [[nodiscard]] static auto params_for(const target& to, const wire::json::value& params)
        -> std::string;
    [[nodiscard]] static auto offers(const upstream& of, std::string_view method) -> bool;
    [[nodiscard]] auto unsubscribes(session_id from, std::size_t at, std::string_view uri) -> bool;
    void finish_relayed(call& of, const mcp::message& answer);
    void set_level(session_id from, const mcp::message& what);
    void send_level(std::size_t to);
    void subscribe_again(std::size_t to);
    void forget_subscription(const subscription& which);
    void send_subscription(std::size_t to); // the next that is not as it should be
    [[nodiscard]] auto is_subscribed(std::size_t at, std::string_view uri) -> bool; // or soon
    [[nodiscard]] auto open_subscriptions(const session& of) -> std::size_t; // not answered yet
    void finish_own(call& of);
    // False when it cannot be sent now.
    auto own_request(std::size_t to, own_kind kind, std::string_view method,
                     std::string_view params) -> bool;

    // What the operator is told of a server: each thing once, and not without end, so that no
    // server speaks for all.
    void note(upstream& of, std::string words);

    // upstreams.cpp
    void start_upstream(std::size_t which);
    void upstream_started(std::size_t which);
    void initialized(call& of, const mcp::message& answer);
    void take_capabilities(upstream& of, const wire::json::value& offers);
    [[nodiscard]] auto take_instructions(upstream& of, const std::string* words) -> bool;
    void come_up_when_listed(std::size_t which);
    void upstream_ended(std::size_t which, std::string_view how, std::string_view tail);
    // Its calls are answered, and its process is ended; it may be started again.
    void fail_upstream(std::size_t which, mcp::code number, std::string_view words,
                       std::string_view why);
    void fail_calls_of(std::size_t which, mcp::code number, std::string_view words,
                       std::string_view why);
    void settle(std::size_t which);
    void record_start_failure(upstream& of, std::string_view why);
    [[nodiscard]] auto start_problem(const upstream& of) const -> error;
    void rest(std::size_t which);

    // answers.cpp
    void upstream_line(std::size_t from, const mcp::line_reader::line& line);
    void malformed_answer(std::size_t from, const mcp::refusal& why);
    void upstream_answer(std::size_t from, const mcp::message& what);
    void due(call& of);

    // asks.cpp
    void upstream_request(std::size_t from, const mcp::message& what);
    void answer_roots(std::size_t from, const mcp::message& what);
    void ask_agent(std::size_t from, const mcp::message& what, mcp::feature feature);
    void agent_answer(session_id from, const mcp::message& what);
    void drop_asks(session_id of, std::size_t upstream, bool tell_upstream);
    void refuse_upstream(std::size_t to, std::string_view id, mcp::code number,
                         std::string_view words);
    void put_ask_meta(std::string& to, ask& of);
    void close_ask(const ask& of, audit::status status, std::string_view why);
    void progress_of_agent(session_id from, const mcp::message& what);
    void cancel_by_upstream(std::size_t from, const mcp::message& what);

    // notices.cpp
    void upstream_notification(std::size_t from, const mcp::message& what);
    void progress_of_upstream(std::size_t from, const mcp::message& what);
    void log_message(std::size_t from, const mcp::message& what);
    void resource_updated(std::size_t from, const mcp::message& what);
    void to_agent_unless_slow(session_id to, std::string message);
    [[nodiscard]] static auto safe_params(const mcp::message& what) -> std::string;

    // listings.cpp
    void begin_listing(std::size_t of, listing_kind kind);
    void relist(std::size_t of, listing_kind kind); // when it may be
    void ask_page(std::size_t of, listing_kind kind, std::string_view cursor);
    void finish_page(call& of, const mcp::message& answer);
    // False when there are too many.
    [[nodiscard]] auto take_page(std::size_t of, listing_kind kind, std::string_view items) -> bool;
    [[nodiscard]] auto name_of_deep(std::string_view item, std::string_view key) -> std::string;
    void finish_listing(std::size_t of, listing_kind kind);
    void list_failed(std::size_t of, listing_kind kind, std::string_view why);
    void forget_list(std::size_t of, listing_kind kind); // the server has none
    [[nodiscard]] auto lists(const upstream& of, listing_kind kind) const -> bool;

    // tools.cpp
    void take_tools(std::size_t of, const wire::json::array& definitions);
    void judge(tool& each) const;
    void pin(std::vector<tool>& all);
    void take_items(std::size_t of, listing_kind kind, const wire::json::array& items);
};

// Of a log message, from 0 for debug; -1 when there is no such word.
[[nodiscard]] auto level_of(std::string_view word) noexcept -> int;
[[nodiscard]] auto hash_of(std::string_view id) noexcept -> std::uint32_t;
// Text of the other side in a message or a record: printable, and short.
[[nodiscard]] auto excerpt(std::string_view text, std::size_t longest = 200) -> std::string;
// Members of an object as they are, without the one named.
void put_members(std::string& to, std::span<const wire::json::slice> members,
                 std::string_view without);

} // namespace glove::kernel
