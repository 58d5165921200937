// The order follows from the names alone, so that the order of the flags cannot change the meaning.
#include "container/tree.hpp"

namespace glove::container {

auto tree_builder::finish() && -> std::vector<tree_entry> {
    std::vector<std::string> missing;
    std::string looked_at; // neighbours share their parent
    for (const auto& [path, entry] : entries_) {
        auto up = sys::parent_of(path);
        if (up == looked_at) continue;
        looked_at = up;
        for (; up != "/" && !entries_.contains(up) && !covered(up); up = sys::parent_of(up))
            missing.push_back(up);
    }
    for (auto& path : missing) add({.path = std::move(path)});
    std::vector<tree_entry> out;
    out.reserve(entries_.size());
    std::string masked; // what lies below a mask does not exist any more
    for (auto& [path, entry] : entries_) {
        if (!masked.empty() && sys::holds(masked, path)) continue;
        if (entry.kind == entry_kind::mask) masked = path;
        out.push_back(std::move(entry));
    }
    return out;
}

} // namespace glove::container
