// What is answered depends on how the client spoke; what is decided does not.
#include "net/proxy/session.hpp"
#include <algorithm>
#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace glove::net::proxy {

namespace {

constexpr std::size_t read_bytes = 4096;
constexpr std::size_t farewell_bytes = 256UL * 1024;
constexpr std::uint8_t socks5 = 5;
constexpr std::uint8_t socks4 = 4;
constexpr std::string_view socks4_refusal{"\0\x5b\0\0\0\0\0\0", 8};
constexpr std::string_view socks_refused_methods{"\x05\xff", 2};

[[nodiscard]] auto socks_reply(std::uint8_t code) -> std::string {
    std::string out{"\x05\0\0\x01\0\0\0\0\0\0", 10};
    out[1] = static_cast<char>(code);
    return out;
}

[[nodiscard]] auto http_status(egress_reason reason) -> std::string_view {
    switch (reason) {
    case egress_reason::malformed: return "400 Bad Request";
    case egress_reason::not_allowed:
    case egress_reason::bytes_spent: return "403 Forbidden";
    case egress_reason::no_credential: return "407 Proxy Authentication Required";
    case egress_reason::not_recorded: return "503 Service Unavailable";
    case egress_reason::dial_timed_out:
    case egress_reason::lookup_timed_out: return "504 Gateway Timeout";
    default: return "502 Bad Gateway";
    }
}

[[nodiscard]] auto socks_status(egress_reason reason, int os) -> std::uint8_t {
    constexpr std::uint8_t general = 1;
    constexpr std::uint8_t not_allowed = 2;
    constexpr std::uint8_t network_unreachable = 3;
    constexpr std::uint8_t host_unreachable = 4;
    constexpr std::uint8_t refused = 5;
    switch (reason) {
    case egress_reason::not_allowed:
    case egress_reason::bytes_spent:
    case egress_reason::address_refused: return not_allowed;
    case egress_reason::dial_failed:
        if (os == ECONNREFUSED) return refused;
        return os == ENETUNREACH ? network_unreachable : host_unreachable;
    case egress_reason::lookup_failed:
    case egress_reason::lookup_timed_out:
    case egress_reason::dial_timed_out: return host_unreachable;
    default: return general;
    }
}

[[nodiscard]] auto http_answer(egress_reason reason, const std::string& words) -> std::string {
    const auto body = "glove: " + words + "\n";
    std::string out{"HTTP/1.1 "};
    out.append(http_status(reason));
    if (reason == egress_reason::no_credential)
        out += "\r\nProxy-Authenticate: Basic realm=\"glove\"";
    return out + "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\nCache-Control: no-store\r\nX-Glove-Reason: " + words +
           "\r\nConnection: close\r\n\r\n" + body;
}

} // namespace

