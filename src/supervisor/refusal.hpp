// Sentences of refusal: the place, the rule, and never the value, because some are secrets.
#pragma once
#include <algorithm>
#include <glove/base/error.hpp>
#include <glove/wire/rules.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace glove::supervisor {

// A place below another: `member_of` keeps its parent alive in the caller.
[[nodiscard]] inline auto member_of(const wire::place& parent, std::string_view name)
    -> wire::place {
    return {&parent, name, 0};
}
[[nodiscard]] inline auto element_of(const wire::place& list, std::size_t index) -> wire::place {
    return {&list, {}, index};
}

[[nodiscard]] inline auto refuse(errc code, step_name step, const wire::place& at,
                                 std::string_view what, std::string remedy = {}) {
    return fail(code, step, wire::to_string(at).append(" ").append(what), std::move(remedy));
}

// The index of the first element that its predecessor does not come strictly before.
template<class T, class Key>
[[nodiscard]] auto first_out_of_order(const std::vector<T>& list, Key key) -> std::size_t {
    for (std::size_t i = 1; i < list.size(); ++i)
        if (!(key(list[i - 1]) < key(list[i]))) return i;
    return list.size();
}

// The index of the first element whose key an earlier one has, too.
template<class T, class Key> [[nodiscard]] auto first_repeated(const std::vector<T>& list, Key key)
    -> std::size_t {
    std::vector<std::size_t> order(list.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
        if (key(list[a]) < key(list[b])) return true;
        return !(key(list[b]) < key(list[a])) && a < b; // of equal ones, the earlier first
    });
    auto out = list.size();
    for (std::size_t i = 1; i < order.size(); ++i)
        if (!(key(list[order[i - 1]]) < key(list[order[i]]))) out = std::min(out, order[i]);
    return out;
}

} // namespace glove::supervisor
