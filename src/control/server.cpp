// One thread accepts, reads and writes; workers answer. A connection belongs to exactly one of the
// two at a time.
//
// It polls: what epoll watches is counted for a user's sessions and this service together, and one
// session can use up what a user may have.
#include "control/worker_pool.hpp"
#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <glove/control/server.hpp>
#include <map>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace glove::control {

namespace {

using std::chrono::milliseconds;
using time = std::chrono::nanoseconds;
using job = worker_pool::job;
using outcome = exchange::outcome;

[[nodiscard]] auto check(const server_settings& how) -> result<> {
    if (how.exchange < least_exchange || how.exchange > most_exchange)
        return fail(errc::invalid_input, "server.settings",
                    std::to_string(how.exchange.count()) +
                        " ms for an exchange; 1 to 60000 are possible");
    if (how.connections == 0 || how.workers == 0 || how.large_frames == 0)
        return fail(errc::invalid_input, "server.settings", "a bound is 0");
    return {};
}

// By the kernel, before a byte is read.
[[nodiscard]] auto check_peer(sys::fd_ref socket) -> result<> {
    ::ucred peer{};
    ::socklen_t size = sizeof peer;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return fail_os("peer.credentials");
    if (peer.uid == ::geteuid() && peer.pid > 0) return {};
    return fail(errc::not_permitted, "peer.user",
                "uid " + std::to_string(peer.uid) + ", process " + std::to_string(peer.pid) +
                    "; only uid " + std::to_string(::geteuid()) + " is served");
}

// Nothing is wrong with the listener: what is short comes back.
[[nodiscard]] auto is_passing(int os) -> bool {
    constexpr std::array passing{EMFILE, ENFILE, ENOBUFS, ENOMEM, ECONNABORTED, EPERM, EPROTO};
    return std::ranges::find(passing, os) != passing.end();
}

} // namespace

struct server::state {
    state(sys::unique_fd socket, const server_settings& settings, answerer& by,
          const sys::clock& at, service_log& to)
        : how{settings}, answers{by}, clock{at}, log{to}, listener{std::move(socket)} {}

