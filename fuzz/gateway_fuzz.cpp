// Whatever agents and servers say, in whatever order, and whenever they come and go: no intent is
// left without its outcome when all has ended, none has two; nothing is sent to a server as a call
// that no intent on record stands for; nothing leaves after a record could not be kept; every line
// that leaves is one message, which the strict reader takes; and how much leaves is bounded by how
// much came.
//
// A line of the input is an event, and a turn, unless `+` lines are around several:
//
//   o        an agent comes                     aI TEXT  agent I says the text
//   gI       agent I goes                       AI xN    agent I says sentence x, with the number N
//   sJ       server J has been started          uJ TEXT  server J says the text
//   eJ       server J has ended                 UJ x     server J answers the oldest request in way
//   x bJ       server J reads, or reads no more   QJ       server J answers everything as it should
//   tN       N tenths of a second pass          f        the next commit fails
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <glove/base/ascii.hpp>
#include <glove/kernel/gateway.hpp>
#include <glove/mcp/message.hpp>
#include <map>

namespace {

using namespace glove;
using kernel::session_id;

void require(bool holds) {
    if (!holds) std::abort();
}

constexpr std::size_t servers = 2, agents = 4;

class clock final : public sys::clock {
public:
    std::chrono::nanoseconds now = std::chrono::seconds{1000};
    [[nodiscard]] auto monotonic() const noexcept -> std::chrono::nanoseconds override {
        return now;
    }
    [[nodiscard]] auto wall() const noexcept -> std::chrono::nanoseconds override { return now; }
};

// Keeps of each call how many intents and outcomes of it are on record.
class record final : public audit::batching_sink {
public:
    bool fails = false, failed = false;
    std::size_t calls = 0; // intents of tools and relayed requests, on record

    [[nodiscard]] auto append(const audit::event& what) -> result<> override {
        GLOVE_CHECK(stage(what));
        return commit();
    }
    [[nodiscard]] auto stage(const audit::event& what) -> result<> override {
        require(!failed);
        staged_.push_back(what);
        return {};
    }
    [[nodiscard]] auto commit() -> result<> override {
        if (fails && !staged_.empty()) {
            failed = true;
            return fail(errc::io, "fuzz.commit");
        }
        for (const auto& each : staged_) keep(each);
        staged_.clear();
        return {};
    }
    void check_the_end() const {
        for (const auto& [call, of] : entries_)
            require(failed || of.intents == 0 || of.outcomes == 1);
    }

private:
    struct entry {
        int intents = 0, outcomes = 0;
    };
    void keep(const audit::event& what) {
        auto& of = entries_[what.call];
        if (what.status == audit::status::pending) {
            require(++of.intents == 1 && of.outcomes == 0);
            if (what.action == audit::action::call_tool) ++calls;
        } else require(++of.outcomes == 1);
    }
    std::vector<audit::event> staged_;
    std::map<std::string, entry> entries_;
};

struct line {
    std::string text;
    std::uint64_t call = 0; // 0: none
};

class outside final : public kernel::outlet {
public:
    struct server {
        std::deque<line> waiting; // in its queue
        std::deque<std::string> heard;
        bool reads = true, runs = false;
    };
    std::array<server, servers> of_servers;
    std::map<session_id, std::size_t> of_agents; // bytes
    std::vector<std::size_t> to_start, to_stop;
    std::vector<session_id> to_close;
    std::size_t lines = 0, calls_sent = 0;

    void to_agent(session_id to, std::string message) override { held_.push_back({to, message}); }
    void to_upstream(std::size_t to, std::string message) override {
        to_upstream(to, std::move(message), 0);
    }
    void to_upstream(std::size_t to, std::string message, std::uint64_t call) override {
        of_servers.at(to).waiting.push_back({std::move(message), call});
    }
    [[nodiscard]] auto take_back(std::size_t from, std::uint64_t call) -> bool override {
        return std::erase_if(of_servers.at(from).waiting,
                             [&](const line& each) { return each.call == call; }) > 0;
    }
    void close_agent(session_id which) override { to_close.push_back(which); }
    void start_upstream(std::size_t which) override { to_start.push_back(which); }
    void stop_upstream(std::size_t which) override { to_stop.push_back(which); }
    // As if each byte were many, so that the bounds are reached.
    [[nodiscard]] auto waiting_for_agent(session_id which) const -> std::size_t override {
        const auto found = of_agents.find(which);
        return found == of_agents.end() ? 0 : found->second;
    }
    [[nodiscard]] auto waiting_for_upstream(std::size_t which) const -> std::size_t override {
        std::size_t out = 0;
        for (const auto& each : of_servers.at(which).waiting) out += each.text.size();
        return out * 8192;
    }
    void note(std::string words) override { require(!words.empty()); }

