// Real files: who may be where, and what a writer notices before it writes. Each refusal has a twin
// that differs in the one thing and is accepted.
#include <fcntl.h>
#include <glove/journal/file_storage.hpp>
#include <glove/journal/inspect.hpp>
#include <gmock/gmock.h>
#include <journal/notes.hpp>
#include <support/folder.hpp>
#include <support/forked.hpp>
#include <sys/file.h>
#include <utime.h>

namespace {

using namespace glove;
using journal::access;
using journal::file_storage;
using test::settings_of;
using testing::ElementsAre;
using testing::HasSubstr;

auto step_of(const auto& outcome) -> std::string_view {
    return outcome ? "ok" : outcome.error().step;
}

struct on_disk {
    std::unique_ptr<file_storage> store;
    std::optional<test::note_log> log{};
    std::vector<std::string> texts{};
    error why{};
};

auto open_file(const std::string& directory, const journal::settings& how) -> on_disk {
    on_disk out{};
    auto store = file_storage::open(directory, "test.journal", access::write);
    if (!store) {
        out.why = store.error();
        return out;
    }
    out.store = std::make_unique<file_storage>(*std::move(store));
    auto log = test::note_log::open(*out.store, how, test::codec_of(how.form),
                                    [&](test::note&& what, journal::origin) -> result<> {
                                        out.texts.push_back(std::move(what.text));
                                        return {};
                                    });
    if (log) out.log.emplace(*std::move(log));
    else out.why = log.error();
    return out;
}

class Files : public testing::Test {
protected:
    test::folder folder_;
    std::string home_ = folder_.directory("state", 0700);
    std::string path_ = home_ + "/test.journal";
    journal::settings how_ = settings_of(journal::session_registry);

