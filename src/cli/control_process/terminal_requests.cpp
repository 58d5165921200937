// Written member by member, in the order of the wire; read strictly.
#include "cli/control_process/terminal_requests.hpp"
#include <algorithm>
#include <glove/base/numbers.hpp>
#include <glove/wire/fields.hpp>
#include <glove/wire/json_writer.hpp>
#include <vector>

namespace glove::cli {

namespace {

using json_writer = wire::json::writer;

template<class Rest> [[nodiscard]] auto request_of(std::string_view session_id, Rest rest)
    -> std::string {
    std::string out;
    json_writer w{out};
    w.begin_object();
    w.member("session_id", session_id);
    rest(w);
    w.end_object();
    return out;
}

struct page_answer {
    std::uint8_t schema_version = 1;
    std::string session_id;
    std::uint64_t oldest_cursor = 0, next_cursor = 0;
    bool truncated = false, eof = false;
    std::vector<std::uint8_t> bytes;
};
constexpr auto page_fields = wire::table(
    wire::row<&page_answer::schema_version, wire::integer{1, 1}>("schema_version"),
    wire::row<&page_answer::session_id, wire::ident>("session_id"),
    wire::row<&page_answer::oldest_cursor, wire::integer{}>("oldest_cursor"),
    wire::row<&page_answer::next_cursor, wire::integer{}>("next_cursor"),
    wire::row<&page_answer::truncated, wire::flag{}>("truncated"),
    wire::row<&page_answer::eof, wire::flag{}>("eof"),
    wire::row<&page_answer::bytes, wire::list<wire::integer{0, 255}>{0, most_page_bytes}>("bytes"));

} // namespace

auto size_named(std::string_view text) -> std::optional<window_size> {
    constexpr std::uint64_t most = 4096;
    const auto cut = text.find('x');
    if (cut == text.npos) return std::nullopt;
    const auto rows = parse_decimal(text.substr(0, cut), most);
    const auto columns = parse_decimal(text.substr(cut + 1), most);
    if (!rows || !columns || *rows == 0 || *columns == 0) return std::nullopt;
    return window_size{static_cast<std::uint16_t>(*rows), static_cast<std::uint16_t>(*columns)};
}

auto input_request(std::string_view session_id, std::string_view bytes) -> std::string {
    return request_of(session_id, [&](json_writer& w) {
        w.begin_array("bytes");
        for (const char c : bytes) w.element(static_cast<unsigned char>(c));
        w.end_array();
    });
}

auto resize_request(std::string_view session_id, const window_size& size) -> std::string {
    return request_of(session_id, [&](json_writer& w) {
        w.member("rows", size.rows);
        w.member("columns", size.columns);
    });
}

auto signal_request(std::string_view session_id, std::string_view name) -> std::string {
    return request_of(session_id, [&](json_writer& w) { w.member("signal", name); });
}

auto page_request(std::string_view session_id, std::uint64_t cursor) -> std::string {
    return request_of(session_id, [&](json_writer& w) {
        w.member("cursor", cursor);
        w.member("max_bytes", most_page_bytes);
    });
}

auto decode_page(std::string_view answer, std::string_view session_id, std::uint64_t cursor)
    -> result<shown_page> {
    const auto tree = wire::json::read(answer);
    if (!tree) return std::unexpected(tree.error());
    GLOVE_TRY(const auto read, wire::decode(*tree, page_fields));
    shown_page out{read.oldest_cursor,
                   read.next_cursor,
                   read.truncated,
                   read.eof,
                   {read.bytes.begin(), read.bytes.end()}};
    const auto wrong = [](const char* why) { return fail(errc::corrupt, "client.reply", why); };
    if (read.session_id != session_id) return wrong("the page is of another session");
    if (out.next_cursor < out.bytes.size()) return wrong("the page begins before the first byte");
    if (out.truncated != (out.oldest_cursor > cursor) ||
        out.cursor() != std::max(cursor, out.oldest_cursor))
        return wrong("the page does not begin where it was asked to");
    return out;
}

} // namespace glove::cli
