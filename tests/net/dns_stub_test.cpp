#include "net/dns_stub.hpp"
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <chrono>
#include <glove/sys/fd.hpp>
#include <gmock/gmock.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace {

using namespace glove;
using namespace glove::net;
using testing::ElementsAre;
using testing::IsEmpty;
using bytes = std::vector<std::uint8_t>;
using numbers = std::vector<unsigned>;

// Knows example.com and everything below it, and what it was asked for.
struct known_names {
    std::vector<std::string> asked;
    [[nodiscard]] auto lookup() -> name_lookup {
        return {this, [](void* context, std::string_view name) noexcept -> std::uint32_t {
                    static_cast<known_names*>(context)->asked.emplace_back(name);
                    const bool known = name == "example.com" || name.ends_with(".example.com");
                    return known ? 0x0a010203U : 0;
                }};
    }
};

auto joined(std::initializer_list<bytes> parts) -> bytes {
    bytes out;
    for (const auto& part : parts) out.insert(out.end(), part.begin(), part.end());
    return out;
}
auto pair_of(unsigned value) -> bytes {
    return {static_cast<std::uint8_t>(value >> 8U), static_cast<std::uint8_t>(value)};
}
auto label(std::string_view text) -> bytes {
    bytes out{static_cast<std::uint8_t>(text.size())};
    for (const char c : text) out.push_back(static_cast<std::uint8_t>(c));
    return out;
}
auto wire_name(std::string_view text) -> bytes {
    bytes out;
    while (!text.empty()) {
        const auto part = text.substr(0, text.find('.'));
        out = joined({out, label(part)});
        text.remove_prefix(std::min(part.size() + 1, text.size()));
    }
    return joined({out, {0}});
}
auto opt_record(std::uint8_t version, const bytes& options = {}) -> bytes {
    return joined({{0},
                   pair_of(41),
                   pair_of(1232),
                   {0, version, 0x80, 0},
                   pair_of(static_cast<unsigned>(options.size())),
                   options});
}

struct query {
    bytes flags{0x01, 0x20}; // RD and AD, as dig sends them
    bytes counts{0, 1, 0, 0, 0, 0, 0, 0};
    bytes name = wire_name("example.com");
    unsigned type = ns_t_a, of_class = ns_c_in;
    bytes behind;
};
auto wire(const query& in) -> bytes {
    return joined({{0xab, 0xcd},
                   in.flags,
                   in.counts,
                   in.name,
                   pair_of(in.type),
                   pair_of(in.of_class),
                   in.behind});
}
auto extended(query in, const bytes& behind = opt_record(0)) -> query {
    in.counts[7] = 1;
    in.behind = behind;
    return in;
}
auto about(const bytes& name, unsigned type = ns_t_a) -> query {
    query out;
    out.name = name;
    out.type = type;
    return out;
}

auto answer_to(const bytes& in, name_lookup names) -> bytes {
    bytes out(longest_dns_answer);
    out.resize(answer_dns(in, out, names));
    return out;
}
auto answer_to(const bytes& in) -> bytes {
    known_names names;
    return answer_to(in, names.lookup());
}

