// The work for a byte does not grow with the number of literals, which are bounded by their bytes.
#include "control/literal_matcher.hpp"

namespace glove::control {

literal_matcher::literal_matcher(const std::vector<std::string>& literals) {
    for (const auto& one : literals) add(one);
    link();
}

auto literal_matcher::child_of(std::uint32_t parent, unsigned char byte) const -> std::uint32_t {
    auto at = nodes_[parent].child;
    while (at != none && nodes_[at].byte != byte) at = nodes_[at].sibling;
    return at;
}

void literal_matcher::add(std::string_view literal) {
    std::uint32_t at = 0;
    for (const char c : literal) {
        const auto byte = static_cast<unsigned char>(c);
        auto next = child_of(at, byte);
        if (next == none) {
            next = static_cast<std::uint32_t>(nodes_.size());
            nodes_.push_back({.sibling = nodes_[at].child, .byte = byte});
            nodes_[at].child = next;
        }
        at = next;
    }
    if (at == none || nodes_[at].literal) return;
    nodes_[at].literal = true;
    ++literals_;
}

auto literal_matcher::step(std::uint32_t from, unsigned char byte) const -> std::uint32_t {
    for (;;) {
        const auto next = child_of(from, byte);
        if (next != none || from == 0) return next;
        from = nodes_[from].shorter;
    }
}

// Shorter paths first: each link leads to a path that has its own already.
void literal_matcher::link() {
    std::vector<std::uint32_t> order{0};
    for (std::size_t i = 0; i < order.size(); ++i) {
        const auto parent = order[i];
        for (auto at = nodes_[parent].child; at != none; at = nodes_[at].sibling) {
            auto& here = nodes_[at];
            here.shorter = parent == 0 ? 0 : step(nodes_[parent].shorter, here.byte);
            here.ends = here.literal ? at : nodes_[here.shorter].ends;
            order.push_back(at);
        }
    }
}

void literal_matcher::feed(std::string_view bytes) {
    for (const char c : bytes) {
        if (found_ == literals_) return;
        at_ = step(at_, static_cast<unsigned char>(c));
        for (auto end = nodes_[at_].ends; end != none; end = nodes_[nodes_[end].shorter].ends) {
            if (nodes_[end].seen) break; // and so were all that end there
            nodes_[end].seen = true;
            ++found_;
        }
    }
}

} // namespace glove::control
