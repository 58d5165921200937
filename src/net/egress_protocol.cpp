// Sizes come first in every record, so that a short or a long text is found before it is read.
#include "net/egress_protocol.hpp"
#include <algorithm>
#include <cstring>
#include <glove/base/text.hpp>
#include <glove/sys/files.hpp>
#include <type_traits>

namespace glove::net {

namespace {

constexpr std::size_t longest_settings = 2048UL * 1024;
constexpr std::size_t longest_rule = 1024;

struct settings_head {
    std::uint32_t rules, published, token_bytes, unused;
    proxy_limits limits;
};
static_assert(std::is_trivially_copyable_v<settings_head>);

template<class T> void append(std::string& to, const T& value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

class reader {
public:
    explicit reader(std::string_view bytes) : left_{bytes} {}
    template<class T> [[nodiscard]] auto take(T& value) -> bool {
        if (left_.size() < sizeof value) return false;
        std::memcpy(&value, left_.data(), sizeof value);
        left_.remove_prefix(sizeof value);
        return true;
    }
    [[nodiscard]] auto take(std::string& text, std::size_t size) -> bool {
        if (left_.size() < size) return false;
        text.assign(left_.substr(0, size));
        left_.remove_prefix(size);
        return true;
    }
    [[nodiscard]] auto empty() const -> bool { return left_.empty(); }

private:
    std::string_view left_;
};

template<std::size_t N>
void put(std::array<char, N>& into, std::uint8_t& size, std::string_view text) {
    text = text.substr(0, 255);
    std::ranges::copy(text, into.begin());
    size = static_cast<std::uint8_t>(text.size());
}

[[nodiscard]] auto needs_destination(const egress_message& message) -> bool {
    if (message.what == egress_news::intent) return message.inward == 0;
    return message.what == egress_news::refused && message.name_size != 0;
}

} // namespace

void put_name(egress_message& into, std::string_view name) { put(into.name, into.name_size, name); }
void put_detail(egress_message& into, std::string_view detail) {
    put(into.detail, into.detail_size, detail);
}

auto read_news(std::span<const std::byte> bytes) -> std::optional<egress_report> {
    egress_message message;
    if (bytes.size() != sizeof message) return std::nullopt;
    std::memcpy(&message, bytes.data(), sizeof message);
    if (message.what > egress_news::outcome || message.reason > egress_reason::no_credential ||
        message.inward > 1)
        return std::nullopt;
    egress_report out{.what = message.what,
                      .reason = message.reason,
                      .inward = message.inward != 0,
                      .port = message.port,
                      .os = message.os,
                      .id = message.id,
                      .sent = message.sent,
                      .received = message.received,
                      .where = std::nullopt,
                      .detail = printable({message.detail.data(), message.detail_size})};
    if (needs_destination(message)) {
        const std::string_view name{message.name.data(), message.name_size};
        auto host = parse_host(name);
        // Only the one form that is compared and recorded everywhere else.
        if (!host || host->name != name || message.port == 0) return std::nullopt;
        out.where = destination{*std::move(host), message.port};
    } else if (message.name_size != 0) return std::nullopt;
    if (message.what == egress_news::intent && out.inward && message.port == 0) return std::nullopt;
    return out;
}

auto explain(egress_reason reason, std::string_view where, std::string_view detail, int os)
    -> std::string {
    const std::string place{where};
    const std::string more{detail};
    const auto with = [&](const std::string& words) {
        return os == 0 ? words : words + ": " + std::strerror(os);
    };
    switch (reason) {
    case egress_reason::none: return {};
    case egress_reason::not_allowed: return place + " is not allowed";
    case egress_reason::bytes_spent: return place + ": the rule's max-bytes are used up";
    case egress_reason::malformed: return "malformed request: " + more;
    case egress_reason::not_recorded: return place + ": the connection could not be put on record";
    case egress_reason::address_refused:
        return place + " resolves to a " + more +
               " address; add ,allow-private to the rule to allow it";
    case egress_reason::lookup_failed: return place + ": the name was not found: " + more;
    case egress_reason::lookup_timed_out: return place + ": the name service did not answer";
    case egress_reason::dial_failed: return with(place + " could not be reached");
    case egress_reason::dial_timed_out: return place + " did not answer in time";
    case egress_reason::wrong_server_name:
        return place + ": the TLS greeting asks for " + more +
               "; add ,any-server-name to the rule to allow it";
    case egress_reason::no_server_name:
        return place +
               ": the TLS greeting names no server; add ,any-server-name to the rule to allow it";
    case egress_reason::hidden_server_name:
        return place + ": the TLS greeting hides its server's name; add ,any-server-name to the "
                       "rule to allow it";
    case egress_reason::not_tls:
        return place + ": no TLS on a port of TLS; add ,any-server-name to the rule to allow it";
    case egress_reason::malformed_hello: return place + ": malformed TLS greeting";
    case egress_reason::hello_timed_out: return place + ": the TLS greeting did not end in time";
    case egress_reason::unreached: return with(place + ": nothing answers inside");
    case egress_reason::reset: return place + " reset the connection";
    case egress_reason::broken: return with(place + ": the connection broke");
    case egress_reason::idle: return place + ": nothing moved for too long";
    case egress_reason::too_long: return place + ": the connection was open for too long";
    case egress_reason::run_ended: return place + ": the run ended first";
    case egress_reason::no_credential: return "the proxy's credential is missing or wrong";
    }
    return {};
}

auto how_to_allow(const destination& where) -> std::string {
    const auto rule = rule_for(where);
    return rule.empty() ? rule : "; --egress-allow " + rule + " would allow it";
}

auto seal(const egress_configuration& what) -> result<sys::unique_fd> {
    std::string bytes;
    append(bytes, settings_head{.rules = static_cast<std::uint32_t>(what.rules.size()),
                                .published = static_cast<std::uint32_t>(what.published.size()),
                                .token_bytes = static_cast<std::uint32_t>(what.token.size()),
                                .unused = 0,
                                .limits = what.limits});
    for (const auto port : what.published) append(bytes, port);
    bytes += what.token;
    for (const auto& rule : what.rules) {
        append(bytes, static_cast<std::uint16_t>(rule.size()));
        bytes += rule;
    }
    return sys::sealed_file(bytes, "egress.settings");
}

auto unseal(sys::fd_ref file) -> result<egress_configuration> {
    GLOVE_TRY(const auto bytes, sys::read_all(file, longest_settings));
    reader from{bytes};
    settings_head head{};
    egress_configuration out;
    const auto wrong = [] { return fail(errc::corrupt, "egress.settings"); };
    if (!from.take(head) || head.rules > most_rules || head.published > 65535) return wrong();
    out.limits = head.limits;
    out.published.resize(head.published);
    for (auto& port : out.published)
        if (!from.take(port) || port == 0) return wrong();
    if (head.token_bytes == 0 || head.token_bytes > 256 || !from.take(out.token, head.token_bytes))
        return wrong();
    out.rules.resize(head.rules);
    for (auto& rule : out.rules) {
        std::uint16_t size = 0;
        if (!from.take(size) || size > longest_rule || !from.take(rule, size)) return wrong();
    }
    if (!from.empty()) return wrong();
    return out;
}

} // namespace glove::net
