// What the handlers of methods are written with.
#pragma once
#include "control/method_fields.hpp"
#include "control/service_state.hpp"
#include <glove/wire/json_writer.hpp>

namespace glove::control {

using namespace payloads;

// What a method takes, by its field table.
template<class T, std::size_t N>
[[nodiscard]] auto taken(const call& of, const wire::fields<T, N>& rows) -> answer<T> {
    return or_refuse(wire::decode_text(of.asked.payload, rows), error_code::invalid_request);
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
