// Durability against a power cut is tested as far as that each commit syncs once, and that what
// cannot be synced fails.
#include <array>
#include <glove/audit/jsonl.hpp>
#include <glove/sys/files.hpp>
#include <glove/wire/json.hpp>
#include <gtest/gtest.h>
#include <map>
#include <support/folder.hpp>
#include <support/forked.hpp>

namespace {

using namespace glove;
using audit::action;
using audit::durability;
using audit::jsonl_sink;
using audit::status;
using test::folder;

auto full_event() -> audit::event {
    return {.action = action::agent_launch,
            .tool = "a.tool",
            .arguments = R"({"argv":["sh"]})",
            .status = status::pending,
            .error = "went \"wrong\"\n",
            .timestamp_ns = 1'700'000'000'123'456'789,
            .latency_ns = -1,
            .run = "r",
            .call = "c"};
}

auto small_event(std::string run = "r") -> audit::event {
    audit::event out;
    out.action = action::agent_exit;
    out.status = status::ok;
    out.run = std::move(run);
    out.call = "c";
    return out;
}

TEST(ToLine, EveryMemberStandsInItsPlace) {
    EXPECT_EQ(audit::to_line(full_event()),
              R"({"action":"agent_launch","tool":"a.tool","arguments":"{\"argv\":[\"sh\"]}",)"
              R"("status":"pending","error":"went \"wrong\"\n","timestamp_ns":1700000000123456789,)"
              R"("latency_ns":-1,"run":"r","call":"c"})"
              "\n");
}

TEST(ToLine, WhatIsEmptyIsLeftOut) {
    EXPECT_EQ(audit::to_line(small_event()),
              R"({"action":"agent_exit","status":"ok","timestamp_ns":0,"latency_ns":0,)"
              R"("run":"r","call":"c"})"
              "\n");
    auto empty_text = small_event();
    empty_text.error = "";
    EXPECT_NE(audit::to_line(empty_text).find(R"("error":"")"), std::string::npos);
}

TEST(ToLine, EveryActionAndEveryStatusHasItsWord) {
    const std::array actions{std::pair{action::list_tools, "list_tools"},
                             std::pair{action::call_tool, "call_tool"},
                             std::pair{action::initialize, "initialize"},
                             std::pair{action::agent_launch, "agent_launch"},
                             std::pair{action::agent_exit, "agent_exit"},
                             std::pair{action::egress, "egress"},
                             std::pair{action::ssh_sign, "ssh_sign"}};
    const std::array statuses{std::pair{status::pending, "pending"},
                              std::pair{status::ok, "ok"},
                              std::pair{status::tool_not_found, "tool_not_found"},
                              std::pair{status::invalid_arguments, "invalid_arguments"},
                              std::pair{status::execution_error, "execution_error"},
                              std::pair{status::transport_error, "transport_error"}};
    for (const auto& [what, word] : actions)
        for (const auto& [how, outcome] : statuses) {
            auto event = small_event();
            event.action = what;
            event.status = how;
            const auto parsed = wire::json::read(audit::to_line(event));
            ASSERT_TRUE(parsed.has_value());
            EXPECT_EQ(*parsed->find("action")->as_string(), word);
            EXPECT_EQ(*parsed->find("status")->as_string(), outcome);
        }
}

// What an agent can put into a line: it must never end it early.
TEST(ToLine, NoTextMakesASecondLine) {
    auto event = full_event();
    event.arguments = "a\nb\r\n\x01\xff\"\\";
    const auto line = audit::to_line(event);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    EXPECT_TRUE(wire::json::read(line).has_value());
}