// What the C library's parser reads in an answer.
struct parsed {
    int code = -1;
    unsigned id = 0;
    bool is_answer = false, recursion_offered = false, recursion_wanted = false, truncated = false;
    bool authoritative = false;
    std::string asked; // as it stands there
    std::vector<std::string> addresses;
    std::vector<unsigned> lifetimes;
    int opt_version = -1;
};
auto parse(const bytes& in) -> parsed {
    parsed out;
    ns_msg message{};
    if (::ns_initparse(in.data(), static_cast<int>(in.size()), &message) != 0) return out;
    out.code = ns_msg_getflag(message, ns_f_rcode);
    out.id = ns_msg_id(message);
    out.is_answer = ns_msg_getflag(message, ns_f_qr) != 0;
    out.recursion_offered = ns_msg_getflag(message, ns_f_ra) != 0;
    out.recursion_wanted = ns_msg_getflag(message, ns_f_rd) != 0;
    out.truncated = ns_msg_getflag(message, ns_f_tc) != 0;
    out.authoritative = ns_msg_getflag(message, ns_f_aa) != 0;
    ns_rr record{};
    if (ns_msg_count(message, ns_s_qd) == 1 && ::ns_parserr(&message, ns_s_qd, 0, &record) == 0)
        out.asked = ns_rr_name(record);
    for (int i = 0; i < ns_msg_count(message, ns_s_an); ++i) {
        if (::ns_parserr(&message, ns_s_an, i, &record) != 0 || ns_rr_type(record) != ns_t_a ||
            ns_rr_rdlen(record) != 4 || ns_rr_name(record) != out.asked)
            return {};
        std::array<char, INET_ADDRSTRLEN> text{};
        ::inet_ntop(AF_INET, ns_rr_rdata(record), text.data(), text.size());
        out.addresses.emplace_back(text.data());
        out.lifetimes.push_back(ns_rr_ttl(record));
    }
    for (int i = 0; i < ns_msg_count(message, ns_s_ar); ++i) {
        if (::ns_parserr(&message, ns_s_ar, i, &record) != 0 || ns_rr_type(record) != ns_t_opt)
            return {};
        out.opt_version = static_cast<int>(ns_rr_ttl(record) >> 16U & 0xffU);
        out.code |= static_cast<int>(ns_rr_ttl(record) >> 24U << 4U);
    }
    return out;
}
auto parsed_answer(const query& in) -> parsed { return parse(answer_to(wire(in))); }
auto code(const query& in) -> int { return parsed_answer(in).code; }
constexpr int bad_version = 16;

TEST(DnsStub, AKnownNameHasOneAddress) {
    const auto got = parsed_answer({});
    EXPECT_EQ(got.code, ns_r_noerror);
    EXPECT_EQ(got.id, 0xabcdU);
    EXPECT_EQ(got.asked, "example.com");
    EXPECT_THAT(got.addresses, ElementsAre("10.1.2.3"));
    EXPECT_THAT(got.lifetimes, ElementsAre(60U));
    EXPECT_TRUE(got.is_answer && got.recursion_offered && got.recursion_wanted);
    EXPECT_FALSE(got.truncated || got.authoritative);
    EXPECT_EQ(got.opt_version, -1);
}

TEST(DnsStub, ItsOtherTypesHaveNoData) {
    for (const unsigned type :
         numbers{ns_t_aaaa, ns_t_mx, ns_t_txt, ns_t_ns, ns_t_soa, ns_t_srv, 65U}) {
        const auto got = parsed_answer(about(wire_name("example.com"), type));
        EXPECT_EQ(got.code, ns_r_noerror) << type;
        EXPECT_THAT(got.addresses, IsEmpty()) << type;
        EXPECT_TRUE(got.recursion_offered) << type;
    }
}

TEST(DnsStub, AnUnknownNameDoesNotExistWhateverTheType) {
    for (const unsigned type : numbers{ns_t_a, ns_t_aaaa, ns_t_ptr, ns_t_mx, 65U}) {
        const auto got = parsed_answer(about(wire_name("example.org"), type));
        EXPECT_EQ(got.code, ns_r_nxdomain) << type;
        EXPECT_THAT(got.addresses, IsEmpty()) << type;
        EXPECT_EQ(got.asked, "example.org");
    }
    EXPECT_EQ(code(about(wire_name("3.2.1.10.in-addr.arpa"), ns_t_ptr)), ns_r_nxdomain);
    known_names names;
    const auto without = answer_to(wire({}), name_lookup{});
    EXPECT_EQ(parse(without).code, ns_r_nxdomain);
}

TEST(DnsStub, CaseIsEchoedButNotCompared) {
    known_names names;
    const auto got = answer_to(wire(about(wire_name("eXaMple.COM"))), names.lookup());
    EXPECT_EQ(parse(got).asked, "eXaMple.COM");
    EXPECT_THAT(parse(got).addresses, ElementsAre("10.1.2.3"));
    EXPECT_THAT(names.asked, ElementsAre("example.com"));
}

