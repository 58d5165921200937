// What is copied and what is refused; the limits; somebody else at work meanwhile; and every step
// cut short.
#include "session_scene.hpp"
#include <csignal>
#include <gtest/gtest.h>
#include <sched.h>
#include <support/forked.hpp>
#include <sys/mount.h>
#include <sys/sysmacros.h>

namespace {

using namespace glove;
using container::session_tree;
using test::session_scene;

auto mode_of(const std::string& path) -> ::mode_t {
    struct ::stat found{};
    test::prepared(::lstat(path.c_str(), &found) == 0, path);
    return found.st_mode & 07777U;
}

auto paths_of(const session_tree& of) -> std::vector<std::string> {
    std::vector<std::string> out;
    for (const auto& row : of.rows) out.push_back(row.path);
    return out;
}

// What failed, and whether the error names the path.
auto failure(const result<session_tree>& of, std::string_view named = {}) -> std::string {
    if (of) return "nothing failed";
    if (of.error().detail.find(named) == std::string::npos)
        return "does not name it: " + of.error().detail;
    return std::string{of.error().step};
}

TEST(session_copy, copies_names_contents_and_modes) {
    session_scene at;
    at.put("a.txt", "hello");
    at.put("bin/run", "#!", 0750);
    (void)at.place.directory("source/empty", 0711);
    (void)at.place.directory("source/bin", 0500);
    at.put(std::string{"two\nlines"}, "");
    const auto tree = at.copy();
    ASSERT_TRUE(tree) << tree.error().step << tree.error().detail;
    EXPECT_EQ(test::content_of(at.into + "/a.txt"), "hello");
    EXPECT_EQ(test::content_of(at.into + "/bin/run"), "#!");
    EXPECT_EQ(mode_of(at.into + "/bin/run"), 0750U);
    EXPECT_EQ(mode_of(at.into + "/bin"), 0500U);
    EXPECT_EQ(mode_of(at.into + "/empty"), 0711U);
    EXPECT_EQ(mode_of(at.into), 0755U);
    EXPECT_EQ(tree->bytes, 7U);
    const auto text =
        R"([{"path":"a.txt","content_digest":")" + test::sha("hello") +
        R"(","bytes":5,"mode":420,"directory":false},)"
        R"({"path":"bin","content_digest":"","bytes":0,"mode":320,"directory":true},)"
        R"({"path":"bin/run","content_digest":")" +
        test::sha("#!") +
        R"(","bytes":2,"mode":488,"directory":false},)"
        R"({"path":"empty","content_digest":"","bytes":0,"mode":457,"directory":true},)"
        R"({"path":"two\nlines","content_digest":")" +
        test::sha("") + R"(","bytes":0,"mode":420,"directory":false}])";
    EXPECT_EQ(tree->digest, test::sha(text));
    EXPECT_EQ(at.read(at.into).value(), *tree);
    test::prepared(::chmod((at.into + "/bin").c_str(), 0700) == 0, "chmod");
    test::prepared(::chmod((at.source + "/bin").c_str(), 0700) == 0, "chmod");
}

TEST(session_copy, the_order_is_that_of_the_paths_bytes) {
    session_scene at;
    at.put("a/b", "");
    at.put("a.b", "");
    at.put("a0", "");
    EXPECT_EQ(paths_of(at.copy().value()), (std::vector<std::string>{"a", "a.b", "a/b", "a0"}));
}

TEST(session_copy, set_id_bits_stay_behind) {
    session_scene at;
    at.put("tool", "x", 06755);
    (void)at.place.directory("source/shared", 03775);
    const auto tree = at.copy();
    ASSERT_TRUE(tree);
    EXPECT_EQ(mode_of(at.into + "/tool"), 0755U);
    EXPECT_EQ(mode_of(at.into + "/shared"), 0775U);
    EXPECT_EQ(tree->rows[0].mode, 0775U);
}

