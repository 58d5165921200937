// What became of a copy that was kept: all pages of it as one table, or as one JSON object.
//
// Guarantees: all pages are of one manifest, none is left out and none comes twice; a path that an
// agent chose draws nothing.
#include "cli/columns.hpp"
#include "cli/control_process/session_actions.hpp"
#include <algorithm>
#include <glove/base/text.hpp>
#include <glove/wire/json.hpp>
#include <glove/wire/json_writer.hpp>

namespace glove::cli {

namespace {

namespace json = wire::json;

constexpr std::uint64_t page_changes = 256;

[[nodiscard]] auto page_request(const session_words& words, std::uint64_t offset,
                                std::uint64_t limit) -> std::string {
    std::string out;
    json::writer w{out};
    w.begin_object();
    w.member("session_id", words.words[0]);
    w.member("exposure_id", words.words[1]);
    w.member("offset", offset);
    w.member("limit", limit);
    w.end_object();
    return out;
}

[[nodiscard]] auto wrong_page(const std::string& why) {
    return fail(errc::corrupt, "client.reply", why);
}
[[nodiscard]] auto text_in(const json::value& of, std::string_view name) -> result<std::string> {
    const auto* const found = of.find(name);
    if (found == nullptr || found->as_string() == nullptr)
        return wrong_page("it has no text " + std::string{name});
    return *found->as_string();
}
[[nodiscard]] auto number_in(const json::value& of, std::string_view name)
    -> result<std::uint64_t> {
    const auto* const found = of.find(name);
    if (found == nullptr || !found->as_unsigned())
        return wrong_page("it has no number " + std::string{name});
    return *found->as_unsigned();
}

struct change_list {
    json::value head; // the first page
    std::string manifest;
    std::vector<json::value> changes;
    std::uint64_t total = 0;
};

// Adds a page that begins at `offset`; where the next one begins, or nothing.
[[nodiscard]] auto add_page(change_list& to, const std::string& text, std::uint64_t offset)
    -> result<std::optional<std::uint64_t>> {
    GLOVE_TRY(auto page, json::read(text));
    GLOVE_TRY(auto manifest, text_in(page, "manifest_digest"));
    GLOVE_TRY(to.total, number_in(page, "total_changes"));
    if (!to.manifest.empty() && to.manifest != manifest)
        return wrong_page("two pages are of two manifests");
    to.manifest = std::move(manifest);
    const auto* const found = page.find("changes");
    const auto* const list = found == nullptr ? nullptr : found->as_array();
    if (list == nullptr) return wrong_page("it has no list of changes");
    to.changes.insert(to.changes.end(), list->begin(), list->end());
    std::optional<std::uint64_t> next;
    if (const auto* const more = page.find("next_offset"); more != nullptr) {
        next = more->as_unsigned();
        if (list->empty() || next != offset + list->size())
            return wrong_page("next_offset is not the place behind its last change");
    } else if (offset + list->size() != to.total) {
        return wrong_page("the last page does not end with the last change");
    }
    if (to.head.is_null()) to.head = std::move(page);
    return next;
}

using change_row = std::array<std::string, 4>;

[[nodiscard]] auto row_of(const json::value& change) -> result<change_row> {
    GLOVE_TRY(const auto kind, text_in(change, "kind"));
    GLOVE_TRY(const auto path, text_in(change, "path"));
    GLOVE_TRY(const auto previous, text_in(change, "previous_path"));
    GLOVE_TRY(const auto before, number_in(change, "before_bytes"));
    GLOVE_TRY(const auto after, number_in(change, "after_bytes"));
    const auto* const directory = change.find("directory");
    const bool is_directory = directory != nullptr && directory->as_bool().value_or(false);
    return change_row{printable(kind), kind == "create" ? "-" : std::to_string(before),
                      kind == "remove" ? "-" : std::to_string(after),
                      (previous.empty() || previous == path ? "" : printable(previous) + " -> ") +
                          printable(path) + (is_directory ? "/" : "")};
}

[[nodiscard]] auto table_of(const change_list& all) -> result<std::string> {
    std::vector<change_row> rows{{"KIND", "BEFORE", "AFTER", "PATH"}};
    for (const auto& each : all.changes) {
        GLOVE_TRY(rows.emplace_back(), row_of(each));
    }
    return in_columns(rows);
}

// The members of the first page, with all changes that were asked for.
[[nodiscard]] auto json_of(const change_list& all) -> std::string {
    std::string out;
    {
        json::writer w{out};
        w.begin_object();
        for (const auto& [name, data] : *all.head.as_object()) {
            if (name == "changes" || name == "next_offset") continue;
            w.member(name, data);
        }
        w.begin_array("changes");
        for (const auto& each : all.changes) w.element(each);
        w.end_array();
        w.end_object();
    }
    return printable_json(out) + "\n";
}

} // namespace

auto show_changes(const session_words& words) -> result<int> {
    const auto most = words.limit == 0 ? UINT64_MAX : words.limit;
    GLOVE_TRY(const auto asks, service::of(words.service));
    change_list all;
    for (std::optional<std::uint64_t> offset = 0; offset && all.changes.size() < most;) {
        const auto limit = std::min(most - all.changes.size(), page_changes);
        GLOVE_TRY(const auto answer,
                  asks->ask("inspect_retained_changes", page_request(words, *offset, limit)));
        if (!answer) return told(answer.error(), "inspect_retained_changes");
        const auto next = add_page(all, *answer, *offset);
        if (!next) return strange_answer(next.error().detail);
        offset = *next;
    }
    if (words.service.json) {
        GLOVE_CHECK(print(json_of(all)));
        return done;
    }
    const auto text = table_of(all);
    if (!text) return strange_answer(text.error().detail);
    GLOVE_CHECK(print(*text));
    if (all.changes.size() < all.total)
        note(std::to_string(all.total - all.changes.size()) + " more changes are not shown");
    return done;
}

} // namespace glove::cli