TEST(DnsStub, WhatIsNoHostNameDoesNotExistAndIsNotLookedUp) {
    using namespace std::string_view_literals;
    for (const auto odd : {"a b"sv, "a\0b"sv, "a.example.com"sv, "a@b"sv, "\xc3\xa9"sv, "*"sv,
                           "-a"sv, "a-"sv, "a/b"sv, "\n"sv, "a\\"sv, "a:1"sv}) {
        known_names names;
        const auto sent = wire(about(joined({label(odd), wire_name("example.com")})));
        EXPECT_EQ(parse(answer_to(sent, names.lookup())).code, ns_r_nxdomain) << odd;
        EXPECT_THAT(names.asked, IsEmpty()) << odd;
    }
    for (const auto* text : {"127.1", "1.2.3.4", "10.1.2.3", "example.com.0x7f"}) {
        known_names names;
        EXPECT_EQ(parse(answer_to(wire(about(wire_name(text))), names.lookup())).code,
                  ns_r_nxdomain);
        EXPECT_THAT(names.asked, IsEmpty()) << text;
    }
    for (const auto good : {"a_b"sv, "a-b"sv, "xn--mnchen-3ya"sv, "1"sv, "0x7f"sv})
        EXPECT_EQ(code(about(joined({label(good), wire_name("example.com")}))), ns_r_noerror)
            << good;
}

TEST(DnsStub, ALabelIsAtMost63Bytes) {
    const auto good = joined({label(std::string(63, 'a')), wire_name("example.com")});
    EXPECT_EQ(code(about(good)), ns_r_noerror);
    const auto bad = joined({label(std::string(64, 'a')), wire_name("example.com")});
    EXPECT_EQ(code(about(bad)), ns_r_formerr);
    for (const std::uint8_t size : bytes{0x40, 0x80, 0xbf})
        EXPECT_EQ(code(about(joined({{size}, bytes(255, 'a')}))), ns_r_formerr);
}

TEST(DnsStub, ANameIsAtMost253Bytes) {
    const auto sized = [](std::size_t last) {
        const std::string part(63, 'a');
        return joined({label(part), label(part), label(part), label(std::string(last - 12, 'b')),
                       wire_name("example.com")});
    };
    ASSERT_EQ(sized(61).size(), 255U);
    known_names names;
    const auto got = answer_to(wire(extended(about(sized(61)))), names.lookup());
    EXPECT_EQ(parse(got).code, ns_r_noerror);
    EXPECT_THAT(parse(got).addresses, ElementsAre("10.1.2.3"));
    EXPECT_EQ(names.asked.front().size(), 253U);
    EXPECT_EQ(code(about(sized(62))), ns_r_formerr);
    EXPECT_EQ(code(about(joined({bytes(255, 1)}))), ns_r_formerr);
}

TEST(DnsStub, ACompressedNameIsNoQuestion) {
    for (const auto& name : {bytes{0xc0, 12}, joined({label("a"), {0xc0, 12}}), bytes{0xc0, 0}})
        EXPECT_EQ(code(about(name)), ns_r_formerr);
}

TEST(DnsStub, AQueryThatIsCutShortIsMalformed) {
    for (const auto& whole : {wire({}), wire(extended({}))})
        for (std::size_t size = 0; size < whole.size(); ++size) {
            const bytes cut{whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)};
            const auto got = answer_to(cut);
            if (size < 12) EXPECT_THAT(got, IsEmpty()) << size;
            else EXPECT_EQ(parse(got).code, ns_r_formerr) << size;
        }
}

TEST(DnsStub, OneQuestionAndNothingElse) {
    for (const auto& counts : {bytes{0, 0, 0, 0, 0, 0, 0, 0}, bytes{0, 2, 0, 0, 0, 0, 0, 0},
                               bytes{1, 1, 0, 0, 0, 0, 0, 0}, bytes{0, 1, 0, 1, 0, 0, 0, 0},
                               bytes{0, 1, 0, 0, 0, 1, 0, 0}, bytes{0, 1, 0, 0, 0, 0, 0, 1},
                               bytes{0, 1, 0, 0, 0, 0, 0, 2}}) {
        query in;
        in.counts = counts;
        EXPECT_EQ(code(in), ns_r_formerr);
    }
    query in;
    in.behind = {0};
    EXPECT_EQ(code(in), ns_r_formerr);
    query truncated;
    truncated.flags = {0x03, 0};
    EXPECT_EQ(code(truncated), ns_r_formerr);
}

