// RFC 8446 section 4.1.2 and its predecessors, RFC 6066 section 3 for the name.
#include <algorithm>
#include <array>
#include <bitset>
#include <glove/net/client_hello.hpp>

namespace glove::net {

namespace {

using bytes_view = std::span<const std::uint8_t>;

constexpr std::size_t record_header = 5;
constexpr std::size_t longest_record = 16384 + 256;
constexpr std::size_t handshake_header = 4;

constexpr std::uint8_t change_cipher_spec = 20;
constexpr std::uint8_t handshake = 22;
constexpr std::uint8_t application_data = 23;

constexpr std::uint8_t hello_message = 1;
constexpr std::size_t server_name_extension = 0;
constexpr std::size_t encrypted_hello_extension = 0xfe0d;

// Reads the handshake messages out of the records, as one stream. The first failure stays.
class handshake_reader {
public:
    explicit handshake_reader(bytes_view bytes) : bytes_{bytes} {}

    [[nodiscard]] auto failed() const noexcept -> bool { return state_ != hello_state::complete; }
    [[nodiscard]] auto state() const noexcept -> hello_state { return state_; }
    void fail(hello_state why) noexcept {
        if (!failed()) state_ = why;
    }

    // Numbers are 0 after a failure.
    auto number(unsigned size) noexcept -> std::size_t {
        std::size_t out = 0;
        for (; size > 0; --size) {
            if (!open_record()) return 0;
            out = out << 8U | bytes_[at_];
            advance(1);
        }
        return out;
    }
    void skip(std::size_t size, std::string* into = nullptr) {
        while (size > 0 && open_record()) {
            const auto end = std::min(bytes_.size(), longest_client_hello);
            const auto step = std::min({size, in_record_, end - at_});
            const auto part = bytes_.subspan(at_, step);
            if (into != nullptr) into->append(part.begin(), part.end());
            advance(step);
            size -= step;
        }
    }
    // What stands behind the hello: nothing of the handshake, and no other kind of record.
    void check_end() noexcept {
        if (in_record_ > 0) fail(hello_state::malformed);
        for (auto rest = bytes_.subspan(at_); !failed() && !rest.empty();) {
            const bool may_follow = rest[0] == change_cipher_spec || rest[0] == application_data;
            if (!may_follow || (rest.size() > 1 && rest[1] != 3)) fail(hello_state::malformed);
            if (failed() || rest.size() < record_header) return;
            const auto size = static_cast<std::size_t>(rest[3] << 8U | rest[4]);
            const auto most = rest[0] == change_cipher_spec ? 1 : longest_record;
            if (size == 0 || size > most) fail(hello_state::malformed);
            rest = rest.subspan(std::min(rest.size(), record_header + size));
        }
    }

private:
    void advance(std::size_t size) noexcept {
        at_ += size;
        in_record_ -= size;
    }
    // Whether a byte of the handshake stands at `at_`.
    auto open_record() noexcept -> bool {
        if (failed()) return false;
        if (in_record_ == 0) open_next();
        // Also of bytes that have not come: no greeting may keep its reader waiting for ever.
        if (!failed() && at_ >= longest_client_hello) fail(hello_state::malformed);
        if (!failed() && at_ >= bytes_.size()) fail(hello_state::incomplete);
        return !failed();
    }
    void open_next() noexcept {
        const auto head = bytes_.subspan(std::min(at_, bytes_.size()));
        const auto wrong = at_ == 0 ? hello_state::not_tls : hello_state::malformed;
        if ((!head.empty() && head[0] != handshake) || (head.size() > 1 && head[1] != 3))
            return fail(wrong);
        if (head.size() < record_header) return fail(hello_state::incomplete);
        in_record_ = static_cast<std::size_t>(head[3] << 8U | head[4]);
        if (in_record_ == 0 || in_record_ > longest_record) return fail(hello_state::malformed);
        at_ += record_header;
    }

    bytes_view bytes_;
    std::size_t at_ = 0;
    std::size_t in_record_ = 0; // bytes of the open record that were not taken
    hello_state state_ = hello_state::complete;
};

// Bytes that belong to one vector: nothing is taken past its end, and all of it has to be.
class vector_reader {
public:
    vector_reader(handshake_reader& in, std::size_t size) : in_{in}, left_{size} {}

