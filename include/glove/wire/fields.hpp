// One field table per wire type: decoding, limits, the error's path, and the encoder come from it.
//
//   inline constexpr auto grant_fields = wire::table(
//       wire::row<&grant::alias, wire::alias>("alias"),
//       wire::row<&grant::max_bytes, wire::integer{0, 1ULL << 40}>("max_bytes"),
//       wire::row<&grant::note, wire::label>("note")); // a std::optional<std::string>
//
//   decode(value, grant_fields) gives a grant, encode(grant, grant_fields) gives its text.
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
#include <array>
#include <cstddef>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/wire/json.hpp>
#include <glove/wire/json_writer.hpp>
#include <glove/wire/rules.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace glove::wire {

enum class need : std::uint8_t { required, optional, defaulted };

namespace detail {

template<class> struct member_pointer;
template<class T, class V> struct member_pointer<V T::*> {
    using owner = T;
    using type = V;
};
template<class V> inline constexpr bool is_optional = false;
template<class V> inline constexpr bool is_optional<std::optional<V>> = true;

} // namespace detail

template<class T> struct field {
    std::string_view name;
    need presence = need::required;
    shape form{};
    auto (*read)(const json::value&, T&, const place&) -> result<> = nullptr;
    auto (*check)(const T&, const place&) -> result<> = nullptr; // of a member that is not absent
    auto (*absent)(const T&) -> bool = nullptr; // the encoder leaves the member out
    void (*write)(json::writer&, const T&) = nullptr;
};

template<class T, std::size_t N> using fields = std::array<field<T>, N>;

// A std::optional member is optional, every other one is required.
template<auto Member, auto Rule> [[nodiscard]] consteval auto row(std::string_view name) {
    using owner = typename detail::member_pointer<decltype(Member)>::owner;
    using type = typename detail::member_pointer<decltype(Member)>::type;
    field<owner> out{.name = name, .form = Rule.form()};
    if constexpr (detail::is_optional<type>) {
        out.presence = need::optional;
        out.read = [](const json::value& in, owner& to, const place& at) -> result<> {
            return Rule.read(in, (to.*Member).emplace(), at);
        };
        out.check = [](const owner& in, const place& at) -> result<> {
            return Rule.check(*(in.*Member), at);
        };
        out.absent = [](const owner& in) { return !(in.*Member); };
        out.write = [](json::writer& to, const owner& in) { Rule.write(to, *(in.*Member)); };
    } else {
        out.read = [](const json::value& in, owner& to, const place& at) -> result<> {
            return Rule.read(in, to.*Member, at);
        };
        out.check = [](const owner& in, const place& at) -> result<> {
            return Rule.check(in.*Member, at);
        };
        out.absent = [](const owner&) { return false; };
        out.write = [](json::writer& to, const owner& in) { Rule.write(to, in.*Member); };
    }
    return out;
}

// The member may be missing and then keeps the value that its type starts with; the encoder leaves
// it out while it has that value.
template<auto Member, auto Rule> [[nodiscard]] consteval auto defaulted_row(std::string_view name) {
    using owner = typename detail::member_pointer<decltype(Member)>::owner;
    auto out = row<Member, Rule>(name);
    out.presence = need::defaulted;
    out.absent = [](const owner& in) { return in.*Member == owner{}.*Member; };
    return out;
}

// Two rows with one name do not compile.
template<class T, class... More> [[nodiscard]] consteval auto table(field<T> first, More... more)
    -> fields<T, 1 + sizeof...(More)> {
    static_assert(sizeof...(More) < 64, "presence is tracked in one word");
    fields<T, 1 + sizeof...(More)> out{first, more...};
    for (std::size_t i = 0; i < out.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (out[i].name == out[j].name) throw "two rows have one name";
    return out;
}

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
[[nodiscard]] auto check_object(const T& in, const fields<T, N>& rows, const place& at)
    -> result<> {
    for (const auto& row : rows)
        if (!row.absent(in)) GLOVE_CHECK(row.check(in, place{&at, row.name}));
    return {};
}

template<class T, std::size_t N>
void write_object(json::writer& out, const T& in, const fields<T, N>& rows) {
    out.begin_object();
    for (const auto& row : rows) {
        if (row.absent(in)) continue;
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

template<class T, std::size_t N>
[[nodiscard]] auto decode_text(std::string_view in, const fields<T, N>& rows,
                               const json::limits& bounds = {}) -> result<T> {
    GLOVE_TRY(const auto tree, json::read(in, bounds));
    return decode(tree, rows);
}

template<class T, std::size_t N> [[nodiscard]] auto encode(const T& in, const fields<T, N>& rows)
    -> result<std::string> {
    GLOVE_CHECK(check_object(in, rows, place{}));
    std::string out;
    json::writer to{out};
    write_object(to, in, rows);
    return out;
}

} // namespace glove::wire