TEST(session_copy, a_single_file) {
    session_scene at;
    at.source = at.place.file("one.txt", "content", 0640);
    const auto tree = at.copy();
    ASSERT_TRUE(tree) << tree.error().detail;
    EXPECT_FALSE(tree->directory);
    EXPECT_EQ(paths_of(*tree), std::vector<std::string>{"."});
    EXPECT_EQ(test::content_of(at.into + "/file"), "content");
    EXPECT_EQ(mode_of(at.into + "/file"), 0640U);
    const auto holder = test::opened(at.into);
    EXPECT_EQ(container::read_single(holder, at.limits, at.patience()).value(), *tree);
    test::prepared(::unlink((at.into + "/file").c_str()) == 0, "unlink");
    EXPECT_TRUE(container::read_single(holder, at.limits, at.patience())->rows.empty());
    (void)at.place.file("into/other");
    EXPECT_EQ(failure(container::read_single(holder, at.limits, at.patience()), "other"),
              "tree.name");
}

TEST(session_copy, a_single_link_is_refused) {
    session_scene at;
    at.source = at.place.link("one", at.place.file("other"));
    const test::folder unused;
    const auto pin = test::opened(at.source, O_PATH | O_NOFOLLOW);
    const auto to = test::opened(at.into);
    const auto noted = test::opened(at.records);
    EXPECT_EQ(failure(container::copy_source({.source = pin,
                                              .into = to,
                                              .records = noted,
                                              .record = "r",
                                              .source_identity_digest = std::string(64, 'a'),
                                              .limits = at.limits},
                                             at.patience())),
              "tree.kind");
}

struct odd {
    const char* name;
    std::function<void(const session_scene&)> make;
    const char* step;
};
const odd odd_things[] = {
    {"link", [](const session_scene& at) { (void)at.place.link("source/d/link", "/etc/passwd"); },
     "tree.kind"},
    {"link to a directory",
     [](const session_scene& at) { (void)at.place.link("source/d/link to a directory", "/etc"); },
     "tree.kind"},
    {"fifo", [](const session_scene& at) { (void)at.place.fifo("source/d/fifo"); }, "tree.kind"},
    {"socket", [](const session_scene& at) { (void)test::bound_socket(at.source + "/d/socket"); },
     "tree.kind"},
    {"device",
     [](const session_scene& at) {
         // The number 0:0 is one that everybody may make.
         test::prepared(
             ::mknod((at.source + "/d/device").c_str(), S_IFCHR | 0600, ::makedev(0, 0)) == 0,
             "mknod");
     },
     "tree.kind"},
    {R"(\xff\xfe)", [](const session_scene& at) { at.put("d/\xff\xfe", ""); }, "tree.name"},
};

TEST(session_copy, what_is_neither_file_nor_directory_is_refused_by_its_path) {
    for (const auto& thing : odd_things) {
        SCOPED_TRACE(thing.name);
        session_scene at;
        at.put("d/good", "x");
        thing.make(at);
        EXPECT_EQ(failure(at.copy(), std::string{"'d/"} + thing.name + "'"), thing.step);
        EXPECT_EQ(failure(at.read(at.source), thing.name), thing.step);
        EXPECT_EQ(test::content_of(at.into + "/d/link"), "");
    }
}

TEST(session_copy, a_hard_link_that_leads_out_is_refused) {
    session_scene at;
    at.put("d/inside", "secret");
    test::prepared(::link((at.source + "/d/inside").c_str(), (at.place / "outside").c_str()) == 0,
                   "link");
    EXPECT_EQ(failure(at.copy(), "'d/inside'"), "tree.link");
    // What a session left is its own file system's.
    EXPECT_TRUE(at.read(at.source));
}

TEST(session_copy, hard_links_that_stay_inside_become_files) {
    session_scene at;
    at.put("d/one", "same");
    test::prepared(::link((at.source + "/d/one").c_str(), (at.source + "/two").c_str()) == 0,
                   "link");
    const auto tree = at.copy();
    ASSERT_TRUE(tree) << tree.error().detail;
    EXPECT_EQ(tree->bytes, 8U);
    struct ::stat found{};
    test::prepared(::stat((at.into + "/two").c_str(), &found) == 0, "stat");
    EXPECT_EQ(found.st_nlink, 1U);
}

