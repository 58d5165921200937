// The rules that a field table is made of. Each reads a JSON value into a member, checks a member,
// and writes it; a rule is a compile-time value that states its bounds in full.
//
// Most rules also take the value straight from a text, with `take`: false also when `read` would
// have taken it, and then the text is read with `read`. What is taken is what `read` would have
// made of it, and `take` tells the cursor where `write` would not write the same.
//
// A message names the place and the bound, never the value, because some values are secrets. Steps:
// wire.type, wire.length, wire.grammar, wire.range, wire.choice.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/wire/grammar.hpp>
#include <glove/wire/json.hpp>
#include <glove/wire/json_cursor.hpp>
#include <glove/wire/json_writer.hpp>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glove::wire {

// What a row demands, for the reference page and for tests that try every way of breaking it.
struct shape {
    json::kind type = json::kind::null; // null: any JSON value
    std::int64_t min = 0;               // of an integer; else of bytes or elements
    std::uint64_t max = 0;
    std::string_view grammar; // of a string
};

// Where a value stands: a chain on the stack that becomes text only when something is wrong.
struct place {
    const place* parent = nullptr;
    std::string_view name; // of a member; empty for the root and for elements
    std::size_t index = 0;
};
[[nodiscard]] auto to_string(const place& at) -> std::string;

namespace detail {

[[nodiscard]] auto refuse(errc code, step_name step, const place& at, std::string_view what)
    -> std::unexpected<error>;
[[nodiscard]] auto refuse_type(const json::value& in, json::kind wanted, const place& at)
    -> std::unexpected<error>;
[[nodiscard]] auto refuse_range(std::int64_t min, std::uint64_t max, const place& at)
    -> std::unexpected<error>;
[[nodiscard]] auto check_count(std::size_t count, std::size_t min, std::size_t max, const place& at)
    -> result<>;

} // namespace detail

// A rule that takes a T from a text.
template<class Rule, class T>
concept takes_text = requires(const Rule& rule, json::cursor& in, T& out) {
    { rule.take(in, out) } -> std::same_as<bool>;
};

struct text {
    grammar of;
    std::size_t min = 0;
    std::size_t max = 0;

    [[nodiscard]] constexpr auto form() const -> shape {
        return {json::kind::string, static_cast<std::int64_t>(min), max, to_string(of)};
    }
    [[nodiscard]] auto check(const std::string& in, const place& at) const -> result<>;
    [[nodiscard]] auto read(const json::value& in, std::string& out, const place& at) const
        -> result<>;
    [[nodiscard]] auto take(json::cursor& in, std::string& out) const -> bool;
    void write(json::writer& out, const std::string& in) const { out.element(in); }
};

inline constexpr text ident{grammar::ident, 1, 128};
inline constexpr text ident112{grammar::ident, 1, 112};
inline constexpr text cli_ident{grammar::cli_ident, 1, 128};
inline constexpr text alias{grammar::alias, 1, 128};
inline constexpr text cgroup_id{grammar::alias, 1, 64};
inline constexpr text svc_alias{grammar::svc_alias, 1, 64};
inline constexpr text svc_runtime{grammar::svc_runtime, 1, 64};
inline constexpr text skill_key{grammar::skill_key, 1, 128};
inline constexpr text metric{grammar::metric, 1, 64};
inline constexpr text hex64{grammar::hex64, 64, 64};
inline constexpr text sha256_hex64{grammar::sha256_hex64, 71, 71};
inline constexpr text label{grammar::label, 1, 256};
inline constexpr text token{grammar::token, 1, 512};
inline constexpr text absolute_path{grammar::path, 2, 4096};

struct integer {
    std::int64_t min = 0;
    std::uint64_t max = std::numeric_limits<std::uint64_t>::max();

    [[nodiscard]] constexpr auto form() const -> shape {
        return {json::kind::integer, min, max, {}};
    }
    template<std::integral I> [[nodiscard]] auto check(const I& in, const place& at) const
        -> result<> {
        if (std::cmp_less(in, min) || std::cmp_greater(in, max))
            return detail::refuse_range(min, max, at);
        return {};
    }
    template<std::integral I>
    [[nodiscard]] auto read(const json::value& in, I& out, const place& at) const -> result<> {
        if (in.type() != json::kind::integer)
            return detail::refuse_type(in, json::kind::integer, at);
        const auto store = [&](auto number) -> result<> {
            if (!std::in_range<I>(number)) return detail::refuse_range(min, max, at);
            out = static_cast<I>(number);
            return check(out, at);
        };
        if (const auto number = in.as_unsigned()) return store(*number);
        return store(*in.as_signed());
    }
    template<std::integral I> [[nodiscard]] auto take(json::cursor& in, I& out) const -> bool {
        std::uint64_t bits = 0;
        bool negative = false;
        if (!in.take_integer(bits, negative)) return false;
        const auto store = [&](auto number) {
            if (!std::in_range<I>(number) || std::cmp_less(number, min) ||
                std::cmp_greater(number, max))
                return false;
            out = static_cast<I>(number);
            return true;
        };
        return negative ? store(static_cast<std::int64_t>(bits)) : store(bits);
    }
    template<std::integral I> void write(json::writer& out, const I& in) const { out.element(in); }
};

