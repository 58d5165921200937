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
#include <array>
#include <cstddef>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/wire/json.hpp>
#include <glove/wire/json_cursor.hpp>
#include <glove/wire/json_writer.hpp>
#include <glove/wire/rules.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace glove::wire {

enum class need : std::uint8_t { required, optional, defaulted };

namespace detail {

template<class> struct member_pointer;
template<class T, class V> struct member_pointer<V T::*> {
    using owner = T;
    using type = V;
};
template<class V> struct optional_of {
    using type = V;
    static constexpr bool is_one = false;
};
template<class V> struct optional_of<std::optional<V>> {
    using type = V;
    static constexpr bool is_one = true;
};

// What a rule does with members of one type, wherever they are: all rows of both share it, so that
// long tables are little code.
struct handling {
    shape form{};
    auto (*read)(const json::value&, void*, const place&) -> result<> = nullptr;
    auto (*take)(json::cursor&, void*) -> bool = nullptr;           // null: only a tree can be read
    auto (*check)(const void*, const place&) -> result<> = nullptr; // of one that is not absent
    void (*write)(json::writer&, const void*) = nullptr;
    auto (*absent)(const void*) -> bool = nullptr; // null: it never is
};

// The content of a member, which is filled when it was absent.
template<class Member> [[nodiscard]] auto filled(void* at) -> auto& {
    auto& member = *static_cast<Member*>(at);
    if constexpr (optional_of<Member>::is_one) return member.emplace();
    else return member;
}
template<class Member> [[nodiscard]] auto content(const void* at) -> const auto& {
    const auto& member = *static_cast<const Member*>(at);
    if constexpr (optional_of<Member>::is_one) return *member;
    else return member;
}

template<auto Rule, class Member> [[nodiscard]] consteval auto handle() -> handling {
    handling out{.form = Rule.form()};
    out.read = [](const json::value& in, void* to, const place& at) -> result<> {
        return Rule.read(in, filled<Member>(to), at);
    };
    if constexpr (takes_text<decltype(Rule), typename optional_of<Member>::type>)
        out.take = [](json::cursor& in, void* to) { return Rule.take(in, filled<Member>(to)); };
    out.check = [](const void* in, const place& at) -> result<> {
        return Rule.check(content<Member>(in), at);
    };
    out.write = [](json::writer& to, const void* in) { Rule.write(to, content<Member>(in)); };
    if constexpr (optional_of<Member>::is_one)
        out.absent = [](const void* in) { return !static_cast<const Member*>(in)->has_value(); };
    return out;
}
template<auto Rule, class Member> inline constexpr auto handling_of = handle<Rule, Member>();

// Of a member that is absent while it is as its owner begins with it.
template<auto Rule, auto Member> inline constexpr auto defaulted_handling = [] {
    using owner = typename member_pointer<decltype(Member)>::owner;
    using type = typename member_pointer<decltype(Member)>::type;
    auto out = handling_of<Rule, type>;
    out.absent = [](const void* in) { return *static_cast<const type*>(in) == owner{}.*Member; };
    return out;
}();

} // namespace detail

template<class T> struct field {
    std::string_view name;
    need presence = need::required;
    auto (*member)(T&) -> void* = nullptr;
    const detail::handling* by = nullptr;

    [[nodiscard]] constexpr auto form() const -> const shape& { return by->form; }
    [[nodiscard]] auto read(const json::value& in, T& to, const place& at) const -> result<> {
        return by->read(in, member(to), at);
    }
    [[nodiscard]] constexpr auto is_taken_from_text() const -> bool { return by->take != nullptr; }
    [[nodiscard]] auto take(json::cursor& in, T& to) const -> bool {
        return by->take(in, member(to));
    }
    [[nodiscard]] auto check(const T& in, const place& at) const -> result<> {
        return by->check(looked_at(in), at);
    }
    void write(json::writer& to, const T& in) const { by->write(to, looked_at(in)); }
    // The encoder does.
    [[nodiscard]] auto is_left_out(const T& of) const -> bool {
        return by->absent != nullptr && by->absent(looked_at(of));
    }

private:
    // Where a member is does not depend on whether it may be changed.
    [[nodiscard]] auto looked_at(const T& in) const -> const void* {
        return member(const_cast<T&>(in));
    }
};

template<class T, std::size_t N> using fields = std::array<field<T>, N>;

// The member that the path of member pointers leads to, of a part or of a base too. A std::optional
// is optional, every other one is required.
template<class Owner, auto Rule, auto... Path>
[[nodiscard]] consteval auto row_at(std::string_view name) -> field<Owner> {
    using type = std::remove_reference_t<decltype((std::declval<Owner&>().*....*Path))>;
    return {.name = name,
            .presence = detail::optional_of<type>::is_one ? need::optional : need::required,
            .member = [](Owner& of) -> void* { return &(of.*....*Path); },
            .by = &detail::handling_of<Rule, type>};
}
template<auto Member, auto Rule> [[nodiscard]] consteval auto row(std::string_view name) {
    using owner = typename detail::member_pointer<decltype(Member)>::owner;
    return row_at<owner, Rule, Member>(name);
}

// The member may be missing and then keeps the value that its type starts with; the encoder leaves
// it out while it has that value.
template<auto Member, auto Rule> [[nodiscard]] consteval auto defaulted_row(std::string_view name) {
    auto out = row<Member, Rule>(name);
    out.presence = need::defaulted;
    out.by = &detail::defaulted_handling<Rule, Member>;
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
[[nodiscard]] constexpr auto is_taken_from_text(const fields<T, N>& rows) -> bool {
    return std::ranges::all_of(rows, &field<T>::is_taken_from_text);
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