    [[nodiscard]] auto open() -> result<> {
        finished = sys::unique_fd{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
        if (!finished) return fail_os("server.open");
        watch(finished, POLLIN, &finished);
        start_accepting();
        workers = std::make_unique<worker_pool>(
            how.workers, how.connections,
            worker_pool::calls{[this](exchange& one) { return look(one); },
                               [this](exchange& one) { work(one); },
                               [this](exchange& one) { give_up(one); }, [this] { wake(); }},
            clock);
        return {};
    }

    // What workers do.
    [[nodiscard]] auto look(exchange& one) -> glance {
        try {
            return answers.look_at(one.body(), one.arrived());
        } catch (const std::exception&) {
            return {};
        } // the answer fails for the same reason
    }
    void work(exchange& one) {
        try {
            one.end_work(answers.answer_to(one.body(), one.arrived()), clock.monotonic());
            // Mostly all of it, and then the client need not wait for the loop; else the loop goes
            // on.
            if (one.write_some() == outcome::done) one.close();
        } catch (const std::exception& thrown) {
            log.write({.name = "request.failed", .text = thrown.what()});
            one.end_work({}, clock.monotonic());
        }
    }
    // The disk keeps so many waiting that this one finds no place; nothing of it was begun.
    void give_up(exchange& one) {
        tell(
            {errc::limit_exceeded, "exchange.queue", 0, "too many requests wait for the disk", {}});
        one.end_work({}, clock.monotonic());
    }
    void wake() const {
        const std::uint64_t once = 1;
        (void)!::write(finished.get(), &once, sizeof once);
    }

    // What is watched.
    void watch(sys::fd_ref what, short wanted, void* about) {
        watched.insert_or_assign(what.get(), watch_of{wanted, about});
    }
    void unwatch(sys::fd_ref what) { watched.erase(what.get()); }
    void start_accepting() {
        if (!accepting) watch(listener, POLLIN, &listener);
        accepting = true;
    }
    void stop_accepting() {
        if (accepting) unwatch(listener);
        accepting = false;
    }
    [[nodiscard]] auto has_room() const -> bool {
        return open_now.size() + working < how.connections;
    }
    // Who has been asking for longest: first of those who are read, then of those who wait for
    // room.
    [[nodiscard]] auto slowest() const -> exchange* {
        exchange* out = nullptr;
        const auto rank = [](const exchange& one) {
            return std::pair{one.at() == exchange::step::waiting, one.began()};
        };
        for (const auto& [key, one] : open_now)
            if (is_asking(*one) && (out == nullptr || rank(*one) < rank(*out))) out = key;
        return out;
    }
    [[nodiscard]] static auto is_asking(const exchange& one) -> bool {
        return one.at() == exchange::step::reading || one.at() == exchange::step::waiting;
    }
    [[nodiscard]] auto may_accept(time now) const -> bool {
        if (has_room()) return true;
        const auto* one = slowest();
        return one != nullptr && one->began() + how.yields_after <= now;
    }
    void make_room() {
        auto* one = slowest();
        if (has_room() || one == nullptr) return;
        tell({errc::limit_exceeded,
              "exchange.yield",
              0,
              "the request did not arrive as a whole, and others wait for the place",
              {}});
        drop(*one);
    }

    // Connections.
    [[nodiscard]] auto accept_some() -> result<> {
        while (may_accept(clock.monotonic())) {
            sys::unique_fd socket{
                ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
            if (socket) {
                make_room();
                take(std::move(socket));
            } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
                return {};
            } else if (is_passing(errno)) {
                const error why{classify(errno), "server.accept", errno, "tried again soon", {}};
                log.write({.name = "accept.paused", .why = &why});
                accept_again = clock.monotonic() + milliseconds{100};
                break;
            } else if (errno != EINTR) return fail_os("server.accept");
        }
        stop_accepting();
        return {};
    }

    void take(sys::unique_fd socket) {
        if (const auto peer = check_peer(socket); !peer) return tell(peer.error());
        auto one = std::make_unique<exchange>(std::move(socket), clock.monotonic(), how.exchange);
        watch(one->socket(), POLLIN, one.get());
        auto& mine = *one;
        open_now.emplace(&mine, std::move(one));
        step(mine); // mostly its request is here already
    }
    void tell(const error& why) const { log.write({.name = "connection.dropped", .why = &why}); }

    [[nodiscard]] auto remove(exchange& one) -> job {
        unwatch(one.socket());
        auto at = open_now.extract(&one);
        return std::move(at.mapped());
    }
    void drop(exchange& one) {
        const auto gone = remove(one);
        forget(*gone);
    }
    void forget(const exchange& gone) {
        if (!gone.is_large() || gone.at() == exchange::step::waiting) return;
        --large;
        if (auto* next = first_waiting(); next != nullptr) grant(*next);
    }
    [[nodiscard]] auto first_waiting() const -> exchange* {
        exchange* out = nullptr;
        for (const auto& [key, one] : open_now)
            if (one->at() == exchange::step::waiting &&
                (out == nullptr || one->waits_since() < out->waits_since()))
                out = key;
        return out;
    }
    void grant(exchange& one) {
        ++large;
        one.go_on(clock.monotonic());
        watch(one.socket(), POLLIN, &one);
    }

    void step(exchange& one) {
        const bool reads = one.at() == exchange::step::reading;
        switch (reads ? one.read_some() : one.write_some()) {
        case outcome::more: return;
        case outcome::large: return hold(one);
        case outcome::arrived: return hand_over(one);
        case outcome::failed: return fail_one(one, reads);
        case outcome::done:
        case outcome::left: return drop(one);
        }
    }
    void hold(exchange& one) {
        unwatch(one.socket());
        one.wait_for_room(clock.monotonic());
        if (large < how.large_frames) grant(one);
    }
    void hand_over(exchange& one) {
        auto mine = remove(one);
        mine->begin_work({clock.monotonic(), clock.wall()});
        ++working;
        if (workers->put(mine)) return; // always: there are no more of them than connections
        --working;
        forget(*mine);
    }
    // A frame that is none is answered like a request that is none.
    void fail_one(exchange& one, bool reads) {
        if (!reads || !one.why().step.starts_with("frame.")) {
            tell(one.why());
            return drop(one);
        }
        auto mine = remove(one);
        mine->begin_work({clock.monotonic(), clock.wall()});
        mine->end_work(answers.answer_to_no_frame(mine->why()), clock.monotonic());
        send_rest(std::move(mine));
    }
    void take_back() {
        std::uint64_t count = 0;
        (void)!::read(finished.get(), &count, sizeof count);
        for (auto& one : workers->finished()) {
            --working;
            send_rest(std::move(one));
        }
    }
    void send_rest(job mine) {
        auto& one = *mine;
        const auto now = one.write_some();
        if (now == outcome::failed) tell(one.why());
        if (now != outcome::more) return forget(one);
        open_now.emplace(&one, std::move(mine));
        watch(one.socket(), POLLOUT, &one);
    }

    // Dropping one may end another, which then is there no more.
    void drop_all(const std::vector<exchange*>& these,
                  const std::function<void(exchange&)>& before) {
        for (auto* one : these) {
            if (!open_now.contains(one)) continue;
            before(*one);
            drop(*one);
        }
    }

    // Time.
    // Room for a large frame is for one that comes.
    void yield_large(time now) {
        if (large < how.large_frames || first_waiting() == nullptr) return;
        exchange* least = nullptr;
        for (const auto& [key, one] : open_now)
            if (one->at() == exchange::step::reading && one->is_large() &&
                !one->keeps_up(now, how.yields_after) &&
                (least == nullptr || one->received() < least->received()))
                least = key;
        if (least == nullptr) return;
        tell({errc::limit_exceeded,
              "exchange.yield",
              0,
              "a large request comes slowly, and another waits for its room",
              {}});
        drop(*least);
    }
    void expire(time now) {
        std::vector<exchange*> late;
        for (auto& [key, one] : open_now)
            if (one->deadline() <= now) late.push_back(key);
        drop_all(late, [this](const exchange& one) {
            const auto said =
                one.at() == exchange::step::writing   ? "the client does not take its answer"
                : one.at() == exchange::step::waiting ? "there was no room for a large request"
                                                      : "the request did not arrive as a whole";
            tell({errc::timed_out, "exchange.deadline", 0, said, {}});
        });
    }
    // When the next one of those who are slow may have to yield.
    [[nodiscard]] auto next_yield(time now) const -> time {
        auto out = time::max();
        if (large >= how.large_frames && first_waiting() != nullptr)
            out = now + how.yields_after / 4;
        if (!accepting && !accept_again && !has_room())
            if (const auto* one = slowest(); one != nullptr)
                out = std::min(out, one->began() + how.yields_after);
        return out;
    }
    [[nodiscard]] auto wait_ms(time now) const -> int {
        auto next = stop_at ? *stop_at : next_yield(now);
        for (const auto& [key, one] : open_now) next = std::min(next, one->deadline());
        if (accept_again) next = std::min(next, *accept_again);
        if (next == time::max()) return -1;
        const auto left = std::chrono::ceil<milliseconds>(next - now);
        return static_cast<int>(std::clamp<long>(left.count(), 0, 60'000));
    }

    // The end.
    void begin_to_stop(time now) {
        stop_at = now + how.grace;
        stop_accepting();
        listener = {}; // who waits in the backlog is told at once
        std::vector<exchange*> unread;
        for (auto& [key, one] : open_now)
            if (one->at() != exchange::step::writing) unread.push_back(key);
        drop_all(unread, [](const exchange&) {});
    }
    [[nodiscard]] auto is_over(time now) const -> bool {
        return stop_at && ((open_now.empty() && working == 0) || now >= *stop_at);
    }

    void resume(time now) {
        if (stop_at || !may_accept(now) || (accept_again && now < *accept_again)) return;
        accept_again.reset();
        start_accepting();
    }

    // Waits, and says what is ready.
    [[nodiscard]] auto poll(int patience_ms) -> result<> {
        polled.clear();
        for (const auto& [number, one] : watched) polled.push_back({number, one.wanted, 0});
        if (::poll(polled.data(), polled.size(), patience_ms) >= 0) return {};
        polled.clear();
        return errno == EINTR ? result<>{} : fail_os("server.wait");
    }
    // Null when nothing of it is ready, or it is not there any more.
    [[nodiscard]] auto ready_at(const ::pollfd& place) const -> void* {
        const auto at = watched.find(place.fd);
        return place.revents == 0 || at == watched.end() ? nullptr : at->second.about;
    }

    [[nodiscard]] auto run(sys::fd_ref stop, const std::function<void()>& stopping)
        -> result<ending> {
        int stop_tag = 0;
        watch(stop, POLLIN, &stop_tag);
        for (;;) {
            const auto now = clock.monotonic();
            if (is_over(now)) return working == 0 ? ending::clean : ending::late;
            GLOVE_CHECK(poll(wait_ms(now)));
            bool accepts = false;
            for (const auto& place : polled) {
                void* const about = ready_at(place);
                if (about == nullptr) continue;
                if (about == &stop_tag) {
                    unwatch(stop);
                    if (stopping) stopping();
                    begin_to_stop(clock.monotonic());
                    break; // what else was ready may be gone
                }
                if (about == &finished) take_back();
                else if (about == &listener) accepts = true;
                else step(*static_cast<exchange*>(about));
            }
            if (accepts && !stop_at) GLOVE_CHECK(accept_some());
            expire(clock.monotonic());
            yield_large(clock.monotonic());
            resume(clock.monotonic());
        }
    }

    const server_settings how;
    answerer& answers;
    const sys::clock& clock;
    service_log& log;
    sys::unique_fd listener, finished;
    struct watch_of {
        short wanted;
        void* about; // says what an event is about
    };
    std::map<int, watch_of> watched;
    std::vector<::pollfd> polled;
    std::map<exchange*, job> open_now;
    std::size_t working = 0; // with a worker
    std::size_t large = 0;   // frames that are held
    bool accepting = false;
    std::optional<time> accept_again;
    std::optional<time> stop_at;
    std::unique_ptr<worker_pool> workers; // last: they use all of the above
};

server::server(std::unique_ptr<state> owned) : state_{std::move(owned)} {}
server::~server() = default;

auto server::open(sys::unique_fd listener, const server_settings& how, answerer& answers,
                  const sys::clock& clock, service_log& log) -> result<std::unique_ptr<server>> {
    GLOVE_CHECK(check(how));
    auto made = std::make_unique<state>(std::move(listener), how, answers, clock, log);
    GLOVE_CHECK(made->open());
    return std::unique_ptr<server>{new server{std::move(made)}};
}

auto server::run(sys::fd_ref stop, const std::function<void()>& stopping) -> result<ending> {
    return state_->run(stop, stopping);
}

} // namespace glove::control
