// A lease's whole life; who else wants it; what a session gives back; and every step cut short.
#include <algorithm>
#include <csignal>
#include <glove/supervisor/secret_leases.hpp>
#include <glove/sys/files.hpp>
#include <glove/wire/crypto.hpp>
#include <gtest/gtest.h>
#include <support/folder.hpp>
#include <support/forked.hpp>

namespace {

using namespace glove;
using namespace glove::supervisor;

auto sha(std::string_view bytes) -> std::string {
    return wire::to_hex(wire::sha256(bytes).value());
}
template<class T> auto step_of(const result<T>& of) -> std::string {
    return of ? "none" : std::string{of.error().step};
}
auto opened(const std::string& path) -> sys::unique_fd {
    sys::unique_fd out{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    test::prepared(static_cast<bool>(out), path);
    return out;
}

struct scene {
    test::folder place;
    std::string root = place.directory("root", 0700);
    std::string leases = root + "/.credential-leases";
    std::string session = place.directory("session", 0700);
    sys::system_clock time;
    secret_mount what{"codex-token", "codex", place.file("source", "token-1", 0600),
                      "/home/agent/.codex/auth.json"};
    lease_step before;

    [[nodiscard]] auto store() const -> lease_store {
        const auto top = opened(root);
        return lease_store::open(top, time, before).value();
    }
    [[nodiscard]] auto lend() const -> result<secret_lease> { return store().lend(what); }
    [[nodiscard]] static auto id(std::string_view content) -> std::string {
        return sha("codex:codex-token:" + sha(content));
    }
    [[nodiscard]] auto lease_path(std::string_view content = "token-1") const -> std::string {
        return leases + "/lease-" + id(content);
    }
    [[nodiscard]] auto given(const secret_lease& lease) const -> result<> {
        (void)::unlink((session + "/auth").c_str());
        const auto to = opened(session);
        return lease.give(to, "auth");
    }
    [[nodiscard]] auto taken(secret_lease& lease) const -> result<bool> {
        const auto from = opened(session);
        return lease.take_back(from, "auth");
    }
    [[nodiscard]] auto swept() const -> result<lease_sweep> {
        return store().sweep(std::span{&what, 1});
    }
};

TEST(secret_leases, the_first_copy_and_its_name) {
    const scene at;
    const auto lease = at.lend();
    ASSERT_TRUE(lease) << lease.error().step << lease.error().detail;
    EXPECT_EQ(lease->name(), "lease-" + scene::id("token-1"));
    EXPECT_EQ(test::content_of(at.lease_path()), "token-1");
    struct ::stat found{};
    test::prepared(::stat(at.lease_path().c_str(), &found) == 0, "stat");
    EXPECT_EQ(found.st_mode & 07777U, 0600U);
    ASSERT_TRUE(at.given(*lease));
    EXPECT_EQ(test::content_of(at.session + "/auth"), "token-1");
}

TEST(secret_leases, what_a_session_renewed_is_lent_to_the_next_one) {
    const scene at;
    {
        auto lease = at.lend().value();
        ASSERT_TRUE(at.given(lease));
        EXPECT_FALSE(at.taken(lease).value());
        (void)at.place.file("session/auth", "token-2", 0644); // as a runtime may write it
        EXPECT_TRUE(at.taken(lease).value());
        EXPECT_FALSE(at.taken(lease).value());
    }
    EXPECT_EQ(test::content_of(at.lease_path()), "token-2");
    EXPECT_EQ(test::names_in(at.leases), 2U); // and the lock
    const auto next = at.lend().value();
    ASSERT_TRUE(at.given(next));
    EXPECT_EQ(test::content_of(at.session + "/auth"), "token-2");
    EXPECT_EQ(test::content_of(at.what.source_path), "token-1");
}

TEST(secret_leases, another_source_content_is_another_lease) {
    const scene at;
    (void)at.lend();
    (void)at.place.file("source", "token-9", 0600);
    const auto lease = at.lend().value();
    EXPECT_EQ(test::content_of(at.lease_path("token-9")), "token-9");
    EXPECT_EQ(test::content_of(at.lease_path("token-1")), "token-1");
}

TEST(secret_leases, one_session_at_a_time) {
    const scene at;
    {
        const auto lease = at.lend().value();
        const auto second = at.lend();
        EXPECT_EQ(step_of(second), "lease.busy");
        EXPECT_EQ(second.error().code, errc::conflict);
        EXPECT_EQ(test::said_by([&] { return step_of(at.lend()); }), "lease.busy");
        auto other = at.what;
        other.runtime_id = "pi";
        EXPECT_TRUE(at.store().lend(other));
    }
    EXPECT_TRUE(at.lend());
}

TEST(secret_leases, a_source_that_is_not_the_callers_alone_is_refused) {
    scene at;
    const auto source = at.what.source_path;
    EXPECT_TRUE(at.lend());
    for (const ::mode_t mode : {0400U, 0640U, 0604U, 0700U}) {
        test::prepared(::chmod(source.c_str(), mode) == 0, "chmod");
        EXPECT_EQ(step_of(at.lend()), "lease.source") << mode;
    }
    test::prepared(::chmod(source.c_str(), 0600) == 0, "chmod");
    test::prepared(::link(source.c_str(), (at.place / "second").c_str()) == 0, "link");
    EXPECT_EQ(step_of(at.lend()), "lease.source");
    test::prepared(::unlink((at.place / "second").c_str()) == 0, "unlink");
    EXPECT_TRUE(at.lend());
    at.what.source_path = at.place.link("link", source);
    EXPECT_EQ(step_of(at.lend()), "lease.source");
    (void)at.place.link("above", at.place.path());
    at.what.source_path = at.place / "above/source";
    EXPECT_EQ(step_of(at.lend()), "lease.source");
    at.what.source_path = at.place.fifo("fifo");
    EXPECT_EQ(step_of(at.lend()), "lease.source");
    at.what.source_path = at.place / "absent";
    EXPECT_EQ(at.lend().error().code, errc::not_found);
}

TEST(secret_leases, as_large_as_allowed_and_one_byte_larger) {
    const scene at;
    (void)at.place.file("source", "", 0600);
    EXPECT_EQ(step_of(at.lend()), "lease.source");
    (void)at.place.file("source", std::string(most_secret_bytes + 1, 'x'), 0600);
    EXPECT_EQ(step_of(at.lend()), "lease.source");
    (void)at.place.file("source", std::string(most_secret_bytes, 'x'), 0600);
    auto lease = at.lend().value();
    (void)at.place.file("session/auth", std::string(most_secret_bytes + 1, 'y'), 0600);
    EXPECT_EQ(step_of(at.taken(lease)), "lease.returned");
    (void)at.place.file("session/auth", "", 0600);
    EXPECT_EQ(step_of(at.taken(lease)), "lease.returned");
    (void)at.place.file("session/auth", std::string(most_secret_bytes, 'y'), 0600);
    EXPECT_TRUE(at.taken(lease).value());
}

TEST(secret_leases, what_a_hostile_session_gives_back_is_refused) {
    const scene at;
    auto lease = at.lend().value();
    const auto auth = at.session + "/auth";
    const auto tried = [&](const std::function<void()>& make) {
        std::filesystem::remove_all(auth);
        make();
        const auto step = step_of(at.taken(lease));
        EXPECT_EQ(test::content_of(at.lease_path()), "token-1");
        return step;
    };
    EXPECT_EQ(tried([] {}), "lease.returned");
    EXPECT_EQ(tried([&] { test::prepared(::symlink("/etc/passwd", auth.c_str()) == 0, "l"); }),
              "lease.returned");
    EXPECT_EQ(tried([&] { test::prepared(::mkfifo(auth.c_str(), 0600) == 0, "fifo"); }),
              "lease.returned");
    EXPECT_EQ(tried([&] { std::filesystem::create_directory(auth); }), "lease.returned");
    EXPECT_EQ(tried([&] {
                  (void)at.place.file("elsewhere", "secret of somebody", 0600);
                  test::prepared(::link((at.place / "elsewhere").c_str(), auth.c_str()) == 0, "l");
              }),
              "lease.returned");
    EXPECT_EQ(tried([&] { (void)at.place.file("session/auth", "token-1", 0600); }), "none");
}

TEST(secret_leases, the_sessions_quota_bounds_the_copy) {
    const scene at;
    (void)at.place.file("source", std::string(5000, 'x'), 0600);
    EXPECT_EQ(test::said_by([&]() -> std::string {
                  const auto lease = at.lend().value();
                  test::forbid_growth(4096);
                  return step_of(at.given(lease));
              }),
              "lease.give");
    EXPECT_EQ(test::names_in(at.session), 0U);
    const auto lease = at.lend().value();
    EXPECT_TRUE(at.given(lease));
    const auto to = opened(at.session);
    EXPECT_EQ(step_of(lease.give(to, "auth")), "lease.give"); // the name is taken
}

TEST(secret_leases, a_lease_that_was_tampered_with_is_refused) {
    const scene at;
    (void)at.lend();
    test::prepared(::chmod(at.lease_path().c_str(), 0644) == 0, "chmod");
    EXPECT_EQ(step_of(at.lend()), "lease.damaged");
    test::prepared(::chmod(at.lease_path().c_str(), 0600) == 0, "chmod");
    EXPECT_TRUE(at.lend());
    test::prepared(::truncate(at.lease_path().c_str(), 0) == 0, "truncate");
    EXPECT_EQ(step_of(at.lend()), "lease.damaged");
    test::prepared(::chmod(at.leases.c_str(), 0750) == 0, "chmod");
    const auto top = opened(at.root);
    EXPECT_EQ(step_of(lease_store::open(top, at.time)), "lease.directory");
}

// A descriptor shows what became of a content whose name is gone.
auto held(const std::string& path) -> sys::unique_fd {
    sys::unique_fd out{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    test::prepared(static_cast<bool>(out), path);
    return out;
}

TEST(secret_leases, a_replaced_content_is_overwritten) {
    const scene at;
    auto lease = at.lend().value();
    const auto former = held(at.lease_path());
    (void)at.place.file("session/auth", "token-2", 0600);
    ASSERT_TRUE(at.taken(lease).value());
    EXPECT_EQ(sys::read_all(former, 100).value(), std::string(7, '\0'));
}

// A disk that fails when the new content is there, and the former one is to be overwritten.
auto fails_to_wipe(const scene& at) -> lease_step {
    return [lease = at.lease_path()](std::string_view) -> result<> {
        const bool replaced =
            std::filesystem::exists(lease) && test::content_of(lease) == "token-2";
        return replaced ? fail_os("test.fault", EIO) : result<>{};
    };
}

TEST(secret_leases, a_replaced_content_that_was_left_is_overwritten_by_the_next_sweep) {
    scene at;
    at.before = fails_to_wipe(at);
    {
        auto lease = at.lend().value();
        (void)at.place.file("session/auth", "token-2", 0600);
        EXPECT_EQ(step_of(at.taken(lease)), "test.fault");
        at.before = {};
        EXPECT_TRUE(at.swept()->in_use.empty()); // it is of the policy
        EXPECT_EQ(test::names_in(at.leases), 3U);
    }
    const auto former = held(at.leases + "/.lease-" + scene::id("token-1") + ".removed");
    EXPECT_TRUE(at.swept()->removed.empty());
    EXPECT_EQ(sys::read_all(former, 100).value(), std::string(7, '\0'));
    EXPECT_EQ(test::names_in(at.leases), 2U);
    EXPECT_EQ(test::content_of(at.lease_path()), "token-2");
}

TEST(secret_leases, or_by_the_next_content_that_is_taken_back) {
    scene at;
    bool fails = true;
    at.before = [&, fault = fails_to_wipe(at)](std::string_view step) {
        return fails ? fault(step) : result<>{};
    };
    auto lease = at.lend().value();
    const auto former = held(at.lease_path());
    (void)at.place.file("session/auth", "token-2", 0600);
    EXPECT_EQ(step_of(at.taken(lease)), "test.fault");
    fails = false;
    (void)at.place.file("session/auth", "token-3", 0600);
    EXPECT_TRUE(at.taken(lease).value());
    EXPECT_EQ(sys::read_all(former, 100).value(), std::string(7, '\0'));
    EXPECT_EQ(test::names_in(at.leases), 2U);
    EXPECT_EQ(test::content_of(at.lease_path()), "token-3");
}

TEST(secret_leases, the_second_name_of_what_was_not_replaced_costs_it_nothing) {
    const scene at;
    (void)at.lend();
    const auto second = at.leases + "/.lease-" + scene::id("token-1") + ".removed";
    const auto make = [&] {
        test::prepared(::link(at.lease_path().c_str(), second.c_str()) == 0, "link");
    };
    make();
    EXPECT_TRUE(at.swept()->removed.empty());
    EXPECT_EQ(test::names_in(at.leases), 2U);
    make();
    auto lease = at.lend().value();
    EXPECT_EQ(test::content_of(at.lease_path()), "token-1");
    make();
    (void)at.place.file("session/auth", "token-2", 0600);
    EXPECT_TRUE(at.taken(lease).value());
    EXPECT_EQ(test::names_in(at.leases), 2U);
}

TEST(secret_leases, what_no_policy_names_is_overwritten_and_removed) {
    const scene at;
    (void)at.lend();
    const auto former = held(at.lease_path());
    EXPECT_TRUE(at.swept()->removed.empty());
    EXPECT_EQ(test::names_in(at.leases), 2U);
    (void)at.place.file("source", "token-9", 0600);
    const auto swept = at.swept();
    ASSERT_TRUE(swept) << swept.error().step;
    EXPECT_EQ(swept->removed, std::vector<std::string>{"lease-" + scene::id("token-1")});
    EXPECT_EQ(test::names_in(at.leases), 0U);
    EXPECT_EQ(sys::read_all(former, 100).value(), std::string(7, '\0'));
}

TEST(secret_leases, what_is_in_use_stays_until_it_is_not) {
    const scene at;
    {
        const auto lease = at.lend().value();
        (void)at.place.file("source", "token-9", 0600);
        const auto swept = at.swept().value();
        EXPECT_TRUE(swept.removed.empty());
        EXPECT_EQ(swept.in_use, std::vector<std::string>{lease.name()});
        EXPECT_EQ(test::content_of(at.lease_path()), "token-1");
    }
    EXPECT_EQ(at.swept()->removed.size(), 1U);
}

TEST(secret_leases, nothing_is_removed_while_a_source_cannot_be_read) {
    const scene at;
    (void)at.lend();
    test::prepared(::rename(at.what.source_path.c_str(), (at.place / "away").c_str()) == 0, "mv");
    EXPECT_EQ(step_of(at.swept()), "lease.source");
    EXPECT_EQ(test::content_of(at.lease_path()), "token-1");
    EXPECT_EQ(at.store().sweep({})->removed.size(),
              1U); // a policy without secrets is another thing
}

TEST(secret_leases, a_sweep_touches_only_its_own_names) {
    const scene at;
    (void)at.lend();
    const auto odd = std::string(64, 'f');
    for (const auto& name : {std::string{"notes"}, "lease-" + odd + "x", std::string{"lease-short"},
                             "lock-" + odd + ".x", ".lock-" + odd + ".x", ".lease-" + odd})
        (void)at.place.file("root/.credential-leases/" + name, "kept", 0600);
    (void)at.place.file("root/.credential-leases/.lease-" + odd + ".half", "half", 0600);
    const auto outside = at.place.file("outside", "not to be overwritten", 0600);
    test::prepared(::symlink(outside.c_str(), (at.leases + "/lease-" + odd).c_str()) == 0, "l");
    EXPECT_EQ(at.store().sweep({})->removed.size(), 2U);
    EXPECT_EQ(test::content_of(outside), "not to be overwritten");
    EXPECT_EQ(test::names_in(at.leases), 6U);
}

TEST(secret_leases, a_content_with_a_second_name_is_removed_and_not_overwritten) {
    const scene at;
    (void)at.lend();
    test::prepared(::link(at.lease_path().c_str(), (at.place / "second").c_str()) == 0, "link");
    EXPECT_EQ(at.store().sweep({})->removed.size(), 1U);
    EXPECT_EQ(test::content_of(at.place / "second"), "token-1");
}

TEST(secret_leases, half_a_copy_is_never_used) {
    const scene at;
    const auto lease = at.lease_path();
    (void)at.store();
    (void)at.place.file("root/.credential-leases/.lease-" + scene::id("token-1") + ".abc", "tok",
                        0600);
    ASSERT_TRUE(at.given(at.lend().value()));
    EXPECT_EQ(test::content_of(at.session + "/auth"), "token-1");
    EXPECT_EQ(test::names_in(at.leases), 2U);
}

// The first copy, a renewed content, and the end of both.
auto live(const scene& at) -> std::string {
    {
        auto lease = at.lend();
        if (!lease) return step_of(lease);
        if (const auto given = at.given(*lease); !given) return step_of(given);
        (void)at.place.file("session/auth", "token-2", 0600);
        if (const auto taken = at.taken(*lease); !taken) return step_of(taken);
    }
    return step_of(at.store().sweep({}));
}

// Whatever was cut short: a lease holds the whole of the one or of the other content.
void expect_whole(const scene& at) {
    if (!std::filesystem::exists(at.lease_path())) return;
    const auto content = test::content_of(at.lease_path());
    EXPECT_TRUE(content == "token-1" || content == "token-2") << content;
}

TEST(secret_leases, every_step_may_fail_once) {
    int failed = 0;
    for (int n = 1; n < 20; ++n) {
        SCOPED_TRACE(n);
        scene at;
        int steps = 0;
        at.before = [&](std::string_view) -> result<> {
            return ++steps == n ? fail_os("test.fault", EIO) : result<>{};
        };
        const auto first = live(at);
        if (first == "none") break;
        EXPECT_EQ(first, "test.fault");
        ++failed;
        at.before = {};
        expect_whole(at);
        EXPECT_EQ(live(at), "none");
        EXPECT_EQ(test::names_in(at.leases), 0U);
    }
    EXPECT_GE(failed, 6);
}

TEST(secret_leases, killed_at_any_step_it_goes_on) {
    int killed = 0;
    for (int n = 1; n < 20; ++n) {
        SCOPED_TRACE(n);
        scene at;
        const auto end = test::forked([&]() -> std::string {
            int steps = 0;
            at.before = [&](std::string_view) -> result<> {
                if (++steps == n) (void)::raise(SIGKILL);
                return {};
            };
            return live(at);
        });
        if (!WIFSIGNALED(end.wait_status)) break;
        ++killed;
        expect_whole(at);
        EXPECT_EQ(live(at), "none");
        EXPECT_EQ(test::names_in(at.leases), 0U);
    }
    EXPECT_GE(killed, 6);
}

TEST(secret_leases, a_full_disk_leaves_the_former_content) {
    const scene at;
    EXPECT_EQ(test::said_by([&]() -> std::string {
                  test::forbid_growth(3);
                  return step_of(at.lend());
              }),
              "lease.copy");
    EXPECT_FALSE(std::filesystem::exists(at.lease_path()));
    auto lease = at.lend().value();
    (void)at.place.file("session/auth", "a longer token", 0600);
    EXPECT_EQ(test::said_by([&]() -> std::string {
                  test::forbid_growth(10);
                  return step_of(at.taken(lease));
              }),
              "lease.take");
    EXPECT_EQ(test::content_of(at.lease_path()), "token-1");
    EXPECT_TRUE(at.taken(lease).value());
}

} // namespace
