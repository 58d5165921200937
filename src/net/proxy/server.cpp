// Puts the parts together; what ends the process ends the event loop.
#include "net/proxy/server.hpp"
#include <algorithm>
#include <sys/socket.h>

namespace glove::net::proxy {

namespace {

// For the last bytes of an agent that has ended.
constexpr milliseconds patience_at_end{500};
constexpr milliseconds look_again{5};

} // namespace

void tell_failure(sys::fd_ref control, std::uint16_t port, const error& problem) {
    egress_message news;
    news.what = egress_news::failed;
    news.port = port;
    news.os = problem.os;
    put_detail(news, std::string{problem.step} + ": " + problem.detail);
    (void)::send(control.get(), &news, sizeof news, MSG_NOSIGNAL);
}

auto server::open(egress_configuration settings, server_channels channels)
    -> result<std::unique_ptr<server>> {
    auto rules = egress_rules::parse(settings.rules);
    if (!rules) {
        tell_failure(channels.control, 0, rules.error());
        return std::unexpected(rules.error());
    }
    std::vector<published_port> published;
    for (const auto port : settings.published) {
        auto listener = listen_on(port);
        if (!listener) {
            tell_failure(channels.control, port, listener.error());
            return std::unexpected(listener.error());
        }
        published.push_back({*std::move(listener), port});
    }
    return std::unique_ptr<server>{new server{std::move(settings), *std::move(rules),
                                              std::move(channels), std::move(published)}};
}

server::server(egress_configuration settings, egress_rules rules, server_channels channels,
               std::vector<published_port> published)
    : core_{io_, std::move(settings), std::move(rules), std::move(channels.control)},
      bridge_{core_, std::move(channels.bridge)}, listener_{std::move(channels.listener)},
      published_{std::move(published)} {}

server::~server() { io_.drop_handlers(); }

void server::run() {
    core_.link.listen([this](bool asked) {
        if (!asked) io_.stop();
        else if (!std::exchange(finishing_, true)) asio::co_spawn(io_, finish(), asio::detached);
    });
    bridge_.open();
    if (listener_) open_listener(core_, std::move(listener_));
    for (auto& each : published_) publish(core_, bridge_, std::move(each.listener), each.port);
    egress_message ready;
    ready.what = egress_news::ready;
    (void)core_.link.tell_now(ready);
    io_.run();
}

auto server::finish() -> awaitable<void> {
    bridge_.shut({});
    const auto give_up_at = std::chrono::steady_clock::now() + patience_at_end;
    const auto busy = [this] {
        return std::ranges::any_of(core_.live,
                                   [](const auto& one) { return one.second->has_bytes_to_send(); });
    };
    while (busy() && std::chrono::steady_clock::now() < give_up_at) co_await pause(io_, look_again);
    report_live();
    io_.stop();
}

void server::report_live() {
    for (const auto& [key, one] : core_.live)
        if (const auto word = one->last_word()) (void)core_.link.tell_now(*word);
}

} // namespace glove::net::proxy