    auto open() -> on_disk { return open_file(home_, how_); }
    static auto put(on_disk& to, const char* text) -> result<> {
        test::note what;
        what.text = text;
        if (auto done = to.log->append(what); !done) return std::unexpected(done.error());
        return {};
    }
    // A journal with one record that nobody has open.
    void prepare() {
        auto journal = open();
        ASSERT_TRUE(journal.log.has_value()) << journal.why.step << journal.why.detail;
        ASSERT_EQ(step_of(put(journal, "one")), "ok");
    }
    auto refusal() -> std::string { return std::string{open().why.step}; }
};

auto mode_of(const std::string& path) -> ::mode_t {
    struct ::stat found{};
    test::prepared(::lstat(path.c_str(), &found) == 0, path);
    return found.st_mode & 07777U;
}

TEST_F(Files, EverythingMadeIsTheOwnersAlone) {
    const auto before = ::umask(0);
    auto journal = open();
    EXPECT_EQ(step_of(put(journal, "one")), "ok");
    EXPECT_EQ(step_of(journal.log->core().rotate({})), "ok");
    (void)::umask(before);
    for (const auto* suffix : {"", ".lock", ".head", ".1"})
        EXPECT_EQ(mode_of(path_ + suffix), 0600U) << suffix;
    EXPECT_EQ(test::names_in(home_), 4U);
}

TEST_F(Files, AnUmaskThatTakesEverythingTakesNothing) {
    const auto before = ::umask(0777);
    auto journal = open();
    EXPECT_EQ(journal.why.detail, "");
    EXPECT_EQ(step_of(put(journal, "one")), "ok");
    EXPECT_EQ(step_of(journal.log->core().rotate({})), "ok");
    EXPECT_EQ(step_of(put(journal, "two")), "ok");
    (void)::umask(before);
    journal = {};
    EXPECT_THAT(open().texts, ElementsAre("two"));
}

TEST_F(Files, WhatWasAppendedIsReadBack) {
    prepare();
    {
        auto journal = open();
        EXPECT_THAT(journal.texts, ElementsAre("one"));
        EXPECT_EQ(step_of(put(journal, "two")), "ok");
        EXPECT_EQ(step_of(journal.log->core().rotate(std::vector<std::uint64_t>{2})), "ok");
        EXPECT_EQ(step_of(put(journal, "three")), "ok");
        EXPECT_EQ(journal.log->read(2)->text, "two");
    }
    EXPECT_THAT(open().texts, ElementsAre("two", "three"));
    EXPECT_TRUE(test::content_of(path_ + ".1").starts_with("GLVSES05"));
}

TEST_F(Files, OneWriterAtATime) {
    auto first = open();
    ASSERT_TRUE(first.log.has_value());
    EXPECT_EQ(refusal(), "journal.locked");
    const auto home = home_;
    const auto how = how_;
    EXPECT_EQ(test::said_by([&] { return std::string{open_file(home, how).why.step}; }),
              "journal.locked");
    // Neither a rotation nor reading beside it changes that.
    ASSERT_EQ(step_of(put(first, "one")), "ok");
    ASSERT_EQ(step_of(first.log->core().rotate({})), "ok");
    EXPECT_EQ(refusal(), "journal.locked");
    first = {};
    EXPECT_TRUE(open().log.has_value());
}

// A program that knows nothing of NAME.lock.
TEST_F(Files, AWriterThatLocksOnlyTheFileIsSeen) {
    prepare();
    {
        const sys::unique_fd other{::open(path_.c_str(), O_RDWR | O_CLOEXEC)};
        ASSERT_EQ(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
        EXPECT_EQ(refusal(), "journal.locked");
    }
    auto journal = open();
    ASSERT_TRUE(journal.log.has_value());
    for (int rotated = 0; rotated < 2; ++rotated) {
        const sys::unique_fd other{::open(path_.c_str(), O_RDWR | O_CLOEXEC)};
        EXPECT_NE(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
        ASSERT_EQ(step_of(journal.log->core().rotate({})), "ok");
    }
}

TEST_F(Files, AReaderWorksBesideAWriter) {
    auto journal = open();
    ASSERT_EQ(step_of(put(journal, "one")), "ok");
    auto store = file_storage::open(home_, "test.journal", access::read);
    ASSERT_EQ(step_of(store), "ok");
    ASSERT_EQ(step_of(put(journal, "two")), "ok");
    test::note_reader reader{test::note_codec{}};
    const auto seen = journal::inspect(*store, how_, reader);
    ASSERT_EQ(step_of(seen), "ok");
    EXPECT_TRUE(seen->sound());
    EXPECT_THAT(reader.texts, ElementsAre("one", "two"));
    for (const auto& refused : {store->append("x"), store->truncate(8), store->start_next(),
                                store->set_witness("x"), store->check()})
        EXPECT_EQ(step_of(refused), "journal.read_only");
    EXPECT_EQ(step_of(put(journal, "three")), "ok");
}

TEST_F(Files, ADirectoryOfOthersIsRefused) {
    for (const ::mode_t mode : {0710U, 0750U, 0755U, 0777U, 0500U}) {
        ASSERT_EQ(::chmod(home_.c_str(), mode), 0);
        EXPECT_EQ(refusal(), "journal.directory") << mode;
    }
    ASSERT_EQ(::chmod(home_.c_str(), 0700), 0);
    EXPECT_EQ(refusal(), "");
    const auto link = folder_.link("link", home_);
    EXPECT_EQ(open_file(link, how_).why.step, "journal.directory");
    EXPECT_EQ(open_file(folder_ / "nothing", how_).why.step, "journal.directory");
    if (::geteuid() == 0) {
        ASSERT_EQ(::chown(home_.c_str(), 65534, 65534), 0);
        EXPECT_EQ(refusal(), "journal.directory");
    }
}

TEST_F(Files, AFileOfOthersIsRefused) {
    prepare();
    for (const ::mode_t mode : {0640U, 0604U, 0660U, 0644U, 0700U, 04600U}) {
        ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
        const auto journal = open();
        EXPECT_EQ(journal.why.step, "journal.private") << mode;
        EXPECT_THAT(journal.why.detail, HasSubstr("does not have mode 0600"));
    }
    ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
    EXPECT_EQ(refusal(), "");
    if (::geteuid() == 0) {
        ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
        EXPECT_EQ(refusal(), "journal.private");
    }
}

TEST_F(Files, LinksAndOtherThingsAreRefused) {
    prepare();
    ASSERT_EQ(::link(path_.c_str(), (home_ + "/second").c_str()), 0);
    EXPECT_EQ(refusal(), "journal.private");
    ASSERT_EQ(::unlink((home_ + "/second").c_str()), 0);
    EXPECT_EQ(refusal(), "");
    const auto elsewhere = home_ + "/elsewhere";
    ASSERT_EQ(::rename(path_.c_str(), elsewhere.c_str()), 0);
    ASSERT_EQ(::symlink(elsewhere.c_str(), path_.c_str()), 0);
    EXPECT_EQ(refusal(), "journal.open");
    ASSERT_EQ(::unlink(path_.c_str()), 0);
    ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    EXPECT_EQ(refusal(), "journal.private");
    ASSERT_EQ(::unlink(path_.c_str()), 0);
    ASSERT_EQ(::mkdir(path_.c_str(), 0700), 0);
    EXPECT_EQ(refusal(), "journal.open");
    ASSERT_EQ(::rmdir(path_.c_str()), 0);
    ASSERT_EQ(::rename(elsewhere.c_str(), path_.c_str()), 0);
    EXPECT_EQ(refusal(), "");
}

TEST_F(Files, TheLockAndTheWitnessAreTheOwnersAloneToo) {
    prepare();
    for (const auto* suffix : {".lock", ".head"}) {
        const auto other = path_ + suffix;
        ASSERT_EQ(::chmod(other.c_str(), 0640), 0);
        EXPECT_NE(refusal(), "") << suffix;
        ASSERT_EQ(::chmod(other.c_str(), 0600), 0);
        EXPECT_EQ(refusal(), "");
        const auto away = home_ + "/away";
        ASSERT_EQ(::rename(other.c_str(), away.c_str()), 0);
        ASSERT_EQ(::symlink(away.c_str(), other.c_str()), 0);
        EXPECT_NE(refusal(), "") << suffix;
        ASSERT_EQ(::rename(away.c_str(), other.c_str()), 0);
        EXPECT_EQ(refusal(), "");
    }
    ASSERT_EQ(::truncate((path_ + ".head").c_str(), 0), 0);
    EXPECT_EQ(refusal(), "journal.witness");
}

TEST_F(Files, NoOtherNamesAreTaken) {
    for (const auto* name : {"", ".", "..", ".hidden", "a/b", "/x"})
        EXPECT_EQ(step_of(file_storage::open(home_, name, access::write)), "journal.open") << name;
    EXPECT_EQ(test::names_in(home_), 0U);
}

// What happens to the file while it is open. Each case is done to a journal that has just written.
struct meddling {
    const char* name;
    void (*with)(const std::string& path);
    const char* says;
};
class Meddling : public Files, public testing::WithParamInterface<meddling> {};

void copy_over(const std::string& path) { // the same bytes in another inode
    const auto content = test::content_of(path);
    std::ofstream{path + ".copy"} << content;
    test::prepared(::chmod((path + ".copy").c_str(), 0600) == 0 &&
                       ::rename((path + ".copy").c_str(), path.c_str()) == 0,
                   path);
}
void append_to(const std::string& path) { std::ofstream{path, std::ios::app} << "x"; }
void overwrite(const std::string& path) {
    std::fstream{path, std::ios::in | std::ios::out}.seekp(20).put('x');
}
void shorten(const std::string& path) { test::prepared(::truncate(path.c_str(), 20) == 0, path); }
void shorten_and_lengthen(const std::string& path) {
    const auto size = static_cast<::off_t>(test::content_of(path).size());
    test::prepared(::truncate(path.c_str(), 20) == 0 && ::truncate(path.c_str(), size) == 0, path);
}
void open_to_group(const std::string& path) {
    test::prepared(::chmod(path.c_str(), 0640) == 0, path);
}
void link_again(const std::string& path) {
    test::prepared(::link(path.c_str(), (path + ".second").c_str()) == 0, path);
}
void remove_name(const std::string& path) { test::prepared(::unlink(path.c_str()) == 0, path); }
void move_and_restore(const std::string& path) {
    test::prepared(::rename(path.c_str(), (path + ".away").c_str()) == 0, path);
    std::ofstream{path} << "GLVSES05";
}

INSTANTIATE_TEST_SUITE_P(
    All, Meddling,
    testing::Values(meddling{"Replaced", copy_over, "link"},
                    meddling{"Appended", append_to, "another size"},
                    meddling{"Overwritten", overwrite, "was changed"},
                    meddling{"Shortened", shorten, "another size"},
                    meddling{"ShortenedAndLengthened", shorten_and_lengthen, "was changed"},
                    meddling{"OpenedToTheGroup", open_to_group, "was changed"},
                    meddling{"LinkedAgain", link_again, "link"},
                    meddling{"Unlinked", remove_name, "link"},
                    meddling{"MovedAway", move_and_restore, "was "}),
    [](const auto& tested_case) { return std::string{tested_case.param.name}; });

TEST_P(Meddling, IsNoticedBeforeAnythingIsWritten) {
    for (const auto* use : {"append", "rotate", "read"}) {
        test::folder other;
        home_ = other.directory("state", 0700);
        path_ = home_ + "/test.journal";
        auto journal = open();
        ASSERT_EQ(step_of(put(journal, "one")), "ok");
        ASSERT_EQ(step_of(put(journal, "two")), "ok");
        ::usleep(20'000); // a tick of the clock that the time of change is taken from
        GetParam().with(path_);
        const auto after = test::content_of(path_);
        const auto use_it = [&]() -> result<> {
            if (use == std::string_view{"append"}) return put(journal, "three");
            if (use == std::string_view{"rotate"}) return journal.log->core().rotate({});
            if (auto read = journal.log->read(1); !read) return std::unexpected(read.error());
            return {};
        };
        const auto refused = use_it();
        ASSERT_EQ(step_of(refused), "journal.identity");
        EXPECT_THAT(refused.error().detail, HasSubstr(GetParam().says));
        EXPECT_EQ(test::content_of(path_), after); // neither appended to nor cut
        EXPECT_EQ(step_of(put(journal, "four")), "journal.poisoned");
        EXPECT_EQ(step_of(journal.log->core().rotate({})), "journal.poisoned");
        EXPECT_EQ(test::content_of(path_), after);
    }
}

TEST_F(Files, ReadingTheFileIsNoMeddling) {
    auto journal = open();
    ASSERT_EQ(step_of(put(journal, "one")), "ok");
    ::usleep(20'000);
    EXPECT_NE(test::content_of(path_), "");
    EXPECT_EQ(step_of(put(journal, "two")), "ok");
    EXPECT_EQ(step_of(journal.log->core().rotate({})), "ok");
}

// The disk is full: the part that was written is cut off again.
TEST_F(Files, AFullDiskLeavesWholeRecords) {
    for (const auto& form : {journal::session_registry, journal::receipts}) {
        test::folder other;
        const auto home = other.directory("state", 0700);
        const auto how = settings_of(form);
        const auto said = test::said_by([&]() -> std::string {
            auto journal = open_file(home, how);
            if (!put(journal, "one")) return "one";
            const auto before = test::content_of(home + "/test.journal").size();
            test::forbid_growth(before + 100);
            const auto refused = put(journal, "two");
            std::string out{step_of(refused)};
            out += test::content_of(home + "/test.journal").size() == before ? " whole" : " part";
            return out + (journal.log->core().poisoned() ? " poisoned" : " goes on");
        });
        EXPECT_EQ(said,
                  std::string{"journal.append whole "} +
                      (form.write == journal::failed_write::poisons ? "poisoned" : "goes on"));
        auto again = open_file(home, how);
        EXPECT_THAT(again.texts, ElementsAre("one")) << again.why.step;
    }
}

// What a rotation leaves when it is cut short at each of its steps.
TEST_F(Files, ARotationThatWasCutShortIsMended) {
    prepare();
    std::ofstream{path_ + ".next"} << "half of a file";
    EXPECT_EQ(refusal(), "");
    ASSERT_EQ(::link(path_.c_str(), (path_ + ".1").c_str()), 0);
    {
        auto journal = open();
        ASSERT_TRUE(journal.log.has_value()) << journal.why.detail;
        EXPECT_THAT(journal.texts, ElementsAre("one"));
        EXPECT_NE(::access((path_ + ".1").c_str(), F_OK), 0);
        ASSERT_EQ(step_of(put(journal, "two")), "ok");
        ASSERT_EQ(step_of(journal.log->core().rotate(std::vector<std::uint64_t>{1})), "ok");
        EXPECT_NE(::access((path_ + ".next").c_str(), F_OK), 0);
    }
    EXPECT_THAT(open().texts, ElementsAre("one"));
}

TEST_F(Files, KilledAtAnyMomentNothingAcknowledgedIsLost) {
    const int rounds = std::getenv("GLOVE_SOAK") != nullptr ? 300 : 12;
    how_.records = 40;
    for (int round = 0; round < rounds; ++round) {
        test::folder other;
        const auto home = other.directory("state", 0700);
        test::pipe_ends channel;
        const auto child = ::fork();
        test::prepared(child >= 0, "fork");
        if (child == 0) {
            auto journal = open_file(home, how_);
            for (int i = 0;; ++i) {
                if (journal.log->core().room().records < 5 && !journal.log->core().rotate({}))
                    ::_exit(1);
                if (!put(journal, std::to_string(i).c_str())) ::_exit(2);
                test::say(channel.write,
                          std::to_string(journal.log->core().head().sequence) + "\n");
            }
        }
        channel.write = {};
        std::string said(64, '\0');
        test::prepared(::read(channel.read.get(), said.data(), 1) == 1, "the first record");
        ::usleep(static_cast<::useconds_t>(500 + 977 * round % 20'000));
        ASSERT_EQ(::kill(child, SIGKILL), 0);
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
        const auto rest = test::hear(channel.read);
        const auto lines = 1 + static_cast<std::uint64_t>(std::ranges::count(rest, '\n')) - 1;
        auto again = open_file(home, how_);
        if (again.why.step == "journal.torn") {
            auto store = file_storage::open(home, "test.journal", access::write);
            test::note_reader reader{test::note_codec{}};
            ASSERT_EQ(step_of(journal::repair(*store, how_, reader)), "ok");
            store = std::unexpected(error{});
            again = open_file(home, how_);
        }
        ASSERT_TRUE(again.log.has_value()) << again.why.step << ": " << again.why.detail;
        ASSERT_GE(again.log->core().head().sequence, lines);
        ASSERT_LE(again.log->core().head().sequence, lines + 1);
    }
}

} // namespace
