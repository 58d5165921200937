// URLs whose host is one of a list.
//
// Guarantees: only a URL that every reader takes apart in the same way is accepted: SCHEME://HOST,
// ASCII, without user information, backslash, white space, control character or escape in its
// host. Hosts are compared whole, never as prefixes; an address only in its one canonical text.
// Never resolves a name, so it says nothing about where a name leads.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glove::policy {

struct url_place {
    std::string scheme, host; // in lower case; IPv6 in its brackets
    std::uint16_t port = 0;   // 0: none that is known
    bool port_is_default = true;
};
[[nodiscard]] auto parse_url(std::string_view url) -> std::optional<url_place>;

class host_list {
public:
    // Adds "a.example", ".b.example" (it and what is below), each with ":PORT" or the scheme's own.
    // Answers what is wrong with it, to go after the value; empty when it is right.
    [[nodiscard]] auto add(std::string_view text) -> std::string_view;
    [[nodiscard]] auto holds(const url_place& where) const -> bool;

private:
    struct entry {
        std::string host;
        bool below = false;
        std::uint16_t port = 0; // 0: the scheme's own
    };
    std::vector<entry> entries_;
};

} // namespace glove::policy
