// The field tables of the envelope, in the order of the wire. The tests break each row of them.
//
// What is kept as it came, and the secret, have rows for their names only: they are taken from the
// text.
#pragma once
#include <glove/control/protocol.hpp>
#include <glove/wire/fields.hpp>

namespace glove::control {

struct envelope {
    std::string jsonrpc = "2.0";
    std::string id;
    std::string method;
    wire::json::value params; // stands for it
};
struct parameters {
    std::uint8_t schema_version = 1;
    std::string bootstrap_secret; // stands for it
    std::uint64_t deadline_ms = 0;
    std::optional<std::string> idempotency_key;
    wire::json::value payload; // stands for it
};

inline constexpr wire::text any_text{wire::grammar::utf8, 0, most_frame_bytes};

inline constexpr auto envelope_fields = wire::table(
    wire::row<&envelope::jsonrpc, any_text>("jsonrpc"), wire::row<&envelope::id, any_text>("id"),
    wire::row<&envelope::method, any_text>("method"),
    wire::row<&envelope::params, wire::any{}>("params"));

inline constexpr auto parameter_fields = wire::table(
    wire::row<&parameters::schema_version, wire::integer{0, UINT8_MAX}>("schema_version"),
    wire::row<&parameters::bootstrap_secret, any_text>("bootstrap_secret"),
    wire::row<&parameters::deadline_ms, wire::integer{}>("deadline_ms"),
    wire::row<&parameters::idempotency_key, any_text>("idempotency_key"),
    wire::row<&parameters::payload, wire::any{}>("payload"));

struct reply_envelope {
    std::string jsonrpc;
    std::string id;
    std::optional<wire::json::value> outcome; // stands for it
    std::optional<remote_error> error;
};

// Empty when the request had none that could be given back.
struct echoed_id {
    [[nodiscard]] constexpr auto form() const -> wire::shape {
        return {wire::json::kind::string, 0, wire::ident.max, "ident"};
    }
    [[nodiscard]] auto check(const std::string& in, const wire::place& at) const -> result<> {
        return in.empty() ? result<>{} : wire::ident.check(in, at);
    }
    [[nodiscard]] auto read(const wire::json::value& in, std::string& out,
                            const wire::place& at) const -> result<> {
        if (const auto* text = in.as_string(); text != nullptr && text->empty()) {
            out.clear();
            return {};
        }
        return wire::ident.read(in, out, at);
    }
    void write(wire::json::writer& out, const std::string& in) const { out.element(in); }
};

inline constexpr std::array version_words{wire::word<std::string_view>{"2.0", "2.0"}};

inline constexpr auto remote_error_fields =
    wire::table(wire::row<&remote_error::code, wire::ident>("code"),
                wire::row<&remote_error::message, wire::token>("message"));

inline constexpr auto reply_fields =
    wire::table(wire::row<&reply_envelope::jsonrpc, wire::choice<version_words>{}>("jsonrpc"),
                wire::row<&reply_envelope::id, echoed_id{}>("id"),
                wire::row<&reply_envelope::outcome, wire::any{}>("result"),
                wire::row<&reply_envelope::error, wire::record<remote_error_fields>{}>("error"));

} // namespace glove::control
