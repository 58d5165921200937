// What the servers offer, and what of it an agent sees under which name.
//
// Guarantees: a name of an agent leads to one tool of one server or to none: what collides is
// hidden, and never renamed. The text of a hidden tool is in nothing that is made for an agent.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <glove/kernel/gateway.hpp>
#include <glove/wire/json.hpp>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace glove::kernel {

enum class listing_kind : std::uint8_t { tools, resources, templates, prompts };
inline constexpr std::size_t listing_kinds = 4;

struct tool {
    std::uint32_t upstream = 0;
    std::string server;    // the upstream's name
    std::string name;      // the server's own
    std::string qualified; // "up.tool": of rules and records
    std::string visible;   // the agent's name for it
    std::string head;      // of a call's params: {"name":NAME
    wire::json::value definition;
    std::string digest;
    policy::pin_state pin = policy::pin_state::first_use;
    bool shown = false;
    std::string why;     // it is hidden: for the operator
    std::string refusal; // for the agent; empty: the rules decide about a call
    std::string text;    // of one that is shown: the definition for agents
    policy::tool_limits limits;
    bool judged = true; // its arguments are
    bool metered = false, redacted = false;
    std::uint64_t result_bytes = 0;
    std::chrono::nanoseconds patience{};
};

// A resource, template or prompt.
struct listed_item {
    std::string key;     // uri, uriTemplate or name
    std::string visible; // of a prompt: the agent's name for it
    std::string text;    // for the agent
};

struct naming {
    tool_names names = tool_names::qualified;
    std::vector<std::pair<std::string, std::string>> renames;
    // The agent's name of what the server calls `name`; `qualified` is "up.name".
    [[nodiscard]] auto visible(std::string_view upstream, std::string_view name) const
        -> std::string;
};
// The definition as agents see it: the name is Glove's, what cannot be seen is gone.
[[nodiscard]] auto agent_text(const tool& of) -> std::string;

// 1 to 128 of A-Z a-z 0-9 _ . -
[[nodiscard]] auto is_tool_name(std::string_view name) noexcept -> bool;

class catalog {
public:
    // What the server `upstream` has now; members that depend on other servers are worked out here.
    // True when what an agent sees has changed.
    [[nodiscard]] auto replace(std::size_t upstream, std::vector<tool> tools) -> bool;
    [[nodiscard]] auto find(std::string_view visible) const -> const std::shared_ptr<const tool>*;
    // A JSON array of definitions.
    [[nodiscard]] auto text() const -> const std::shared_ptr<const std::string>& { return text_; }
    [[nodiscard]] auto all() const -> const std::vector<std::shared_ptr<const tool>>& {
        return all_;
    }
    [[nodiscard]] auto shows_any_of(std::size_t upstream) const -> bool;
    [[nodiscard]] auto shown() const -> std::size_t { return shown_; }

private:
    struct text_hash {
        using is_transparent = void;
        [[nodiscard]] auto operator()(std::string_view text) const noexcept -> std::size_t {
            return std::hash<std::string_view>{}(text);
        }
    };
    void rebuild();

    std::map<std::size_t, std::vector<std::shared_ptr<const tool>>> by_upstream_;
    std::vector<std::shared_ptr<const tool>> all_;
    std::unordered_map<std::string, std::shared_ptr<const tool>, text_hash, std::equal_to<>>
        by_name_;
    std::shared_ptr<const std::string> text_ = std::make_shared<const std::string>("[]");
    std::size_t shown_ = 0;
};

} // namespace glove::kernel
