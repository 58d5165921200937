// What the methods ask for, the thread that keeps house, and the end of the service.
#include "control/session_runtime_state.hpp"
#include <algorithm>
#include <csignal>
#include <glove/sys/threads.hpp>

namespace glove::control {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using steady = std::chrono::steady_clock;

// How often it is looked for those that are overdue, while there are some: the clock may be set.
constexpr milliseconds house_pause{250};
// What is left of the time for receipts when the host is told to hurry.
constexpr nanoseconds time_for_receipts = std::chrono::seconds{1};

[[nodiscard]] auto absent(error_code code) {
    return refuse(code, errc::not_found, "runtime.session",
                  "it is not alive here, and has nothing to show");
}

[[nodiscard]] auto number_of(session_signal which) -> int {
    switch (which) {
    case session_signal::interrupt: return SIGINT;
    case session_signal::terminate: return SIGTERM;
    case session_signal::hangup: break;
    }
    return SIGHUP;
}

// The key of the start that prepared it.
[[nodiscard]] auto start_key_of(const session_record& prepared) -> std::string_view {
    constexpr std::string_view suffix = ".reserve";
    std::string_view key = prepared.idempotency_key;
    if (key.ends_with(suffix)) key.remove_suffix(suffix.size());
    return key;
}

} // namespace

session_runtime::state::~state() {
    {
        const std::scoped_lock hold{lock};
        closing = true;
    }
    give_up(); // before anything more goes on record
    close();
    {
        std::unique_lock hold{lock};
        changed.wait(hold, [this] { return working == 0; });
        house_over = true;
        changed.notify_all();
    }
    if (house.joinable()) house.join();
}

auto session_runtime::state::now_ms() const -> std::uint64_t { return sys::wall_ms(*has.clock); }

auto session_runtime::state::ask(std::string_view step, std::string_view id) const -> answer<> {
    if (!how.before_step) return {};
    return or_refuse(how.before_step(step, id), error_code::session_storage_failed);
}

void session_runtime::state::tell(std::string_view name, std::string_view id,
                                  const error& why) const {
    has.log->write({.name = name, .why = &why, .text = id});
}
void session_runtime::state::say(std::string_view name, std::string text) const {
    has.log->write({.name = name, .text = text});
}

auto session_runtime::state::pause(milliseconds time) -> bool {
    std::unique_lock hold{lock};
    return !changed.wait_for(hold, time, [this] { return given_up; });
}

auto session_runtime::state::find(std::string_view id) -> session_ptr {
    const std::scoped_lock hold{lock};
    const auto at = slots.find(id);
    return at == slots.end() ? nullptr : at->second;
}

// Sessions of the process before this one, too.
void session_runtime::state::look_for_prepared() {
    for (std::string after;;) {
        const auto page = has.sessions->list(after, 256);
        for (const auto& one : page.sessions) {
            if (one.state != session_state::preparing) continue;
            const auto record = has.sessions->record(one.session_id);
            if (!record || record->state != session_state::preparing) continue;
            const std::scoped_lock hold{lock};
            prepared.insert_or_assign(record->session_id, record->authorization_expires_at_ms);
        }
        if (!page.next_after) return;
        after = *page.next_after;
    }
}

auto session_runtime::state::overdue() -> std::vector<std::string> {
    const auto now = now_ms();
    std::vector<std::string> out;
    const std::scoped_lock hold{lock};
    for (const auto& [id, until] : prepared)
        // Whoever is about to start it finds out.
        if (now >= until && !slots.contains(id)) out.push_back(id);
    return out;
}

void session_runtime::state::fail_overdue() {
    for (const auto& id : overdue()) {
        const auto record = has.sessions->record(id);
        if (record && record->state == session_state::preparing)
            note_failure(start_keys{start_key_of(*record)}.failed, id, "authorization_expired");
        // Once: a disk that has failed is not asked again before the next process.
        const std::scoped_lock hold{lock};
        prepared.erase(id);
    }
}