TEST(session_copy, another_mount_is_refused) {
    session_scene at;
    (void)at.place.directory("source/d/mount");
    EXPECT_EQ(test::said_by([&]() -> std::string {
                  const auto flags = ::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER;
                  if (::unshare(flags) != 0 ||
                      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                      ::mount("none", (at.source + "/d/mount").c_str(), "tmpfs", 0, nullptr) != 0)
                      return "no mount";
                  return failure(at.read(at.source), "'d/mount'");
              }),
              "tree.mount");
    EXPECT_TRUE(at.read(at.source));
}

TEST(session_copy, what_may_not_be_read_is_told_by_its_path) {
    session_scene at;
    at.put("d/closed", "x", 0);
    (void)at.place.directory("source/e", 0);
    const auto tried = at.copy();
    if (::geteuid() == 0) {
        EXPECT_TRUE(tried);
    } else {
        EXPECT_EQ(failure(tried, "'d/closed'"), "tree.read");
        test::prepared(::chmod((at.source + "/d/closed").c_str(), 0400) == 0, "chmod");
        EXPECT_EQ(failure(at.copy(), "'e'"), "tree.read");
    }
    test::prepared(::chmod((at.source + "/e").c_str(), 0700) == 0, "chmod");
    EXPECT_TRUE(at.read(at.source));
}

TEST(session_copy, as_many_bytes_as_allowed_and_one_more) {
    session_scene at;
    at.put("a", "12345");
    at.put("b", "678");
    at.limits.bytes = 8;
    EXPECT_TRUE(at.read(at.source));
    at.limits.bytes = 7;
    EXPECT_EQ(failure(at.copy(), "'b'"), "tree.bytes");
}

TEST(session_copy, holes_count) {
    session_scene at;
    at.put("sparse", "");
    test::prepared(::truncate((at.source + "/sparse").c_str(), 1LL << 40) == 0, "truncate");
    EXPECT_EQ(failure(at.copy(), "'sparse'"), "tree.bytes");
}

TEST(session_copy, as_many_entries_as_allowed_and_one_more) {
    session_scene at;
    for (const auto* name : {"a", "b", "c/d"}) at.put(name, "");
    at.limits.entries = 4;
    EXPECT_TRUE(at.read(at.source));
    at.limits.entries = 3;
    EXPECT_EQ(failure(at.copy(), "'c'"), "tree.entries");
}

TEST(session_copy, no_limit_is_above_the_wires) {
    session_scene at;
    at.limits.entries = UINT64_MAX;
    const auto top = test::opened(at.source, O_RDONLY);
    for (std::uint64_t i = 0; i < container::most_tree_entries; ++i)
        test::prepared(::mknodat(top.get(), std::to_string(i).c_str(), S_IFREG | 0600, 0) == 0,
                       "mknod");
    EXPECT_TRUE(at.read(at.source));
    at.put("one more", "");
    EXPECT_EQ(failure(at.read(at.source)), "tree.entries");
}

auto nested(std::size_t depth) -> std::string {
    std::string out{"d"};
    for (std::size_t i = 1; i < depth; ++i) out += "/d";
    return out;
}

TEST(session_copy, as_deep_as_allowed_and_one_deeper) {
    session_scene at;
    at.limits.depth = 1000;
    (void)at.place.directory("source/" + nested(container::most_tree_depth));
    EXPECT_EQ(at.read(at.source)->rows.size(), container::most_tree_depth);
    at.put(nested(container::most_tree_depth) + "/f", "");
    EXPECT_EQ(failure(at.read(at.source), "'d/d"), "tree.depth");
}

// By descriptor, because the whole path is longer than a path may be.
void make_path(const std::string& top, const std::vector<std::string>& parts) {
    auto at = test::opened(top, O_RDONLY);
    for (const auto& part : parts) {
        test::prepared(::mkdirat(at.get(), part.c_str(), 0755) == 0 || errno == EEXIST, part);
        at = sys::unique_fd{::openat(at.get(), part.c_str(), O_RDONLY | O_CLOEXEC)};
    }
}

