// One pass checks the whole text and finds the literal parts; the field tables judge the small
// members, with a stand-in for what is kept as it came.
#include "control/literal_members.hpp"
#include "control/protocol_fields.hpp"
#include <glove/wire/json_outline.hpp>
#include <utility>

namespace glove::control {

namespace {

namespace json = wire::json;

[[nodiscard]] auto check_frame_size(std::size_t bytes) -> result<> {
    if (bytes >= 1 && bytes <= most_frame_bytes) return {};
    return fail(errc::limit_exceeded, "frame.size",
                std::to_string(bytes) + " bytes; a frame has 1 to " +
                    std::to_string(most_frame_bytes));
}

[[nodiscard]] auto invalid(std::string id, error why) {
    return std::unexpected(
        rejected_request{std::move(id), {error_code::invalid_request, std::move(why)}});
}

[[nodiscard]] auto decode_envelope(const json::outline& text) -> result<envelope> {
    constexpr std::array literal{std::string_view{"params"}};
    GLOVE_TRY(const auto tree, small_members(text.members(), literal));
    return wire::decode(tree, envelope_fields);
}

[[nodiscard]] auto check_words(const envelope& of) -> result<> {
    const wire::place root;
    if (of.jsonrpc != "2.0")
        return wire::detail::refuse(errc::invalid_input, "wire.choice",
                                    wire::place{&root, "jsonrpc"}, "is not 2.0");
    GLOVE_CHECK(wire::ident.check(of.id, wire::place{&root, "id"}));
    return wire::ident.check(of.method, wire::place{&root, "method"});
}

[[nodiscard]] auto decode_parameters(const json::outline& text, request& out) -> result<> {
    constexpr std::array literal{std::string_view{"bootstrap_secret"}, std::string_view{"payload"}};
    const wire::place root;
    const wire::place here{&root, "params"};
    const auto& params = *text.find("params");
    if (params.type != json::kind::object)
        return wire::detail::refuse_type(stand_in(params.type), json::kind::object, here);
    const auto members = text.inside(params);
    GLOVE_TRY(const auto tree, small_members(members, literal));
    parameters read;
    GLOVE_CHECK(wire::read_object(tree, parameter_fields, read, here));
    out.schema_version = read.schema_version;
    out.bootstrap_secret = json::decoded_string(text_of(members, "bootstrap_secret"));
    out.deadline_ms = read.deadline_ms;
    out.idempotency_key = std::move(read.idempotency_key);
    out.payload = text_of(members, "payload");
    return {};
}

[[nodiscard]] auto fits(std::string text) -> result<std::string> {
    GLOVE_CHECK(check_frame_size(text.size()));
    return text;
}

[[nodiscard]] auto check_request(const request& what) -> result<> {
    const wire::place root;
    GLOVE_CHECK(wire::ident.check(what.id, wire::place{&root, "id"}));
    GLOVE_CHECK(wire::ident.check(what.method, wire::place{&root, "method"}));
    // On its own: text that closes an object and opens the next would pass inside of the whole.
    GLOVE_CHECK(json::read(what.payload));
    return {};
}

} // namespace

auto frame_header(std::size_t body_bytes) -> result<std::array<char, 4>> {
    GLOVE_CHECK(check_frame_size(body_bytes));
    std::array<char, frame_header_bytes> out{};
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<char>(body_bytes >> (8 * (out.size() - 1 - i)) & 0xffU);
    return out;
}

auto frame_body_bytes(std::string_view header) -> result<std::size_t> {
    if (header.size() != frame_header_bytes)
        return fail(errc::invalid_input, "frame.header",
                    std::to_string(header.size()) + " bytes; a header has 4");
    std::size_t out = 0;
    for (const char c : header) out = out << 8U | static_cast<unsigned char>(c);
    GLOVE_CHECK(check_frame_size(out));
    return out;
}

auto encode(const request& what) -> result<std::string> {
    GLOVE_CHECK(check_request(what));
    std::string out;
    // Growing would leave copies of the secret behind.
    out.reserve(what.payload.size() + 2 * what.bootstrap_secret.size() + 1024);
    json::writer to{out};
    to.begin_object();
    to.member("jsonrpc", "2.0");
    to.member("id", what.id);
    to.member("method", what.method);
    to.begin_object("params");
    to.member("schema_version", what.schema_version);
    to.member("bootstrap_secret", what.bootstrap_secret);
    to.member("deadline_ms", what.deadline_ms);
    to.member("idempotency_key", what.idempotency_key);
    to.key("payload");
    to.raw(what.payload);
    to.end_object();
    to.end_object();
    return fits(std::move(out));
}

auto decode_request(std::string_view text) -> std::expected<request, rejected_request> {
    json::outline outline;
    if (auto read = outline.read(text, {}); !read) return invalid("", std::move(read).error());
    auto head = decode_envelope(outline);
    if (!head) return invalid("", std::move(head).error());
    // An id that is none is not given back.
    const auto id = wire::ident.check(head->id, {}) ? head->id : std::string{};
    if (auto checked = check_words(*head); !checked) return invalid(id, std::move(checked).error());
    request out{.id = std::move(head->id), .method = std::move(head->method)};
    if (auto checked = decode_parameters(outline, out); !checked)
        return invalid(id, std::move(checked).error());
    return out;
}

auto encode(const response& what) -> result<std::string> {
    GLOVE_CHECK(echoed_id{}.check(what.id, {}));
    std::string out;
    json::writer to{out};
    to.begin_object();
    to.member("jsonrpc", "2.0");
    to.member("id", what.id);
    if (const auto* data = std::get_if<std::string>(&what.outcome)) {
        to.key("result");
        to.raw(*data);
    } else {
        const auto code = std::get<error_code>(what.outcome);
        to.begin_object("error");
        to.member("code", to_string(code));
        to.member("message", message_of(code));
        to.end_object();
    }
    to.end_object();
    return fits(std::move(out));
}

auto decode_reply(std::string_view text) -> result<reply> {
    constexpr std::array literal{std::string_view{"result"}};
    json::outline outline;
    GLOVE_CHECK(outline.read(text, {}));
    GLOVE_TRY(const auto tree, small_members(outline.members(), literal));
    GLOVE_TRY(auto head, wire::decode(tree, reply_fields));
    const auto* data = outline.find("result");
    if ((data != nullptr) == head.error.has_value())
        return fail(errc::invalid_input, "reply.outcome",
                    "a reply has either a result or an error");
    if (head.error) return reply{std::move(head.id), std::unexpected(*std::move(head.error))};
    return reply{std::move(head.id), std::string{data->text}};
}

} // namespace glove::control
