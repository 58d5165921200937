// What all connections of one `glove-egress` share: the rules and what is left of their bytes, the
// word to the supervisor, the pipes, the limits.
#pragma once
#include "net/egress_protocol.hpp"
#include "net/proxy/stream.hpp"
#include <deque>
#include <glove/net/egress_rules.hpp>
#include <map>
#include <memory>
#include <optional>

namespace glove::net::proxy {

// How many bytes may still pass; shared by all connections of a rule.
struct byte_budget {
    std::optional<std::uint64_t> left; // no limit when empty
    [[nodiscard]] auto allows(std::size_t wanted) const -> std::size_t {
        return left && *left < wanted ? static_cast<std::size_t>(*left) : wanted;
    }
    void spend(std::size_t bytes) {
        if (left) *left -= std::min<std::uint64_t>(*left, bytes);
    }
    [[nodiscard]] auto spent() const -> bool { return left && *left == 0; }
};

// The supervisor's channel. `on_end` is called once, at its end or at the word to finish.
class supervisor_link {
public:
    supervisor_link(asio::io_context& io, sys::unique_fd channel);
    void listen(std::function<void(bool asked)> on_end);
    // Waits while the supervisor is slow.
    [[nodiscard]] auto tell(const egress_message& what) -> awaitable<void>;
    // Without waiting; false when it could not be said.
    auto tell_now(const egress_message& what) -> bool;
    // Whether the intent is on record.
    [[nodiscard]] auto ask(egress_message intent) -> awaitable<bool>;
    [[nodiscard]] auto new_id() -> std::uint64_t { return ++last_id_; }

private:
    struct question {
        explicit question(asio::io_context& io) : bell{io} {}
        proxy::bell bell;
        bool answered = false, recorded = false;
    };
    [[nodiscard]] auto read() -> awaitable<void>;

    asio::io_context& io_;
    stream channel_;
    std::function<void(bool)> on_end_;
    std::map<std::uint64_t, std::shared_ptr<question>> open_;
    std::uint64_t last_id_ = 0;
};

// Bytes on their way between two descriptors: a pipe, or memory when there is none to be had.
class lane {
public:
    lane() = default;
    lane(sys::unique_fd read, sys::unique_fd write, std::size_t capacity)
        : read_{std::move(read)}, write_{std::move(write)}, capacity_{capacity} {}
    [[nodiscard]] static auto of_memory() -> lane;

    // As splice: bytes, 0 at the end, -1 and errno.
    [[nodiscard]] auto fill(stream& from, std::size_t most) -> ssize_t;
    [[nodiscard]] auto drain(stream& to) -> ssize_t;
    [[nodiscard]] auto held() const -> std::size_t { return held_; }
    [[nodiscard]] auto is_pipe() const -> bool { return static_cast<bool>(read_); }

private:
    sys::unique_fd read_, write_;
    std::string memory_;
    std::size_t begin_ = 0, capacity_ = 0, held_ = 0;
};

class lane_pool {
public:
    explicit lane_pool(const proxy_limits& limits) : limits_{limits} {}
    [[nodiscard]] auto take() -> lane;
    void give(lane used); // one with bytes in it is dropped

private:
    const proxy_limits& limits_;
    std::vector<lane> spare_;
};

struct live_session {
    virtual ~live_session() = default;
    // What would be reported if the run ended now; empty when there is nothing to report.
    [[nodiscard]] virtual auto last_word() -> std::optional<egress_message> = 0;
    // Whether bytes of the agent are still on their way out.
    [[nodiscard]] virtual auto has_bytes_to_send() const -> bool = 0;
};

struct core {
    core(asio::io_context& context, egress_configuration settings, egress_rules parsed,
         sys::unique_fd control);

    asio::io_context& io;
    proxy_limits limits;
    egress_rules rules;
    std::vector<byte_budget> budgets; // by the rule's position
    std::string credential;           // base64 of what a session of the second door shows
    supervisor_link link;
    lane_pool lanes;
    std::map<const void*, live_session*> live;
    unsigned active = 0;
    bool told_full = false;
    bell room; // rings when a connection ended

    [[nodiscard]] auto budget_of(const egress_rule& rule) -> byte_budget& {
        return budgets[static_cast<std::size_t>(&rule - rules.all().data())];
    }
    // Whether another connection may begin; says once that others wait.
    [[nodiscard]] auto has_room() -> bool;
};

// Holds one of the places that `connections` limits.
class place {
public:
    explicit place(core& in) : in_{in} { ++in_.active; }
    place(const place&) = delete;
    auto operator=(const place&) -> place& = delete;
    ~place() {
        --in_.active;
        in_.room.ring();
    }

private:
    core& in_;
};

struct lookup_answer {
    std::vector<ip_address> addresses; // in the order in which to dial them
    egress_reason reason{};
    std::string detail;
};
[[nodiscard]] auto look_up(core& in, std::string name) -> awaitable<lookup_answer>;

struct dial_answer {
    std::optional<stream> connection;
    egress_reason reason{};
    int os = 0;
    std::string detail;
};
[[nodiscard]] auto dial(core& in, const egress_rule& rule, destination where)
    -> awaitable<dial_answer>;

} // namespace glove::net::proxy