TEST(session_copy, a_path_as_long_as_allowed_and_one_byte_longer) {
    session_scene at;
    std::vector<std::string> parts(16, std::string(254, 'p'));
    parts.emplace_back(16, 'q');
    make_path(at.source, parts);
    EXPECT_EQ(at.read(at.source)->rows.back().path.size(), container::most_tree_path);
    parts.back() += 'q';
    make_path(at.source, parts);
    EXPECT_EQ(failure(at.read(at.source)), "tree.path");
}

// Each lets somebody change the source at one look at the clock, of which there is one between the
// moment when a thing is pinned and the moment when it is opened. Whatever look it is, the copy is
// the source as it was or as it became, or it is refused.
struct change {
    const char* name;
    std::function<void(const session_scene&)> make;
};
const change others[] = {
    {"grows",
     [](const session_scene& at) { std::ofstream{at.source + "/b/big", std::ios::app} << "x"; }},
    {"is rewritten",
     [](const session_scene& at) { std::ofstream{at.source + "/b/big"} << "other"; }},
    {"becomes a link",
     [](const session_scene& at) {
         (void)::unlink((at.source + "/b/big").c_str());
         (void)::symlink("/etc/passwd", (at.source + "/b/big").c_str());
     }},
    {"becomes a FIFO",
     [](const session_scene& at) {
         (void)::unlink((at.source + "/c").c_str());
         (void)::mkfifo((at.source + "/c").c_str(), 0600);
     }},
    {"gets a neighbour", [](const session_scene& at) { at.put("b/new", "x"); }},
    {"its directory becomes a link",
     [](const session_scene& at) {
         (void)::rename((at.source + "/b").c_str(), (at.place / "away").c_str());
         (void)::symlink("/etc", (at.source + "/b").c_str());
     }},
    {"changes its mode",
     [](const session_scene& at) { (void)::chmod((at.source + "/b/big").c_str(), 0600); }},
    {"gets a second name",
     [](const session_scene& at) {
         (void)::link((at.source + "/b/big").c_str(), (at.place / "second").c_str());
     }},
};

