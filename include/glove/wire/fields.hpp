// One field table per wire type: decoding, limits, the error's path, and the encoder come from it.
//
//   inline constexpr auto grant_fields = wire::table(
//       wire::row<&grant::alias, wire::alias>("alias"),
//       wire::row<&grant::max_bytes, wire::integer{0, 1ULL << 40}>("max_bytes"),
//       wire::row<&grant::note, wire::label>("note")); // a std::optional<std::string>
//
//   decode_text(text, grant_fields) gives a grant, encode(grant, grant_fields) gives its text, and
//   decode(value, grant_fields) gives one from a value that was read before.
//
// Where all rules can, a text is decoded as it is read, without a tree. A text that is refused
// there is read once more, into a tree, which says what is wrong with it: errors are always those
// of `json::read` and of `decode`.
//
// Unknown, repeated and missing members, another JSON type and a value outside its rule are errors
// that name the member's path: wire.unknown, wire.repeated, wire.missing, wire.type, wire.length,
// wire.grammar, wire.range, wire.choice. A message never holds a value, because some are secrets.
//
// The encoder checks the same rules, so it emits nothing that `decode` refuses: members stand in
// the order of the table, and an empty optional is left out. A `null` means absent where a member
// may be absent.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/wire/json.hpp>
#include <glove/wire/json_cursor.hpp>
#include <glove/wire/json_writer.hpp>
#include <glove/wire/row.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace glove::wire {

template<class T, std::size_t N> [[nodiscard]] auto
read_object(const json::value& in, const fields<T, N>& rows, T& out, const place& at) -> result<> {
    const auto* members = in.as_object();
    if (members == nullptr) return detail::refuse_type(in, json::kind::object, at);
    std::uint64_t seen = 0;
    for (const auto& [name, data] : *members) {
        const auto row = std::find_if(rows.begin(), rows.end(),
                                      [&](const field<T>& f) { return f.name == name; });
        const place here{&at, name};
        if (row == rows.end())
            return detail::refuse(errc::invalid_input, "wire.unknown", here, "is not known");
        const auto bit = std::uint64_t{1} << (row - rows.begin());
        if ((seen & bit) != 0)
            return detail::refuse(errc::invalid_input, "wire.repeated", here, "appears twice");
        seen |= bit;
        if (data.is_null() && row->presence != need::required) continue;
        GLOVE_CHECK(row->read(data, out, here));
    }
    for (std::size_t i = 0; i < N; ++i)
        if (rows[i].presence == need::required && (seen >> i & 1U) == 0)
            return detail::refuse(errc::invalid_input, "wire.missing", place{&at, rows[i].name},
                                  "is missing");
    return {};
}

template<class T, std::size_t N>
[[nodiscard]] constexpr auto is_taken_from_text(const fields<T, N>& rows) -> bool {
    return std::ranges::all_of(rows, [](const field<T>& row) { return row.take != nullptr; });
}

namespace detail {

// Nothing: there are no more members, or the next one is none of the table.
template<class T, std::size_t N>
[[nodiscard]] auto next_row(json::cursor& in, const fields<T, N>& rows, std::size_t from)
    -> std::optional<std::size_t> {
    if (from < N && in.try_member(rows[from].name)) return from; // mostly
    std::string_view name;
    if (!in.next_member(name)) return std::nullopt;
    for (auto i = from; i < N; ++i)
        if (rows[i].name == name) return i;
    for (std::size_t i = 0; i < from; ++i)
        if (rows[i].name == name) return i;
    in.refuse();
    return std::nullopt;
}

} // namespace detail

// Like `read_object`, but false instead of an error. All rows of the table can.
template<class T, std::size_t N>
[[nodiscard]] auto take_object(json::cursor& in, const fields<T, N>& rows, T& out) -> bool {
    if (!in.enter_object()) return false;
    std::uint64_t seen = 0;
    std::size_t next = 0;
    while (const auto at = detail::next_row(in, rows, next)) {
        if ((seen >> *at & 1U) != 0) return false;
        if (*at < next) in.is_not_as_written();
        seen |= std::uint64_t{1} << *at;
        next = *at + 1;
        if (rows[*at].presence != need::required && in.try_null()) continue;
        if (!rows[*at].take(in, out)) return false;
    }
    if (in.broken()) return false;
    for (std::size_t i = 0; i < N; ++i) {
        const bool is_there = (seen >> i & 1U) != 0;
        if (!is_there && rows[i].presence == need::required) return false;
        if (is_there == rows[i].is_left_out(out)) in.is_not_as_written();
    }
    return true;
}

