// The whole catalog is made anew when a list changes: lists are few and short, calls are many.
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

// What a server listed stays as it is: what it collides with may go.
[[nodiscard]] auto hidden(const tool& of, std::string why, std::string refusal)
    -> std::shared_ptr<const tool> {
    auto copy = std::make_shared<tool>(of);
    copy->shown = false;
    copy->why = std::move(why);
    copy->refusal = std::move(refusal);
    return copy;
}

} // namespace

auto agent_text(const tool& of) -> std::string {
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
    auto& known = by_upstream_[upstream];
    known.clear();
    for (auto& each : tools) known.push_back(std::make_shared<tool>(std::move(each)));
    const auto before = text_;
    rebuild();
    return *before != *text_;
}

void catalog::rebuild() {
    all_.clear();
    std::map<std::string_view, std::size_t> shown;
    for (const auto& [upstream, tools] : by_upstream_)
        for (const auto& each : tools) {
            all_.push_back(each);
            if (each->shown) ++shown[each->visible];
        }
    std::string text = "[";
    shown_ = 0;
    for (auto& each : all_) {
        if (!each->shown) continue;
        if (shown[each->visible] > 1) {
            each = hidden(*each, "another tool has the name " + each->visible + " too",
                          "more than one tool has this name");
            continue;
        }
        if (text.size() + each->text.size() > most_text) {
            each = hidden(*each, "the definitions of all tools are longer than 8 MiB",
                          "the definitions of all tools are too long");
            continue;
        }
        if (shown_++ != 0) text += ',';
        text += each->text;
    }
    text += ']';
    text_ = std::make_shared<const std::string>(std::move(text));
    by_name_.clear();
    // One that is shown has the name before one that is not; of two that are not, both are denied.
    for (const auto& each : all_)
        if (each->shown) by_name_.emplace(each->visible, each);
    for (const auto& each : all_)
        if (!each->shown && !each->visible.empty()) by_name_.emplace(each->visible, each);
}

} // namespace glove::kernel
