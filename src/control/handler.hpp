// What the handlers of methods are written with.
#pragma once
#include "control/method_fields.hpp"
#include "control/service_state.hpp"
#include <glove/base/wipe.hpp>
#include <glove/wire/crypto.hpp>
#include <glove/wire/json_writer.hpp>

namespace glove::control {

using namespace payloads;

// What a method takes, by its field table.
template<class T, std::size_t N>
[[nodiscard]] auto taken(const call& of, const wire::fields<T, N>& rows) -> answer<T> {
    return or_refuse(wire::decode_text(of.asked.payload, rows), error_code::invalid_request);
}

// Keys of what is no session's, or outlives it.
inline constexpr std::string_view service_keys;

// One digest for each request, whatever its white space and the order of its members were: what was
// typed is not kept. Empty when there is none, and such a request is not carried out.
template<class T, std::size_t N>
[[nodiscard]] auto meaning(const call& of, const T& what, const wire::fields<T, N>& rows)
    -> std::string {
    auto text = wire::encode(what, rows);
    if (!text) return {};
    const wiped_at_end wiped{*text};
    auto hashed = wire::sha256_stream::start();
    if (!hashed || !hashed->update(of.row.name) || !hashed->update(std::string_view{"\0", 1}) ||
        !hashed->update(*text))
        return {};
    const auto digest = std::move(*hashed).finish();
    return digest ? wire::to_hex(*digest) : std::string{};
}

// A result object: every one begins with its version.
template<class Members> [[nodiscard]] auto result_of(Members members) -> std::string {
    std::string out;
    wire::json::writer to{out};
    to.begin_object();
    to.member("schema_version", 1);
    members(to);
    to.end_object();
    return out;
}

// A part of a result that has an encoder of its own; it never fails for what this service made.
template<class T> void put(wire::json::writer& to, std::string_view name, const result<T>& text) {
    to.key(name);
    to.raw(*text);
}

} // namespace glove::control
