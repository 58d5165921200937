// What changed, in which order and words, and as much of it as a manifest and a page take.
#include "session_scene.hpp"
#include <algorithm>
#include <glove/container/session_changes.hpp>
#include <glove/wire/json.hpp>
#include <gtest/gtest.h>
#include <map>
#include <rapidcheck/gtest.h>

namespace {

using namespace glove;
using namespace glove::container;

auto file(std::string path, std::string_view content, std::uint32_t mode = 0644) -> tree_row {
    return {std::move(path), test::sha(content), content.size(), mode, false};
}
auto directory(std::string path, std::uint32_t mode = 0755) -> tree_row {
    return {std::move(path), "", 0, mode, true};
}
auto tree(std::vector<tree_row> rows) -> session_tree {
    session_tree out;
    std::ranges::sort(rows, {}, &tree_row::path);
    for (const auto& row : rows) out.bytes += row.bytes;
    out.digest = tree_digest(rows).value();
    out.rows = std::move(rows);
    return out;
}
auto subject() -> change_subject {
    return {"session-1", "proj", 3, std::string(64, 'b'), std::string(64, 'c'), 1024};
}
auto between(const session_tree& a, const session_tree& b) -> change_set {
    return changes_between(subject(), a, b).value();
}

auto words(const change_set& of) -> std::vector<std::string> {
    std::vector<std::string> out;
    for (const auto& c : of.changes)
        out.push_back(std::string{to_string(c.kind)} + " " +
                      (c.previous_path.empty() ? "" : c.previous_path + " ") + c.path);
    return out;
}
using lines = std::vector<std::string>;

TEST(session_changes, none) {
    const auto same = tree({file("a", "1"), directory("d")});
    const auto out = between(same, same);
    EXPECT_TRUE(out.changes.empty());
    EXPECT_EQ(out.baseline_tree_digest, out.staged_tree_digest);
}

TEST(session_changes, each_kind) {
    const auto out = between(tree({file("gone", "1"), file("kept", "2"), file("mode", "3"),
                                   file("moved", "4"), file("text", "5")}),
                             tree({file("kept", "2"), file("mode", "3", 0755), file("new", "6"),
                                   file("text", "55"), file("there", "4")}));
    EXPECT_EQ(words(out), (lines{"remove gone", "modify mode", "create new", "modify text",
                                 "rename moved there"}));
    EXPECT_EQ(out.created, 1U);
    EXPECT_EQ(out.modified, 2U);
    EXPECT_EQ(out.renamed, 1U);
    EXPECT_EQ(out.removed, 1U);
    EXPECT_EQ(out.before_bytes, 4U);
    EXPECT_EQ(out.after_bytes, 5U);
}

TEST(session_changes, a_file_that_becomes_a_directory_is_removed_first) {
    EXPECT_EQ(words(between(tree({file("x", "1")}), tree({directory("x"), file("x/y", "2")}))),
              (lines{"remove x", "create x", "create x/y"}));
}

TEST(session_changes, renames_pair_in_the_order_of_the_paths) {
    const auto before = tree({file("a", "s"), file("b", "s"), file("c", "s")});
    const auto after = tree({file("x", "s"), file("y", "s")});
    EXPECT_EQ(words(between(before, after)), (lines{"remove c", "rename a x", "rename b y"}));
    EXPECT_EQ(words(between(after, before)), (lines{"rename x a", "rename y b", "create c"}));
}

TEST(session_changes, another_mode_or_kind_is_no_rename) {
    EXPECT_EQ(words(between(tree({file("a", "s")}), tree({file("b", "s", 0600)}))),
              (lines{"remove a", "create b"}));
    EXPECT_EQ(words(between(tree({file("a", "")}), tree({directory("b", 0644)}))),
              (lines{"remove a", "create b"}));
}

TEST(session_changes, a_directory_that_moved) {
    EXPECT_EQ(words(between(tree({directory("a"), file("a/f", "1")}),
                            tree({directory("b"), file("b/f", "1")}))),
              (lines{"rename a b", "rename a/f b/f"}));
}

TEST(session_changes, a_file_is_not_compared_with_a_directory) {
    auto single = tree({file(".", "1")});
    single.directory = false;
    EXPECT_EQ(changes_between(subject(), single, tree({})).error().step, "changes.kind");
    auto gone = tree({});
    gone.directory = false;
    EXPECT_EQ(words(between(single, gone)), lines{"remove ."});
}

TEST(session_changes, the_manifest_and_the_page_in_full) {
    const auto before = tree({file("a", "1")});
    const auto after = tree({file("b\n", "1"), directory("d", 0700)});
    const auto out = between(before, after);
    const std::string head = R"({"schema_version":1,"session_id":"session-1","exposure_id":"proj",)"
                             R"("generation":3,"scope_digest":")" +
                             std::string(64, 'b') + R"(","source_identity_digest":")" +
                             std::string(64, 'c') +
                             R"(","max_bytes":1024,"directory":true,"baseline_tree_digest":")" +
                             before.digest + R"(","staged_tree_digest":")" + after.digest + R"(",)";
    const std::string changes =
        R"("changes":[{"kind":"rename","path":"b\n","previous_path":"a","before_digest":")" +
        test::sha("1") + R"(","after_digest":")" + test::sha("1") +
        R"(","before_bytes":1,"after_bytes":1,"before_mode":420,"after_mode":420,"directory":false},)"
        R"({"kind":"create","path":"d","previous_path":"","before_digest":"","after_digest":"",)"
        R"("before_bytes":0,"after_bytes":0,"before_mode":0,"after_mode":448,"directory":true}])";
    const std::string counts =
        R"("created":1,"modified":0,"renamed":1,"removed":0,"before_bytes":1,"after_bytes":1)";
    const auto manifest = head + changes + "," + counts + "}";
    EXPECT_EQ(change_manifest(out).value(), manifest);
    EXPECT_EQ(out.manifest_digest, test::sha(manifest));
    EXPECT_EQ(change_page(out, 0, 256).value(), head + R"("manifest_digest":")" +
                                                    out.manifest_digest + R"(",)" + counts +
                                                    R"(,"total_changes":2,)" + changes + "}");
    const auto first = change_page(out, 0, 1).value();
    EXPECT_NE(first.find(R"("total_changes":2,"next_offset":1,"changes":[{"kind":"rename")"),
              std::string::npos);
}

