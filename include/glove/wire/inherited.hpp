// Rows for members that a type inherits: the row is that of the base, for objects of the type.
//
//   wire::inherited_row<derived, &base::member, wire::integer{}>("member")
#pragma once
#include <glove/wire/fields.hpp>
#include <type_traits>

namespace glove::wire {

namespace detail {
template<auto Member, auto Rule> inline constexpr auto row_of_the_base = row<Member, Rule>("");
} // namespace detail

// `Owner` itself is a base of its own.
template<class Owner, auto Member, auto Rule>
[[nodiscard]] consteval auto inherited_row(std::string_view name) -> field<Owner> {
    using detail::row_of_the_base;
    static_assert(
        std::is_base_of_v<typename detail::member_pointer<decltype(Member)>::owner, Owner>);
    field<Owner> out{.name = name,
                     .presence = row_of_the_base<Member, Rule>.presence,
                     .form = row_of_the_base<Member, Rule>.form,
                     .read = [](const json::value& in, Owner& to, const place& at) -> result<> {
                         return row_of_the_base<Member, Rule>.read(in, to, at);
                     },
                     .check = [](const Owner& in, const place& at) -> result<> {
                         return row_of_the_base<Member, Rule>.check(in, at);
                     },
                     .write = [](json::writer& to,
                                 const Owner& in) { row_of_the_base<Member, Rule>.write(to, in); }};
    if constexpr (row_of_the_base<Member, Rule>.absent != nullptr)
        out.absent = [](const Owner& in) { return row_of_the_base<Member, Rule>.absent(in); };
    if constexpr (row_of_the_base<Member, Rule>.take != nullptr)
        out.take = [](json::cursor& in, Owner& to) {
            return row_of_the_base<Member, Rule>.take(in, to);
        };
    return out;
}

} // namespace glove::wire
