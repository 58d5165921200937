// The supervisor's end of the channel to init.
//
// Guarantees: sending never waits; what comes is taken for what it claims to be only when the
// kernel says so, and no more than one descriptor of a message is ever let in.
#pragma once
#include "container/linux/protocol.hpp"
#include "container/linux/setup_plan.hpp"
#include <glove/base/error.hpp>
#include <glove/sys/fd.hpp>
#include <sys/types.h>

namespace glove::container {

[[nodiscard]] auto send_order(sys::fd_ref control, order what, std::int32_t value = 0) -> result<>;

// Init is gone, perhaps with an order unread. What it said before it went can still be received.
[[nodiscard]] auto is_hang_up(int os) noexcept -> bool;

struct received_news {
    ssize_t size;
    news_message message;
    sys::unique_fd came;
};
[[nodiscard]] auto receive_news(sys::fd_ref control) -> received_news;

// A socket that listens under the name of `wanted`; it never waits. Nothing of its flags is
// believed.
[[nodiscard]] auto accept_listener(sys::unique_fd came, const listener_setup& wanted)
    -> result<sys::unique_fd>;

// The master of a private terminal, when one is `due`, which it is once. Its flags are not
// believed, nor changed.
[[nodiscard]] auto accept_terminal(sys::unique_fd came, bool& due) -> result<sys::unique_fd>;

} // namespace glove::container
