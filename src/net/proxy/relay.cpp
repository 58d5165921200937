// Two coroutines, one a direction. Whoever finds that the connection is over cancels what the other
// waits for.
#include "net/proxy/relay.hpp"
#include <algorithm>
#include <cerrno>
#include <glove/net/client_hello.hpp>
#include <sys/socket.h>

namespace glove::net::proxy {

namespace {

constexpr std::size_t read_bytes = 16UL * 1024;
// After so much, other connections have their turn.
constexpr std::size_t turn_bytes = 1024UL * 1024;
// A fatal alert: unrecognized_name.
constexpr std::string_view alert{"\x15\x03\x03\x00\x02\x02\x70", 7};
constexpr std::array<std::uint16_t, 13> tls_ports{443, 465, 563, 636, 853,  989, 990,
                                                  992, 993, 994, 995, 5061, 8443};

// How a connection begins that a server may take for TLS: a record of any type, version 3. Two
// bytes tell; fewer may become it.
[[nodiscard]] auto may_be_tls(std::string_view bytes) -> bool {
    constexpr std::uint8_t first_type = 0x14; // change of cipher
    constexpr std::uint8_t last_type = 0x17;  // data
    const auto type = static_cast<std::uint8_t>(bytes.front());
    return type >= first_type && type <= last_type && (bytes.size() < 2 || bytes[1] == 3);
}

[[nodiscard]] auto is_tls_port(std::uint16_t port) -> bool {
    return std::ranges::find(tls_ports, port) != tls_ports.end();
}

} // namespace

relay::relay(core& in, stream client, stream server, relay_order order)
    : in_{in}, client_{std::move(client)}, server_{std::move(server)}, order_{std::move(order)},
      clock_{in.io}, hello_clock_{in.io}, bell_{in.io}, began_{std::chrono::steady_clock::now()},
      last_move_{began_} {}

auto relay::run() -> awaitable<relay_ending> {
    const auto self = shared_from_this();
    watch_clock();
    asio::co_spawn(
        in_.io,
        [](std::shared_ptr<relay> its) -> awaitable<void> {
            co_await its->up();
            its->up_done_ = true;
            its->bell_.ring();
        }(self),
        asio::detached);
    co_await down();
    while (!up_done_) co_await bell_.next();
    clock_.stop();
    hello_clock_.stop();
    client_.close();
    server_.close();
    co_return ending_;
}

void relay::end(egress_reason why, int os, std::string detail) {
    if (ended_) return;
    ended_ = true;
    ending_ = {.reason = why, .os = os, .detail = std::move(detail)};
    client_.cancel();
    server_.cancel();
}

void relay::watch_clock() {
    using std::chrono::duration_cast;
    const auto now = std::chrono::steady_clock::now();
    const auto idle = last_move_ + in_.limits.idle - now;
    const auto whole = began_ + in_.limits.whole - now;
    if (whole.count() <= 0) return end(egress_reason::too_long);
    if (idle.count() <= 0) return end(egress_reason::idle);
    clock_.start(duration_cast<milliseconds>(std::min(idle, whole)) + milliseconds{1},
                 [self = shared_from_this()] { self->watch_clock(); });
}

auto relay::up() -> awaitable<void> {
    if (order_.request) {
        const bool good = co_await send_request();
        if (!good) end(egress_reason::none);
        co_return;
    }
    if (order_.greeting) {
        const bool good = co_await greet();
        if (!good) co_return;
    }
    const bool first_sent = co_await send_counted(std::exchange(order_.first, {}));
    if (!first_sent) co_return;
    const auto how = co_await pump(client_, server_, sent_);
    if (how == moved::everything) server_.end_sending();
    if (how == moved::source_gone) {
        server_.reset();
        end(egress_reason::none); // whose client went away
    }
}

// The greeting, and the second one that the server may ask for: a client that lets itself be asked
// could name another server in it. What is left in `first` is judged and not sent yet.
auto relay::greet() -> awaitable<bool> {
    const bool good = co_await judge_greeting();
    const bool is_tls = !order_.first.empty() && may_be_tls(order_.first);
    if (!good || !is_tls) co_return good;
    greeted_ = true;
    const bool sent = co_await send_counted(std::exchange(order_.first, {}));
    while (sent && !answered_ && !ended_) co_await bell_.next();
    if (!sent || ended_) co_return false;
    if (!asks_again_) co_return true;
    settled_ = false;
    const bool again = co_await judge_greeting();
    co_return again;
}

// The server's first bytes after a greeting. False when the connection is over.
auto relay::read_answer() -> awaitable<bool> {
    std::string got;
    auto answer = server_answer::incomplete;
    while (answer == server_answer::incomplete) {
        const bool ready = co_await server_.readable();
        if (!ready || ended_) co_return false;
        if (!greeted_) co_return true; // it speaks first, so it does not speak TLS
        const auto have = got.size();
        const auto most = order_.budget == nullptr ? read_bytes : order_.budget->allows(read_bytes);
        if (most == 0) break; // what follows ends the connection
        got.resize(have + most);
        const auto count = server_.receive(got.data() + have, most);
        const int os = count < 0 ? errno : 0;
        got.resize(have + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        if (os == EAGAIN) continue;
        if (os != 0) {
            client_.reset();
            end(egress_reason::reset);
            co_return false;
        }
        if (order_.budget != nullptr) order_.budget->spend(got.size() - have);
        if (count == 0) break;
        answer =
            read_server_answer({reinterpret_cast<const std::uint8_t*>(got.data()), got.size()});
    }
    asks_again_ = answer == server_answer::asks_again;
    touch();
    const bool told = co_await client_.send_all(got);
    if (told) received_ += got.size();
    co_return told;
}

auto relay::down() -> awaitable<void> {
    if (order_.greeting) {
        const bool good = co_await read_answer();
        answered_ = true;
        bell_.ring();
        if (!good) {
            if (!ended_) { // whose client went away
                server_.reset();
                end(egress_reason::none);
            }
            co_return;
        }
    }
    const auto how = co_await pump(server_, client_, received_);
    switch (how) {
    case moved::everything:
        client_.end_sending();
        if (order_.request) end(egress_reason::none);
        break;
    case moved::source_gone:
        client_.reset();
        end(egress_reason::reset);
        break;
    case moved::peer_gone:
        server_.reset();
        end(egress_reason::none);
        break;
    case moved::given_up: break;
    }
}

// Nothing: judged well, or more bytes are needed as long as it is not settled.
auto relay::greeting_problem() -> std::optional<relay_ending> {
    const auto& where = *order_.greeting;
    const auto& bytes = order_.first;
    const bool must = is_tls_port(where.port);
    if (bytes.empty()) return std::nullopt;
    if (!must && !asks_again_ && !may_be_tls(bytes)) {
        settled_ = true;
        return std::nullopt;
    }
    if (bytes.size() < 2) return std::nullopt;
    std::string_view greeting = bytes;
    // In front of a second greeting stands a record that means nothing (RFC 8446, D.4).
    constexpr std::string_view change{"\x14\x03\x03\x00\x01\x01", 6};
    if (asks_again_ && greeting.starts_with(change)) greeting.remove_prefix(change.size());
    else if (asks_again_ && change.starts_with(greeting)) return std::nullopt;
    if (greeting.empty()) return std::nullopt;
    const auto hello = read_client_hello(
        {reinterpret_cast<const std::uint8_t*>(greeting.data()), greeting.size()});
    if (hello.state == hello_state::incomplete) return std::nullopt;
    settled_ = true;
    if (hello.state == hello_state::not_tls)
        return relay_ending{.reason = egress_reason::not_tls, .detail = {}};
    if (hello.state == hello_state::malformed)
        return relay_ending{.reason = egress_reason::malformed_hello, .detail = {}};
    if (hello.has_encrypted_hello)
        return relay_ending{.reason = egress_reason::hidden_server_name, .detail = {}};
    if (hello.server_name.empty()) {
        const bool needs_none = where.host.address || where.host.name == "localhost";
        if (needs_none) return std::nullopt;
        return relay_ending{.reason = egress_reason::no_server_name, .detail = {}};
    }
    const auto named = parse_host(hello.server_name);
    if (named && named->name == where.host.name) return std::nullopt;
    return relay_ending{.reason = egress_reason::wrong_server_name, .detail = hello.server_name};
}

auto relay::judge_greeting() -> awaitable<bool> {
    bool timed = false;
    std::optional<relay_ending> problem;
    bool at_end = false;
    for (;;) {
        problem = greeting_problem();
        if (settled_ || at_end) break;
        if (ended_) co_return false;
        if (!timed && !order_.first.empty()) {
            timed = true;
            hello_clock_.start(in_.limits.hello, [self = shared_from_this()] {
                if (!self->settled_) self->end(egress_reason::hello_timed_out);
            });
        }
        const bool ready = co_await client_.readable();
        if (!ready || ended_) co_return false;
        const auto have = order_.first.size();
        order_.first.resize(have + read_bytes);
        const auto got = client_.receive(order_.first.data() + have, read_bytes);
        const int os = got < 0 ? errno : 0;
        order_.first.resize(have + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (os == EAGAIN) continue;
        if (os != 0) {
            server_.reset();
            end(egress_reason::none);
            co_return false;
        }
        at_end = got == 0;
    }
    settled_ = true;
    hello_clock_.stop();
    // Half a greeting is none.
    if (!problem && at_end && !order_.first.empty())
        problem = relay_ending{.reason = egress_reason::malformed_hello, .detail = {}};
    if (!problem) co_return true;
    (void)client_.send(alert);
    client_.end_sending();
    end(problem->reason, problem->os, std::move(problem->detail));
    co_return false;
}

auto relay::send_counted(std::string bytes) -> awaitable<bool> {
    if (order_.budget != nullptr && order_.budget->allows(bytes.size()) < bytes.size()) {
        end(egress_reason::bytes_spent);
        co_return false;
    }
    if (order_.budget != nullptr) order_.budget->spend(bytes.size());
    const bool good = co_await server_.send_all(bytes);
    if (good) sent_ += bytes.size();
    touch();
    co_return good;
}

// True also when the destination takes no more: what it answered still counts.
auto relay::send_request() -> awaitable<bool> {
    body_filter body{*order_.request};
    std::string out = std::exchange(order_.request->head, {});
    std::string got = std::exchange(order_.first, {});
    for (;;) {
        const bool fit = body.feed(got, out);
        if (!fit) {
            end(egress_reason::malformed, 0, "a body that is not what its header says");
            co_return false;
        }
        if (!out.empty()) {
            const bool good = co_await send_counted(std::exchange(out, {}));
            if (!good) co_return !ended_;
        }
        if (body.done()) co_return true;
        if (ended_) co_return false;
        const bool ready = co_await client_.readable();
        if (!ready || ended_) co_return false;
        got.resize(read_bytes);
        const auto count = client_.receive(got.data(), got.size());
        const int os = count < 0 ? errno : 0;
        got.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        if (os == EAGAIN) continue;
        if (count <= 0) { // half a request is none
            server_.reset();
            co_return false;
        }
    }
}

// The last byte that is allowed may be the last that there is.
auto relay::at_budget_end(stream& from) -> moved {
    char byte = 0;
    const auto got = from.receive(&byte, 1, MSG_PEEK);
    if (got == 0) return moved::everything;
    if (got < 0) return errno == EAGAIN ? moved::given_up : moved::source_gone;
    client_.reset();
    server_.reset();
    end(egress_reason::bytes_spent);
    return moved::given_up;
}

auto relay::drain(lane& bytes, stream& to, std::uint64_t& counter) -> awaitable<moved> {
    while (bytes.held() != 0) {
        if (ended_) co_return moved::given_up;
        const auto put = bytes.drain(to);
        if (put > 0) {
            counter += static_cast<std::uint64_t>(put);
            touch();
            continue;
        }
        if (put < 0 && errno != EAGAIN) co_return moved::peer_gone;
        const bool ready = co_await to.writable();
        if (!ready) co_return moved::given_up;
    }
    co_return moved::everything;
}

auto relay::pump(stream& from, stream& to, std::uint64_t& counter) -> awaitable<moved> {
    while (!ended_) {
        const bool ready = co_await from.readable();
        if (!ready || ended_) break;
        auto bytes = in_.lanes.take();
        for (std::size_t turn = 0; turn < turn_bytes;) {
            const auto most =
                order_.budget == nullptr ? turn_bytes : order_.budget->allows(turn_bytes);
            if (most == 0) {
                const auto how = at_budget_end(from);
                if (how != moved::given_up) co_return how;
                break;
            }
            auto got = bytes.fill(from, most);
            // At urgent data splice finds nothing for ever; a plain read steps over it.
            if (got < 0 && errno == EAGAIN && turn == 0 && bytes.is_pipe()) {
                in_.lanes.give(std::exchange(bytes, lane::of_memory()));
                got = bytes.fill(from, most);
            }
            if (got < 0 && errno == EAGAIN) break;
            if (got < 0) co_return moved::source_gone;
            if (got == 0) {
                in_.lanes.give(std::move(bytes));
                co_return moved::everything;
            }
            touch();
            turn += static_cast<std::size_t>(got);
            if (order_.budget != nullptr) order_.budget->spend(static_cast<std::size_t>(got));
            const auto how = co_await drain(bytes, to, counter);
            if (how != moved::everything) co_return how;
        }
        in_.lanes.give(std::move(bytes));
    }
    co_return moved::given_up;
}

} // namespace glove::net::proxy