    // After a commit; `kept` says whether it was one.
    void leave(bool kept) {
        for (auto& [to, text] : held_) {
            if (!kept) continue;
            check(text);
            of_agents[to] = text.size() > 300 ? kernel::most_waiting_bytes : 0;
        }
        held_.clear();
        for (auto& each : of_servers) {
            if (!kept || !each.runs) each.waiting.clear();
            if (!each.reads) continue;
            for (auto& one : each.waiting) {
                check(one.text);
                if (one.text.contains("\"method\":\"tools/call\"")) ++calls_sent;
                each.heard.push_back(std::move(one.text));
            }
            each.waiting.clear();
        }
    }

private:
    void check(const std::string& text) {
        ++lines;
        require(text.find_first_of("\r\n") == text.npos && !text.contains("\xe2\x80\xa8"));
        auto reader = mcp::message_reader::of_servers();
        // A refusal of what has no id is the one message with `null` for one.
        require(reader.read(text).has_value() ||
                (text.starts_with(R"({"jsonrpc":"2.0","id":null,"error":)") &&
                 wire::json::read(text).has_value()));
    }
    std::vector<std::pair<session_id, std::string>> held_;
};

[[nodiscard]] auto rules() -> const policy::engine& {
    static const auto made = [] {
        const std::vector<std::string> names{"a", "b"};
        constexpr std::string_view file = "[tool.\"b.two\"]\nallow = true\nadditional = true\n"
                                          "forbidden = [\"/no\"]\nredact = [\"x+\"]\n"
                                          "[tool.\"a.few\"]\nallow = true\ncalls = 2\n";
        auto out = policy::engine::parse({.allow = {"a.*", "b.one"}}, file, names, "/");
        require(out.has_value());
        return *std::move(out);
    }();
    return made;
}

[[nodiscard]] auto options() -> kernel::gateway_options {
    kernel::gateway_options out;
    for (const auto* name : {"a", "b"})
        out.upstreams.push_back({.name = name,
                                 .argv = {"/server"},
                                 .environment = {},
                                 .passed = {},
                                 .directory = {},
                                 .required = false});
    for (const auto* word :
         {"resources", "prompts", "completion", "logging", "sampling", "elicitation"})
        out.relay.add(*mcp::relayable(word));
    out.result_bytes = 2000;
    out.run = "run";
    out.version = "1";
    return out;
}

constexpr std::string_view sentences[] = {
    R"({"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{},"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}})",
    R"({"jsonrpc":"2.0","method":"notifications/initialized"})",
    R"({"jsonrpc":"2.0","id":@,"method":"tools/call","params":{"name":"a__one","arguments":{"x":@},"_meta":{"progressToken":@}}})",
    R"({"jsonrpc":"2.0","id":@,"method":"tools/call","params":{"name":"b__two","arguments":{"x":"@"}}})",
    R"({"jsonrpc":"2.0","id":@,"method":"tools/call","params":{"name":"b__two","arguments":{"no":@}}})",
    R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":@}})",
    R"({"jsonrpc":"2.0","id":@,"method":"tools/list"})",
    R"({"jsonrpc":"2.0","id":@,"method":"resources/list"})",
    R"({"jsonrpc":"2.0","id":@,"method":"resources/read","params":{"uri":"f:@"}})",
    R"({"jsonrpc":"2.0","id":@,"method":"resources/subscribe","params":{"uri":"f:@"}})",
    R"({"jsonrpc":"2.0","id":@,"method":"resources/unsubscribe","params":{"uri":"f:@"}})",
    R"({"jsonrpc":"2.0","id":@,"method":"logging/setLevel","params":{"level":"debug"}})",
    R"({"jsonrpc":"2.0","id":@,"result":{"role":"x"}})",
    R"({"jsonrpc":"2.0","id":@,"method":"tools/call","params":{"name":"a__few"}})",
    R"({"jsonrpc":"2.0","id":@,"method":"ping"})",
    R"({"jsonrpc":"2.0","id":@,"method":"prompts/get","params":{"name":"a__p"}})"};

[[nodiscard]] auto with_number(std::string_view sentence, std::string_view number) -> std::string {
    std::string out;
    for (const char c : sentence) c == '@' ? out.append(number) : out.append(1, c);
    return out;
}

constexpr std::string_view capabilities =
    R"({"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"logging":{},"completions":{}},"serverInfo":{"name":"s","version":"1"}})";

