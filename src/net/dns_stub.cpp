// RFC 1035 for one question, with the OPT record of RFC 6891. Nothing else is understood, and what
// is not understood is answered all the same, because a client without an answer waits for seconds.
#include "net/dns_stub.hpp"
#include "net/host_name.hpp"
#include <algorithm>
#include <array>
#include <glove/base/ascii.hpp>
#include <optional>

namespace glove::net {

namespace {

using bytes_view = std::span<const std::uint8_t>;

constexpr std::size_t header_size = 12;
constexpr std::size_t longest_wire_name = 255;
constexpr std::size_t longest_question = longest_wire_name + 4;
constexpr std::size_t address_record_size = 16;
constexpr std::size_t opt_record_size = 11;
static_assert(header_size + longest_question + address_record_size + opt_record_size <=
              longest_dns_answer);

constexpr unsigned type_a = 1;
constexpr unsigned type_opt = 41;
constexpr unsigned class_in = 1;

constexpr unsigned is_answer = 0x80; // in the third byte
constexpr unsigned is_truncated = 0x02;
constexpr unsigned wants_recursion = 0x01;
constexpr unsigned offers_recursion = 0x80; // in the fourth byte

// Clients ask again after so many seconds: a name keeps its address for the whole run.
constexpr std::uint32_t time_to_live = 60;
constexpr unsigned largest_query = 1232; // what the server's side of EDNS announces

enum class verdict : std::uint8_t {
    good = 0,
    bad_format = 1,
    no_such_name = 3,
    not_implemented = 4,
    refused = 5,
    bad_version = 16, // its upper bits go into the OPT record
};

[[nodiscard]] auto number_at(bytes_view in, std::size_t at) noexcept -> unsigned {
    return static_cast<unsigned>(in[at] << 8U | in[at + 1]);
}

struct question {
    bytes_view wire;
    unsigned type = 0, of_class = 0;
    std::array<char, longest_wire_name> name{}; // lower case
    std::size_t name_size = 0;
    bool has_odd_label = false; // with a dot inside
    [[nodiscard]] auto text() const noexcept -> std::string_view {
        return {name.data(), name_size};
    }
};

// At the front of `in`. No compression: there is nothing before it to point at.
[[nodiscard]] auto read_question(bytes_view in) noexcept -> std::optional<question> {
    question out;
    std::size_t at = 0;
    for (;;) {
        if (at >= in.size()) return std::nullopt;
        const std::size_t size = in[at++];
        if (size == 0) break;
        if (size > longest_label || size > in.size() - at) return std::nullopt;
        if (at + size >= longest_wire_name) return std::nullopt;
        if (out.name_size > 0) out.name[out.name_size++] = '.';
        for (const auto byte : in.subspan(at, size)) {
            const auto c = static_cast<char>(byte);
            out.has_odd_label = out.has_odd_label || c == '.';
            out.name[out.name_size++] = to_lower(c);
        }
        at += size;
    }
    if (in.size() - at < 4) return std::nullopt;
    out.type = number_at(in, at);
    out.of_class = number_at(in, at + 2);
    out.wire = in.first(at + 4);
    return out;
}

struct extended {
    bool is_used = false;
    unsigned version = 0;
};

// What stands behind the question: nothing, or one OPT record, whose options mean nothing here.
[[nodiscard]] auto read_additional(bytes_view in, unsigned records) noexcept
    -> std::optional<extended> {
    if (records == 0) return in.empty() ? std::optional{extended{}} : std::nullopt;
    if (records > 1 || in.size() < opt_record_size || in[0] != 0 || number_at(in, 1) != type_opt ||
        number_at(in, 9) != in.size() - opt_record_size)
        return std::nullopt;
    return extended{true, in[6]};
}

// Questions about the server, transfers, and "everything": RFC 6895 keeps 128 to 255 for them. Of
// the root nothing is known, and saying that it does not exist would speak for all names.
[[nodiscard]] auto is_served(const question& asked) noexcept -> bool {
    const bool is_plain =
        asked.type != 0 && asked.type != type_opt && (asked.type < 128 || asked.type > 255);
    return asked.of_class == class_in && is_plain && asked.name_size > 0;
}

// PTR is no exception: its names are unknown, so they do not exist. musl takes REFUSED for no
// answer at all and waits for seconds, so that is kept for what no resolver asks by itself.
[[nodiscard]] auto look_up(const question& asked, const name_lookup& names) noexcept
    -> std::uint32_t {
    if (names.find == nullptr || asked.has_odd_label || flaw_of(asked.text()) != name_flaw::none)
        return 0;
    return names.find(names.context, asked.text());
}

class answer_writer {
public:
    explicit answer_writer(std::span<std::uint8_t> out) noexcept : out_{out} {}

