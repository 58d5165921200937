// Which of many literals stand in a stream of bytes that arrives in pieces.
//
// Guarantees: a literal is found wherever it begins and ends, also across pieces and inside of
// others; the work for a byte does not grow with the number of literals, and memory is bounded by
// their bytes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace glove::control {

class literal_matcher {
public:
    // None is empty.
    explicit literal_matcher(const std::vector<std::string>& literals);
    void feed(std::string_view bytes);
    // How many of the literals were there so far.
    [[nodiscard]] auto found() const noexcept -> std::size_t { return found_; }

private:
    static constexpr std::uint32_t none = 0; // the root is nobody's child, and ends no literal
    // Of the automaton: what was read last is the longest path from the root that fits.
    struct node {
        std::uint32_t child = none, sibling = none;
        std::uint32_t shorter = none; // the longest other path that ends the same way
        std::uint32_t ends = none;    // the next shorter path, or this one, that is a literal
        unsigned char byte = 0;
        bool literal = false;
        bool seen = false;
    };
    void add(std::string_view literal);
    void link();
    [[nodiscard]] auto child_of(std::uint32_t parent, unsigned char byte) const -> std::uint32_t;
    [[nodiscard]] auto step(std::uint32_t from, unsigned char byte) const -> std::uint32_t;

    std::vector<node> nodes_{node{}};
    std::size_t literals_ = 0, found_ = 0;
    std::uint32_t at_ = 0;
};

} // namespace glove::control