struct flag {
    [[nodiscard]] constexpr auto form() const -> shape { return {json::kind::boolean, 0, 1, {}}; }
    [[nodiscard]] auto check(const bool&, const place&) const -> result<> { return {}; }
    [[nodiscard]] auto read(const json::value& in, bool& out, const place& at) const -> result<> {
        const auto truth = in.as_bool();
        if (!truth) return detail::refuse_type(in, json::kind::boolean, at);
        out = *truth;
        return {};
    }
    [[nodiscard]] auto take(json::cursor& in, bool& out) const -> bool { return in.take_bool(out); }
    void write(json::writer& out, const bool& in) const { out.element(in); }
};

// Any JSON value, kept as it is.
struct any {
    [[nodiscard]] constexpr auto form() const -> shape { return {}; }
    [[nodiscard]] auto check(const json::value&, const place&) const -> result<> { return {}; }
    [[nodiscard]] auto read(const json::value& in, json::value& out, const place&) const
        -> result<> {
        out = in;
        return {};
    }
    void write(json::writer& out, const json::value& in) const { out.element(in); }
};

// A word that stands for a constant, mostly an enumerator; also a constant text such as "2.0".
template<class E> struct word {
    std::string_view name;
    E means;
};

template<const auto& Words> struct choice {
    [[nodiscard]] constexpr auto form() const -> shape {
        return {json::kind::string, 0, 0, "choice"};
    }
    template<class E> [[nodiscard]] auto check(const E& in, const place& at) const -> result<> {
        for (const auto& w : Words)
            if (w.means == in) return {};
        return detail::refuse(errc::invalid_input, "wire.choice", at, "is none of the choices");
    }
    template<class E> [[nodiscard]] auto read(const json::value& in, E& out, const place& at) const
        -> result<> {
        const auto* name = in.as_string();
        if (name == nullptr) return detail::refuse_type(in, json::kind::string, at);
        for (const auto& w : Words)
            if (w.name == *name) {
                out = E{w.means};
                return {};
            }
        return detail::refuse(errc::invalid_input, "wire.choice", at, "is none of the choices");
    }
    template<class E> [[nodiscard]] auto take(json::cursor& in, E& out) const -> bool {
        std::string_view name;
        if (!in.take_string(name)) return false;
        for (const auto& w : Words) {
            if (w.name != name) continue;
            out = E{w.means};
            // Of several words for one meaning, the first is written.
            for (const auto& first : Words)
                if (first.means == w.means) {
                    if (first.name != name) in.is_not_as_written();
                    break;
                }
            return true;
        }
        return false;
    }
    template<class E> void write(json::writer& out, const E& in) const {
        for (const auto& w : Words)
            if (w.means == in) return out.element(w.name);
    }
};

// An array whose elements all follow one rule.
template<auto Item> struct list {
    std::size_t min = 0;
    std::size_t max = 0;

    [[nodiscard]] constexpr auto form() const -> shape {
        return {json::kind::array, static_cast<std::int64_t>(min), max, {}};
    }
    template<class T> [[nodiscard]] auto check(const std::vector<T>& in, const place& at) const
        -> result<> {
        GLOVE_CHECK(detail::check_count(in.size(), min, max, at));
        for (std::size_t i = 0; i < in.size(); ++i)
            GLOVE_CHECK(Item.check(in[i], place{&at, {}, i}));
        return {};
    }
    template<class T> [[nodiscard]] auto read(const json::value& in, std::vector<T>& out,
                                              const place& at) const -> result<> {
        const auto* items = in.as_array();
        if (items == nullptr) return detail::refuse_type(in, json::kind::array, at);
        GLOVE_CHECK(detail::check_count(items->size(), min, max, at));
        out.clear();
        out.reserve(items->size());
        for (std::size_t i = 0; i < items->size(); ++i)
            GLOVE_CHECK(Item.read((*items)[i], out.emplace_back(), place{&at, {}, i}));
        return {};
    }
    template<class T>
        requires takes_text<decltype(Item), T>
    [[nodiscard]] auto take(json::cursor& in, std::vector<T>& out) const -> bool {
        out.clear();
        if (!in.enter_array()) return false;
        while (in.next_element())
            if (out.size() == max || !Item.take(in, out.emplace_back())) return false;
        return !in.broken() && out.size() >= min;
    }
    template<class T> void write(json::writer& out, const std::vector<T>& in) const {
        out.begin_array();
        for (const auto& item : in) Item.write(out, item);
        out.end_array();
    }
};

} // namespace glove::wire