    [[nodiscard]] auto is_empty() const noexcept -> bool { return left_ == 0 || in_.failed(); }
    [[nodiscard]] auto number(unsigned size) -> std::size_t {
        return take(size) ? in_.number(size) : 0;
    }
    void skip(std::size_t size, std::string* into = nullptr) {
        if (take(size)) in_.skip(size, into);
    }
    // A vector inside: its length in `length_size` bytes, from `least` to `most`, then its bytes.
    [[nodiscard]] auto inner(unsigned length_size, std::size_t least, std::size_t most)
        -> vector_reader {
        const auto size = number(length_size);
        if (!in_.failed() && (size < least || size > most)) in_.fail(hello_state::malformed);
        return {in_, take(size) ? size : 0};
    }
    void skip_all(std::string* into = nullptr) { skip(left_, into); }
    void expect_end() {
        if (left_ != 0) in_.fail(hello_state::malformed);
    }
    void expect(bool holds) {
        if (!holds) in_.fail(hello_state::malformed);
    }
    [[nodiscard]] auto size() const noexcept -> std::size_t { return left_; }

private:
    auto take(std::size_t size) noexcept -> bool {
        if (size > left_) in_.fail(hello_state::malformed);
        if (in_.failed()) return false;
        left_ -= size;
        return true;
    }

    handshake_reader& in_;
    std::size_t left_;
};

// One host name and nothing else: no other kind of name was ever defined.
void read_server_name(vector_reader extension, std::string& name) {
    auto list = extension.inner(2, 1, 0xffff);
    extension.expect_end();
    list.expect(list.number(1) == 0);
    auto host = list.inner(2, 1, 0xffff);
    list.expect_end();
    host.skip_all(&name);
}

void read_extensions(vector_reader all, client_hello& out) {
    std::bitset<0x10000> seen;
    while (!all.is_empty()) {
        const auto type = all.number(2);
        auto extension = all.inner(2, 0, 0xffff);
        all.expect(!seen[type]);
        seen.set(type);
        if (type == server_name_extension) read_server_name(extension, out.server_name);
        else extension.skip_all();
        if (type == encrypted_hello_extension) out.has_encrypted_hello = true;
    }
}

void read_body(vector_reader body, client_hello& out) {
    body.expect(body.number(1) == 3); // the version's first byte
    body.skip(1 + 32);                // its second, and the random bytes
    body.inner(1, 0, 32).skip_all();  // session
    auto ciphers = body.inner(2, 2, 0xfffe);
    ciphers.expect(ciphers.size() % 2 == 0);
    ciphers.skip_all();
    body.inner(1, 1, 0xff).skip_all(); // compression
    if (body.is_empty()) return;       // as before TLS 1.2
    auto extensions = body.inner(2, 0, 0xffff);
    body.expect_end();
    read_extensions(extensions, out);
}

} // namespace

auto read_client_hello(std::span<const std::uint8_t> bytes) -> client_hello {
    handshake_reader in{bytes};
    client_hello out;
    vector_reader head{in, handshake_header};
    head.expect(head.number(1) == hello_message);
    const auto size = head.number(3);
    head.expect(size <= longest_client_hello);
    read_body({in, size}, out);
    if (!in.failed()) in.check_end();
    if (in.failed()) out = {};
    out.state = in.state();
    return out;
}

auto read_server_answer(std::span<const std::uint8_t> bytes) noexcept -> server_answer {
    // The random of a server hello that is none: the SHA-256 of "HelloRetryRequest".
    constexpr std::array<std::uint8_t, 32> again{0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11,
                                                 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
                                                 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e,
                                                 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};
    constexpr std::size_t random_at = record_header + 4 + 2;
    constexpr std::uint8_t server_hello = 2;
    if (bytes.empty()) return server_answer::incomplete;
    if (bytes[0] != handshake) return server_answer::other;
    if (bytes.size() <= record_header) return server_answer::incomplete;
    if (bytes[record_header] != server_hello) return server_answer::other;
    // A hello that is cut before its random could be either: the stricter is taken.
    const auto size = static_cast<std::size_t>(bytes[3] << 8U | bytes[4]);
    if (size < random_at - record_header + again.size()) return server_answer::asks_again;
    if (bytes.size() < random_at + again.size()) return server_answer::incomplete;
    return std::ranges::equal(bytes.subspan(random_at, again.size()), again)
               ? server_answer::asks_again
               : server_answer::other;
}

} // namespace glove::net
