// Decides what an agent is shown of the tools that servers have, and under which names. The text of
// a tool that is not shown is never part of what comes out.
#include "kernel/catalog.hpp"
#include "kernel/texts.hpp"
#include "kernel/visible_text.hpp"
#include <algorithm>
#include <glove/base/ascii.hpp>
#include <glove/wire/json_writer.hpp>

namespace glove::kernel {

namespace {

// With all of them, an answer is still one that goes through.
constexpr std::size_t most_text = 8UL << 20;

// As the agent sees it: the name is Glove's, what cannot be seen is gone.
[[nodiscard]] auto agent_text(const tool& of) -> std::string {
    std::string out;
    {
        wire::json::writer to{out};
        to.begin_object();
        to.member("name", of.visible);
        const auto seen = visible_tree(of.definition);
        for (const auto& [name, data] : *seen.as_object())
            if (name != "name") to.member(name, data);
        to.end_object();
    }
    return safe(out);
}

void hide(tool& which, std::string why) {
    which.shown = false;
    which.why = std::move(why);
}

} // namespace

auto is_tool_name(std::string_view name) noexcept -> bool {
    return !name.empty() && name.size() <= 128 && std::ranges::all_of(name, [](char c) {
        return is_lower(c) || is_upper(c) || is_digit(c) || c == '_' || c == '-' || c == '.';
    });
}

auto naming::visible(std::string_view upstream, std::string_view name) const -> std::string {
    std::string qualified{upstream};
    qualified.append(".").append(name);
    for (const auto& [agents, servers] : renames)
        if (servers == qualified) return agents;
    if (names == tool_names::bare) return std::string{name};
    return std::string{upstream}.append("__").append(name);
}

auto catalog::find(std::string_view visible) const -> const std::shared_ptr<const tool>* {
    const auto found = by_name_.find(visible);
    return found == by_name_.end() ? nullptr : &found->second;
}

auto catalog::shows_any_of(std::size_t upstream) const -> bool {
    return std::ranges::any_of(all_,
                               [&](const auto& t) { return t->upstream == upstream && t->shown; });
}

auto catalog::replace(std::size_t upstream, std::vector<tool> tools) -> bool {
    by_upstream_[upstream] = std::move(tools);
    const auto before = std::move(text_);
    rebuild();
    return before != text_;
}

void catalog::rebuild() {
    std::vector<std::shared_ptr<tool>> made;
    std::map<std::string_view, std::size_t> shown;
    for (const auto& [upstream, tools] : by_upstream_)
        for (const auto& each : tools) made.push_back(std::make_shared<tool>(each));
    for (const auto& each : made)
        if (each->shown) ++shown[each->visible];
    for (const auto& each : made)
        if (each->shown && shown[each->visible] > 1) {
            hide(*each, "another tool has the name " + each->visible + " too");
            each->refusal = "more than one tool has this name";
        }
    text_ = "[";
    shown_ = 0;
    for (const auto& each : made) {
        if (!each->shown) continue;
        auto text = agent_text(*each);
        if (text_.size() + text.size() > most_text) {
            hide(*each, "the definitions of all tools are longer than 8 MiB");
            each->refusal = "the definitions of all tools are too long";
            continue;
        }
        if (shown_++ != 0) text_ += ',';
        text_ += text;
    }
    text_ += ']';
    all_.assign(made.begin(), made.end());
    by_name_.clear();
    // One that is shown has the name before one that is not; of two that are not, both are denied.
    for (const auto& each : all_)
        if (each->shown) by_name_.emplace(each->visible, each);
    for (const auto& each : all_)
        if (!each->shown && !each->visible.empty()) by_name_.emplace(each->visible, each);
}

} // namespace glove::kernel
