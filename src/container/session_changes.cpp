// Both lists are in order, so one pass finds what differs; a second one pairs what only moved.
#include <algorithm>
#include <glove/container/session_changes.hpp>
#include <glove/wire/crypto.hpp>
#include <glove/wire/json_writer.hpp>
#include <map>
#include <tuple>

namespace glove::container {

namespace {

using rows = std::vector<const tree_row*>;

void put_before(tree_change& to, const tree_row& row) {
    to.before_digest = row.content_digest;
    to.before_bytes = row.bytes;
    to.before_mode = row.mode;
}
void put_after(tree_change& to, const tree_row& row) {
    to.after_digest = row.content_digest;
    to.after_bytes = row.bytes;
    to.after_mode = row.mode;
}

[[nodiscard]] auto change_at(change_kind kind, const tree_row& row) -> tree_change {
    tree_change out;
    out.kind = kind;
    out.path = row.path;
    out.directory = row.directory;
    return out;
}
[[nodiscard]] auto created(const tree_row& now) -> tree_change {
    auto out = change_at(change_kind::create, now);
    put_after(out, now);
    return out;
}
[[nodiscard]] auto removed(const tree_row& before) -> tree_change {
    auto out = change_at(change_kind::remove, before);
    put_before(out, before);
    return out;
}
[[nodiscard]] auto both(change_kind kind, const tree_row& before, const tree_row& now)
    -> tree_change {
    auto out = change_at(kind, now);
    if (kind == change_kind::rename) out.previous_path = before.path;
    put_before(out, before);
    put_after(out, now);
    return out;
}

struct difference {
    rows gone, fresh; // in order
    std::vector<tree_change> all;
};

[[nodiscard]] auto compared(const session_tree& baseline, const session_tree& staged)
    -> difference {
    difference out;
    auto was = baseline.rows.begin();
    auto is = staged.rows.begin();
    while (was != baseline.rows.end() || is != staged.rows.end()) {
        const bool only_was =
            is == staged.rows.end() || (was != baseline.rows.end() && was->path < is->path);
        const bool only_is =
            was == baseline.rows.end() || (is != staged.rows.end() && is->path < was->path);
        const bool other_kind = !only_was && !only_is && was->directory != is->directory;
        if (!only_was && !only_is && !other_kind && *was != *is)
            out.all.push_back(both(change_kind::modify, *was, *is));
        if (only_was || other_kind) out.gone.push_back(&*was);
        if (only_is || other_kind) out.fresh.push_back(&*is);
        if (!only_is) ++was;
        if (!only_was) ++is;
    }
    return out;
}

// The first of those gone with the same look goes to the first that is fresh, and so on.
void pair_renames(difference& of) {
    using look = std::tuple<bool, std::uint32_t, std::string_view>;
    const auto look_of = [](const tree_row& row) {
        return look{row.directory, row.mode, row.content_digest};
    };
    struct queue {
        rows waiting;
        std::size_t next = 0;
    };
    std::map<look, queue> gone;
    for (const auto* row : of.gone) gone[look_of(*row)].waiting.push_back(row);
    for (const auto* row : of.fresh) {
        const auto found = gone.find(look_of(*row));
        if (found == gone.end() || found->second.next == found->second.waiting.size())
            of.all.push_back(created(*row));
        else
            of.all.push_back(
                both(change_kind::rename, *found->second.waiting[found->second.next++], *row));
    }
    for (const auto& [unused, left] : gone)
        for (auto i = left.next; i < left.waiting.size(); ++i)
            of.all.push_back(removed(*left.waiting[i]));
}

void count(change_set& out) {
    for (const auto& change : out.changes) {
        switch (change.kind) {
        case change_kind::create: ++out.created; break;
        case change_kind::modify: ++out.modified; break;
        case change_kind::rename: ++out.renamed; break;
        case change_kind::remove: ++out.removed; break;
        }
        out.before_bytes += change.before_bytes;
        out.after_bytes += change.after_bytes;
    }
}

void put(wire::json::writer& to, const tree_change& change) {
    to.begin_object();
    to.member("kind", to_string(change.kind));
    to.member("path", change.path);
    to.member("previous_path", change.previous_path);
    to.member("before_digest", change.before_digest);
    to.member("after_digest", change.after_digest);
    to.member("before_bytes", change.before_bytes);
    to.member("after_bytes", change.after_bytes);
    to.member("before_mode", change.before_mode);
    to.member("after_mode", change.after_mode);
    to.member("directory", change.directory);
    to.end_object();
}

// The members with which the manifest and a page begin.
void put_subject(wire::json::writer& to, const change_set& of) {
    to.member("schema_version", 1);
    to.member("session_id", of.subject.session_id);
    to.member("exposure_id", of.subject.exposure_id);
    to.member("generation", of.subject.generation);
    to.member("scope_digest", of.subject.scope_digest);
    to.member("source_identity_digest", of.subject.source_identity_digest);
    to.member("max_bytes", of.subject.max_bytes);
    to.member("directory", of.directory);
    to.member("baseline_tree_digest", of.baseline_tree_digest);
    to.member("staged_tree_digest", of.staged_tree_digest);
}

void put_counts(wire::json::writer& to, const change_set& of) {
    to.member("created", of.created);
    to.member("modified", of.modified);
    to.member("renamed", of.renamed);
    to.member("removed", of.removed);
    to.member("before_bytes", of.before_bytes);
    to.member("after_bytes", of.after_bytes);
}

[[nodiscard]] auto too_long() {
    return fail(errc::limit_exceeded, "changes.manifest",
                "the manifest of the changes has more than 16777216 bytes",
                "the copy itself stays as the session left it");
}

} // namespace

auto to_string(change_kind kind) noexcept -> std::string_view {
    switch (kind) {
    case change_kind::create: return "create";
    case change_kind::modify: return "modify";
    case change_kind::rename: return "rename";
    case change_kind::remove: return "remove";
    }
    return "create";
}

auto changes_between(const change_subject& subject, const session_tree& baseline,
                     const session_tree& staged) -> result<change_set> {
    if (baseline.directory != staged.directory)
        return fail(errc::invalid_input, "changes.kind",
                    "the tree of a directory is compared with that of a single file");
    auto found = compared(baseline, staged);
    pair_renames(found);
    if (found.all.size() > most_tree_changes)
        return fail(errc::limit_exceeded, "changes.count",
                    std::to_string(found.all.size()) + " changes, and 100000 are allowed",
                    "the copy itself stays as the session left it");
    std::ranges::sort(found.all, {}, [](const tree_change& c) {
        return std::tuple{std::string_view{c.path}, c.kind != change_kind::remove};
    });
    change_set out{.subject = subject,
                   .directory = baseline.directory,
                   .baseline_tree_digest = baseline.digest,
                   .staged_tree_digest = staged.digest,
                   .manifest_digest = {},
                   .changes = std::move(found.all)};
    count(out);
    GLOVE_TRY(const auto text, change_manifest(out));
    GLOVE_TRY(out.manifest_digest, wire::sha256_hex(text));
    return out;
}

auto change_manifest(const change_set& of) -> result<std::string> {
    std::string text;
    wire::json::writer to{text};
    to.begin_object();
    put_subject(to, of);
    to.begin_array("changes");
    for (const auto& change : of.changes) {
        put(to, change);
        if (text.size() > most_change_manifest_bytes) break;
    }
    to.end_array();
    put_counts(to, of);
    to.end_object();
    if (text.size() > most_change_manifest_bytes) return too_long();
    return text;
}

auto change_page(const change_set& of, std::uint64_t offset, std::size_t limit)
    -> result<std::string> {
    const auto total = of.changes.size();
    if (offset > total)
        return fail(errc::invalid_input, "changes.offset",
                    "offset " + std::to_string(offset) + " is beyond the " + std::to_string(total) +
                        " changes");
    if (limit == 0)
        return fail(errc::invalid_input, "changes.limit", "a page has at least one change");
    std::string list;
    auto next = static_cast<std::size_t>(offset);
    for (const auto first = next; next < total && next - first < limit; ++next) {
        std::string one;
        wire::json::writer to{one};
        put(to, of.changes[next]);
        if (next > first && list.size() + one.size() > most_change_page_bytes) break;
        list.append(next > first ? "," : "").append(one);
    }
    std::string text;
    wire::json::writer to{text};
    to.begin_object();
    put_subject(to, of);
    to.member("manifest_digest", of.manifest_digest);
    put_counts(to, of);
    to.member("total_changes", total);
    if (next < total) to.member("next_offset", next);
    to.key("changes");
    to.raw("[" + list + "]");
    to.end_object();
    return text;
}

} // namespace glove::container