void session_runtime::state::keep_house() {
    look_for_prepared();
    std::unique_lock hold{lock};
    while (!house_over || !finished.empty()) {
        const auto ready = [this] { return house_over || !finished.empty(); };
        if (prepared.empty()) changed.wait(hold, [&] { return ready() || !prepared.empty(); });
        else changed.wait_for(hold, house_pause, ready);
        auto joined = std::exchange(finished, {});
        const bool over = house_over;
        hold.unlock();
        for (const auto& one : joined) one->join();
        joined.clear();
        if (!over) fail_overdue();
        hold.lock();
    }
}

void session_runtime::state::close() {
    std::vector<session_ptr> all;
    {
        const std::scoped_lock hold{lock};
        closing = true;
        for (const auto& [id, one] : slots)
            if (one->is_active()) all.push_back(one);
    }
    for (const auto& one : all) one->end_it();
}

void session_runtime::state::give_up() {
    concluding.request_stop();
    const std::scoped_lock hold{lock};
    given_up = true;
    for (const auto& [id, one] : slots)
        if (one->is_active()) one->give_up();
    changed.notify_all();
}

// By a clock that goes on whatever time the other one tells.
auto session_runtime::state::wait_until_over(nanoseconds deadline) -> std::vector<std::string> {
    const auto left = std::max(nanoseconds{0}, deadline - has.clock->monotonic());
    const auto end = steady::now() + left;
    const auto over = [this] { return working == 0; };
    std::unique_lock hold{lock};
    if (!changed.wait_until(hold, end - std::min(time_for_receipts, left / 4), over))
        concluding.request_stop();
    (void)changed.wait_until(hold, end, over);
    std::vector<std::string> out;
    for (const auto& [id, one] : slots)
        if (one->is_active()) out.push_back(id);
    return out;
}

session_runtime::session_runtime(std::unique_ptr<state> owned) : state_{std::move(owned)} {}
session_runtime::~session_runtime() = default;

auto session_runtime::create(const runtime_parts& of, runtime_settings how)
    -> result<std::unique_ptr<session_runtime>> {
    if (of.sessions == nullptr || of.receipts == nullptr || of.rules == nullptr ||
        of.host == nullptr || of.clock == nullptr || of.log == nullptr || how.most_live == 0 ||
        how.first_retry <= milliseconds{0} || how.longest_retry < how.first_retry)
        return fail(errc::invalid_input, "runtime.parts",
                    "a part is missing, no session is allowed, or there is no time between tries");
    auto made = std::make_unique<state>(of, std::move(how));
    GLOVE_TRY(made->house, sys::start_thread([&my = *made] { my.keep_house(); }, "runtime.thread"));
    return std::unique_ptr<session_runtime>{new session_runtime{std::move(made)}};
}

auto session_runtime::lifecycle_operational() const noexcept -> bool {
    {
        const std::scoped_lock hold{state_->lock};
        if (state_->closing) return false;
    }
    return state_->has.host->operational() && state_->has.sessions->operational();
}
auto session_runtime::has_sessions() const noexcept -> bool {
    const std::scoped_lock hold{state_->lock};
    return !state_->slots.empty();
}
auto session_runtime::backend() const noexcept -> supervisor::backend_kind {
    return supervisor::backend_kind::linux_production;
}
auto session_runtime::mechanisms() const -> enforcement_mechanisms {
    return lifecycle_operational() ? linux_mechanisms() : enforcement_mechanisms{};
}
auto session_runtime::runtime_ids() const -> std::vector<std::string> { return {}; }
auto session_runtime::evaluates_refinements() const noexcept -> bool {
    return lifecycle_operational() && state_->has.host->evaluates_refinements();
}
auto session_runtime::admits_observations() const -> bool { return false; }

