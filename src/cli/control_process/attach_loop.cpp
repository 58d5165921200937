// A page, a look at what happened here, and again.
#include "cli/control_process/attach_loop.hpp"
#include <algorithm>
#include <glove/base/text.hpp>

namespace glove::cli {

auto attach_loop::fetch() -> result<maybe_end> {
    GLOVE_TRY(const auto answer, asks_.look("attach", page_request(wish_.session_id, cursor_)));
    if (!answer) {
        auto out = end(attach_outcome::refused);
        out.refusal = answer.error();
        out.method = "attach";
        return out;
    }
    const auto page = decode_page(*answer, wish_.session_id, cursor_);
    if (!page)
        return fail(errc::corrupt, "client.reply",
                    "the service's result is not what the method gives: " + page.error().detail);
    const bool full = page->bytes.size() == most_page_bytes;
    if (!passes_over_) {
        if (page->truncated)
            screen_.remark(std::to_string(page->cursor() - cursor_) +
                           " bytes before this are no longer kept");
        if (!page->bytes.empty() || page->eof) GLOVE_CHECK(screen_.show(*page, *answer));
    }
    passes_over_ = passes_over_ && full;
    cursor_ = page->next_cursor;
    if (page->eof) return end(attach_outcome::ended);
    if (full) pause_ = {};
    else if (!page->bytes.empty()) pause_ = quickest;
    else pause_ = std::clamp(pause_ * 5 / 4, quickest, slowest);
    return std::nullopt;
}

auto attach_loop::changed(std::string_view method, std::string payload, std::string_view tolerated,
                          std::string_view what) -> result<maybe_end> {
    GLOVE_TRY(const auto answer, asks_.change(method, std::move(payload)));
    if (answer) {
        complained_ = false;
        return std::nullopt;
    }
    if (answer.error().code == tolerated) {
        if (!complained_)
            screen_.remark(std::string{what} + ": " + printable(answer.error().message));
        complained_ = true;
        return std::nullopt;
    }
    auto out = end(attach_outcome::refused);
    out.refusal = answer.error();
    out.method = method;
    return out;
}

auto attach_loop::pass_on(std::string_view typed) -> result<maybe_end> {
    for (; !typed.empty(); typed.remove_prefix(std::min(typed.size(), most_input_piece))) {
        GLOVE_TRY(auto ended,
                  changed("write_stdin",
                          input_request(wish_.session_id, typed.substr(0, most_input_piece)),
                          "session_input_failed", "what was typed may not have arrived"));
        if (ended) return ended;
    }
    pause_ = {};
    return std::nullopt;
}

auto attach_loop::tell_size(const window_size& size) -> result<maybe_end> {
    pause_ = {}; // it will be drawn anew
    return changed("resize", resize_request(wish_.session_id, size), "session_resize_failed",
                   "the session's terminal does not have the size of this window");
}

// What was typed before the key that leaves still goes in.
auto attach_loop::heed(const attached_screen::news& what) -> result<maybe_end> {
    if (what.signal != 0) {
        auto out = end(attach_outcome::signaled);
        out.signal = what.signal;
        return out;
    }
    if (what.size) {
        GLOVE_TRY(auto ended, tell_size(*what.size));
        if (ended) return ended;
    }
    if (!what.typed.empty()) {
        GLOVE_TRY(auto ended, pass_on(what.typed));
        if (ended) return ended;
    }
    if (what.detaches) return end(attach_outcome::detached);
    if (what.hung_up) return end(attach_outcome::hung_up);
    return std::nullopt;
}

auto attach_loop::go_on() -> result<maybe_end> {
    GLOVE_TRY(auto ended, fetch());
    if (ended) return ended;
    GLOVE_TRY(const auto happened, screen_.wait(pause_));
    return heed(happened);
}

// A request that was given up because of a signal is no failure of anybody's.
auto attach_loop::run() -> result<attach_end> {
    for (;;) {
        auto ended = go_on();
        if (ended && *ended) return **std::move(ended);
        if (ended) continue;
        const auto happened = screen_.wait(std::chrono::milliseconds{0});
        if (!happened || happened->signal == 0) return std::unexpected(std::move(ended).error());
        auto out = end(attach_outcome::signaled);
        out.signal = happened->signal;
        return out;
    }
}

} // namespace glove::cli
