#include <array>
#include <functional>
#include <glove/base/ascii.hpp>
#include <glove/net/client_hello.hpp>
#include <gmock/gmock.h>
#include <numeric>
#include <vector>

namespace {

using namespace glove;
using namespace glove::net;
using bytes = std::vector<std::uint8_t>;

auto from_hex(std::string_view text) -> bytes {
    bytes out;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2)
        out.push_back(static_cast<std::uint8_t>(hex_value(text[i]) * 16 + hex_value(text[i + 1])));
    return out;
}

// Greetings of `openssl s_client -servername`, for TLS 1.3 and for 1.2.
constexpr std::string_view openssl_13 =
    "160301013c010001380303b1b9f32588238afe42165c78a4f075ecf8926eae579262320d44587e16c03e4520"
    "6d4e4ae53d876827036c272683ca98cd78e4a0dd2d41cea2e369ca6462ea88a7003e130213031301c02cc030"
    "009fcca9cca8ccaac02bc02f009ec024c028006bc023c0270067c00ac0140039c009c0130033009d009c003d"
    "003c0035002f00ff010000b100000014001200000f6170692e6578616d706c652e636f6d000b000403000102"
    "000a00160014001d0017001e0019001801000101010201030104002300000016000000170000000d002a0028"
    "040305030603080708080809080a080b080408050806040105010601030303010302040205020602002b0009"
    "080304030303020301002d00020101003300260024001d0020c23e55d0e14020e58ef367b2946097acd0386b"
    "39be6cc3992b6d4f774cafaf02";
constexpr std::string_view openssl_12 =
    "16030100cf010000cb0303083f8c67e186c38b17b00700640fae496af26972cfcb78c46cd0093f915521b200"
    "0038c02cc030009fcca9cca8ccaac02bc02f009ec024c028006bc023c0270067c00ac0140039c009c0130033"
    "009d009c003d003c0035002f00ff0100006a00000014001200000f4170692e4578616d706c652e636f6d000b"
    "000403000102000a000c000a001d0017001e00190018002300000016000000170000000d002a002804030503"
    "0603080708080809080a080b080408050806040105010601030303010302040205020602";

auto number(std::size_t value, unsigned size) -> bytes {
    bytes out;
    for (unsigned i = size; i > 0; --i)
        out.push_back(static_cast<std::uint8_t>(value >> 8U * (i - 1)));
    return out;
}
auto joined(std::initializer_list<bytes> parts) -> bytes {
    bytes out;
    for (const auto& part : parts) out.insert(out.end(), part.begin(), part.end());
    return out;
}
auto vector_of(unsigned length_size, const bytes& in) -> bytes {
    return joined({number(in.size(), length_size), in});
}
auto text(std::string_view in) -> bytes { return {in.begin(), in.end()}; }
auto extension(std::size_t type, const bytes& in) -> bytes {
    return joined({number(type, 2), vector_of(2, in)});
}
auto host_name(const bytes& name) -> bytes { return joined({{0}, vector_of(2, name)}); }
auto server_name(const bytes& entries) -> bytes { return extension(0, vector_of(2, entries)); }

// The parts of a greeting; a case changes one of them.
struct parts {
    std::uint8_t record_type = 22;
    bytes record_version{3, 1};
    std::uint8_t message = 1;
    bytes version{3, 3};
    bytes random = bytes(32, 7);
    bytes session = bytes(32, 8);
    bytes ciphers{0x13, 0x01, 0x13, 0x02};
    bytes compression{0};
    bytes extensions = server_name(host_name(text("a.com")));
    bytes behind;                                         // the extensions, inside the message
    std::ptrdiff_t extensions_more = 0, message_more = 0; // what the lengths say too much
};