// By the method of the request.
[[nodiscard]] auto good_result(std::string_view method) -> std::string_view {
    if (method == "initialize") return capabilities;
    if (method == "tools/list")
        return R"({"tools":[{"name":"one","inputSchema":{}},{"name":"two","inputSchema":{}},{"name":"few","inputSchema":{}}]})";
    if (method == "resources/list") return R"({"resources":[{"uri":"f:1","name":"n"}]})";
    if (method == "resources/templates/list")
        return R"({"resourceTemplates":[{"uriTemplate":"f:{x}","name":"n"}]})";
    if (method == "prompts/list") return R"({"prompts":[{"name":"p"}]})";
    return R"({"content":[{"type":"text","text":"xx"}]})";
}

class play {
public:
    play()
        : gate_{kernel::gateway::make(options(), {out_, log_, rules(), meter_, nullptr, time_})
                    .value()} {
        turn([&] { gate_.start(); });
    }

    void event(std::string_view said) {
        ++events_;
        const char what = said.front();
        const auto number = said.size() > 1 ? static_cast<unsigned char>(said[1]) - '0' : 0U;
        const auto rest = said.size() > 3 ? said.substr(3) : std::string_view{};
        const auto at = number % servers;
        const auto from = static_cast<session_id>(number % agents);
        switch (what) {
        case '+': return whole_ = !whole_, end_turn();
        case 'o': return turn([&] { come(); });
        case 'g': return turn([&] { go(from); });
        case 'a': return turn([&] { say(from, std::string{rest}); });
        case 'A':
            return turn([&] {
                if (!rest.empty())
                    say(from,
                        with_number(
                            sentences[static_cast<unsigned char>(rest[0]) % std::size(sentences)],
                            digits(rest.substr(1))));
            });
        case 's': return turn([&] { start(at); });
        case 'e': return turn([&] { stop(at); });
        case 'u': return turn([&] { tell(at, std::string{rest}); });
        case 'U': return turn([&] { answer(at, rest.empty() ? 'a' : rest[0]); });
        case 'Q':
            for (int i = 0; i < 12; ++i) turn([&] { answer(at, 'a'); });
            return;
        case 'b': out_.of_servers.at(at).reads = !out_.of_servers.at(at).reads; return end_turn();
        case 't': time_.now += std::chrono::milliseconds{100 * number * number}; return end_turn();
        case 'f': log_.fails = true; return;
        default: return;
        }
    }

    void end() {
        whole_ = false;
        end_turn();
        turn([&] { gate_.end("over"); });
        log_.check_the_end();
        for (session_id i = 0; i < agents; ++i) require(log_.failed || gate_.open_requests(i) == 0);
    }

private:
    [[nodiscard]] static auto digits(std::string_view text) -> std::string {
        const auto end = std::ranges::find_if_not(text, is_digit);
        std::string out{text.begin(), end};
        return out.empty() || out[0] == '0' || out.size() > 9 ? "7" : out;
    }
    template<class F> void turn(const F& what) {
        if (!open_) gate_.begin_turn();
        open_ = true;
        if (!log_.failed) what();
        if (!whole_) end_turn();
    }
    void end_turn() {
        if (!open_) gate_.begin_turn();
        open_ = false;
        if (log_.failed) return;
        gate_.advance();
        // Whatever is carried out may bring more.
        for (int i = 0; i < 100; ++i) {
            const auto kept = gate_.commit();
            out_.leave(kept.has_value());
            require(out_.calls_sent <= log_.calls);
            require(out_.lines <= 600 * (events_ + 1));
            if (!kept) return;
            for (const auto which : std::exchange(out_.to_stop, {})) stop(which);
            for (const auto which : std::exchange(out_.to_close, {})) go(which);
            if (!gate_.has_records() && out_.to_stop.empty() && out_.to_close.empty()) break;
        }
    }

