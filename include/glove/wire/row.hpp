// What a field table is made of: a row names a member, and knows the rule by which it is read,
// checked and written.
//
// Rows of one type and one rule share their code, wherever the member is; so a long table is little
// code, and a row may lead into a part of its owner, or into a base.
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

// What a rule does with members of one type, wherever they are.
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

} // namespace glove::wire