auto record(std::uint8_t type, const bytes& in, const bytes& version = {3, 1}) -> bytes {
    return joined({{type}, version, vector_of(2, in)});
}
auto plus(std::size_t size, std::ptrdiff_t more) -> std::size_t {
    return static_cast<std::size_t>(static_cast<std::ptrdiff_t>(size) + more);
}
auto message_of(const parts& in) -> bytes {
    const auto body = joined({in.version, in.random, vector_of(1, in.session),
                              vector_of(2, in.ciphers), vector_of(1, in.compression),
                              number(plus(in.extensions.size(), in.extensions_more), 2),
                              in.extensions, in.behind});
    return joined({{in.message}, number(plus(body.size(), in.message_more), 3), body});
}
auto hello(const parts& in) -> bytes {
    return record(in.record_type, message_of(in), in.record_version);
}
auto hello_with(const std::function<void(parts&)>& change) -> bytes {
    parts out;
    change(out);
    return hello(out);
}
auto with_extensions(const bytes& extensions) -> bytes {
    return hello_with([&](parts& p) { p.extensions = extensions; });
}
// The message cut into records of that size.
auto fragmented(const bytes& message, std::size_t size) -> bytes {
    bytes out;
    for (std::size_t at = 0; at < message.size(); at += size) {
        const auto first = message.begin() + static_cast<std::ptrdiff_t>(at);
        const auto step = std::min(size, message.size() - at);
        out = joined({out, record(22, {first, first + static_cast<std::ptrdiff_t>(step)})});
    }
    return out;
}
// A message of that size, filled by an unknown extension.
auto message_sized(std::size_t size) -> bytes {
    const auto least = message_of({}).size() + extension(0x1234, {}).size();
    parts out;
    const auto rest = size - least;
    out.extensions = joined({out.extensions, extension(0x1234, bytes(rest, 1))});
    return message_of(out);
}

auto state_of(const bytes& in) -> hello_state { return read_client_hello(in).state; }
auto name_in(const bytes& in) -> std::string {
    const auto out = read_client_hello(in);
    return out.state == hello_state::complete ? out.server_name : "(none)";
}

TEST(ClientHello, TheNameIsRead) {
    EXPECT_EQ(name_in(hello({})), "a.com");
    EXPECT_FALSE(read_client_hello(hello({})).has_encrypted_hello);
}

TEST(ClientHello, GreetingsOfARealClientAreRead) {
    EXPECT_EQ(name_in(from_hex(openssl_13)), "api.example.com");
    EXPECT_EQ(name_in(from_hex(openssl_12)), "Api.Example.com");
}

TEST(ClientHello, APrefixIsIncomplete) {
    for (const auto& whole : {hello({}), from_hex(openssl_13), from_hex(openssl_12),
                              fragmented(message_of({}), 1), fragmented(message_of({}), 7)}) {
        for (std::size_t size = 0; size < whole.size(); ++size) {
            const bytes prefix{whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)};
            const auto out = read_client_hello(prefix);
            ASSERT_EQ(out.state, hello_state::incomplete) << size;
            ASSERT_EQ(out.server_name, "");
        }
        EXPECT_EQ(state_of(whole), hello_state::complete);
    }
}

TEST(ClientHello, AGreetingMaySpanRecords) {
    const auto message = message_of({});
    for (std::size_t size = 1; size <= message.size(); ++size)
        EXPECT_EQ(name_in(fragmented(message, size)), "a.com") << size;
}

TEST(ClientHello, WhatIsNoHandshakeRecordIsNotTls) {
    for (unsigned type = 0; type < 256; ++type)
        EXPECT_EQ(state_of(number(type, 1)),
                  type == 22 ? hello_state::incomplete : hello_state::not_tls);
    EXPECT_EQ(state_of(text("GET / HTTP/1.1\r\n")), hello_state::not_tls);
    EXPECT_EQ(state_of(text("SSH-2.0-x\r\n")), hello_state::not_tls);
    EXPECT_EQ(state_of(from_hex("802e0103010015")), hello_state::not_tls); // SSL 2 form
    EXPECT_EQ(state_of(from_hex("1602")), hello_state::not_tls);
    EXPECT_EQ(state_of(from_hex("1604")), hello_state::not_tls);
    EXPECT_EQ(state_of(from_hex("16")), hello_state::incomplete);
    EXPECT_EQ(state_of(from_hex("1603")), hello_state::incomplete);
    EXPECT_EQ(state_of({}), hello_state::incomplete);
}

TEST(ClientHello, AnyMinorVersionWillDo) {
    for (std::uint8_t minor = 0; minor < 6; ++minor) {
        EXPECT_EQ(name_in(hello_with([&](parts& p) { p.record_version = {3, minor}; })), "a.com");
        EXPECT_EQ(name_in(hello_with([&](parts& p) { p.version = {3, minor}; })), "a.com");
    }
    EXPECT_EQ(state_of(hello_with([](parts& p) { p.version = {2, 3}; })), hello_state::malformed);
}

