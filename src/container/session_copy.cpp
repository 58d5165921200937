// Five steps: the record that a copy is begun, an emptied directory, the copy, its way to the disk,
// and the record that it is whole.
#include "container/session_walk.hpp"
#include <algorithm>
#include <fcntl.h>
#include <glove/container/session_copy.hpp>
#include <glove/sys/trees.hpp>
#include <glove/wire/fields.hpp>
#include <glove/wire/maybe.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::container {

namespace {

constexpr wire::word<copy_state> state_words[] = {{"begun", copy_state::begun},
                                                  {"whole", copy_state::whole}};

constexpr auto row_fields = wire::table(
    wire::row<&tree_row::path, wire::text{wire::grammar::no_nul, 1, most_tree_path}>("path"),
    wire::row<&tree_row::content_digest, wire::maybe<wire::hex64>{}>("content_digest"),
    wire::row<&tree_row::bytes, wire::integer{}>("bytes"),
    wire::row<&tree_row::mode, wire::integer{0, 0777}>("mode"),
    wire::row<&tree_row::directory, wire::flag{}>("directory"));
constexpr auto tree_fields = wire::table(
    wire::row<&session_tree::directory, wire::flag{}>("directory"),
    wire::row<&session_tree::bytes, wire::integer{}>("bytes"),
    wire::row<&session_tree::digest, wire::maybe<wire::hex64>{}>("digest"),
    wire::row<&session_tree::rows, wire::list<wire::record<row_fields>{}>{0, most_tree_entries}>(
        "rows"));
constexpr auto record_fields = wire::table(
    wire::row<&copy_record::schema_version, wire::integer{1, 1}>("schema_version"),
    wire::row<&copy_record::state, wire::choice<state_words>{}>("state"),
    wire::row<&copy_record::source_identity_digest, wire::hex64>("source_identity_digest"),
    wire::row<&copy_record::max_bytes, wire::integer{}>("max_bytes"),
    wire::row<&copy_record::tree, wire::record<tree_fields>{}>("tree"));

[[nodiscard]] auto corrupt(const std::string& name, std::string_view what) {
    return fail(errc::corrupt, "copy.record", name + " " + std::string{what},
                "clean the session up");
}

[[nodiscard]] auto is_row_path(const session_tree& of, const std::string& path) -> bool {
    return of.directory ? sys::is_normal_absolute("/" + path) : path == ".";
}

// That a tree could have come from a walk, and is the one whose digest it bears.
[[nodiscard]] auto check_tree(const session_tree& of, const std::string& name) -> result<> {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < of.rows.size(); ++i) {
        const auto& row = of.rows[i];
        if (!is_row_path(of, row.path)) return corrupt(name, "has a path not in its normal form");
        if (i > 0 && !(of.rows[i - 1].path < row.path)) return corrupt(name, "is not in order");
        if (row.directory != row.content_digest.empty() || (row.directory && row.bytes != 0))
            return corrupt(name, "has a row that is neither a file nor a directory");
        if (row.bytes > UINT64_MAX - bytes) return corrupt(name, "has too many bytes");
        bytes += row.bytes;
    }
    GLOVE_TRY(const auto digest, tree_digest(of.rows));
    if (bytes != of.bytes || digest != of.digest)
        return corrupt(name, "does not have the digest and the bytes that it says");
    return {};
}

[[nodiscard]] auto save(const copy_request& what, const tree_patience& patience,
                        const copy_record& record) -> result<> {
    GLOVE_TRY(const auto text, wire::encode(record, record_fields));
    if (text.size() > most_copy_record_bytes)
        return fail(errc::limit_exceeded, "copy.record",
                    "the names of what is handed over need a record of more than 67108864 bytes");
    // What is pinned only cannot be synced.
    GLOVE_TRY(const auto records, sys::open_beneath(what.records, "", O_RDONLY | O_DIRECTORY));
    auto put = sys::replace_durably(records, what.record, text, patience.time.wall().count());
    if (!put) return fail_os("copy.record", put.error().os, what.record);
    return {};
}

[[nodiscard]] auto step(const copy_request& what, std::string_view name) -> result<> {
    return what.before_step ? what.before_step(name) : result<>{};
}

