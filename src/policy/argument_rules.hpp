// The rules for the arguments of one tool, as a tree of the places that they speak of.
//
// Guarantees: a decision depends on the decoded values alone, and so does its text: places are
// looked at in the order of their names, not in that of the message. Once there is a rule for an
// argument, what no rule speaks of is refused at every level, unless `additional` is set. What a
// rule speaks of must be there, unless the rule is optional.
#pragma once
#include "policy/matchers.hpp"
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace glove::policy {

// A JSON Pointer; "*" stands for every item of an array.
using pointer = std::vector<std::string>;
// Nothing when it is none, or has no or too many parts.
[[nodiscard]] auto parse_pointer(std::string_view text) -> std::optional<pointer>;
[[nodiscard]] auto to_string(const pointer& at) -> std::string;

struct argument_rule {
    pointer at;
    std::vector<matcher_ptr> matchers;
    bool optional = false;
    bool any = false; // also what is inside of it
};

class argument_rules {
public:
    void add(const argument_rule& rule);
    void require(const pointer& at); // whatever it is
    void forbid(const pointer& at);
    void set_additional(bool permitted) noexcept { additional_ = permitted; }
    [[nodiscard]] auto empty() const noexcept -> bool { return !any_rule_; }
    // Why this cannot be met by any arguments: a place is both an object and an array.
    [[nodiscard]] auto contradiction() const -> std::optional<std::string>;
    // Of the `arguments` object. Empty, or what is wrong with which argument.
    [[nodiscard]] auto complaint(const wire::json::value& arguments) const -> std::string;

private:
    struct node {
        std::map<std::string, node> members;
        std::unique_ptr<node> items;
        std::vector<matcher_ptr> matchers;
        bool needed = false; // some rule here or below is not optional
        bool forbidden = false;
        bool open = false; // whatever is inside of it
        node() = default;
    };
    struct place;
    [[nodiscard]] auto reach(const pointer& at, bool needed) -> node&;
    [[nodiscard]] auto check(const node& rules, const wire::json::value& of, const place& at) const
        -> std::string;
    [[nodiscard]] auto check_members(const node& rules, const wire::json::value& of,
                                     const place& at) const -> std::string;
    [[nodiscard]] auto check_items(const node& rules, const wire::json::value& of,
                                   const place& at) const -> std::string;
    [[nodiscard]] auto is_closed() const noexcept -> bool { return closed_ && !additional_; }
    [[nodiscard]] static auto contradiction_in(const node& rules, const pointer& at)
        -> std::optional<std::string>;

    node top_;
    bool any_rule_ = false;
    bool closed_ = false; // there is a rule for an argument
    bool additional_ = false;
};

} // namespace glove::policy
