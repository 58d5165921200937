// What a field table is made of: a row names a member, and knows the rule by which it is read,
// checked and written. It may lead into a part of its owner, or into a base.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/wire/json.hpp>
#include <glove/wire/json_cursor.hpp>
#include <glove/wire/json_writer.hpp>
#include <glove/wire/rules.hpp>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace glove::wire {

enum class need : std::uint8_t { required, optional, defaulted };

namespace detail {

template<class> struct member_pointer;
template<class T, class V> struct member_pointer<V T::*> {
    using owner = T;
};
template<class V> inline constexpr bool is_optional = false;
template<class V> inline constexpr bool is_optional<std::optional<V>> = true;

// The content of a member, which is filled when it was absent.
template<class V> [[nodiscard]] auto filled(V& member) -> auto& {
    if constexpr (is_optional<V>) return member.emplace();
    else return member;
}
template<class V> [[nodiscard]] auto content(const V& member) -> const auto& {
    if constexpr (is_optional<V>) return *member;
    else return member;
}

} // namespace detail

template<class T> struct field {
    std::string_view name;
    need presence = need::required;
    shape form{};
    auto (*read)(const json::value&, T&, const place&) -> result<> = nullptr;
    auto (*take)(json::cursor&, T&) -> bool = nullptr;           // null: only a tree can be read
    auto (*check)(const T&, const place&) -> result<> = nullptr; // of a member that is not absent
    auto (*absent)(const T&) -> bool = nullptr; // the encoder leaves it out; null: it never does
    void (*write)(json::writer&, const T&) = nullptr;

    [[nodiscard]] auto is_left_out(const T& of) const -> bool {
        return absent != nullptr && absent(of);
    }
};

template<class T, std::size_t N> using fields = std::array<field<T>, N>;

// The member that the path of member pointers leads to, of a part or of a base too. A std::optional
// is optional, every other one is required.
template<class Owner, auto Rule, auto... Path>
[[nodiscard]] consteval auto row_at(std::string_view name) -> field<Owner> {
    using type = std::remove_reference_t<decltype((std::declval<Owner&>().*....*Path))>;
    using content = std::remove_reference_t<decltype(detail::filled(std::declval<type&>()))>;
    field<Owner> out{.name = name, .form = Rule.form()};
    out.read = [](const json::value& in, Owner& to, const place& at) -> result<> {
        return Rule.read(in, detail::filled((to.*....*Path)), at);
    };
    if constexpr (takes_text<decltype(Rule), content>)
        out.take = [](json::cursor& in, Owner& to) {
            return Rule.take(in, detail::filled((to.*....*Path)));
        };
    out.check = [](const Owner& in, const place& at) -> result<> {
        return Rule.check(detail::content((in.*....*Path)), at);
    };
    out.write = [](json::writer& to, const Owner& in) {
        Rule.write(to, detail::content((in.*....*Path)));
    };
    if constexpr (detail::is_optional<type>) {
        out.presence = need::optional;
        out.absent = [](const Owner& in) { return !(in.*....*Path).has_value(); };
    }
    return out;
}
template<auto Member, auto Rule> [[nodiscard]] consteval auto row(std::string_view name) {
    using owner = typename detail::member_pointer<decltype(Member)>::owner;
    return row_at<owner, Rule, Member>(name);
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

} // namespace glove::wire