session::session(core& in, sys::unique_fd client, door by, destination where)
    : in_{in}, place_{in}, client_{in.io, std::move(client)}, door_{by}, where_{std::move(where)},
      clock_{in.io} {
    in_.live.emplace(this, this);
    const int on = 1;
    (void)::setsockopt(client_.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)::setsockopt(client_.fd(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

session::~session() { in_.live.erase(this); }

void session::start(core& in, sys::unique_fd client, door by, destination where) {
    auto made = std::make_shared<session>(in, std::move(client), by, std::move(where));
    if (!made->client_.is_open()) return;
    asio::co_spawn(
        in.io,
        [](std::shared_ptr<session> its) -> awaitable<void> {
            co_await its->run();
        }(std::move(made)),
        asio::detached);
}

auto session::last_word() -> std::optional<egress_message> {
    if (!recorded_) return std::nullopt;
    // An agent that is gone, and whose last bytes went out, has ended the connection itself.
    const bool ended = relay_ && !relay_->has_bytes_to_send();
    return outcome(
        {.reason = ended ? egress_reason::none : egress_reason::run_ended, .detail = {}});
}

auto session::has_bytes_to_send() const -> bool { return relay_ && relay_->has_bytes_to_send(); }

void session::limit_time(milliseconds most) {
    clock_.start(most, [self = shared_from_this()] {
        self->late_ = true;
        self->client_.cancel();
    });
}

auto session::run() -> awaitable<void> {
    if (door_ != door::named) {
        limit_time(in_.limits.request);
        const bool understood = co_await read_request();
        clock_.stop();
        if (!understood) co_return;
    }
    co_await serve();
}

auto session::fill() -> awaitable<bool> {
    for (;;) {
        const bool ready = co_await client_.readable();
        if (!ready || late_) co_return false;
        const auto have = input_.size();
        input_.resize(have + read_bytes);
        const auto got = client_.receive(input_.data() + have, read_bytes);
        const int os = got < 0 ? errno : 0;
        input_.resize(have + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (os != EAGAIN) co_return got > 0;
    }
}

auto session::read_request() -> awaitable<bool> {
    const bool began = co_await fill();
    if (!began) co_return false; // nothing was asked for
    const auto first = static_cast<std::uint8_t>(input_.front());
    if (first == socks4) {
        co_await malformed("SOCKS4; SOCKS5 and HTTP are spoken here");
        co_await farewell(std::string{socks4_refusal});
        co_return false;
    }
    bool good = false;
    if (first == socks5) good = co_await read_socks();
    else good = co_await read_http();
    co_return good;
}

auto session::read_http() -> awaitable<bool> {
    tongue_ = tongue::http;
    http_request request;
    for (;;) {
        request = parse_http(input_, in_.limits.request_bytes);
        if (request.state != parsed::incomplete) break;
        const bool more = co_await fill();
        if (!more) {
            co_await malformed("a request that does not end");
            co_return false;
        }
    }
    if (request.state == parsed::bad) {
        verdict why{.reason = egress_reason::malformed, .detail = std::string{request.problem}};
        co_await refuse(std::move(why));
        co_return false;
    }
    if (door_ == door::listener && !equal_in_constant_time(request.credential, in_.credential)) {
        verdict why{.reason = egress_reason::no_credential, .detail = {}};
        co_await refuse(std::move(why));
        co_return false;
    }
    where_ = request.where;
    input_.erase(0, request.consumed);
    if (!request.tunnel) request_ = std::move(request);
    co_return true;
}

auto session::socks_method() -> awaitable<bool> {
    socks_greeting greeting;
    for (;;) {
        greeting = parse_socks_greeting(input_);
        if (greeting.state != parsed::incomplete) break;
        const bool more = co_await fill();
        if (!more) co_return false;
    }
    const bool must = door_ == door::listener;
    if (greeting.state == parsed::bad ||
        !(must ? greeting.offers_password : greeting.offers_none || greeting.offers_password)) {
        co_await malformed("a SOCKS5 greeting without a method that fits");
        co_await farewell(std::string{socks_refused_methods});
        co_return false;
    }
    input_.erase(0, greeting.consumed);
    const bool password = must || !greeting.offers_none;
    std::string chosen{"\x05\0", 2};
    chosen[1] = static_cast<char>(password ? socks_password : socks_none);
    const bool told = co_await client_.send_all(chosen);
    if (!told || !password) co_return told;

    socks_credential shown;
    for (;;) {
        shown = parse_socks_credential(input_);
        if (shown.state != parsed::incomplete) break;
        const bool more = co_await fill();
        if (!more) co_return false;
    }
    input_.erase(0, shown.consumed);
    const bool right = shown.state == parsed::complete &&
                       (!must || equal_in_constant_time(
                                     to_base64(shown.user + ":" + shown.password), in_.credential));
    std::string reply{"\x01\0", 2};
    reply[1] = right ? '\0' : '\1';
    if (right) {
        const bool said = co_await client_.send_all(reply);
        co_return said;
    }
    co_await malformed("the proxy's credential is missing or wrong");
    co_await farewell(std::move(reply));
    co_return false;
}

auto session::read_socks() -> awaitable<bool> {
    const bool agreed = co_await socks_method();
    if (!agreed) co_return false;
    socks_request request;
    for (;;) {
        request = parse_socks_request(input_);
        if (request.state != parsed::incomplete) break;
        const bool more = co_await fill();
        if (!more) co_return false;
    }
    if (request.state == parsed::bad) {
        co_await malformed(request.problem);
        co_await farewell(socks_reply(request.reply));
        co_return false;
    }
    tongue_ = tongue::socks;
    where_ = request.where;
    input_.erase(0, request.consumed);
    co_return true;
}

auto session::malformed(std::string_view problem) -> awaitable<void> {
    egress_message news;
    news.what = egress_news::refused;
    news.reason = egress_reason::malformed;
    put_detail(news, problem);
    co_await in_.link.tell(news);
}

// Before anything was put on record.
auto session::refuse(verdict why) -> awaitable<void> {
    egress_message news;
    news.what = egress_news::refused;
    news.reason = why.reason;
    news.os = why.os;
    news.port = where_.port;
    put_name(news, where_.host.name);
    put_detail(news, why.detail);
    co_await in_.link.tell(news);
    co_await answer(why);
}

auto session::answer(const verdict& why) -> awaitable<void> {
    std::string place;
    if (where_.port != 0) place = to_string(where_);
    auto words = explain(why.reason, place, why.detail, why.os);
    if (why.reason == egress_reason::not_allowed) words += how_to_allow(where_);
    switch (tongue_) {
    case tongue::http: co_await farewell(http_answer(why.reason, words)); break;
    case tongue::socks: co_await farewell(socks_reply(socks_status(why.reason, why.os))); break;
    case tongue::none: client_.reset(); break;
    }
}

// Until the client has read it and gone: closing at once, with bytes unread, would take the words
// back.
auto session::farewell(std::string last) -> awaitable<void> {
    late_ = false;
    limit_time(in_.limits.farewell);
    const bool said = co_await client_.send_all(last);
    client_.end_sending();
    std::size_t dropped = 0;
    while (said && !late_ && dropped < farewell_bytes) {
        input_.clear();
        const bool more = co_await fill();
        if (!more) break;
        dropped += input_.size();
    }
    clock_.stop();
    client_.close();
}

auto session::outcome(const verdict& how) const -> egress_message {
    egress_message news;
    news.what = egress_news::outcome;
    news.id = id_;
    news.reason = how.reason;
    news.os = how.os;
    put_detail(news, how.detail);
    if (relay_) {
        news.sent = relay_->sent();
        news.received = relay_->received();
    }
    return news;
}

auto session::serve() -> awaitable<void> {
    const auto* const rule = in_.rules.match(where_);
    if (rule == nullptr || in_.budget_of(*rule).spent()) {
        verdict why{.reason =
                        rule == nullptr ? egress_reason::not_allowed : egress_reason::bytes_spent,
                    .detail = {}};
        co_await refuse(std::move(why));
        co_return;
    }
    id_ = in_.link.new_id();
    egress_message intent;
    intent.what = egress_news::intent;
    intent.id = id_;
    intent.port = where_.port;
    put_name(intent, where_.host.name);
    recorded_ = co_await in_.link.ask(intent);
    if (!recorded_) {
        verdict why{.reason = egress_reason::not_recorded, .detail = {}};
        co_await answer(why);
        co_return;
    }
    co_await connect(*rule);
}

auto session::connect(const egress_rule& rule) -> awaitable<void> {
    auto made = co_await dial(in_, rule, where_);
    verdict how{.reason = made.reason, .os = made.os, .detail = std::move(made.detail)};
    if (!made.connection) {
        const auto news = outcome(how);
        recorded_ = false;
        co_await in_.link.tell(news);
        co_await answer(how);
        co_return;
    }
    bool told = true;
    if (!request_ && tongue_ == tongue::http)
        told = co_await client_.send_all("HTTP/1.1 200 Connection established\r\n\r\n");
    if (tongue_ == tongue::socks) {
        const auto reply = socks_reply(0);
        told = co_await client_.send_all(reply);
    }
    if (told) {
        relay_order order{.greeting = std::nullopt,
                          .budget = &in_.budget_of(rule),
                          .request = std::move(request_),
                          .first = std::move(input_)};
        if (!order.request && !rule.any_server_name) order.greeting = where_;
        relay_ = std::make_shared<relay>(in_, std::move(client_), *std::move(made.connection),
                                         std::move(order));
        input_ = {};
        request_.reset();
        // A coroutine of its own: an idle connection does not hold the frames of its beginning.
        asio::co_spawn(in_.io, carry(shared_from_this()), asio::detached);
        co_return;
    }
    const auto news = outcome(how);
    recorded_ = false;
    co_await in_.link.tell(news);
}

auto session::carry(std::shared_ptr<session> self) -> awaitable<void> {
    auto ending = co_await self->relay_->run();
    const auto news = self->outcome(
        {.reason = ending.reason, .os = ending.os, .detail = std::move(ending.detail)});
    self->recorded_ = false;
    co_await self->in_.link.tell(news);
}

} // namespace glove::net::proxy