template<class T, std::size_t N>
[[nodiscard]] auto check_object(const T& in, const fields<T, N>& rows, const place& at)
    -> result<> {
    for (const auto& row : rows)
        if (!row.is_left_out(in)) GLOVE_CHECK(row.check(in, place{&at, row.name}));
    return {};
}

template<class T, std::size_t N>
void write_object(json::writer& out, const T& in, const fields<T, N>& rows) {
    out.begin_object();
    for (const auto& row : rows) {
        if (row.is_left_out(in)) continue;
        out.key(row.name);
        row.write(out, in);
    }
    out.end_object();
}

// A nested object with its own table.
template<const auto& Rows> struct record {
    [[nodiscard]] constexpr auto form() const -> shape {
        return {json::kind::object, 0, Rows.size(), {}};
    }
    template<class T> [[nodiscard]] auto check(const T& in, const place& at) const -> result<> {
        return check_object(in, Rows, at);
    }
    template<class T> [[nodiscard]] auto read(const json::value& in, T& out, const place& at) const
        -> result<> {
        return read_object(in, Rows, out, at);
    }
    template<class T>
        requires(is_taken_from_text(Rows))
    [[nodiscard]] auto take(json::cursor& in, T& out) const -> bool {
        return take_object(in, Rows, out);
    }
    template<class T> void write(json::writer& out, const T& in) const {
        write_object(out, in, Rows);
    }
};

template<class T, std::size_t N>
[[nodiscard]] auto decode(const json::value& in, const fields<T, N>& rows) -> result<T> {
    T out{};
    GLOVE_CHECK(read_object(in, rows, out, place{}));
    return out;
}

template<class T, std::size_t N> [[nodiscard]] auto encode(const T& in, const fields<T, N>& rows)
    -> result<std::string> {
    GLOVE_CHECK(check_object(in, rows, place{}));
    std::string out;
    json::writer to{out};
    write_object(to, in, rows);
    return out;
}

// What a text says, and whether it is, byte by byte, what `encode` makes of it.
template<class T> struct decoded {
    T data{};
    bool is_as_encoded = false;
};

// Nothing: the tree has to tell.
template<class T, std::size_t N>
[[nodiscard]] auto take_text(std::string_view in, const fields<T, N>& rows,
                             const json::limits& bounds = {}) -> std::optional<decoded<T>> {
    std::optional<decoded<T>> out;
    if (!is_taken_from_text(rows)) return out;
    json::cursor at{in, bounds};
    if (!take_object(at, rows, out.emplace().data) || !at.finish()) out.reset();
    else out->is_as_encoded = at.is_as_written();
    return out;
}

template<class T, std::size_t N>
[[nodiscard]] auto decode_text(std::string_view in, const fields<T, N>& rows,
                               const json::limits& bounds = {}) -> result<T> {
    if (auto taken = take_text(in, rows, bounds)) return std::move(taken->data);
    GLOVE_TRY(const auto tree, json::read(in, bounds));
    return decode(tree, rows);
}

// For records that have one text only. Also an error when `encode` refuses what `decode` gave.
template<class T, std::size_t N>
[[nodiscard]] auto decode_and_compare(std::string_view in, const fields<T, N>& rows,
                                      const json::limits& bounds = {}) -> result<decoded<T>> {
    if (auto taken = take_text(in, rows, bounds)) return *std::move(taken);
    decoded<T> out;
    GLOVE_TRY(const auto tree, json::read(in, bounds));
    GLOVE_TRY(out.data, decode(tree, rows));
    GLOVE_TRY(const auto text, encode(out.data, rows));
    out.is_as_encoded = text == in;
    return out;
}

} // namespace glove::wire
