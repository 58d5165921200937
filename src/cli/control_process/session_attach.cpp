// A session's terminal in this one, until the session is over or somebody leaves it.
//
// Guarantees: the terminal is put back before anything is told; the status is the session's own
// when it is over, and otherwise says why this ended. The session goes on whatever becomes of this
// program.
#include "cli/control_process/local_screen.hpp"
#include "cli/control_process/session_actions.hpp"
#include "cli/control_process/session_end.hpp"
#include "cli/control_process/session_shown.hpp"
#include <glove/base/text.hpp>
#include <glove/run/exec.hpp>
#include <poll.h>

namespace glove::cli {

namespace {

using control::session_state;
using control::session_view;

// How long the receipt of a session whose terminal has ended may take.
constexpr std::chrono::seconds patience_for_receipt{60};
constexpr std::chrono::milliseconds between_looks{100};
constexpr int refused = static_cast<int>(run::exit_status::refused);

[[nodiscard]] auto check_words(const session_words& words) -> result<> {
    if (words.read_only && words.stdin_too)
        return wrong_usage("--read-only and --stdin are the opposite of each other", session_usage);
    if (words.from && words.from_end)
        return wrong_usage("--from and --from-end name two places", session_usage);
    return {};
}

// One that did not start, or is not started yet, shows nothing.
[[nodiscard]] auto check_state(const session_view& of) -> result<> {
    const auto name = printable(of.session_id);
    switch (of.state) {
    case session_state::created:
        return fail(errc::wrong_state, "attach.state", "session " + name + " has not been started",
                    "glove session start " + name);
    case session_state::preparing:
    case session_state::starting:
        return fail(errc::wrong_state, "attach.state",
                    "session " + name + " is " + std::string{to_string(of.state)},
                    "ask again in a moment, or: glove session status " + name);
    case session_state::failed:
        return fail(errc::wrong_state, "attach.state", "session " + name + " never ran",
                    "the log says why: " + command_for_log());
    case session_state::running:
    case session_state::stopping:
    case session_state::exited: return {};
    }
    return {};
}

class attachment {
public:
    attachment(const session_words& words, const service& asks, const ending_signals& ends)
        : words_{words}, asks_{asks}, ends_{ends} {}

    [[nodiscard]] auto run() -> result<int> {
        GLOVE_TRY(const auto view, look_at(asks_, words_.words[0]));
        if (!view) return told(view.error(), "session_status");
        GLOVE_CHECK(check_state(*view));
        view_ = *view;
        find_place();
        GLOVE_TRY(const auto end, attach());
        switch (end.how) {
        case attach_outcome::refused: return told(end.refusal, end.method);
        case attach_outcome::signaled: return leave(end, 128 + end.signal);
        case attach_outcome::hung_up: return 128 + SIGHUP;
        case attach_outcome::detached: return leave(end, done);
        case attach_outcome::ended: return tell_end();
        }
        return refused;
    }

private:
    using place = result<or_refused<control::receipt_anchor>>;

    // Where its receipt will be: behind the last one, when it is still to come.
    // Without it everything is shown all the same, and what was wrong is told at the end.
    void find_place() { place_ = place_behind(); }
    [[nodiscard]] auto place_behind() -> place {
        GLOVE_TRY(const auto file, anchor_file_of(words_));
        GLOVE_TRY(auto from, beginning(asks_, file, nullptr));
        if (!from || view_.state == session_state::exited) return from;
        chain_walk walk{asks_, nullptr, *std::move(from)};
        GLOVE_TRY(auto page, walk.next(1));
        if (!page) return or_refused<control::receipt_anchor>{std::unexpected(page.error())};
        return or_refused<control::receipt_anchor>{std::move(page->page.local_anchor)};
    }

    [[nodiscard]] auto receipt_of(const session_view& view)
        -> result<or_refused<std::optional<found_end>>> {
        if (!place_) return std::unexpected(place_.error());
        if (!*place_) return or_refused<std::optional<found_end>>{std::unexpected(place_->error())};
        const auto& from = **place_;
        GLOVE_TRY(auto found, find_end(asks_, view, from));
        if (!found || *found || from.sequence == 0) return found;
        return find_end(asks_, view, {.key_id = from.key_id}); // it was fetched long ago
    }

