// Counts what the agent writes on its way to Glove's own stdout and stderr.
//
// Guarantees: bytes pass unchanged and in order; exactly `limit` of them pass; the relay never
// blocks in a write to a pipe, so a reader that does not read cannot stop the clock of the run.
// Streams that are one file for the caller stay one for the agent.
#pragma once
#include <array>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/sys/fd.hpp>
#include <poll.h>
#include <string>
#include <vector>

namespace glove::run {

class output_relay {
public:
    [[nodiscard]] static auto create(std::uint64_t limit) -> result<output_relay>;

    // What the agent gets as 1 and 2; call `agent_has_streams` once it has them.
    [[nodiscard]] auto agent_streams() const -> std::array<int, 2>;
    void agent_has_streams();

    // What to wait for now; one or two entries, none once both streams have ended.
    [[nodiscard]] auto interest() const -> std::vector<::pollfd>;
    void advance(const std::vector<::pollfd>& ready);
    [[nodiscard]] auto limit_reached() const noexcept -> bool {
        return passed_ == limit_ && excess_;
    }
    [[nodiscard]] auto passed() const noexcept -> std::uint64_t { return passed_; }
    // Fails when output was lost for another reason than a reader that has gone.
    [[nodiscard]] auto check() const -> result<>;

private:
    struct channel {
        sys::unique_fd from, agent_end;
        int to = -1;
        std::string waiting = {}; // read, not yet written
        bool ended = false;
    };
    explicit output_relay(std::uint64_t limit) : limit_{limit} {}
    void read(channel& from);
    void write(channel& to);
    void let_go(channel& done);

    std::vector<channel> channels_;
    sys::unique_fd nothing_; // /dev/null
    std::uint64_t limit_;
    std::uint64_t passed_ = 0;
    bool excess_ = false; // the agent wrote more than may pass
    int lost_ = 0;        // errno of the first read or write that failed
};

} // namespace glove::run
