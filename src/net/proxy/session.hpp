// One connection of the agent, from its first byte to the word about how it ended.
//
// Guarantees: nothing is looked up or dialled before a rule allowed it and the supervisor put it on
// record; what was put on record gets an outcome. A client that is refused learns the host, the
// port and the option that would allow it, and nothing else.
#pragma once
#include "net/proxy/relay.hpp"

namespace glove::net::proxy {

enum class door : std::uint8_t {
    proxy,    // speaks HTTP or SOCKS, and was let in by the relay
    named,    // speaks to a name that the bridge gives
    listener, // speaks HTTP or SOCKS, and must show the credential
};

class session final : public live_session, public std::enable_shared_from_this<session> {
public:
    // `where` is for `named` alone.
    session(core& in, sys::unique_fd client, door by, destination where = {});
    ~session() override;
    session(const session&) = delete;
    auto operator=(const session&) -> session& = delete;

    static void start(core& in, sys::unique_fd client, door by, destination where = {});
    [[nodiscard]] auto last_word() -> std::optional<egress_message> override;
    [[nodiscard]] auto has_bytes_to_send() const -> bool override;

private:
    enum class tongue : std::uint8_t { none, http, socks };
    struct verdict {
        egress_reason reason = egress_reason::none;
        int os = 0;
        std::string detail;
    };

    [[nodiscard]] auto run() -> awaitable<void>;
    [[nodiscard]] auto fill() -> awaitable<bool>;
    [[nodiscard]] auto read_request() -> awaitable<bool>;
    [[nodiscard]] auto read_http() -> awaitable<bool>;
    [[nodiscard]] auto read_socks() -> awaitable<bool>;
    [[nodiscard]] auto socks_method() -> awaitable<bool>;
    [[nodiscard]] auto serve() -> awaitable<void>;
    [[nodiscard]] auto connect(const egress_rule& rule) -> awaitable<void>;
    [[nodiscard]] static auto carry(std::shared_ptr<session> self) -> awaitable<void>;
    [[nodiscard]] auto refuse(verdict why) -> awaitable<void>;
    [[nodiscard]] auto malformed(std::string_view problem) -> awaitable<void>;
    [[nodiscard]] auto answer(const verdict& why) -> awaitable<void>;
    [[nodiscard]] auto farewell(std::string last) -> awaitable<void>;
    [[nodiscard]] auto outcome(const verdict& how) const -> egress_message;
    void limit_time(milliseconds most);

    core& in_;
    place place_;
    stream client_;
    door door_;
    tongue tongue_ = tongue::none;
    destination where_;
    std::string input_; // read and not used yet
    std::optional<http_request> request_;
    deadline clock_;
    bool late_ = false, recorded_ = false;
    std::uint64_t id_ = 0;
    std::shared_ptr<relay> relay_;
};

} // namespace glove::net::proxy