TEST(JsonlSink, TheFileAndItsDirectoryAreForTheOwnerAlone) {
    const folder place;
    const auto path = place / "new/deep/run.jsonl";
    auto sink = jsonl_sink::open(path, durability::process);
    ASSERT_TRUE(sink.has_value());
    ASSERT_TRUE(sink->append(full_event()).has_value());
    ASSERT_TRUE(sink->append(small_event()).has_value());
    EXPECT_EQ(test::content_of(path), audit::to_line(full_event()) + audit::to_line(small_event()));
    struct ::stat found{};
    ASSERT_EQ(::stat(path.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777U, 0600U);
    ASSERT_EQ(::stat((place / "new/deep").c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777U, 0700U);
}

TEST(JsonlSink, LinesAreAddedToAnEarlierRecord) {
    const folder place;
    const auto path = place.file("log", "earlier\n", 0600);
    auto sink = jsonl_sink::open(path, durability::power);
    ASSERT_TRUE(sink.has_value());
    ASSERT_TRUE(sink->append(small_event()).has_value());
    EXPECT_EQ(test::content_of(path), "earlier\n" + audit::to_line(small_event()));
}

TEST(JsonlSink, AFileThatIsNotPrivateIsRefused) {
    const folder place;
    place.file("good", "", 0600);
    place.file("readable", "", 0644);
    place.link("link", "good");
    place.fifo("fifo");
    place.directory("directory");
    place.file("named", "", 0600);
    std::filesystem::create_hard_link(place / "named", place / "second");
    for (const auto* name : {"readable", "link", "fifo", "directory", "named"})
        EXPECT_FALSE(jsonl_sink::open(place / name, durability::process).has_value()) << name;
    EXPECT_TRUE(jsonl_sink::open(place / "good", durability::process).has_value());
}

TEST(JsonlSink, ARefusedPathTellsWhichStepRefused) {
    const folder place;
    place.file("file", "", 0600);
    EXPECT_EQ(jsonl_sink::open(place / "file/log", durability::process).error().os, ENOTDIR);
    place.file("readable", "", 0644);
    EXPECT_EQ(jsonl_sink::open(place / "readable", durability::process).error().step,
              "file.private");
}

TEST(JsonlSink, TwoProcessesOnOneFileWriteWholeLines) {
    constexpr int lines = 500;
    const folder place;
    const auto path = place / "log";
    const auto writer = [&](const std::string& run) {
        const auto child = ::fork();
        if (child != 0) return child;
        auto sink = jsonl_sink::open(path, durability::process);
        if (!sink) ::_exit(1);
        auto event = small_event(run);
        event.arguments = std::string(3000, run.front());
        for (event.timestamp_ns = 0; event.timestamp_ns < lines; ++event.timestamp_ns)
            if (!sink->append(event)) ::_exit(2);
        ::_exit(0);
    };
    for (const auto child : {writer("a"), writer("b")}) {
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_EQ(status, 0);
    }
    std::map<std::string, std::int64_t> next; // of each run, in order and without a gap
    const auto text = test::content_of(path);
    for (std::string_view rest{text}; !rest.empty();) {
        const auto line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(line.size() + 1);
        const auto parsed = wire::json::read(line);
        ASSERT_TRUE(parsed.has_value()) << line;
        const auto& run = *parsed->find("run")->as_string();
        EXPECT_EQ(parsed->find("timestamp_ns")->as_signed(), next[run]++);
    }
    EXPECT_EQ(next["a"], lines);
    EXPECT_EQ(next["b"], lines);
}

TEST(JsonlSink, ALineThatDoesNotFitIsAnErrorAndLeavesNoHalfOfItself) {
    const folder place;
    const auto path = place.file("log", "earlier\n", 0600);
    const auto line = audit::to_line(small_event()).size();
    const auto append = [&](std::size_t room) {
        return test::said_by([&] {
            test::forbid_growth(room);
            auto sink = jsonl_sink::open(path, durability::process);
            if (!sink) return std::string{"not opened"};
            const auto done = sink->append(small_event());
            return done ? std::string{"appended"} : std::string{done.error().step};
        });
    };
    const auto before = "earlier\n" + std::string(line - 2, ' ') + "\n";
    EXPECT_EQ(append(8 + line - 1), "file.write");
    EXPECT_EQ(test::content_of(path), before);
    EXPECT_EQ(append(8 + line - 1 + line), "appended");
    EXPECT_EQ(test::content_of(path), before + audit::to_line(small_event()));
}

// --- staging, and system calls that fail

class failing_calls final : public audit::record_file_calls {
public:
    // From `from` on, counted from 0, writes end early or fail.
    enum class fault : std::uint8_t { none, short_write, no_space, io_error, interrupted, nothing };
    fault how = fault::none;
    int from = 0;
    bool is_orderly_here = true, fails_to_lock = false, fails_to_cut = false, fails_to_sync = false;
    int writes = 0, syncs = 0, cuts = 0, locked = 0, locks = 0;

    auto is_orderly(sys::fd_ref) noexcept -> bool override { return is_orderly_here; }

    auto lock(sys::fd_ref file) noexcept -> bool override {
        if (fails_to_lock) return errno = ENOLCK, false;
        ++locked;
        ++locks;
        return record_file_calls::lock(file);
    }
    void unlock(sys::fd_ref file) noexcept override {
        --locked;
        record_file_calls::unlock(file);
    }
    auto write(sys::fd_ref file, std::string_view bytes) noexcept -> ::ssize_t override {
        if (writes++ < from || how == fault::none) return record_file_calls::write(file, bytes);
        switch (how) {
        case fault::short_write:
            // One half at a time, so that it comes to an end.
            return record_file_calls::write(file, bytes.substr(0, (bytes.size() + 1) / 2));
        case fault::interrupted: how = fault::none; return errno = EINTR, -1;
        case fault::nothing: return 0;
        case fault::no_space: return errno = ENOSPC, -1;
        default: return errno = EIO, -1;
        }
    }
    auto cut_back(sys::fd_ref file, ::off_t size) noexcept -> bool override {
        ++cuts;
        if (fails_to_cut) return errno = EIO, false;
        return record_file_calls::cut_back(file, size);
    }
    auto sync(sys::fd_ref file) noexcept -> bool override {
        ++syncs;
        if (fails_to_sync) return errno = EIO, false;
        return record_file_calls::sync(file);
    }
};
using fault = failing_calls::fault;

// Whether the file system keeps writers apart, or a lock does.
class Staging : public testing::TestWithParam<bool> {
protected:
    Staging() { calls.is_orderly_here = GetParam(); }
    [[nodiscard]] static auto failing_here() -> failing_calls {
        failing_calls out;
        out.is_orderly_here = GetParam();
        return out;
    }
    // What is left of so many bytes that were mended.
    [[nodiscard]] static auto mended(std::size_t bytes) -> std::string {
        return GetParam() ? std::string(bytes - 1, ' ') + "\n" : std::string{};
    }
    folder place;
    std::string path = place.file("log", "earlier\n", 0600);
    failing_calls calls;
    durability how = durability::process;
    std::optional<jsonl_sink> opened;

    auto sink() -> jsonl_sink& {
        if (!opened) opened.emplace(jsonl_sink::open(path, how, calls).value());
        return *opened;
    }
    auto content() const -> std::string { return test::content_of(path); }
};

auto step_of(const result<>& done) -> std::string {
    return done ? "done" : std::string{done.error().step};
}

TEST_P(Staging, NothingIsOnRecordBeforeTheCommitAndAllAfterIt) {
    how = durability::power;
    ASSERT_TRUE(sink().stage(full_event()));
    ASSERT_TRUE(sink().stage(small_event()));
    EXPECT_EQ(content(), "earlier\n");
    ASSERT_TRUE(sink().commit());
    const auto both = audit::to_line(full_event()) + audit::to_line(small_event());
    EXPECT_EQ(content(), "earlier\n" + both);
    EXPECT_EQ(calls.writes, 1);
    EXPECT_EQ(calls.syncs, 1);
    ASSERT_TRUE(sink().commit()); // nothing staged: nothing done
    EXPECT_EQ(calls.writes, 1);
    EXPECT_EQ(calls.syncs, 1);
    EXPECT_EQ(calls.locked, 0);
    EXPECT_EQ(calls.locks, GetParam() ? 0 : 1);
    ASSERT_TRUE(sink().stage(small_event("s")));
    ASSERT_TRUE(sink().commit());
    EXPECT_EQ(content(), "earlier\n" + both + audit::to_line(small_event("s")));
}

TEST_P(Staging, AnAppendTakesWhatIsStagedAlongInOrder) {
    ASSERT_TRUE(sink().stage(small_event("a")));
    ASSERT_TRUE(sink().append(small_event("b")));
    EXPECT_EQ(content(),
              "earlier\n" + audit::to_line(small_event("a")) + audit::to_line(small_event("b")));
    EXPECT_EQ(calls.writes, 1);
}

TEST_P(Staging, WithoutPowerDurabilityNothingIsSynced) {
    ASSERT_TRUE(sink().append(small_event()));
    EXPECT_EQ(calls.syncs, 0);
}

TEST_P(Staging, WritesThatAreInterruptedAreDoneAgain) {
    calls.how = fault::interrupted;
    ASSERT_TRUE(sink().append(full_event()));
    EXPECT_EQ(content(), "earlier\n" + audit::to_line(full_event()));
}

class Locked : public Staging {};
INSTANTIATE_TEST_SUITE_P(Audit, Locked, testing::Values(false));

TEST_P(Locked, WritesThatEndEarlyAreGoneOnWith) {
    calls.how = fault::short_write;
    ASSERT_TRUE(sink().append(full_event()));
    ASSERT_TRUE(sink().stage(full_event()));
    ASSERT_TRUE(sink().commit());
    std::string wanted = "earlier\n";
    for (int i = 0; i < 2; ++i) wanted += audit::to_line(full_event());
    EXPECT_EQ(content(), wanted);
}

// Another's line may stand behind the half already.
class half_and_another final : public audit::record_file_calls {
public:
    explicit half_and_another(std::string path, int times) : path_{std::move(path)}, left_{times} {}
    auto is_orderly(sys::fd_ref) noexcept -> bool override { return true; }
    auto write(sys::fd_ref file, std::string_view bytes) noexcept -> ::ssize_t override {
        if (left_-- <= 0) return record_file_calls::write(file, bytes);
        const auto put = record_file_calls::write(file, bytes.substr(0, bytes.size() / 2));
        std::ofstream{path_, std::ios::app} << "another's\n";
        return put;
    }

private:
    std::string path_;
    int left_;
};

class Orderly : public Staging {};
INSTANTIATE_TEST_SUITE_P(Audit, Orderly, testing::Values(true));

TEST_P(Orderly, AWriteThatEndsEarlyIsMadeBlankAndAllIsWrittenAgain) {
    const auto line = audit::to_line(full_event());
    half_and_another once{path, 1};
    auto tried = jsonl_sink::open(path, durability::process, once).value();
    ASSERT_TRUE(tried.append(full_event()));
    EXPECT_EQ(content(), "earlier\n" + mended(line.size() / 2) + "another's\n" + line);
    ASSERT_TRUE(tried.append(full_event())); // it still appends
    EXPECT_EQ(content(), "earlier\n" + mended(line.size() / 2) + "another's\n" + line + line);
}

TEST_P(Orderly, TwoWritesThatEndEarlyFailAndTheOthersLinesStay) {
    const auto half = audit::to_line(full_event()).size() / 2;
    half_and_another twice{path, 2};
    auto tried = jsonl_sink::open(path, durability::process, twice).value();
    EXPECT_EQ(step_of(tried.append(full_event())), "file.write");
    const auto one = mended(half) + "another's\n";
    EXPECT_EQ(content(), "earlier\n" + one + one);
    ASSERT_TRUE(tried.append(small_event()));
    EXPECT_EQ(content(), "earlier\n" + one + one + audit::to_line(small_event()));
}

// The first half is written, the rest is not.
class half_then_fails final : public audit::record_file_calls {
public:
    half_then_fails(bool is_orderly, bool mends) : is_orderly_{is_orderly}, mends_{mends} {}
    auto is_orderly(sys::fd_ref) noexcept -> bool override { return is_orderly_; }
    auto write_over(sys::fd_ref file, std::string_view bytes, ::off_t at) noexcept
        -> bool override {
        return mends_ && record_file_calls::write_over(file, bytes, at);
    }
    auto write(sys::fd_ref file, std::string_view bytes) noexcept -> ::ssize_t override {
        if (well) return record_file_calls::write(file, bytes);
        if (++writes_ % 2 == 0) return errno = ENOSPC, -1;
        return record_file_calls::write(file, bytes.substr(0, bytes.size() / 2));
    }
    auto cut_back(sys::fd_ref file, ::off_t size) noexcept -> bool override {
        return mends_ && record_file_calls::cut_back(file, size);
    }
    bool well = false;

private:
    bool is_orderly_, mends_;
    int writes_ = 0;
};

TEST_P(Staging, AFailedCommitLeavesNothingBehindAndEndsTheSink) {
    for (const auto kind : {fault::no_space, fault::io_error, fault::nothing}) {
        auto failing = failing_here();
        failing.how = kind;
        auto tried = jsonl_sink::open(path, durability::process, failing).value();
        ASSERT_TRUE(tried.stage(small_event()));
        const auto done = tried.commit();
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().step, "file.write");
        EXPECT_EQ(done.error().os, kind == fault::no_space ? ENOSPC : EIO);
        EXPECT_EQ(done.error().detail, "the audit record " + path + " could not be written");
        EXPECT_EQ(content(), "earlier\n");
        failing.how = fault::none;
        EXPECT_EQ(step_of(tried.stage(small_event())), "audit.broken");
        EXPECT_EQ(step_of(tried.commit()), "audit.broken");
        EXPECT_EQ(step_of(tried.append(small_event())), "audit.broken");
        EXPECT_EQ(content(), "earlier\n");
        EXPECT_EQ(failing.locked, 0);
    }
}

TEST_P(Staging, WhatWasHalfWrittenIsMended) {
    half_then_fails failing{GetParam(), true};
    auto tried = jsonl_sink::open(path, durability::process, failing).value();
    ASSERT_TRUE(sink().append(small_event("other"))); // of another writer, meanwhile
    const auto before = content();
    ASSERT_TRUE(tried.stage(full_event()));
    ASSERT_TRUE(tried.stage(full_event()));
    EXPECT_EQ(step_of(tried.commit()), "file.write");
    const auto after = before + mended(audit::to_line(full_event()).size());
    EXPECT_EQ(content(), after);
    ASSERT_TRUE(sink().append(small_event("other")));
    EXPECT_EQ(content(), after + audit::to_line(small_event("other")));
    EXPECT_EQ(step_of(tried.commit()), "audit.broken");
}

TEST_P(Staging, EveryCommitAndEveryAppendMayBeTheOneThatFails) {
    for (int at = 0; at < 4; ++at)
        for (const bool appends : {false, true}) {
            const auto before = content();
            auto failing = failing_here();
            failing.how = fault::no_space;
            failing.from = at;
            auto tried = jsonl_sink::open(path, durability::process, failing).value();
            std::string added;
            for (int i = 0; i < at; ++i) {
                ASSERT_TRUE(tried.stage(small_event()) && tried.commit());
                added += audit::to_line(small_event());
            }
            const auto done = appends ? tried.append(small_event())
                                      : (void(tried.stage(small_event())), tried.commit());
            EXPECT_EQ(step_of(done), "file.write");
            EXPECT_EQ(content(), before + added);
        }
}

TEST_P(Staging, AnAppendThatFailsAloneMayBeTriedAgain) {
    half_then_fails failing{GetParam(), true};
    auto tried = jsonl_sink::open(path, durability::process, failing).value();
    EXPECT_EQ(step_of(tried.append(full_event())), "file.write");
    const auto after = "earlier\n" + mended(audit::to_line(full_event()).size() / 2);
    EXPECT_EQ(content(), after);
    failing.well = true;
    ASSERT_TRUE(tried.append(small_event()));
    EXPECT_EQ(content(), after + audit::to_line(small_event()));
}

TEST_P(Staging, WhatCannotBeMendedEndsTheSink) {
    half_then_fails failing{GetParam(), false};
    auto tried = jsonl_sink::open(path, durability::process, failing).value();
    EXPECT_EQ(step_of(tried.append(full_event())), "file.write");
    failing.well = true;
    EXPECT_EQ(step_of(tried.append(small_event())), "audit.broken");
    EXPECT_EQ(step_of(tried.stage(small_event())), "audit.broken");
}

TEST_P(Staging, AnAppendWithStagedEventsFailsAsACommit) {
    ASSERT_TRUE(sink().stage(small_event()));
    calls.how = fault::io_error;
    EXPECT_EQ(step_of(sink().append(small_event())), "file.write");
    calls.how = fault::none;
    EXPECT_EQ(step_of(sink().append(small_event())), "audit.broken");
    EXPECT_EQ(content(), "earlier\n");
}

TEST_P(Staging, WhatCannotBeSyncedFails) {
    how = durability::power;
    calls.fails_to_sync = true;
    EXPECT_EQ(step_of(sink().append(small_event())), "file.sync");
    ASSERT_TRUE(sink().stage(small_event()));
    const auto done = sink().commit();
    EXPECT_EQ(step_of(done), "file.sync");
    EXPECT_EQ(done.error().os, EIO);
    calls.fails_to_sync = false;
    EXPECT_EQ(step_of(sink().commit()), "audit.broken");
    EXPECT_EQ(calls.locked, 0);
}

TEST_P(Locked, WithoutTheLockNothingIsWritten) {
    calls.fails_to_lock = true;
    EXPECT_EQ(step_of(sink().append(small_event())), "audit.lock");
    ASSERT_TRUE(sink().stage(small_event()));
    EXPECT_EQ(step_of(sink().commit()), "audit.lock");
    EXPECT_EQ(calls.writes, 0);
    EXPECT_EQ(step_of(sink().commit()), "audit.broken");
}

INSTANTIATE_TEST_SUITE_P(Audit, Staging, testing::Bool());

TEST_P(Staging, TwoProcessesThatStageWriteWholeBatches) {
    constexpr int batches = 200, lines = 10;
    const auto writer = [&](const std::string& run) {
        const auto child = ::fork();
        if (child != 0) return child;
        auto mine = jsonl_sink::open(path, durability::process, calls);
        if (!mine) ::_exit(1);
        auto event = small_event(run);
        for (int i = 0; i < batches; ++i) {
            for (int j = 0; j < lines; ++j) {
                event.timestamp_ns = i * lines + j;
                if (!mine->stage(event)) ::_exit(2);
            }
            if (!mine->commit()) ::_exit(3);
        }
        ::_exit(0);
    };
    for (const auto child : {writer("a"), writer("b")}) {
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_EQ(status, 0);
    }
    std::map<std::string, std::int64_t> next;
    std::string last;
    const auto text = content().substr(8);
    for (std::string_view rest{text}; !rest.empty();) {
        const auto line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(line.size() + 1);
        const auto parsed = wire::json::read(line);
        ASSERT_TRUE(parsed.has_value()) << line;
        const auto& run = *parsed->find("run")->as_string();
        EXPECT_TRUE(next[run] % lines == 0 || run == last); // a batch is not torn apart
        last = run;
        EXPECT_EQ(parsed->find("timestamp_ns")->as_signed(), next[run]++);
    }
    EXPECT_EQ(next["a"], batches * lines);
    EXPECT_EQ(next["b"], batches * lines);
}

} // namespace
