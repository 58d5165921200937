// What is said to a keeper, as bytes.
#include "container/linux/launch_message.hpp"
#include "container/linux/steps.hpp"
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>

namespace {

using namespace glove;
using namespace glove::container;
using testing::HasSubstr;

auto a_plan(bool online = true) -> plan {
    plan out;
    out.scratch_mount = sys::unique_fd{::dup(2)};
    out.user = {.uid = 1000, .gid = 1001, .outside_uid = 0, .outside_gid = 7};
    out.network = online ? network_tier::egress : network_tier::sealed;
    out.argv = {"sh", "-c", "true"};
    out.programs = {"/bin/sh"};
    out.environment = {"A=1", "B="};
    out.work_directory = "/home/agent";
    if (online)
        out.bridge = *plan_bridge({.allow = {"api.example.com", ".example.org:8443",
                                             "localhost:3000", "192.0.2.0/24,allow-private"},
                                   .publish = {8080}},
                                  network_tier::egress);
    out.tree.push_back({.path = "/bin", .kind = entry_kind::link, .text = "usr/bin"});
    out.tree.push_back({.path = "/usr",
                        .kind = entry_kind::bind,
                        .origin = origin::system,
                        .text = "/usr",
                        .identity = {.device = 1ULL << 40U, .inode = 5, .type = S_IFDIR}});
    out.tree.push_back({.path = "/workspace",
                        .kind = entry_kind::mounted,
                        .origin = origin::asked,
                        .mode = access::write,
                        .identity = {.type = S_IFDIR},
                        .pin = sys::unique_fd{::dup(2)}});
    out.tree.push_back({.path = "/x",
                        .kind = entry_kind::mounted,
                        .permissions = 01777,
                        .text = "token",
                        .identity = {.type = S_IFREG}});
    return out;
}

auto bytes_of(const plan& of) -> std::string {
    const auto made = encode_launch(of, 24, 80);
    EXPECT_TRUE(made.has_value()) << made.error().detail;
    return made.value_or("");
}

TEST(LaunchMessage, WhatWasWrittenIsRead) {
    for (const bool online : {true, false}) {
        const auto source = a_plan(online);
        const auto read = decode_launch(bytes_of(source));
        ASSERT_TRUE(read.has_value()) << read.error().detail;
        EXPECT_EQ(read->rows, 24);
        EXPECT_EQ(read->columns, 80);
        const auto& plan = read->plan;
        EXPECT_EQ(plan.user.uid, 1000U);
        EXPECT_EQ(plan.user.gid, 1001U);
        EXPECT_EQ(plan.user.outer_uid(), 0U);
        EXPECT_EQ(plan.user.outer_gid(), 7U);
        EXPECT_EQ(plan.network, source.network);
        EXPECT_EQ(plan.argv, source.argv);
        EXPECT_EQ(plan.programs, source.programs);
        EXPECT_EQ(plan.environment, source.environment);
        EXPECT_EQ(plan.work_directory, source.work_directory);
        ASSERT_EQ(plan.tree.size(), source.tree.size());
        for (std::size_t i = 0; i < plan.tree.size(); ++i) {
            const auto &now = plan.tree[i], &was = source.tree[i];
            EXPECT_EQ(now.path, was.path);
            EXPECT_EQ(now.kind, was.kind);
            EXPECT_EQ(now.origin, was.origin);
            EXPECT_EQ(now.mode, was.mode);
            EXPECT_EQ(now.permissions, was.permissions);
            EXPECT_EQ(now.text, was.text);
            EXPECT_EQ(now.identity, was.identity);
            EXPECT_EQ(read->has_mount[i], static_cast<bool>(was.pin));
        }
        ASSERT_EQ(plan.bridge.has_value(), online);
        if (!online) continue;
        EXPECT_EQ(plan.bridge->published, source.bridge->published);
        EXPECT_EQ(plan.bridge->connections, source.bridge->connections);
        ASSERT_EQ(plan.bridge->names.size(), source.bridge->names.size());
        for (std::size_t i = 0; i < plan.bridge->names.size(); ++i) {
            EXPECT_EQ(plan.bridge->names[i].name, source.bridge->names[i].name);
            EXPECT_EQ(plan.bridge->names[i].address, source.bridge->names[i].address);
        }
        ASSERT_EQ(plan.bridge->listeners.size(), source.bridge->listeners.size());
        for (std::size_t i = 0; i < plan.bridge->listeners.size(); ++i) {
            EXPECT_EQ(plan.bridge->listeners[i].address, source.bridge->listeners[i].address);
            EXPECT_EQ(plan.bridge->listeners[i].port, source.bridge->listeners[i].port);
            EXPECT_EQ(plan.bridge->listeners[i].name, source.bridge->listeners[i].name);
        }
    }
}

TEST(LaunchMessage, NoPartAndNothingMoreIsOne) {
    auto bytes = bytes_of(a_plan());
    for (std::size_t size = 0; size < bytes.size(); ++size)
        EXPECT_FALSE(decode_launch(std::string_view{bytes}.substr(0, size)).has_value()) << size;
    bytes += '\0';
    const auto more = decode_launch(bytes);
    ASSERT_FALSE(more.has_value());
    EXPECT_EQ(more.error().step, "launcher.plan");
}

// Whatever one byte becomes, what is read would be written as it came.
RC_GTEST_PROP(LaunchMessage, WhatIsReadIsWhatWouldBeWritten, ()) {
    auto bytes = bytes_of(a_plan(*rc::gen::arbitrary<bool>()));
    const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
    bytes[at] = *rc::gen::arbitrary<char>();
    auto read = decode_launch(bytes);
    if (!read) return;
    read->plan.scratch_mount = sys::unique_fd{::dup(2)};
    for (std::size_t i = 0; i < read->plan.tree.size(); ++i)
        if (read->has_mount[i]) read->plan.tree[i].pin = sys::unique_fd{::dup(2)};
    const auto again = encode_launch(read->plan, read->rows, read->columns);
    RC_ASSERT(again.has_value());
    RC_ASSERT(*again == bytes);
}

TEST(LaunchMessage, ATreeOutOfOrderIsNone) {
    auto twice = a_plan();
    twice.tree[1].path = "/bin";
    EXPECT_FALSE(decode_launch(bytes_of(twice)).has_value());
    auto reversed = a_plan();
    std::swap(reversed.tree[0], reversed.tree[1]);
    EXPECT_FALSE(decode_launch(bytes_of(reversed)).has_value());
    auto relative = a_plan();
    relative.tree[3].path = "x";
    EXPECT_FALSE(decode_launch(bytes_of(relative)).has_value());
    auto upwards = a_plan();
    upwards.tree[3].path = "/x/../y";
    EXPECT_FALSE(decode_launch(bytes_of(upwards)).has_value());
}

TEST(LaunchMessage, ItsSizeHasALimit) {
    auto source = a_plan(false);
    const auto so_far = bytes_of(source).size();
    // Of the four bytes of its length as well, and in pieces that a text may have.
    auto left = longest_launch_message - so_far;
    while (left > 0) {
        const auto piece = std::min<std::size_t>(left, 1U << 19U);
        source.argv.emplace_back(piece - 4, 'x');
        left -= piece;
    }
    const auto longest = encode_launch(source, 24, 80);
    ASSERT_TRUE(longest.has_value()) << longest.error().detail;
    EXPECT_EQ(longest->size(), longest_launch_message);
    EXPECT_TRUE(decode_launch(*longest).has_value());
    source.argv.back() += 'x';
    const auto more = encode_launch(source, 24, 80);
    ASSERT_FALSE(more.has_value());
    EXPECT_EQ(more.error().code, errc::limit_exceeded);
    EXPECT_THAT(more.error().detail, HasSubstr(std::to_string(longest_launch_message + 1)));
    EXPECT_FALSE(decode_launch(*longest + 'x').has_value());
}

TEST(LaunchMessage, TheNumberOfMountsHasALimit) {
    plan source;
    source.scratch_mount = sys::unique_fd{::dup(2)};
    source.argv = source.programs = {"/x"};
    source.work_directory = "/";
    const auto add = [&](std::size_t number) {
        source.tree.push_back({.path = "/m" + std::to_string(10'000 + number),
                               .kind = entry_kind::mounted,
                               .pin = sys::unique_fd{::fcntl(2, F_DUPFD, 100)}});
    };
    ::rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const ::rlimit raised{before.rlim_max, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &raised), 0);
    for (std::size_t i = 0; i < most_launch_descriptors - 2; ++i) add(i);
    EXPECT_TRUE(encode_launch(source, 1, 1).has_value());
    add(most_launch_descriptors);
    const auto more = encode_launch(source, 1, 1);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    ASSERT_FALSE(more.has_value());
    EXPECT_EQ(more.error().code, errc::limit_exceeded);
}

TEST(LaunchMessage, APlanThatIsNoSessionsIsNotSent) {
    auto listening = a_plan();
    listening.listeners.push_back({.path = "/run/glove/x"});
    EXPECT_FALSE(encode_launch(listening, 1, 1).has_value());
    auto of_a_run = a_plan();
    of_a_run.scratch_mount = {};
    EXPECT_FALSE(encode_launch(of_a_run, 1, 1).has_value());
}

TEST(Refusal, WhatWasRefusedIsTold) {
    for (const auto* step : {"launch.namespaces", "launch.group", "launch.id_maps", "mount.tree",
                             "init.keyring", "launcher.plan", "agent.exec"}) {
        const error was{errc::not_permitted, step, EPERM, "what failed", "what to do"};
        const auto now = decode_refusal(encode_refusal(was));
        EXPECT_EQ(now.code, was.code);
        EXPECT_EQ(now.step, was.step);
        EXPECT_EQ(now.os, was.os);
        EXPECT_EQ(now.detail, was.detail);
        EXPECT_EQ(now.remedy, was.remedy);
    }
    for (const auto& step : setup_steps()) {
        const error was{errc::io, step.name, 0, "", ""};
        EXPECT_EQ(decode_refusal(encode_refusal(was)).step, step.name);
    }
}

TEST(Refusal, AnotherStepIsTheKeepers) {
    EXPECT_EQ(decode_refusal(encode_refusal({errc::io, "file.private", 5, "x", ""})).step,
              "launcher.keeper");
    EXPECT_EQ(decode_refusal("").step, "launcher.keeper");
    EXPECT_EQ(decode_refusal(std::string(100, '\xff')).step, "launcher.keeper");
}

TEST(Refusal, ALongOneIsCut) {
    const auto bytes = encode_refusal(
        {errc::io, "mount.tree", 5, std::string(100'000, 'd'), std::string(100'000, 'r')});
    EXPECT_LT(bytes.size(), longest_refusal);
    const auto now = decode_refusal(bytes);
    EXPECT_EQ(now.step, "mount.tree");
    EXPECT_THAT(now.detail, testing::StartsWith("ddd"));
}

} // namespace
