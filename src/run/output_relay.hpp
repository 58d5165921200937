// Counts what the agent writes on its way to Glove's own stdout and stderr, or to the caller's
// terminal.
//
// Guarantees: bytes pass unchanged, but for `returns_are_doubled`, and in order; exactly `limit` of
// them pass; the relay never blocks in a write to a pipe or to a terminal that it has opened
// itself, so a reader that does not read cannot stop the clock of the run. To a terminal that
// cannot be opened anew it writes single bytes, when it takes one; another writer can still be in
// between. Streams that are one file for the caller stay one for the agent.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/sys/fd.hpp>
#include <limits>
#include <poll.h>
#include <span>
#include <vector>

namespace glove::run {

class output_relay {
public:
    static constexpr auto no_limit = std::numeric_limits<std::uint64_t>::max();
    // Pipes for the standard output and error, or for those of them that are `wanted`.
    [[nodiscard]] static auto create(std::uint64_t limit, std::array<bool, 2> wanted = {true, true})
        -> result<output_relay>;

    // The caller's terminal itself puts a carriage return before each new line, as the private one
    // has done already: that one is left out.
    void returns_are_doubled(bool yes) noexcept { returns_are_doubled_ = yes; }

    // What the agent gets as 1 and 2, -1 for one that is not wanted; call `agent_has_streams` once
    // it has them.
    [[nodiscard]] auto agent_streams() const -> std::array<int, 2> { return agent_streams_; }
    void agent_has_streams();
    // The private terminal of the agent, and the borrowed descriptor that its output goes to.
    void add_terminal(sys::unique_fd master, sys::fd_ref to, bool may_block);

    // Every process of the agent's has ended: what is there now is all, whoever outside was handed
    // an end of it and keeps it open.
    void agent_has_ended();

    // Whether it has something for Glove's own standard output.
    [[nodiscard]] auto writes_output() const noexcept -> bool {
        return std::ranges::any_of(channels_, [](const channel& c) { return c.to == 1; });
    }

    // What to wait for now; none once every stream has ended.
    [[nodiscard]] auto interest() const -> std::vector<::pollfd>;
    void interest(std::vector<::pollfd>& into) const;
    void advance(std::span<const ::pollfd> ready);
    [[nodiscard]] auto limit_reached() const noexcept -> bool {
        return passed_ == limit_ && excess_;
    }
    [[nodiscard]] auto passed() const noexcept -> std::uint64_t { return passed_; }
    // Nobody takes the terminal's output any more.
    [[nodiscard]] auto hung_up() const noexcept -> bool { return hung_up_; }
    // Fails when output was lost for another reason than a reader that has gone.
    [[nodiscard]] auto check() const -> result<>;

private:
    struct channel {
        sys::unique_fd from, agent_end;
        sys::unique_fd own = {}; // the terminal that `to` stands for, opened anew
        int to = -1;
        bool is_terminal = false;   // the agent's side is
        std::size_t chunk = 0;      // what a write takes without blocking; 0: anything
        std::vector<char> buffer{}; // read, not yet written: from begin to end
        std::size_t begin = 0, end = 0;
        bool ended = false;
        [[nodiscard]] auto has_waiting() const noexcept -> bool { return begin != end; }
    };
    explicit output_relay(std::uint64_t limit) : limit_{limit} {}
    void add(channel made);
    void read(channel& from);
    static void drop_returns(channel& from);
    void count(channel& from);
    void write(channel& to);
    void lose_reader(channel& to, int os);
    void let_go(channel& done);
    void take_the_rest();

    std::vector<channel> channels_;
    std::array<int, 2> agent_streams_{-1, -1};
    sys::unique_fd nothing_; // /dev/null
    std::uint64_t limit_;
    std::uint64_t passed_ = 0;
    bool excess_ = false; // the agent wrote more than may pass
    bool hung_up_ = false;
    bool agent_ended_ = false;
    bool returns_are_doubled_ = false;
    int lost_ = 0; // errno of the first read or write that failed
};

} // namespace glove::run