TEST(DnsStub, AnAnswerIsNotAnswered) {
    query in;
    in.flags = {0x81, 0x80};
    EXPECT_THAT(answer_to(wire(in)), IsEmpty());
    in.flags = {0x80, 0};
    EXPECT_THAT(answer_to(wire(in)), IsEmpty());
}

TEST(DnsStub, OtherKindsOfQueryAreNotImplemented) {
    for (unsigned kind = 1; kind < 16; ++kind) {
        query in;
        in.flags = {static_cast<std::uint8_t>(kind << 3U), 0};
        const auto got = answer_to(wire(in));
        EXPECT_EQ(parse(got).code, ns_r_notimpl) << kind;
        EXPECT_EQ(got.size(), 12U);
        EXPECT_EQ(got[2] >> 3U & 15U, kind);
    }
}

TEST(DnsStub, QuestionsAboutTheServerAndTransfersAreRefused) {
    for (const unsigned type : {0U, 41U, 128U, 249U, 250U, 251U, 252U, 253U, 254U, 255U}) {
        known_names names;
        const auto got = answer_to(wire(about(wire_name("example.com"), type)), names.lookup());
        EXPECT_EQ(parse(got).code, ns_r_refused) << type;
        EXPECT_THAT(names.asked, IsEmpty());
    }
    for (const unsigned type : {127U, 256U, 257U})
        EXPECT_EQ(code(about(wire_name("example.com"), type)), ns_r_noerror) << type;
    for (const unsigned of_class : {0U, 2U, 3U, 254U, 255U}) {
        query in;
        in.of_class = of_class;
        EXPECT_EQ(code(in), ns_r_refused) << of_class;
    }
    for (const unsigned type : {ns_t_a, ns_t_ns, ns_t_soa})
        EXPECT_EQ(code(about({0}, type)), ns_r_refused) << type; // the root
}

TEST(DnsStub, AnExtendedQueryHasAnExtendedAnswer) {
    for (const auto& options : {bytes{}, bytes{0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8}}) {
        const auto got = parsed_answer(extended({}, opt_record(0, options)));
        EXPECT_EQ(got.code, ns_r_noerror);
        EXPECT_EQ(got.opt_version, 0);
        EXPECT_THAT(got.addresses, ElementsAre("10.1.2.3"));
    }
    EXPECT_EQ(parsed_answer(extended(about(wire_name("a.org")))).opt_version, 0);
    EXPECT_EQ(code(extended(about(wire_name("a.org")))), ns_r_nxdomain);
    EXPECT_EQ(code(extended(about({0}))), ns_r_refused);
}

TEST(DnsStub, AnotherVersionOfTheExtensionIsTold) {
    for (const std::uint8_t version : bytes{1, 255}) {
        const auto got = parsed_answer(extended({}, opt_record(version)));
        EXPECT_EQ(got.code, bad_version);
        EXPECT_EQ(got.opt_version, 0);
        EXPECT_THAT(got.addresses, IsEmpty());
    }
}

TEST(DnsStub, AnyOtherRecordBehindTheQuestionIsMalformed) {
    auto other_type = opt_record(0);
    other_type[2] = 1;
    auto named = opt_record(0);
    named[0] = 1;
    auto long_options = opt_record(0);
    long_options[10] = 1;
    for (const auto& behind : {other_type, named, long_options, joined({opt_record(0), {0}}),
                               joined({opt_record(0), opt_record(0)}), bytes{}, bytes{0}})
        EXPECT_EQ(code(extended({}, behind)), ns_r_formerr);
}