    // The verdict and the number of records that follow. Recursion is offered, or glibc and Go take
    // an answer without data for a referral and ask elsewhere; nothing is claimed to be
    // authoritative, as a resolver's answer is not.
    void header(bytes_view query, verdict is, bool has_question, unsigned answers,
                bool has_opt) noexcept {
        number(number_at(query, 0), 2);
        const auto kept = query[2] & (0x78U | wants_recursion); // with the kind of query
        number(is_answer | kept, 1);
        number(offers_recursion | (static_cast<unsigned>(is) & 15U), 1);
        number(has_question ? 1 : 0, 2);
        number(answers, 2);
        number(0, 2);
        number(has_opt ? 1 : 0, 2);
    }
    void copy(bytes_view in) noexcept {
        std::ranges::copy(in, out_.begin() + static_cast<std::ptrdiff_t>(at_));
        at_ += in.size();
    }
    void address(std::uint32_t address) noexcept {
        number(0xc000U | header_size, 2); // the question's name
        number(type_a, 2);
        number(class_in, 2);
        number(time_to_live, 4);
        number(4, 2);
        number(address, 4);
    }
    void opt(verdict is) noexcept {
        number(0, 1);
        number(type_opt, 2);
        number(largest_query, 2);
        number(static_cast<unsigned>(is) >> 4U, 1);
        number(0, 1 + 2); // version, flags
        number(0, 2);     // options
    }
    [[nodiscard]] auto size() const noexcept -> std::size_t { return at_; }

private:
    void number(std::uint32_t value, unsigned size) noexcept {
        for (; size > 0; --size) out_[at_++] = static_cast<std::uint8_t>(value >> 8U * (size - 1));
    }

    std::span<std::uint8_t> out_;
    std::size_t at_ = 0;
};

[[nodiscard]] auto refuse(bytes_view query, std::span<std::uint8_t> out, verdict why) noexcept
    -> std::size_t {
    answer_writer to{out};
    to.header(query, why, false, 0, false);
    return to.size();
}

} // namespace

auto answer_dns(std::span<const std::uint8_t> query, std::span<std::uint8_t> out,
                const name_lookup& names) noexcept -> std::size_t {
    if (query.size() < header_size || out.size() < longest_dns_answer) return 0;
    if ((query[2] & is_answer) != 0) return 0; // or two servers could talk to each other for ever
    if ((query[2] & 0x78U) != 0) return refuse(query, out, verdict::not_implemented);
    const bool is_one_question = number_at(query, 4) == 1 && number_at(query, 6) == 0 &&
                                 number_at(query, 8) == 0 && (query[2] & is_truncated) == 0;
    if (!is_one_question) return refuse(query, out, verdict::bad_format);
    const auto asked = read_question(query.subspan(header_size));
    if (!asked) return refuse(query, out, verdict::bad_format);
    const auto extension =
        read_additional(query.subspan(header_size + asked->wire.size()), number_at(query, 10));
    if (!extension) return refuse(query, out, verdict::bad_format);

    auto is = verdict::good;
    std::uint32_t address = 0;
    if (extension->version != 0) is = verdict::bad_version;
    else if (!is_served(*asked)) is = verdict::refused;
    else if (address = look_up(*asked, names); address == 0) is = verdict::no_such_name;

    const bool has_address = address != 0 && asked->type == type_a;
    answer_writer to{out};
    to.header(query, is, true, has_address ? 1 : 0, extension->is_used);
    to.copy(asked->wire);
    if (has_address) to.address(address);
    if (extension->is_used) to.opt(is);
    return to.size();
}

} // namespace glove::net
