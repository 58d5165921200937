// What each method takes, as field tables. The tests break each row of them.
#pragma once
#include "control/receipt_fields.hpp"
#include <glove/control/managed_runtime.hpp>
#include <glove/control/receipt.hpp>
#include <glove/control/session_registry.hpp>
#include <glove/wire/fields.hpp>

namespace glove::control::payloads {

struct session_subject {
    std::string session_id;
};
inline constexpr auto session_fields =
    wire::table(wire::row<&session_subject::session_id, wire::ident>("session_id"));

struct session_listing {
    std::optional<std::string> after;
    std::uint64_t limit = 0;
};
inline constexpr auto listing_fields =
    wire::table(wire::row<&session_listing::after, wire::ident>("after"),
                wire::row<&session_listing::limit, wire::integer{1, 256}>("limit"));

struct creation {
    std::string session_id;
    std::string controller_plan_digest;
    wire::json::value plan; // stands for it
};
inline constexpr auto creation_fields =
    wire::table(wire::row<&creation::session_id, wire::ident>("session_id"),
                wire::row<&creation::controller_plan_digest, wire::hex64>("controller_plan_digest"),
                wire::row<&creation::plan, wire::any{}>("plan"));

inline constexpr auto authorization_fields = wire::table(
    wire::row<&start_authorization::schema_version, wire::integer{1, 1}>("schema_version"),
    wire::row<&start_authorization::authorization_id, wire::ident>("authorization_id"),
    wire::row<&start_authorization::session_id, wire::ident>("session_id"),
    wire::row<&start_authorization::controller_plan_digest, wire::hex64>("controller_plan_digest"),
    wire::row<&start_authorization::plan_content_digest, wire::hex64>("plan_content_digest"),
    wire::row<&start_authorization::approved_at_ms, wire::integer{1}>("approved_at_ms"),
    wire::row<&start_authorization::expires_at_ms, wire::integer{1}>("expires_at_ms"));

struct start_request {
    start_authorization authorization;
};
inline constexpr auto start_fields =
    wire::table(wire::row<&start_request::authorization, wire::record<authorization_fields>{}>(
        "authorization"));

inline constexpr std::size_t most_terminal_bytes = 65'536; // of one request

struct attach_request {
    std::string session_id;
    std::uint64_t cursor = 0;
    std::uint64_t max_bytes = 0;
};
inline constexpr auto attach_fields = wire::table(
    wire::row<&attach_request::session_id, wire::ident>("session_id"),
    wire::row<&attach_request::cursor, wire::integer{}>("cursor"),
    wire::row<&attach_request::max_bytes, wire::integer{1, most_terminal_bytes}>("max_bytes"));

struct input_request {
    std::string session_id;
    std::vector<std::uint8_t> bytes;
};
inline constexpr auto input_fields = wire::table(
    wire::row<&input_request::session_id, wire::ident>("session_id"),
    wire::row<&input_request::bytes, wire::list<wire::integer{0, 255}>{1, most_terminal_bytes}>(
        "bytes"));

struct resize_request {
    std::string session_id;
    std::uint16_t rows = 0;
    std::uint16_t columns = 0;
};
inline constexpr auto resize_fields =
    wire::table(wire::row<&resize_request::session_id, wire::ident>("session_id"),
                wire::row<&resize_request::rows, wire::integer{1, 4096}>("rows"),
                wire::row<&resize_request::columns, wire::integer{1, 4096}>("columns"));

inline constexpr std::array signal_words{
    wire::word<session_signal>{"interrupt", session_signal::interrupt},
    wire::word<session_signal>{"terminate", session_signal::terminate},
    wire::word<session_signal>{"hangup", session_signal::hangup}};
struct signal_request {
    std::string session_id;
    session_signal signal{};
};
inline constexpr auto signal_fields =
    wire::table(wire::row<&signal_request::session_id, wire::ident>("session_id"),
                wire::row<&signal_request::signal, wire::choice<signal_words>{}>("signal"));

struct detach_request {
    std::string session_id;
    std::uint64_t transcript_cursor = 0;
};
inline constexpr auto detach_fields = wire::table(
    wire::row<&detach_request::session_id, wire::ident>("session_id"),
    wire::row<&detach_request::transcript_cursor, wire::integer{}>("transcript_cursor"));

struct page_request {
    receipt_anchor sage_anchor;
    std::uint64_t limit = 0;
};
inline constexpr auto page_fields =
    wire::table(wire::row<&page_request::sage_anchor, wire::record<anchor_fields>{}>("sage_anchor"),
                wire::row<&page_request::limit, wire::integer{1, 1000}>("limit"));

struct acknowledgement {
    receipt_anchor anchor;
};
inline constexpr auto acknowledgement_fields =
    wire::table(wire::row<&acknowledgement::anchor, wire::record<anchor_fields>{}>("anchor"));

struct retained_request {
    std::string session_id;
    std::string exposure_id;
    std::uint64_t offset = 0;
    std::uint64_t limit = 0;
};
inline constexpr auto retained_fields =
    wire::table(wire::row<&retained_request::session_id, wire::ident>("session_id"),
                wire::row<&retained_request::exposure_id, wire::ident>("exposure_id"),
                wire::row<&retained_request::offset, wire::integer{}>("offset"),
                wire::row<&retained_request::limit, wire::integer{1, 256}>("limit"));

struct intent_page_request {
    std::uint64_t after_sequence = 0;
    std::uint64_t limit = 0;
};
inline constexpr auto intent_page_fields =
    wire::table(wire::row<&intent_page_request::after_sequence, wire::integer{}>("after_sequence"),
                wire::row<&intent_page_request::limit, wire::integer{1, 256}>("limit"));

// What a controller may decide; `pending` is no decision.
inline constexpr std::array decision_words{
    wire::word<intent_disposition>{"accepted", intent_disposition::accepted},
    wire::word<intent_disposition>{"rejected", intent_disposition::rejected},
    wire::word<intent_disposition>{"expired", intent_disposition::expired}};
struct decision_request {
    std::string session_id;
    std::uint64_t channel_generation = 0;
    std::string intent_id;
    std::string intent_digest;
    intent_disposition disposition{};
    std::uint64_t decided_at_ms = 0; // the service's own clock is what counts
};
inline constexpr auto decision_fields = wire::table(
    wire::row<&decision_request::session_id, wire::ident>("session_id"),
    wire::row<&decision_request::channel_generation, wire::integer{}>("channel_generation"),
    wire::row<&decision_request::intent_id, wire::ident>("intent_id"),
    wire::row<&decision_request::intent_digest, wire::hex64>("intent_digest"),
    wire::row<&decision_request::disposition, wire::choice<decision_words>{}>("disposition"),
    wire::row<&decision_request::decided_at_ms, wire::integer{}>("decided_at_ms"));

} // namespace glove::control::payloads