// So that it cannot carry anything out.
TEST(DnsStub, AnAnswerHoldsOnlyTheIdAndTheQuestion) {
    auto one = wire(extended({}, opt_record(0, {0, 10, 0, 4, 'm', 'a', 'r', 'k'})));
    auto other = wire(extended({}, opt_record(0, {0, 11, 0, 4, 'n', 'o', 'n', 'e'})));
    other[3] = 0x70; // Z, AD and CD
    EXPECT_EQ(answer_to(one), answer_to(other));
    query unwanted;
    unwanted.flags = {0, 0};
    EXPECT_FALSE(parsed_answer(unwanted).recursion_wanted);
    query filled;
    filled.name = joined({label("mark"), {0xc0, 12}});
    EXPECT_EQ(answer_to(wire(filled)).size(), 12U);
}

TEST(DnsStub, ASmallBufferIsNotWritten) {
    known_names names;
    bytes small(longest_dns_answer - 1, 0x55);
    EXPECT_EQ(answer_dns(wire({}), small, names.lookup()), 0U);
    EXPECT_EQ(small, bytes(longest_dns_answer - 1, 0x55));
    bytes exact(longest_dns_answer, 0x55);
    EXPECT_GT(answer_dns(wire({}), exact, names.lookup()), 12U);
}

// The C library's resolver against the stub behind a socket: it gets its answers without waiting.
class Resolver : public testing::Test {
protected:
    Resolver() {
        ::sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
        ::socklen_t size = sizeof at;
        EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<::sockaddr*>(&at), sizeof at), 0);
        EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<::sockaddr*>(&at), &size), 0);
        EXPECT_EQ(::res_ninit(&state_), 0);
        state_.nscount = 1;
        state_.nsaddr_list[0] = at;
        state_.retry = 1;
        state_.retrans = 10;
        server_ = std::thread{[this] { serve(); }};
    }
    ~Resolver() override {
        ::shutdown(socket_.get(), SHUT_RDWR);
        server_.join();
        ::res_nclose(&state_);
    }
    auto ask(const char* name, int type, unsigned more_options = 0) -> bytes {
        state_.options |= more_options;
        bytes out(1024);
        const auto size =
            ::res_nquery(&state_, name, ns_c_in, type, out.data(), static_cast<int>(out.size()));
        out.resize(size < 0 ? 0U : static_cast<std::size_t>(size));
        return out;
    }
    [[nodiscard]] auto problem() const -> int { return state_.res_h_errno; }

private:
    void serve() {
        known_names names;
        for (;;) {
            bytes in(2048);
            bytes out(longest_dns_answer);
            ::sockaddr_storage from{};
            ::socklen_t from_size = sizeof from;
            const auto got = ::recvfrom(socket_.get(), in.data(), in.size(), 0,
                                        reinterpret_cast<::sockaddr*>(&from), &from_size);
            if (got <= 0) return;
            in.resize(static_cast<std::size_t>(got));
            const auto size = answer_dns(in, out, names.lookup());
            (void)::sendto(socket_.get(), out.data(), size, 0,
                           reinterpret_cast<const ::sockaddr*>(&from), from_size);
        }
    }

    sys::unique_fd socket_{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    struct __res_state state_{};
    std::thread server_;
};

TEST_F(Resolver, ItTakesEveryAnswerAtOnce) {
    const auto before = std::chrono::steady_clock::now();
    for (const unsigned options : numbers{0, RES_USE_EDNS0, RES_USE_DNSSEC | RES_TRUSTAD}) {
        EXPECT_THAT(parse(ask("a.example.com", ns_t_a, options)).addresses,
                    ElementsAre("10.1.2.3"));
        EXPECT_THAT(ask("a.example.com", ns_t_aaaa), IsEmpty());
        EXPECT_EQ(problem(), NO_DATA);
        EXPECT_THAT(ask("example.org", ns_t_a), IsEmpty());
        EXPECT_EQ(problem(), HOST_NOT_FOUND);
        EXPECT_THAT(ask("1.0.0.127.in-addr.arpa", ns_t_ptr), IsEmpty());
        EXPECT_EQ(problem(), HOST_NOT_FOUND);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds{5});
}

} // namespace
