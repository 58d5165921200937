// Between a session's terminal, which is asked for by polling, and the place where it is shown and
// typed at.
//
// Guarantees: what the session showed is shown whole, in order, and once, from the cursor on; bytes
// that the service no longer keeps are told of and never passed over in silence; what is typed goes
// in order, each piece a request of its own; a quiet session is asked for at most every 200 ms and
// one that shows something every 10 ms, or at once while there is more; nothing is interpreted.
#pragma once
#include "cli/control_process/terminal_requests.hpp"
#include <chrono>
#include <functional>
#include <glove/base/error.hpp>
#include <glove/control/client.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace glove::cli {

// Where a session's terminal is shown and typed at.
class attached_screen {
public:
    struct news {
        std::string typed = {};               // to be passed on
        std::optional<window_size> size = {}; // it has another one now
        bool detaches = false;                // somebody typed the key for it
        bool hung_up = false;                 // nobody is there any more
        int signal = 0;                       // that asks this program to end
    };
    virtual ~attached_screen() = default;
    // Until something happened, or for so long.
    [[nodiscard]] virtual auto wait(std::chrono::milliseconds most) -> result<news> = 0;
    // Takes all of a page, or it is an error; `answer` is the page as the service gave it.
    [[nodiscard]] virtual auto show(const shown_page& page, std::string_view answer)
        -> result<> = 0;
    virtual void remark(std::string_view words) = 0;
};

// How the service is asked. A change gets a new key each time.
struct attach_service {
    using ask =
        std::function<result<control::remote_answer>(std::string_view method, std::string payload)>;
    ask look, change;
};

struct attach_wish {
    std::string session_id;
    std::uint64_t cursor = 0;
    bool from_end = false; // what is kept is passed over
};

enum class attach_outcome : std::uint8_t {
    ended, // everything was shown
    detached,
    hung_up,
    signaled,
    refused,
};
struct attach_end {
    attach_outcome how{};
    std::uint64_t cursor = 0; // of what comes next
    int signal = 0;
    control::remote_error refusal = {};
    std::string_view method = {}; // that was refused
};

class attach_loop {
public:
    static constexpr std::chrono::milliseconds quickest{10}, slowest{200};

    attach_loop(attach_wish wish, attach_service asks, attached_screen& screen)
        : wish_{std::move(wish)}, asks_{std::move(asks)}, screen_{screen}, cursor_{wish_.cursor},
          passes_over_{wish_.from_end} {}
    [[nodiscard]] auto run() -> result<attach_end>;

private:
    using maybe_end = std::optional<attach_end>;
    [[nodiscard]] auto go_on() -> result<maybe_end>;
    [[nodiscard]] auto fetch() -> result<maybe_end>;
    [[nodiscard]] auto heed(const attached_screen::news& what) -> result<maybe_end>;
    [[nodiscard]] auto pass_on(std::string_view typed) -> result<maybe_end>;
    [[nodiscard]] auto tell_size(const window_size& size) -> result<maybe_end>;
    // Of a change: what a session that is over, or busy, refuses does not end anything.
    [[nodiscard]] auto changed(std::string_view method, std::string payload,
                               std::string_view tolerated, std::string_view what)
        -> result<maybe_end>;
    [[nodiscard]] auto end(attach_outcome how) const -> attach_end {
        return {.how = how, .cursor = cursor_};
    }

    attach_wish wish_;
    attach_service asks_;
    attached_screen& screen_;
    std::uint64_t cursor_;
    bool passes_over_;
    bool complained_ = false;           // of what could not be passed on
    std::chrono::milliseconds pause_{}; // as short as can be, until nothing comes
};

} // namespace glove::cli
