// The lines are checked before the header library sees them, so that what it is lenient about never
// reaches it.
#include "net/proxy/request.hpp"
#include <algorithm>
#include <boost/beast/http.hpp>
#include <charconv>
#include <optional>
#include <vector>

namespace glove::net::proxy {

namespace {

namespace http = boost::beast::http;
using boost::beast::iequals;

constexpr std::uint16_t plain_port = 80;

[[nodiscard]] auto bad(std::string_view problem) -> http_request {
    return {.state = parsed::bad, .problem = problem};
}

// Where the header block ends; 0 when it has not ended; npos when its lines are not fit.
[[nodiscard]] auto end_of_head(std::string_view bytes) -> std::size_t {
    std::size_t line = 0; // where it begins
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const auto byte = static_cast<unsigned char>(bytes[i]);
        if (byte == '\n') {
            if (i == 0 || bytes[i - 1] != '\r') return std::string_view::npos;
            if (i == 1) return std::string_view::npos; // an empty line before the request
            if (i - line == 1) return i + 1;
            line = i + 1;
        } else if (i > 0 && bytes[i - 1] == '\r') {
            return std::string_view::npos;
        } else if (i == line && i > 0 && (byte == ' ' || byte == '\t')) {
            return std::string_view::npos; // a folded line
        } else if ((byte < 0x20 && byte != '\t' && byte != '\r') || byte == 0x7f) {
            return std::string_view::npos;
        }
    }
    return 0;
}

[[nodiscard]] auto is_number(std::string_view text) -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

struct split_target {
    std::string_view authority, path;
};
[[nodiscard]] auto split_absolute(std::string_view target) -> std::optional<split_target> {
    constexpr std::string_view scheme = "http://";
    if (target.size() < scheme.size() ||
        !iequals({target.data(), scheme.size()}, {scheme.data(), scheme.size()}))
        return std::nullopt;
    target.remove_prefix(scheme.size());
    const auto end = std::min(target.find_first_of("/?#"), target.size());
    return split_target{target.substr(0, end), target.substr(end)};
}

// What the fields say, each allowed once.
struct known_fields {
    std::optional<std::string_view> host, length, coding, credential;
    std::vector<std::string_view> dropped; // named by Connection
};

[[nodiscard]] auto set_once(std::optional<std::string_view>& slot, std::string_view value) -> bool {
    if (slot) return false;
    slot = value;
    return true;
}

using fields = http::request_parser<http::empty_body>::value_type;

[[nodiscard]] auto text(boost::beast::string_view view) -> std::string_view {
    return {view.data(), view.size()};
}

[[nodiscard]] auto read_fields(const fields& from) -> std::optional<known_fields> {
    known_fields out;
    for (const auto& each : from) {
        const auto value = text(each.value());
        bool good = true;
        switch (each.name()) {
        case http::field::host: good = set_once(out.host, value); break;
        case http::field::content_length: good = set_once(out.length, value); break;
        case http::field::transfer_encoding: good = set_once(out.coding, value); break;
        case http::field::proxy_authorization: good = set_once(out.credential, value); break;
        case http::field::connection:
        case http::field::proxy_connection:
            for (const auto& token : http::token_list{each.value()})
                out.dropped.push_back(text(token));
            break;
        default: break;
        }
        if (!good) return std::nullopt;
    }
    return out;
}

[[nodiscard]] auto stays_here(http::field name) -> bool {
    switch (name) {
    // Written anew from what was understood.
    case http::field::host:
    case http::field::content_length:
    case http::field::transfer_encoding:
    // Of this hop alone.
    case http::field::connection:
    case http::field::proxy_connection:
    case http::field::proxy_authorization:
    case http::field::proxy_authenticate:
    case http::field::keep_alive:
    case http::field::te:
    case http::field::trailer:
    case http::field::upgrade: return true;
    default: return false;
    }
}

[[nodiscard]] auto is_proxy_field(std::string_view name) -> bool {
    constexpr std::string_view prefix = "proxy-";
    return name.size() >= prefix.size() &&
           iequals({name.data(), prefix.size()}, {prefix.data(), prefix.size()});
}

[[nodiscard]] auto host_field(const destination& where) -> std::string {
    auto out = to_string(where);
    if (where.port == plain_port) out.resize(out.rfind(':'));
    return out;
}

[[nodiscard]] auto forwarded_head(const fields& message, const known_fields& known,
                                  const http_request& request, std::string_view path)
    -> std::string {
    std::string out{text(message.method_string())};
    out += ' ';
    if (path.empty()) out += message.method() == http::verb::options ? "*" : "/";
    else if (path.front() == '?') out += '/';
    out.append(path);
    out += message.version() == 10 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n";
    out += "Host: " + host_field(request.where) + "\r\n";
    for (const auto& each : message) {
        const auto name = text(each.name_string());
        const bool named = std::ranges::any_of(known.dropped, [&](std::string_view token) {
            return iequals({token.data(), token.size()}, {name.data(), name.size()});
        });
        if (named || stays_here(each.name()) || is_proxy_field(name)) continue;
        out.append(name).append(": ").append(text(each.value())).append("\r\n");
    }
    if (request.body == body_kind::chunked) out += "Transfer-Encoding: chunked\r\n";
    else if (known.length) out += "Content-Length: " + std::to_string(request.length) + "\r\n";
    return out += "Connection: close\r\n\r\n";
}

// Empty when it is fit, else what is wrong.
[[nodiscard]] auto read_body(const fields& message, const known_fields& known, http_request& into)
    -> std::string_view {
    if (known.length && known.coding) return "both Content-Length and Transfer-Encoding";
    if (known.coding) {
        if (message.version() != 11 ||
            !iequals({known.coding->data(), known.coding->size()}, "chunked"))
            return "a transfer coding that is not chunked";
        into.body = body_kind::chunked;
    }
    if (known.length) {
        const auto length = is_number(*known.length);
        if (!length) return "Content-Length is no number";
        into.length = *length;
        into.body = body_kind::sized;
    }
    return {};
}

[[nodiscard]] auto credential_of(std::optional<std::string_view> field) -> std::string {
    constexpr std::string_view scheme = "basic ";
    if (!field || field->size() < scheme.size() ||
        !iequals({field->data(), scheme.size()}, {scheme.data(), scheme.size()}))
        return {};
    return std::string{field->substr(scheme.size())};
}

[[nodiscard]] auto names_target(const known_fields& known, const destination& where) -> bool {
    if (!known.host) return true;
    const auto named = parse_destination(*known.host, where.port);
    return named && *named == where;
}

[[nodiscard]] auto read_message(const fields& message, std::size_t consumed) -> http_request {
    if (message.version() != 10 && message.version() != 11)
        return bad("an HTTP version that is not 1.0 or 1.1");
    const auto known = read_fields(message);
    if (!known) return bad("a field that may stand once is repeated");
    http_request out{.state = parsed::complete, .consumed = consumed};
    const auto target = text(message.target());
    if (!std::ranges::all_of(target, [](char c) { return c > 0x20 && c < 0x7f; }))
        return bad("a target with bytes that are not ASCII");
    if (const auto problem = read_body(message, *known, out); !problem.empty()) return bad(problem);
    out.credential = credential_of(known->credential);
    out.tunnel = message.method() == http::verb::connect;
    std::string_view path;
    auto where = parse_destination(target);
    if (!out.tunnel) {
        if (target.starts_with('/') || target == "*")
            return bad("this is a proxy, not a web server: ask for http://HOST/ or CONNECT");
        const auto parts = split_absolute(target);
        if (!parts) return bad("a target that is not http://; other schemes need CONNECT");
        if (parts->path.contains('#')) return bad("a target with a fragment");
        path = parts->path;
        where = parse_destination(parts->authority, plain_port);
    }
    if (!where) return bad("a target that is no HOST:PORT");
    out.where = *std::move(where);
    if (!names_target(*known, out.where)) return bad("Host is not the target");
    if (out.tunnel && (out.body == body_kind::chunked || out.length != 0))
        return bad("CONNECT with a body");
    if (!out.tunnel) out.head = forwarded_head(message, *known, out, path);
    return out;
}

} // namespace

auto parse_http(std::string_view bytes, std::size_t longest) -> http_request {
    const auto end = end_of_head(bytes);
    if (end == std::string_view::npos) return bad("a header block with lines that are not fit");
    if (end > longest || (end == 0 && bytes.size() >= longest))
        return bad("a header block that is too long");
    if (end == 0) return {};
    http::request_parser<http::empty_body> parser;
    parser.header_limit(static_cast<std::uint32_t>(longest));
    parser.body_limit(boost::none);
    boost::beast::error_code problem;
    (void)parser.put(boost::asio::buffer(bytes.data(), end), problem);
    if (problem && problem != http::error::need_more) return bad("a header block that is not HTTP");
    if (!parser.is_header_done()) return bad("a header block that is not HTTP");
    return read_message(parser.get(), end);
}

} // namespace glove::net::proxy