auto session_runtime::start(std::string_view key, const start_authorization& what)
    -> answer<session_view> {
    auto done = state_->start(key, what);
    if (!done) return refuse(error_code::session_start_failed, std::move(done).error().why);
    return done;
}

auto session_runtime::attach(std::string_view session_id, std::uint64_t cursor,
                             std::size_t most_bytes) -> answer<transcript_page> {
    const auto mine = state_->find(session_id);
    const auto* text = mine ? mine->transcript() : nullptr;
    if (text == nullptr) return absent(error_code::session_attach_failed);
    GLOVE_TRY(auto part,
              or_refuse(text->page(cursor, most_bytes), error_code::session_attach_failed));
    return transcript_page{part.oldest_cursor, part.next_cursor, part.truncated, part.eof,
                           std::move(part.bytes)};
}

auto session_runtime::detach(std::string_view session_id, std::uint64_t cursor) -> answer<> {
    const auto mine = state_->find(session_id);
    const auto* text = mine ? mine->transcript() : nullptr;
    if (text == nullptr) return absent(error_code::session_detach_failed);
    return or_refuse(text->check(cursor), error_code::session_detach_failed);
}

auto session_runtime::write_input(std::string_view session_id, std::string_view bytes) -> answer<> {
    const auto mine = state_->find(session_id);
    const auto to = mine ? mine->channel() : nullptr;
    if (to == nullptr) return absent(error_code::session_input_failed);
    return or_refuse(to->write(bytes), error_code::session_input_failed);
}

auto session_runtime::resize(std::string_view session_id, std::uint16_t rows, std::uint16_t columns)
    -> answer<> {
    const auto mine = state_->find(session_id);
    const auto to = mine ? mine->channel() : nullptr;
    if (to == nullptr) return absent(error_code::session_resize_failed);
    return or_refuse(to->resize(rows, columns), error_code::session_resize_failed);
}

auto session_runtime::signal(std::string_view session_id, session_signal which) -> answer<> {
    const auto mine = state_->find(session_id);
    const auto to = mine ? mine->channel() : nullptr;
    if (to == nullptr) return absent(error_code::session_signal_failed);
    return or_refuse(to->signal(number_of(which)), error_code::session_signal_failed);
}

// A disk that fails keeps nobody alive: it is ended, and the refusal says that it is not on record.
auto session_runtime::stop(std::string_view key, std::string_view session_id)
    -> answer<session_view> {
    auto& my = *state_;
    const auto mine = my.find(session_id);
    if (mine == nullptr && !my.has.sessions->replayed(key))
        return absent(error_code::session_stop_failed);
    auto done = [&]() -> answer<session_view> {
        GLOVE_CHECK(my.ask("mark_stopping", session_id));
        return my.has.sessions->mark_stopping(key, session_id);
    }();
    const bool ends = done ? done->state == session_state::stopping
                           : done.error().code == error_code::session_storage_failed;
    if (mine && ends) mine->end_it(done.has_value());
    if (!done) return refuse(error_code::session_stop_failed, std::move(done).error().why);
    return done;
}

auto session_runtime::cleanup(std::string_view session_id) -> answer<> {
    const auto now = state_->has.sessions->status(session_id);
    if (!now) return refuse(error_code::session_cleanup_failed, now.error().why);
    if (!is_terminal(now->state))
        return refuse(error_code::session_cleanup_failed, errc::wrong_state, "runtime.session",
                      "it is " + std::string{to_string(now->state)} + ", and not over");
    state::session_ptr gone; // outside of the lock
    const std::scoped_lock hold{state_->lock};
    const auto at = state_->slots.find(session_id);
    if (at == state_->slots.end()) return {};
    gone = std::move(at->second);
    state_->slots.erase(at);
    return {};
}

auto session_runtime::stop_all(nanoseconds deadline) -> std::vector<std::string> {
    state_->close();
    auto out = state_->wait_until_over(deadline);
    state_->give_up();
    return out;
}

} // namespace glove::control