    [[nodiscard]] auto wish() const -> result<screen_wish> {
        screen_wish out{.read_only = words_.read_only, .pages = words_.service.json, .leaves = {}};
        GLOVE_TRY(out.leaves, detach_key::named(words_.detach_key));
        if (words_.stdin_too) out.input = typed_at::stream;
        return out;
    }

    [[nodiscard]] auto attach() -> result<attach_end> {
        GLOVE_TRY(auto how, wish());
        auto terminal = words_.service.json ? std::optional<run::caller_terminal>{}
                                            : run::caller_terminal::find();
        if (terminal && terminal->is(0) && terminal->is(1)) how.input = typed_at::terminal;
        else terminal.reset();
        on_terminal_ = terminal.has_value();
        GLOVE_TRY(const auto screen,
                  local_screen::open(std::move(how), ends_, std::move(terminal)));
        attach_loop loop{{words_.words[0], words_.from.value_or(0), words_.from_end},
                         {[this](std::string_view method, std::string payload) {
                              return asks_.ask(method, std::move(payload));
                          },
                          [this](std::string_view method, std::string payload) {
                              return asks_.change(method, std::move(payload), {});
                          }},
                         *screen};
        auto out = loop.run();
        draws_ = screen->finish();
        return out;
    }

    [[nodiscard]] auto leave(const attach_end& end, int status) const -> result<int> {
        const auto name = printable(words_.words[0]);
        if (on_terminal_) (void)std::fputs("\n", stderr);
        // A screen is drawn by all that was shown; lines are read once.
        note("session " + name + " goes on; come back with: glove session attach " + name +
             (draws_ ? "" : " --from " + std::to_string(end.cursor)));
        return status;
    }

    // What comes after its terminal takes a moment: copies are looked through, the receipt is
    // written.
    [[nodiscard]] auto await_end() -> result<or_refused<session_view>> {
        const auto until = asks_.clock().monotonic() + patience_for_receipt;
        for (;;) {
            GLOVE_TRY(const auto view, look_at(asks_, words_.words[0]));
            if (!view || is_terminal(view->state)) return view;
            if (asks_.clock().monotonic() >= until)
                return fail(errc::timed_out, "attach.receipt",
                            "the terminal of session " + words_.words[0] +
                                " has ended, and it is still " +
                                std::string{to_string(view->state)},
                            "glove session status " + words_.words[0]);
            ::pollfd watched{ends_.descriptor().get(), POLLIN, 0};
            if (::poll(&watched, 1, static_cast<int>(between_looks.count())) > 0)
                return fail(errc::io, "client.interrupted", "it was given up");
        }
    }

    [[nodiscard]] auto tell_end() -> result<int> {
        GLOVE_TRY(const auto view, await_end());
        if (!view) return told(view.error(), "session_status");
        const auto name = printable(words_.words[0]);
        if (view->state == session_state::failed) {
            note("session " + name + " failed");
            return refused;
        }
        GLOVE_TRY(const auto end_or, receipt_of(*view));
        if (!end_or) {
            (void)told(end_or.error());
            return refused;
        }
        const auto& end = *end_or;
        if (!end)
            return fail(errc::not_found, "attach.receipt",
                        "session " + words_.words[0] + " is over, and its receipt was not found",
                        "glove session receipts shows how it ended");
        const auto status = status_of_end(end->cause, end->exit_code);
        if (end->cause != control::termination_cause::exited)
            note("session " + name + " ended: " + std::string{to_string(end->cause)});
        else if (on_terminal_) note("session " + name + " exited with " + std::to_string(status));
        return status;
    }

    const session_words& words_;
    const service& asks_;
    const ending_signals& ends_;
    session_view view_;
    place place_;
    bool on_terminal_ = false, draws_ = false;
};

} // namespace

auto attach_session(const session_words& words) -> result<int> {
    GLOVE_CHECK(check_words(words));
    GLOVE_CHECK(detach_key::named(words.detach_key));
    GLOVE_TRY(const auto ends, ending_signals::open());
    GLOVE_TRY(const auto asks, service::of(words.service, {.interrupt = ends.descriptor()}));
    auto status = attachment{words, *asks, ends}.run();
    if (status || status.error().step != "client.interrupted") return status;
    return 128 + ends.take(); // before there was a terminal to give back
}

} // namespace glove::cli