TEST(ClientHello, AnotherMessageIsMalformed) {
    for (const std::uint8_t type : bytes{0, 2, 4, 11, 255})
        EXPECT_EQ(state_of(hello_with([&](parts& p) { p.message = type; })),
                  hello_state::malformed);
}

TEST(ClientHello, ARecordIsOneTo16640Bytes) {
    EXPECT_EQ(state_of(from_hex("1603010000")), hello_state::malformed);
    EXPECT_EQ(state_of(from_hex("1603010001")), hello_state::incomplete);
    EXPECT_EQ(state_of(from_hex("1603014100")), hello_state::incomplete);
    EXPECT_EQ(state_of(from_hex("1603014101")), hello_state::malformed);
    EXPECT_EQ(name_in(record(22, message_sized(16'640))), "a.com");
    const auto message = message_of({});
    const auto half = message.begin() + 40;
    const auto start = record(22, {message.begin(), half});
    const auto end = record(22, {half, message.end()});
    EXPECT_EQ(name_in(joined({start, end})), "a.com");
    EXPECT_EQ(state_of(joined({start, record(22, {}), end})), hello_state::malformed);
}

TEST(ClientHello, OtherRecordsDoNotStandInsideIt) {
    const auto message = message_of({});
    const auto half = message.begin() + 40;
    const auto start = record(22, {message.begin(), half});
    const bytes end{half, message.end()};
    for (const std::uint8_t type : bytes{20, 21, 23, 24, 0})
        EXPECT_EQ(state_of(joined({start, record(type, end)})), hello_state::malformed);
    EXPECT_EQ(state_of(joined({start, record(22, end, {2, 1})})), hello_state::malformed);
    EXPECT_EQ(state_of(joined({start, record(22, end)})), hello_state::complete);
}

TEST(ClientHello, ItIsAtMost32KiB) {
    const auto sized = [](std::size_t total) {
        const auto records = (total + 16'383 + 5) / (16'384 + 5);
        const auto out = fragmented(message_sized(total - records * 5), 16'384);
        EXPECT_EQ(out.size(), total);
        return out;
    };
    EXPECT_EQ(name_in(sized(longest_client_hello)), "a.com");
    EXPECT_EQ(state_of(sized(longest_client_hello + 1)), hello_state::malformed);
    // A length alone is enough to know.
    EXPECT_EQ(state_of(from_hex("160301400001008000")), hello_state::incomplete);
    EXPECT_EQ(state_of(from_hex("160301400001008001")), hello_state::malformed);
    // A stream of short records ends too.
    auto slow = fragmented(message_sized(8000), 1);
    EXPECT_EQ(state_of(slow), hello_state::malformed);
    slow.resize(longest_client_hello - 5);
    EXPECT_EQ(state_of(slow), hello_state::incomplete);
}

TEST(ClientHello, ASessionIsAtMost32Bytes) {
    for (const std::size_t size : {0U, 1U, 32U})
        EXPECT_EQ(name_in(hello_with([&](parts& p) { p.session = bytes(size, 1); })), "a.com");
    for (const std::size_t size : {33U, 255U})
        EXPECT_EQ(state_of(hello_with([&](parts& p) { p.session = bytes(size, 1); })),
                  hello_state::malformed);
}

TEST(ClientHello, CiphersComeInPairsOfBytes) {
    for (const std::size_t size : {2U, 4U, 500U})
        EXPECT_EQ(name_in(hello_with([&](parts& p) { p.ciphers = bytes(size, 1); })), "a.com");
    for (const std::size_t size : {0U, 1U, 3U})
        EXPECT_EQ(state_of(hello_with([&](parts& p) { p.ciphers = bytes(size, 1); })),
                  hello_state::malformed);
}

TEST(ClientHello, ThereIsACompressionMethod) {
    for (const std::size_t size : {1U, 2U, 255U})
        EXPECT_EQ(name_in(hello_with([&](parts& p) { p.compression = bytes(size, 0); })), "a.com");
    EXPECT_EQ(state_of(hello_with([](parts& p) { p.compression = {}; })), hello_state::malformed);
}

TEST(ClientHello, WithoutExtensionsThereIsNoName) {
    const parts p;
    const auto body = joined({p.version, p.random, vector_of(1, p.session), vector_of(2, p.ciphers),
                              vector_of(1, p.compression)});
    const auto sent = [](const bytes& in) { return record(22, joined({{1}, vector_of(3, in)})); };
    EXPECT_EQ(name_in(sent(body)), "");
    EXPECT_EQ(name_in(with_extensions({})), "");
    EXPECT_EQ(name_in(with_extensions(extension(16, {0, 0}))), "");
    EXPECT_EQ(state_of(sent(joined({body, {0}}))), hello_state::malformed);
    EXPECT_EQ(state_of(sent(joined({body, {0, 1}}))), hello_state::malformed);
}

TEST(ClientHello, EveryLengthAgreesWithTheOthers) {
    for (const std::ptrdiff_t more : {-1, 1, 4, -4}) {
        EXPECT_EQ(state_of(hello_with([&](parts& p) { p.extensions_more = more; })),
                  hello_state::malformed)
            << more;
        EXPECT_EQ(state_of(hello_with([&](parts& p) { p.message_more = more; })),
                  hello_state::malformed)
            << more;
    }
    EXPECT_EQ(state_of(hello_with([](parts& p) { p.behind = {0}; })), hello_state::malformed);
    EXPECT_EQ(state_of(with_extensions(joined({server_name(host_name(text("a"))), {0, 9, 0}}))),
              hello_state::malformed);
    EXPECT_EQ(state_of(with_extensions({0, 9, 0, 1})), hello_state::malformed);
    EXPECT_EQ(state_of(with_extensions({0, 9, 0, 0})), hello_state::complete);
}

TEST(ClientHello, TheNamesLengthsAgree) {
    const auto a_com = text("a.com");
    const bytes broken[] = {
        extension(0, {}),                                // as a server answers
        server_name({}),                                 // no entry
        server_name({0}),                                // half an entry
        server_name(host_name({})),                      // no name
        server_name(joined({{1}, vector_of(2, a_com)})), // another kind of name
        server_name(joined({host_name(a_com), {0}})),    // something behind
        server_name(joined({host_name(a_com), host_name(a_com)})),
        server_name(joined({host_name(a_com), {1}, vector_of(2, a_com)})),
        server_name(joined({{0}, number(6, 2), a_com})), // longer than its list
        server_name(joined({{0}, number(4, 2), a_com})), // shorter
        extension(0, joined({vector_of(2, host_name(a_com)), {0}})),
        extension(0, joined({number(9, 2), host_name(a_com)})),
        extension(0, joined({number(7, 2), host_name(a_com)})),
    };
    for (std::size_t i = 0; i < std::size(broken); ++i) {
        EXPECT_EQ(state_of(with_extensions(broken[i])), hello_state::malformed) << i;
        // Also where the bytes that are missing could be taken from what follows.
        EXPECT_EQ(state_of(with_extensions(joined({broken[i], extension(5, bytes(9, 1))}))),
                  hello_state::malformed)
            << i;
    }
    EXPECT_EQ(name_in(with_extensions(server_name(host_name(a_com)))), "a.com");
}

TEST(ClientHello, NoExtensionStandsTwice) {
    const auto named = server_name(host_name(text("a.com")));
    EXPECT_EQ(state_of(with_extensions(joined({named, named}))), hello_state::malformed);
    EXPECT_EQ(state_of(with_extensions(joined({named, server_name(host_name(text("b.com")))}))),
              hello_state::malformed);
    for (const std::size_t type : {1U, 16U, 0x0a0aU, 0xffffU}) {
        const auto other = extension(type, {1, 2});
        EXPECT_EQ(name_in(with_extensions(joined({other, named}))), "a.com");
        EXPECT_EQ(state_of(with_extensions(joined({other, named, other}))), hello_state::malformed);
    }
}

TEST(ClientHello, TheNameIsGivenAsItWasSent) {
    using namespace std::string_view_literals;
    for (const auto name : {"A.Com"sv, "a.com."sv, "a\0.com"sv, "\xff\xfe"sv, "1.2.3.4"sv, " "sv})
        EXPECT_EQ(name_in(with_extensions(server_name(host_name(text(name))))), name);
    const std::string endless(15'000, 'x');
    EXPECT_EQ(name_in(with_extensions(server_name(host_name(text(endless))))), endless);
}

TEST(ClientHello, AnEncryptedHelloIsTold) {
    const auto named = server_name(host_name(text("a.com")));
    for (const auto& extensions :
         {joined({named, extension(0xfe0d, {0, 1})}), joined({extension(0xfe0d, {}), named})}) {
        const auto out = read_client_hello(with_extensions(extensions));
        EXPECT_EQ(out.state, hello_state::complete);
        EXPECT_TRUE(out.has_encrypted_hello);
        EXPECT_EQ(out.server_name, "a.com");
    }
    for (const std::size_t type : {0xfe0cU, 0xfe0eU, 0x0dfeU})
        EXPECT_FALSE(read_client_hello(with_extensions(extension(type, {}))).has_encrypted_hello);
}

TEST(ClientHello, OnlyEarlyDataFollowsIt) {
    const auto first = hello({});
    const auto ciphers = record(20, {1});
    const auto early = record(23, bytes(200, 9));
    for (const auto& behind : {bytes{}, ciphers, early, joined({ciphers, early, early})})
        for (std::size_t size = 0; size <= behind.size(); ++size) {
            const bytes prefix{behind.begin(), behind.begin() + static_cast<std::ptrdiff_t>(size)};
            EXPECT_EQ(name_in(joined({first, prefix})), "a.com");
        }
    const bytes wrong[] = {first,
                           {22},
                           {21},
                           {0},
                           record(21, {1, 0}),
                           record(23, {1}, {2, 3}),
                           record(23, {}),
                           from_hex("1703034101"),
                           record(20, {1, 1}),
                           joined({early, first}),
                           joined({ciphers, {21}})};
    for (std::size_t i = 0; i < std::size(wrong); ++i)
        EXPECT_EQ(state_of(joined({first, wrong[i]})), hello_state::malformed) << i;
}

TEST(ClientHello, NothingFollowsItInItsRecord) {
    const auto message = message_of({});
    EXPECT_EQ(state_of(record(22, joined({message, {0}}))), hello_state::malformed);
    EXPECT_EQ(state_of(record(22, joined({message, message}))), hello_state::malformed);
    auto announced = record(22, joined({message, {0}})); // whose last byte is still to come
    announced.pop_back();
    EXPECT_EQ(state_of(announced), hello_state::malformed);
}

// The server's answer
// -------------------

// A server hello up to its random, in a record of `size` bytes.
auto answer_of(const std::vector<std::uint8_t>& random, std::uint16_t size = 90)
    -> std::vector<std::uint8_t> {
    std::vector<std::uint8_t> out{
        22, 3, 3, static_cast<std::uint8_t>(size >> 8U), static_cast<std::uint8_t>(size), 2, 0, 0,
        86, 3, 3};
    out.insert(out.end(), random.begin(), random.end());
    return out;
}
const std::vector<std::uint8_t> retry_random{
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};

TEST(ServerAnswer, ItsRandomSaysWhetherItAsksAgain) {
    EXPECT_EQ(read_server_answer(answer_of(retry_random)), server_answer::asks_again);
    auto other = retry_random;
    ++other.back();
    EXPECT_EQ(read_server_answer(answer_of(other)), server_answer::other);
}

TEST(ServerAnswer, EveryPrefixOfItIsIncomplete) {
    const auto whole = answer_of(retry_random);
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_EQ(read_server_answer(std::span{whole}.first(size)), server_answer::incomplete)
            << size;
}

TEST(ServerAnswer, WhatIsNoServerHelloAsksNothing) {
    auto answer = answer_of(retry_random);
    for (const std::uint8_t type : std::to_array<std::uint8_t>({20, 21, 23})) {
        answer[0] = type;
        EXPECT_EQ(read_server_answer(answer), server_answer::other);
    }
    answer = answer_of(retry_random);
    answer[5] = 4;
    EXPECT_EQ(read_server_answer(answer), server_answer::other);
}

TEST(ServerAnswer, ARecordThatEndsBeforeTheRandomIsTakenForAskingAgain) {
    EXPECT_EQ(read_server_answer(answer_of(std::vector<std::uint8_t>(32), 37)),
              server_answer::asks_again);
    EXPECT_EQ(read_server_answer(answer_of(std::vector<std::uint8_t>(32), 38)),
              server_answer::other);
}

} // namespace
