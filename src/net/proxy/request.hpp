// Reads what a client of the proxy asks for: HTTP and SOCKS. Pure functions of bytes.
//
// Guarantees: a request is taken only when no two parsers could read it differently: strict line
// ends, no folded lines, no repeated or contradicting lengths, one Host that equals the target. A
// request that is forwarded is written anew from what was understood.
#pragma once
#include <cstdint>
#include <glove/net/destination.hpp>
#include <span>
#include <string>
#include <string_view>

namespace glove::net::proxy {

enum class parsed : std::uint8_t { incomplete, bad, complete };
enum class body_kind : std::uint8_t { none, sized, chunked };

struct http_request {
    parsed state = parsed::incomplete;
    std::string_view problem = {}; // when bad: a literal for people
    bool tunnel = false;           // CONNECT
    destination where = {};
    std::string credential = {}; // what follows "Basic " in Proxy-Authorization
    std::size_t consumed = 0;    // bytes of the header block
    std::string head = {};       // to forward, when it is no tunnel
    body_kind body = body_kind::none;
    std::uint64_t length = 0; // of a sized body
};

// `longest` is the largest header block, with its last line end.
[[nodiscard]] auto parse_http(std::string_view bytes, std::size_t longest) -> http_request;

// The body of one forwarded request. Takes no byte past its end.
class body_filter {
public:
    explicit body_filter(const http_request& of)
        : kind_{of.body}, left_{of.length},
          done_{of.body == body_kind::none || (of.body == body_kind::sized && of.length == 0)} {}
    // Appends to `out` what is to be sent. False when the bytes are no such body.
    [[nodiscard]] auto feed(std::string_view bytes, std::string& out) -> bool;
    [[nodiscard]] auto done() const noexcept -> bool { return done_; }

private:
    enum class part : std::uint8_t { size, data, data_end, trailer };
    [[nodiscard]] auto take_line(std::string_view& bytes, std::size_t longest) -> bool;
    [[nodiscard]] auto read_size(std::string_view line) -> bool;
    void take_data(std::string_view& bytes, std::string& out);
    [[nodiscard]] auto end_line() -> bool;

    body_kind kind_;
    part part_ = part::size;
    std::uint64_t left_;
    std::size_t trailer_bytes_ = 0;
    std::string line_;
    bool line_ended_ = false, broken_ = false;
    bool done_;
};

inline constexpr std::uint8_t socks_none = 0x00;
inline constexpr std::uint8_t socks_password = 0x02;

struct socks_greeting {
    parsed state = parsed::incomplete;
    std::size_t consumed = 0;
    bool offers_none = false, offers_password = false;
};
[[nodiscard]] auto parse_socks_greeting(std::string_view bytes) -> socks_greeting;

struct socks_credential {
    parsed state = parsed::incomplete;
    std::size_t consumed = 0;
    std::string user = {}, password = {};
};
[[nodiscard]] auto parse_socks_credential(std::string_view bytes) -> socks_credential;

struct socks_request {
    parsed state = parsed::incomplete;
    std::size_t consumed = 0;
    std::uint8_t reply = 0; // when bad
    std::string_view problem = {};
    destination where = {};
};
[[nodiscard]] auto parse_socks_request(std::string_view bytes) -> socks_request;

// RFC 4648, with padding.
[[nodiscard]] auto to_base64(std::string_view bytes) -> std::string;
// The time depends on the lengths only; texts of different length are different at once.
[[nodiscard]] auto equal_in_constant_time(std::string_view a, std::string_view b) noexcept -> bool;

} // namespace glove::net::proxy
