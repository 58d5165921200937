#include <fcntl.h>
#include <glove/run/exec.hpp>
#include <gtest/gtest.h>
#include <support/forked.hpp>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace {

using namespace glove;
using run::exit_status;
using run::status_of;

auto status_after(std::string_view step, int os = 0, std::string detail = "x") -> exit_status {
    return status_of({.code = classify(os), .step = step, .os = os, .detail = std::move(detail)});
}

TEST(StatusOf, WhatTheOperatorAskedForWronglyIsUsage) {
    for (const auto* step : {"grant.check", "grant.resolve", "grant.control", "environment.name",
                             "plan.command", "plan.scratch", "plan.egress", "egress.rule"})
        EXPECT_EQ(status_after(step), exit_status::usage) << step;
}

TEST(StatusOf, AStepOfThePerimeterIsARefusal) {
    for (const auto* step : {"launch.namespaces", "mount.tree", "init.capabilities", "file.private",
                             "audit.lock", "egress.publish", "agent.start", "grants", "planned"})
        EXPECT_EQ(status_after(step), exit_status::refused) << step;
}

TEST(StatusOf, AProgramThatIsMissingDiffersFromOneThatCannotRun) {
    EXPECT_EQ(status_after("agent.exec", ENOENT), exit_status::not_found);
    EXPECT_EQ(status_after("agent.exec", ENOTDIR), exit_status::not_found);
    EXPECT_EQ(status_after("agent.exec", EACCES), exit_status::not_executable);
    EXPECT_EQ(status_after("agent.exec", ENOEXEC), exit_status::not_executable);
    EXPECT_EQ(status_after("mount.tree", ENOENT), exit_status::refused);
}

TEST(ExitStatus, TheNumbersAreTheDocumentedOnes) {
    EXPECT_EQ(static_cast<int>(exit_status::usage), 2);
    EXPECT_EQ(static_cast<int>(exit_status::refused), 125);
    EXPECT_EQ(static_cast<int>(exit_status::not_executable), 126);
    EXPECT_EQ(static_cast<int>(exit_status::not_found), 127);
}

auto is_null_device(int fd) -> bool {
    struct ::stat found{};
    return ::fstat(fd, &found) == 0 && S_ISCHR(found.st_mode) && found.st_rdev == ::makedev(1, 3);
}

TEST(StandardStreams, AClosedOneBecomesTheNullDevice) {
    for (const std::string closed : {"0", "1", "2", "01", "02", "12", "012"})
        EXPECT_EQ(test::said_by([&] {
                      for (const char digit : closed)
                          (void)::close_range(static_cast<unsigned>(digit - '0'),
                                              static_cast<unsigned>(digit - '0'), 0);
                      if (!run::claim_standard_streams()) return std::string{"refused"};
                      std::string out;
                      for (const char digit : closed)
                          if (is_null_device(digit - '0')) out += digit;
                      return out;
                  }),
                  closed);
}

TEST(StandardStreams, AnOpenOneIsLeftAlone) {
    EXPECT_EQ(test::said_by([] {
                  test::pipe_ends pipe;
                  test::prepared(::dup2(pipe.read.get(), 0) == 0, "dup2");
                  struct ::stat before{};
                  struct ::stat after{};
                  (void)::fstat(0, &before);
                  (void)run::claim_standard_streams();
                  (void)::fstat(0, &after);
                  return std::string{before.st_ino == after.st_ino ? "same" : "replaced"};
              }),
              "same");
}

} // namespace
