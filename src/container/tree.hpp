// Puts tree entries in mounting order.
#pragma once
#include <algorithm>
#include <glove/container/plan.hpp>
#include <map>
#include <string_view>

namespace glove::container {

// '/' sorts before every other byte, so that a directory is followed by what it holds.
struct path_order {
    using is_transparent = void;
    auto operator()(std::string_view a, std::string_view b) const noexcept -> bool {
        const auto [left, right] = std::ranges::mismatch(a, b);
        if (left == a.end() || right == b.end()) return left == a.end() && right != b.end();
        return rank(*left) < rank(*right);
    }
    static auto rank(char c) noexcept -> int {
        return c == '/' ? 0 : static_cast<unsigned char>(c) + 1;
    }
};

// Whether something that Glove has not made is put at the place: no mount point is made inside.
[[nodiscard]] constexpr auto is_of_elsewhere(entry_kind kind) noexcept -> bool {
    return kind == entry_kind::bind || kind == entry_kind::mounted;
}

// Guarantees: a parent precedes what it holds; no path twice; nothing below a mask.
class tree_builder {
public:
    // The first entry of a path wins; callers add the more important ones first.
    void add(tree_entry entry) {
        const auto at = entry.path;
        entries_.try_emplace(at, std::move(entry));
    }
    [[nodiscard]] auto covered(std::string_view path) const -> bool {
        for (auto at = std::string{path}; at != "/"; at = sys::parent_of(at))
            if (const auto found = entries_.find(at);
                found != entries_.end() && is_of_elsewhere(found->second.kind))
                return true;
        return false;
    }
    // Whether a mask stands at the path or above it.
    [[nodiscard]] auto masked(std::string_view path) const -> bool {
        for (auto at = std::string{path}; at != "/"; at = sys::parent_of(at))
            if (const auto found = entries_.find(at);
                found != entries_.end() && found->second.kind == entry_kind::mask)
                return true;
        return false;
    }
    [[nodiscard]] auto is_link(std::string_view path) const -> bool {
        const auto found = entries_.find(path);
        return found != entries_.end() && found->second.kind == entry_kind::link;
    }
    // The first entry strictly below `path`; null when there is none.
    [[nodiscard]] auto first_below(std::string_view path) const -> const tree_entry* {
        const auto next = entries_.upper_bound(path);
        return next != entries_.end() && sys::holds(path, next->first) ? &next->second : nullptr;
    }
    // Every parent that nothing mounted provides becomes a directory.
    [[nodiscard]] auto finish() && -> std::vector<tree_entry>;

private:
    std::map<std::string, tree_entry, path_order> entries_;
};

} // namespace glove::container