    void come() {
        if (there_.size() >= agents) return;
        if (const auto made = gate_.open_session()) there_[*made] = true;
    }
    void go(session_id which) {
        if (there_.erase(which) > 0) gate_.agent_gone(which);
        out_.of_agents.erase(which);
    }
    void say(session_id from, std::string text) {
        std::erase(text, '\n');
        if (text.empty() || !there_.contains(from)) return;
        while (gate_.take_held_line(from)) {
        }
        if (gate_.takes_lines(from)) gate_.agent_line(from, as_line(text));
        require(gate_.open_requests(from) <= 2 * kernel::most_calls_of_a_session + 300);
    }
    void start(std::size_t which) {
        if (std::erase(out_.to_start, which) == 0) return;
        out_.of_servers.at(which) = {};
        out_.of_servers.at(which).runs = true;
        gate_.upstream_started(which);
    }
    void stop(std::size_t which) {
        auto& of = out_.of_servers.at(which);
        if (!std::exchange(of.runs, false) && std::erase(out_.to_start, which) == 0) return;
        of = {};
        gate_.upstream_ended(which, "ended", "tail");
    }
    void tell(std::size_t which, std::string text) {
        std::erase(text, '\n');
        if (!text.empty() && out_.of_servers.at(which).runs)
            gate_.upstream_line(which, as_line(text));
    }
    void answer(std::size_t which, char how) {
        auto& heard = out_.of_servers.at(which).heard;
        while (!heard.empty()) {
            const auto text = std::move(heard.front());
            heard.pop_front();
            mcp::message_reader reader;
            const auto read = reader.read(text);
            require(read.has_value());
            if (read->kind != mcp::message_kind::request) continue;
            return tell(which, "{\"jsonrpc\":\"2.0\",\"id\":" + std::string{read->id} + "," +
                                   rest_of_answer(how, read->method) + "}");
        }
    }
    [[nodiscard]] static auto rest_of_answer(char how, std::string_view method) -> std::string {
        switch (how) {
        case 'e': return R"("error":{"code":1,"message":"xx\r\u2028"})";
        case 'n': return R"("result":null)";
        case 'b': return R"("result":{},"error":{})";
        case 'l': return R"("result":{"x":")" + std::string(3000, 'y') + "\"}";
        case 's': return "\"result\":{\"x\":\"\xe2\x80\xa8\"}";
        case 'd': return "\"result\":{\"x\":" + std::string(100, '[') + std::string(100, ']') + "}";
        case 'p': return R"("result":{"tools":[7,{"name":"one"}],"nextCursor":"c"})";
        default: return "\"result\":" + std::string{good_result(method)};
        }
    }
    // Behind a bound of its own, so that lines that are too long are short, too.
    [[nodiscard]] static auto as_line(const std::string& text) -> mcp::line_reader::line {
        constexpr std::size_t longest = 6000;
        if (text.size() <= longest) return {.text = text, .bytes = text.size()};
        const std::string_view all{text};
        return {.text = all.substr(0, 256),
                .too_long = true,
                .bytes = text.size(),
                .tail = all.substr(all.size() - 2048)};
    }

    clock time_;
    record log_;
    outside out_;
    policy::meter meter_;
    kernel::gateway gate_;
    std::map<session_id, bool> there_;
    std::size_t events_ = 0;
    bool open_ = false, whole_ = false;
};

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    constexpr std::size_t most_events = 400;
    std::string_view rest{reinterpret_cast<const char*>(data), size};
    play of;
    for (std::size_t i = 0; i < most_events && !rest.empty(); ++i) {
        const auto said = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(said.size() + 1, rest.size()));
        if (!said.empty()) of.event(said);
    }
    of.end();
    return 0;
}