void fill(const session_scene& at) {
    at.put("a", "first");
    at.put("b/big", std::string(600'000, 'x'));
    at.put("c", "last");
}

TEST(session_copy, somebody_elses_work_is_seen_or_has_no_part_in_it) {
    session_tree before;
    int looks = 0;
    {
        session_scene at;
        fill(at);
        before = at.read(at.source).value();
        at.time.looks = 0;
        at.time.meanwhile = [](int) {};
        ASSERT_TRUE(at.copy());
        looks = at.time.looks;
    }
    ASSERT_GT(looks, 6);
    for (const auto& other : others) {
        int refused = 0;
        for (int when = 1; when <= looks; ++when) {
            SCOPED_TRACE(std::string{other.name} + " at look " + std::to_string(when));
            session_scene at;
            fill(at);
            at.time.meanwhile = [&](int look) {
                if (look == when) other.make(at);
            };
            const auto tree = at.copy();
            at.time.meanwhile = nullptr;
            refused += tree ? 0 : 1;
            if (!tree) {
                EXPECT_TRUE(tree.error().step == "tree.changed" ||
                            tree.error().step == "tree.kind" || tree.error().step == "tree.link")
                    << tree.error().step << tree.error().detail;
                continue;
            }
            const auto after = at.read(at.source);
            EXPECT_TRUE(*tree == before || (after && *tree == *after));
            EXPECT_EQ(at.read(at.into).value(), *tree);
        }
        EXPECT_GT(refused, 0) << other.name;
    }
}

TEST(session_copy, no_more_is_read_than_a_file_had) {
    session_scene at;
    at.put("grows", std::string(300'000, 'x'));
    at.time.meanwhile = [&](int look) {
        if (look < 20)
            std::ofstream{at.source + "/grows", std::ios::app} << std::string(300'000, 'y');
    };
    EXPECT_EQ(failure(at.copy(), "'grows'"), "tree.changed");
    const auto copied = at.into + "/grows";
    EXPECT_TRUE(!std::filesystem::exists(copied) || std::filesystem::file_size(copied) <= 300'000);
    at.time.meanwhile = [&, last = at.time.looks + 4](int look) {
        if (look == last)
            std::ofstream{at.source + "/grows", std::ios::app} << std::string(3'000'000, 'y');
    };
    at.put("grows", std::string(300'000, 'x'));
    EXPECT_EQ(failure(at.copy(), "'grows'"), "tree.changed");
    EXPECT_LE(std::filesystem::file_size(copied), 300'000U);
}

TEST(session_copy, ends_at_the_deadline) {
    session_scene at;
    fill(at);
    at.time.meanwhile = [&](int look) {
        if (look == 3) at.time.now = std::chrono::seconds{1};
    };
    const auto refused = at.copy();
    EXPECT_EQ(failure(refused), "tree.deadline");
    EXPECT_EQ(refused.error().code, errc::timed_out);
    at.time.now = std::chrono::seconds{1} - std::chrono::nanoseconds{1};
    at.time.meanwhile = nullptr;
    EXPECT_TRUE(at.copy());
}

TEST(session_copy, ends_when_it_is_told_to) {
    session_scene at;
    fill(at);
    at.time.meanwhile = [&](int look) {
        if (look == 3) (void)at.stop.request_stop();
    };
    EXPECT_EQ(failure(at.copy()), "tree.stopped");
    at.stop = {};
    EXPECT_TRUE(at.copy());
}

constexpr std::string_view steps[] = {"begin", "empty", "copy", "sync", "whole"};

TEST(session_copy, every_step_may_fail_once) {
    for (const auto broken : steps) {
        SCOPED_TRACE(broken);
        session_scene at;
        fill(at);
        bool failed = false;
        at.before_step = [&](std::string_view step) -> result<> {
            if (step != broken || failed) return {};
            failed = true;
            return fail_os("test.fault", EIO);
        };
        EXPECT_EQ(failure(at.copy()), "test.fault");
        const auto tree = at.copy();
        ASSERT_TRUE(tree) << tree.error().step << tree.error().detail;
        EXPECT_EQ(at.read(at.into).value(), *tree);
        EXPECT_EQ(at.read(at.source)->digest, tree->digest);
    }
}

TEST(session_copy, is_settled_before_it_is_called_whole) {
    session_scene at;
    fill(at);
    int settled = 0;
    at.settle = [&]() -> result<> {
        EXPECT_EQ(at.read(at.into)->digest, at.read(at.source)->digest);
        return ++settled == 1 ? fail_os("test.fault", EIO) : result<>{};
    };
    EXPECT_EQ(failure(at.copy()), "test.fault");
    const auto records = test::opened(at.records);
    EXPECT_EQ(container::find_copy_record(records, "copy.json").value()->state,
              container::copy_state::begun);
    EXPECT_TRUE(at.copy());
    EXPECT_EQ(settled, 2);
    EXPECT_TRUE(at.copy()); // it is whole already
    EXPECT_EQ(settled, 2);
}

TEST(session_copy, killed_at_any_step_it_is_begun_anew) {
    for (const auto last : steps) {
        SCOPED_TRACE(last);
        session_scene at;
        fill(at);
        (void)at.place.directory("source/b", 0555);
        (void)test::forked([&]() -> std::string {
            at.before_step = [&](std::string_view step) -> result<> {
                if (step == last) (void)::raise(SIGKILL);
                return {};
            };
            return at.copy() ? "was not killed" : "failed";
        });
        at.put("later", "the source may be another one by now");
        const auto tree = at.copy();
        ASSERT_TRUE(tree) << tree.error().step << tree.error().detail;
        EXPECT_EQ(at.read(at.into).value(), *tree);
        EXPECT_EQ(tree->rows.size(), 5U);
        for (const auto& held : {at.source + "/b", at.into + "/b"})
            test::prepared(::chmod(held.c_str(), 0700) == 0, held);
    }
}

TEST(session_copy, killed_in_the_middle_of_a_file_it_is_begun_anew) {
    for (int when = 1; when < 12; ++when) {
        session_scene at;
        fill(at);
        const auto end = test::forked([&]() -> std::string {
            at.time.meanwhile = [&](int look) {
                if (look == when) (void)::raise(SIGKILL);
            };
            return at.copy() ? "done" : "failed";
        });
        ASSERT_TRUE(WIFSIGNALED(end.wait_status) || end.said == "done") << end.said;
        const auto tree = at.copy();
        ASSERT_TRUE(tree) << tree.error().step << tree.error().detail;
        EXPECT_EQ(at.read(at.into).value(), *tree);
    }
}

TEST(session_copy, a_full_disk_leaves_nothing_that_looks_whole) {
    session_scene at;
    fill(at);
    EXPECT_EQ(test::said_by([&]() -> std::string {
                  test::forbid_growth(300'000);
                  return failure(at.copy(), "'b/big'");
              }),
              "copy.write");
    EXPECT_EQ(test::said_by([&]() -> std::string {
                  (void)::truncate((at.source + "/b/big").c_str(), 10);
                  test::forbid_growth(300); // the record of what is begun is smaller
                  return failure(at.copy(), "copy.json");
              }),
              "copy.record");
    EXPECT_TRUE(at.copy());
}

TEST(session_copy, a_whole_copy_is_not_touched_again) {
    session_scene at;
    fill(at);
    const auto tree = at.copy();
    ASSERT_TRUE(tree);
    (void)at.place.file("into/a", "the session's");
    at.put("a", "the source's");
    EXPECT_EQ(at.copy().value(), *tree);
    EXPECT_EQ(test::content_of(at.into + "/a"), "the session's");
}

TEST(session_copy, nothing_is_deleted_that_no_record_names) {
    session_scene at;
    fill(at);
    (void)at.place.file("into/somebody's", "work");
    EXPECT_EQ(failure(at.copy()), "copy.not_empty");
    EXPECT_EQ(test::content_of(at.into + "/somebody's"), "work");
}

TEST(session_copy, the_record_of_another_source_is_refused) {
    session_scene at;
    fill(at);
    ASSERT_TRUE(at.copy());
    at.limits.bytes += 1;
    EXPECT_EQ(failure(at.copy()), "copy.other");
    at.limits.bytes -= 1;
    EXPECT_TRUE(at.copy());
}

TEST(session_copy, a_damaged_record_is_refused_wherever_the_damage_is) {
    session_scene at;
    at.put("a", "x");
    (void)at.place.directory("source/d");
    ASSERT_TRUE(at.copy());
    const auto record = at.records + "/copy.json";
    const auto good = test::content_of(record);
    for (std::size_t i = 0; i < good.size(); ++i) {
        auto bad = good;
        bad[i] = bad[i] == '0' ? '1' : '0';
        (void)at.place.file("records/copy.json", bad, 0600);
        const auto got = at.copy();
        ASSERT_FALSE(got) << bad;
        EXPECT_TRUE(got.error().step == "copy.record" || got.error().step == "copy.other") << bad;
        EXPECT_TRUE(std::filesystem::exists(at.into + "/a"));
    }
    (void)at.place.file("records/copy.json", good, 0600);
    EXPECT_TRUE(at.copy());
    test::prepared(::chmod(record.c_str(), 0644) == 0, "chmod");
    EXPECT_EQ(failure(at.copy()), "file.private");
}

TEST(session_copy, whatever_the_umask) {
    session_scene at;
    fill(at);
    const auto wanted = at.read(at.source)->digest;
    EXPECT_EQ(test::said_by([&]() -> std::string {
                  (void)::umask(0777);
                  const auto tree = at.copy();
                  return tree ? tree->digest : tree.error().detail;
              }),
              wanted);
    EXPECT_EQ(at.read(at.into)->digest, wanted);
}

} // namespace
