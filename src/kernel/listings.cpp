// Lists of servers: all pages, then the whole list takes the place of the old one.
//
// Guarantees: one at a time of a kind and server; what changes meanwhile is fetched once more, and
// never sooner than a second after the last time. A cursor that comes again, too many pages or too
// much text end the list as a failure, and the old one stays.
#include "kernel/core.hpp"
#include "kernel/texts.hpp"
#include "kernel/visible_text.hpp"
#include <algorithm>
#include <glove/wire/json_writer.hpp>
#include <set>

namespace glove::kernel {

namespace {

constexpr std::size_t most_list_bytes = 16UL << 20; // of all pages
constexpr std::size_t most_items = 16384;

struct kind_row {
    std::string_view method, member, key, changed;
};
constexpr kind_row rows[listing_kinds] = {
    {"tools/list", "tools", "name", "notifications/tools/list_changed"},
    {"resources/list", "resources", "uri", "notifications/resources/list_changed"},
    {"resources/templates/list", "resourceTemplates", "uriTemplate",
     "notifications/resources/list_changed"},
    {"prompts/list", "prompts", "name", "notifications/prompts/list_changed"}};

[[nodiscard]] auto row_of(listing_kind kind) -> const kind_row& {
    return rows[static_cast<std::size_t>(kind)];
}

[[nodiscard]] auto same_texts(const std::vector<listed_item>& a, const std::vector<listed_item>& b)
    -> bool {
    return std::ranges::equal(a, b, {}, &listed_item::text, &listed_item::text);
}

} // namespace

auto gateway::state::lists(const upstream& of, listing_kind kind) const -> bool {
    switch (kind) {
    case listing_kind::tools: return of.has_tools;
    case listing_kind::resources:
    case listing_kind::templates:
        return of.has_resources && options.relay.has(mcp::feature::resources);
    case listing_kind::prompts: return of.has_prompts && options.relay.has(mcp::feature::prompts);
    }
    return false;
}

void gateway::state::begin_listing(std::size_t of, listing_kind kind) {
    auto& list = ups[of].at(kind);
    list.running = true;
    list.again = false;
    list.pages = 0;
    list.bytes = 0;
    list.cursors.clear();
    list.gathered.clear();
    list.began = now;
    ask_page(of, kind, {});
}

void gateway::state::relist(std::size_t of, listing_kind kind) {
    auto& list = ups[of].at(kind);
    // The one that runs may have begun before the change.
    if (list.running || now - list.began < between_listings) list.again = true;
    else begin_listing(of, kind);
}

void gateway::state::ask_page(std::size_t of, listing_kind kind, std::string_view cursor) {
    auto& up = ups[of];
    // All pages have the time of one, and at a start all of it is one.
    const auto since = up.now == upstream::phase::listing ? up.began : up.at(kind).began;
    auto* made = calls.open(now, std::max(since + up.start_timeout - now, nanoseconds{}));
    if (made == nullptr) return list_failed(of, kind, "too many requests are open");
    made->kind = call_kind::listing;
    made->list = kind;
    made->upstream = static_cast<std::uint32_t>(of);
    std::string params;
    if (!cursor.empty()) {
        params = "{\"cursor\":";
        wire::json::append_quoted(params, cursor);
        params = safe(params) + "}";
    }
    out.to_upstream(of, mcp::request_text(std::to_string(made->id), row_of(kind).method, params));
}

void gateway::state::list_failed(std::size_t of, listing_kind kind, std::string_view why) {
    auto& up = ups[of];
    auto& list = up.at(kind);
    list.running = false;
    list.gathered.clear();
    list.cursors.clear();
    note(up, "the list of " + std::string{row_of(kind).member} + " of the server " + up.wish.name +
                 " was not taken: " + std::string{why});
    // Of this life, there is none: what an earlier one said does not hold.
    if (up.now == upstream::phase::listing) forget_list(of, kind);
    come_up_when_listed(of);
    answer_waiting_lists();
}

void gateway::state::finish_page(call& of, const mcp::message& answer) {
    const std::size_t which = of.upstream;
    const auto kind = of.list;
    auto& list = ups[which].at(kind);
    const auto& row = row_of(kind);
    calls.close(of);
    if (answer.kind == mcp::message_kind::failure)
        return list_failed(which, kind,
                           "it answered with an error: " + excerpt(answer.error->text));
    const auto* items = upstream_reader.member(answer.result, row.member);
    if (items == nullptr || items->type != wire::json::kind::array)
        return list_failed(which, kind, "its answer has no array " + std::string{row.member});
    list.bytes += answer.result->text.size();
    if (list.bytes > most_list_bytes) return list_failed(which, kind, "it is longer than 16 MiB");
    if (!take_page(which, kind, items->text))
        return list_failed(which, kind,
                           "it has more than " + std::to_string(most_items) + " items");
    const auto* next = upstream_reader.member(answer.result, "nextCursor");
    if (next == nullptr || next->type == wire::json::kind::null) return finish_listing(which, kind);
    if (next->type != wire::json::kind::string)
        return list_failed(which, kind, "its nextCursor is no string");
    const auto cursor = wire::json::decoded_string(next->text);
    if (cursor.empty()) return finish_listing(which, kind);
    if (std::ranges::find(list.cursors, cursor) != list.cursors.end())
        return list_failed(which, kind, "a cursor came a second time");
    if (++list.pages >= most_pages)
        return list_failed(which, kind,
                           "it has more than " + std::to_string(most_pages) + " pages");
    list.cursors.push_back(cursor);
    ask_page(which, kind, cursor);
}

// What cannot be used is left out by itself, and told.
auto gateway::state::take_page(std::size_t of, listing_kind kind, std::string_view items) -> bool {
    auto& up = ups[of];
    auto& list = up.at(kind);
    const auto& row = row_of(kind);
    const auto all = wire::json::element_slices(items);
    if (list.gathered.size() + all.size() > most_items) return false;
    const auto whose = std::string{row.member} + " of the server " + up.wish.name;
    for (const auto text : all) {
        auto item = wire::json::read(text, mcp::message_limits());
        if (!item) {
            note(up, name_of_deep(text, row.key) + " of the " + whose + " is left out: " +
                         (item.error().step == "json.depth"
                              ? "it is nested more than " +
                                    std::to_string(mcp::message_limits().depth) + " levels deep"
                              : "it cannot be read"));
            continue;
        }
        const auto* key = item->find(row.key);
        if (key == nullptr || key->as_string() == nullptr) {
            note(up, "one or more of the " + whose + " are left out: they have no string " +
                         std::string{row.key});
            continue;
        }
        list.gathered.push_back(*std::move(item));
    }
    return true;
}

auto gateway::state::name_of_deep(std::string_view item, std::string_view key) -> std::string {
    const bool is_object = meta_outline.read(item, mcp::server_message_limits()).has_value();
    const auto* found = is_object ? meta_outline.find(key) : nullptr;
    if (found == nullptr || found->type != wire::json::kind::string) return "one without a name";
    return excerpt(wire::json::decoded_string(found->text));
}

void gateway::state::finish_listing(std::size_t of, listing_kind kind) {
    auto& up = ups[of];
    auto& list = up.at(kind);
    list.running = false;
    list.done = true;
    list.cursors.clear();
    const auto gathered = std::move(list.gathered);
    list.gathered.clear();
    if (kind == listing_kind::tools) take_tools(of, gathered);
    else take_items(of, kind, gathered);
    come_up_when_listed(of);
    answer_waiting_lists();
}

void gateway::state::forget_list(std::size_t of, listing_kind kind) {
    auto& list = ups[of].at(kind);
    list.running = false;
    list.done = true;
    if (kind == listing_kind::tools) take_tools(of, {});
    else take_items(of, kind, {});
}

// Resources, templates and prompts.
void gateway::state::take_items(std::size_t of, listing_kind kind, const wire::json::array& items) {
    auto& up = ups[of];
    auto& list = up.at(kind);
    const auto& row = row_of(kind);
    std::vector<listed_item> made;
    std::set<std::string> keys;
    std::size_t left_out = 0;
    for (const auto& item : items) {
        listed_item one{.key = *item.find(row.key)->as_string(), .visible = {}, .text = {}};
        const bool is_prompt = kind == listing_kind::prompts;
        const auto verdict = is_prompt ? parts.rules.prompts(up.wish.name, one.key)
                                       : parts.rules.reads(up.wish.name, one.key);
        one.visible = is_prompt ? names.visible(up.wish.name, one.key) : one.key;
        if (!verdict.allowed || (is_prompt && !is_tool_name(one.visible)) ||
            !keys.insert(one.key).second)
            continue;
        const auto longest = kind == listing_kind::templates ? longest_template : longest_key;
        if (one.key.size() > longest || wire::json::to_text(item).size() > most_definition ||
            has_wide_object(item, most_members)) {
            ++left_out;
            continue;
        }
        {
            wire::json::writer to{one.text};
            to.begin_object();
            to.member(row.key, one.visible);
            const auto seen = visible_tree(item);
            for (const auto& [name, data] : *seen.as_object())
                if (name != row.key) to.member(name, data);
            to.end_object();
        }
        one.text = safe(one.text);
        made.push_back(std::move(one));
    }
    if (left_out != 0)
        note(up, std::to_string(left_out) + " " + std::string{row.member} + " of the server " +
                     up.wish.name + " are left out: they are too long");
    const bool changed = !same_texts(list.items, made);
    list.items = std::move(made);
    if (changed) tell_ready_agents(row.changed);
}

} // namespace glove::kernel