[[nodiscard]] auto require_same_request(const copy_record& known, const copy_request& what)
    -> result<> {
    if (known.source_identity_digest == what.source_identity_digest &&
        known.max_bytes == what.limits.bytes)
        return {};
    return fail(errc::conflict, "copy.other",
                what.record + " is the record of a copy of another source or with another limit");
}

[[nodiscard]] auto begin(const copy_request& what, const tree_patience& patience) -> result<> {
    GLOVE_TRY(const auto names, sys::names_in(what.into, 1));
    if (!names.empty())
        return fail(errc::wrong_state, "copy.not_empty",
                    "the directory to copy to is not empty, and no record says why");
    GLOVE_CHECK(step(what, "begin"));
    return save(what, patience,
                {.state = copy_state::begun,
                 .source_identity_digest = what.source_identity_digest,
                 .max_bytes = what.limits.bytes,
                 .tree = {}});
}

[[nodiscard]] auto copied(const copy_request& what, const sys::unique_fd& into,
                          const tree_patience& patience) -> result<session_tree> {
    session_walk walk{what.limits, patience, hard_links::inside_only};
    GLOVE_CHECK(step(what, "empty"));
    if (auto emptied = sys::empty_directory(into, "the copy", [&walk] { return walk.go_on(); });
        !emptied) {
        if (emptied.error().step == "tree.remove") emptied.error().step = "copy.empty";
        return std::unexpected(std::move(emptied).error());
    }
    GLOVE_CHECK(step(what, "copy"));
    GLOVE_TRY(const auto facts, sys::inspect(what.source));
    const bool directory = facts.identity.type == S_IFDIR;
    GLOVE_CHECK(directory ? walk.directory(what.source, &into) : walk.single(what.source, &into));
    return std::move(walk).finish(directory);
}

// Both: the first writes what the kernel holds, and a file system in a process of its own is told
// by the second to do the same.
[[nodiscard]] auto to_disk(const copy_request& what, const sys::unique_fd& into) -> result<> {
    GLOVE_CHECK(step(what, "sync"));
    if (what.how_long == lasts::until_reboot) return {};
    if (::syncfs(into.get()) != 0) return fail_os("copy.sync");
    if (const auto synced = sys::sync(into); !synced)
        return fail_os("copy.sync", synced.error().os);
    return what.settle ? what.settle() : result<>{};
}

} // namespace

auto find_copy_record(sys::fd_ref records, const std::string& name)
    -> result<std::optional<copy_record>> {
    const auto found = sys::open_private_file(records, name, most_copy_record_bytes);
    if (!found && found.error().os == ENOENT) return std::optional<copy_record>{};
    if (!found) return std::unexpected(found.error());
    auto record = wire::decode_text<copy_record>(
        found->content, record_fields,
        {.bytes = most_copy_record_bytes, .elements = most_tree_entries, .values = 1UL << 20U});
    if (!record) return corrupt(name, record.error().detail);
    if (record->state == copy_state::begun && record->tree != session_tree{})
        return corrupt(name, "has rows before it is whole");
    if (record->state == copy_state::whole) GLOVE_CHECK(check_tree(record->tree, name));
    return std::optional{*std::move(record)};
}

auto copy_source(const copy_request& what, const tree_patience& patience) -> result<session_tree> {
    if (!wire::conforms(wire::grammar::hex64, what.source_identity_digest))
        return fail(errc::invalid_input, "copy.other", "the source has no identity digest");
    GLOVE_TRY(auto known, find_copy_record(what.records, what.record));
    if (known) GLOVE_CHECK(require_same_request(*known, what));
    if (known && known->state == copy_state::whole) return std::move(known->tree);
    if (!known) GLOVE_CHECK(begin(what, patience));
    // The copy that was cut short may have had the source's mode already.
    GLOVE_TRY(const auto into, sys::open_with_own_rights(what.into, "."));
    GLOVE_TRY(auto tree, copied(what, into, patience));
    GLOVE_CHECK(to_disk(what, into));
    GLOVE_CHECK(step(what, "whole"));
    const copy_record whole{.state = copy_state::whole,
                            .source_identity_digest = what.source_identity_digest,
                            .max_bytes = what.limits.bytes,
                            .tree = std::move(tree)};
    GLOVE_CHECK(save(what, patience, whole));
    return whole.tree;
}

} // namespace glove::container