TEST(session_changes, offsets) {
    const auto out = between(tree({}), tree({file("a", "1"), file("b", "2")}));
    EXPECT_NE(change_page(out, 2, 1).value().find(R"("changes":[]})"), std::string::npos);
    EXPECT_EQ(change_page(out, 2, 1).value().find("next_offset"), std::string::npos);
    EXPECT_EQ(change_page(out, 3, 1).error().step, "changes.offset");
    EXPECT_EQ(change_page(out, UINT64_MAX, 1).error().step, "changes.offset");
    EXPECT_EQ(change_page(out, 0, 0).error().step, "changes.limit");
}

TEST(session_changes, a_page_fits_into_a_frame) {
    std::vector<tree_row> rows;
    for (char c = 'a'; c <= 'z'; ++c)
        rows.push_back(file(std::string(1, c) + std::string(4095, '\x01'), "x"));
    const auto out = between(tree({}), tree(rows));
    std::uint64_t offset = 0;
    std::size_t seen = 0, pages = 0;
    do {
        const auto text = change_page(out, offset, 256).value();
        EXPECT_LT(text.size(), most_change_page_bytes + 2048);
        const auto page = wire::json::read(text).value();
        seen += page.find("changes")->as_array()->size();
        ++pages;
        const auto* next = page.find("next_offset");
        offset = next == nullptr ? 0 : *next->as_unsigned();
        EXPECT_TRUE(next == nullptr || offset == seen);
    } while (offset != 0);
    EXPECT_EQ(seen, 26U);
    EXPECT_GT(pages, 1U);
}

TEST(session_changes, as_long_a_manifest_as_allowed_and_one_byte_longer) {
    const auto with = [](std::size_t length) {
        return changes_between(subject(), tree({}), tree({directory(std::string(length, 'x'))}));
    };
    const auto rest = change_manifest(with(1).value()).value().size() - 1;
    const auto most = most_change_manifest_bytes - rest;
    ASSERT_TRUE(with(most));
    EXPECT_EQ(change_manifest(with(most).value()).value().size(), most_change_manifest_bytes);
    EXPECT_EQ(with(most + 1).error().step, "changes.manifest");
}

// As many changes as are allowed have a manifest that is too long, so that is what is told of them.
TEST(session_changes, one_change_more_than_allowed) {
    std::vector<tree_row> rows;
    for (std::uint64_t i = 0; i < most_tree_changes; ++i)
        rows.push_back(directory(std::to_string(i)));
    EXPECT_EQ(changes_between(subject(), tree({}), tree(rows)).error().step, "changes.manifest");
    rows.push_back(directory("x"));
    EXPECT_EQ(changes_between(subject(), tree({}), tree(rows)).error().step, "changes.count");
}

auto some_tree() -> rc::Gen<session_tree> {
    return rc::gen::map(rc::gen::container<std::vector<int>>(9, rc::gen::inRange(0, 8)),
                        [](const std::vector<int>& drawn) {
                            std::vector<tree_row> rows;
                            for (std::size_t i = 0; i < drawn.size(); ++i) {
                                const std::string name(1, static_cast<char>('a' + i));
                                const int what = drawn[i];
                                if (what == 1 || what == 2)
                                    rows.push_back(directory(name, what == 1 ? 0700 : 0755));
                                if (what > 2) rows.push_back(file(name, std::to_string(what / 2)));
                            }
                            return tree(std::move(rows));
                        });
}

RC_GTEST_PROP(session_changes_property, applied_to_the_one_tree_they_give_the_other, ()) {
    const auto before = *some_tree();
    const auto after = *some_tree();
    const auto out = between(before, after);
    std::map<std::string, tree_row> now;
    for (const auto& row : before.rows) now[row.path] = row;
    for (const auto& c : out.changes) {
        const auto& was = c.kind == change_kind::rename ? c.previous_path : c.path;
        if (c.kind != change_kind::create) {
            RC_ASSERT(now.at(was).content_digest == c.before_digest);
            RC_ASSERT(now.at(was).mode == c.before_mode);
        }
    }
    for (const auto& c : out.changes) {
        if (c.kind == change_kind::remove) now.erase(c.path);
        if (c.kind == change_kind::rename) now.erase(c.previous_path);
    }
    for (const auto& c : out.changes)
        if (c.kind != change_kind::remove)
            now[c.path] = {c.path, c.after_digest, c.after_bytes, c.after_mode, c.directory};
    std::vector<tree_row> rows;
    for (const auto& [path, row] : now) rows.push_back(row);
    RC_ASSERT(rows == after.rows);
    RC_ASSERT(out.created + out.modified + out.renamed + out.removed == out.changes.size());
    RC_ASSERT(between(before, after) == out);
}

} // namespace
