// The channel to `glove`, of a mediation that belongs to a run.
#pragma once
#include <glove/kernel/mediation.hpp>
#include <glove/sys/fd.hpp>
#include <string>
#include <string_view>

namespace glove::kernel {

// A problem in one line, for whoever hears the channel; what a server had to say follows in lines
// of its own.
[[nodiscard]] auto in_words(const error& of) -> std::string;

class control {
public:
    control() = default; // none
    // The descriptor with the agreed number, when it is a channel of messages.
    [[nodiscard]] static auto adopt() -> control;
    explicit operator bool() const noexcept { return static_cast<bool>(socket_); }
    [[nodiscard]] auto descriptor() const noexcept -> sys::fd_ref { return socket_; }
    void say(control_word word, std::string_view words) const; // as much as goes without waiting

    enum class news : std::uint8_t { nothing, listener, ended };
    // One message; a listening socket is put into `listener`.
    [[nodiscard]] auto hear(sys::unique_fd& listener) const -> news;

private:
    sys::unique_fd socket_;
};

} // namespace glove::kernel
