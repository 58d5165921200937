// Every length is compared with what is left before it is used. Nothing here knows a key or a
// socket.
#include "ssh/agent_message.hpp"

namespace glove::ssh {

namespace {

enum : std::uint8_t {
    agent_failure = 5,
    request_identities = 11,
    identities_answer = 12,
    sign_request = 13,
    sign_response = 14,
};

[[nodiscard]] auto number_at(std::string_view bytes) -> std::uint32_t {
    std::uint32_t out = 0;
    for (const char c : bytes.substr(0, 4)) out = out << 8U | static_cast<unsigned char>(c);
    return out;
}

class reader {
public:
    explicit reader(std::string_view bytes) : left_{bytes} {}
    [[nodiscard]] auto type(std::uint8_t wanted) -> bool {
        if (left_.empty() || static_cast<std::uint8_t>(left_.front()) != wanted) return false;
        left_.remove_prefix(1);
        return true;
    }
    [[nodiscard]] auto number(std::uint32_t& into) -> bool {
        if (left_.size() < 4) return false;
        into = number_at(left_);
        left_.remove_prefix(4);
        return true;
    }
    [[nodiscard]] auto text(std::string_view& into) -> bool {
        std::uint32_t size = 0;
        if (!number(size) || size > left_.size()) return false;
        into = left_.substr(0, size);
        left_.remove_prefix(size);
        return true;
    }
    [[nodiscard]] auto at_end() const -> bool { return left_.empty(); }

private:
    std::string_view left_;
};

// The length is put in when the message is whole.
class writer {
public:
    explicit writer(std::uint8_t type) : out_(frame_head, '\0') { out_ += static_cast<char>(type); }
    auto number(std::uint32_t value) -> writer& {
        for (const auto shift : {24U, 16U, 8U, 0U}) out_ += static_cast<char>(value >> shift);
        return *this;
    }
    auto text(std::string_view bytes) -> writer& {
        number(static_cast<std::uint32_t>(bytes.size()));
        out_ += bytes;
        return *this;
    }
    [[nodiscard]] auto frame() && -> std::string {
        const auto size = static_cast<std::uint32_t>(out_.size() - frame_head);
        for (std::size_t i = 0; i < frame_head; ++i)
            out_[i] = static_cast<char>(size >> (8U * (frame_head - 1 - i)));
        return std::move(out_);
    }

private:
    std::string out_;
};

} // namespace

auto frame_reader::announced() const -> std::optional<std::size_t> {
    if (bytes_.size() < frame_head) return std::nullopt;
    return number_at(bytes_);
}

auto frame_reader::is_sound() const -> bool {
    const auto size = announced();
    return !size || (*size > 0 && *size <= longest_message);
}

auto frame_reader::take() -> std::optional<std::string> {
    const auto size = announced();
    if (!size || !is_sound() || bytes_.size() < frame_head + *size) return std::nullopt;
    auto out = bytes_.substr(frame_head, *size);
    bytes_.erase(0, frame_head + *size);
    return out;
}

auto frame_reader::wanted() const -> std::size_t {
    const auto size = announced();
    const auto whole = size ? frame_head + *size : frame_head;
    return whole > bytes_.size() ? whole - bytes_.size() : 1;
}

auto read_request(std::string_view message) -> request {
    reader list{message};
    if (list.type(request_identities))
        return {.kind = list.at_end() ? request_kind::list : request_kind::other,
                .key = {},
                .data = {}};
    reader from{message};
    request out;
    if (from.type(sign_request) && from.text(out.key) && from.text(out.data) &&
        from.number(out.flags) && from.at_end())
        out.kind = request_kind::sign;
    return out.kind == request_kind::sign ? out : request{};
}

auto failure_frame() -> std::string { return writer{agent_failure}.frame(); }

auto identities_frame(const identity& only) -> std::string {
    writer out{identities_answer};
    out.number(1).text(only.key).text(only.comment);
    return std::move(out).frame();
}

auto signature_frame(std::string_view signature) -> std::string {
    writer out{sign_response};
    out.text(signature);
    return std::move(out).frame();
}

auto list_frame() -> std::string { return writer{request_identities}.frame(); }

auto sign_frame(std::string_view key, std::string_view data, std::uint32_t flags) -> std::string {
    writer out{sign_request};
    out.text(key).text(data).number(flags);
    return std::move(out).frame();
}

auto read_identities(std::string_view message) -> std::optional<std::vector<identity>> {
    reader from{message};
    std::uint32_t count = 0;
    if (!from.type(identities_answer) || !from.number(count) || count > most_identities)
        return std::nullopt;
    std::vector<identity> out;
    for (std::uint32_t i = 0; i < count; ++i) {
        std::string_view key;
        std::string_view comment;
        if (!from.text(key) || !from.text(comment)) return std::nullopt;
        out.push_back({std::string{key}, std::string{comment}});
    }
    if (!from.at_end()) return std::nullopt;
    return out;
}

auto read_signature(std::string_view message) -> std::optional<std::string> {
    reader from{message};
    std::string_view signature;
    if (!from.type(sign_response) || !from.text(signature) || !from.at_end() || signature.empty() ||
        signature.size() > longest_signature)
        return std::nullopt;
    return std::string{signature};
}

auto is_failure(std::string_view message) -> bool {
    return message.size() == 1 && static_cast<std::uint8_t>(message.front()) == agent_failure;
}

} // namespace glove::ssh
