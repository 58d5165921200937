// Registries on a disk in memory, with a clock in the hand, and sessions at every point of a life.
#pragma once
#include "refusals.hpp"
#include <atomic>
#include <glove/adapters/sage.hpp>
#include <glove/control/lifecycle.hpp>
#include <glove/control/session_registry.hpp>
#include <glove/wire/crypto.hpp>
#include <gtest/gtest.h>
#include <supervisor/plan_scene.hpp>
#include <support/failing_disk.hpp>

namespace glove::control {
inline void PrintTo(session_state what, std::ostream* out) { *out << to_string(what); }
inline void PrintTo(error_code what, std::ostream* out) { *out << to_string(what); }
} // namespace glove::control

namespace glove::test {

using namespace control;
using enum session_state;

class hand_clock final : public sys::clock {
public:
    explicit hand_clock(std::uint64_t ms = 1000) : ms_{ms} {}
    auto monotonic() const noexcept -> std::chrono::nanoseconds override { return wall(); }
    auto wall() const noexcept -> std::chrono::nanoseconds override {
        return std::chrono::milliseconds{ms_.load()};
    }
    void set(std::uint64_t ms) { ms_ = ms; }
    void add(std::uint64_t ms) { ms_ += ms; }
    [[nodiscard]] auto ms() const -> std::uint64_t { return ms_; }

private:
    std::atomic<std::uint64_t> ms_;
};

inline auto any_body(const adapters::guest_body&) noexcept -> std::string_view { return {}; }
inline auto no_body(const adapters::guest_body&) noexcept -> std::string_view { return "no"; }

inline auto channel(std::string schema, adapters::channel_bounds bounds = {4, 8192, 10'000, 100})
    -> adapters::channel_descriptor {
    return {std::move(schema), any_body, bounds};
}
inline auto host_of(std::vector<adapters::channel_descriptor> all) -> channel_host {
    channel_host out;
    for (auto& one : all) EXPECT_TRUE(out.add(std::move(one)).has_value());
    EXPECT_TRUE(out.freeze().has_value());
    return out;
}
inline constexpr std::string_view test_schema = "test.observation.v1";

inline auto plan_text(std::uint64_t expires_at_ms = 61'000,
                      supervisor::session_plan plan = usual_plan()) -> std::string {
    plan.expires_at_ms = expires_at_ms;
    return *supervisor::canonical_text(plan);
}
// Accepts every plan of good form.
inline auto judge_all(const create_session& what) -> answer<supervisor::sealed_plan> {
    return or_refuse(supervisor::seal_text(what.plan_text, what.controller_plan_digest),
                     error_code::invalid_plan);
}
inline auto judge_none(const create_session&) -> answer<supervisor::sealed_plan> {
    return refuse(error_code::invalid_plan, errc::invalid_input, "test.judge");
}

inline auto boot_id() -> std::string { return "01234567-89ab-cdef-0123-456789abcdef"; }
inline auto some_process() -> process_identity {
    return {1, 4242, boot_id(), 987'654, 26, 4711, digits('9')};
}
inline auto some_binding() -> start_binding {
    return {.launch_profile_digest = digits('e'),
            .cgroup = cgroup_identity{1, 26, 4711},
            .filesystem = filesystem_identity{1, 2 * mib, {{"home", mib}, {"workspace", 4096}}},
            .managed_runtime = std::nullopt};
}
inline auto managed_binding() -> start_binding {
    return {.launch_profile_digest = digits('e'),
            .cgroup = std::nullopt,
            .filesystem = std::nullopt,
            .managed_runtime =
                managed_runtime_identity{1, "apple_container", "instance-1", digits('8')}};
}
inline auto receipt_at(std::uint64_t started, std::uint64_t finished) -> terminal_envelope {
    return {.sequence = 1,
            .key_id = digits('1'),
            .receipt_digest = digits('2'),
            .previous_hmac = digits('0'),
            .this_hmac = digits('3'),
            .termination_cause = "exited",
            .started_at_ms = started,
            .finished_at_ms = finished,
            .exit_code = 0,
            .refinement = false};
}

template<class T> auto why_of(const answer<T>& what) -> std::string {
    return what ? "" : std::string{what.error().why.step} + ": " + what.error().why.detail;
}

// A registry that can be started again, over a disk that stays.
class registry_scene {
public:
    failing_disk disk;
    hand_clock clock;
    registry_settings how;
    channel_host channels = host_of({channel(std::string{test_schema}), channel("test.other.v1")});
    bool heard = true; // with channels
    std::unique_ptr<failing_storage> store;
    std::unique_ptr<session_registry> registry;
    error why;

    auto open() -> bool {
        registry.reset();
        store = std::make_unique<failing_storage>(disk);
        auto opened = session_registry::open(*store, how, heard ? &channels : nullptr, clock);
        if (opened) registry = *std::move(opened);
        else why = opened.error();
        return registry != nullptr;
    }
    auto operator->() -> session_registry* {
        if (registry == nullptr && !open()) ADD_FAILURE() << why.step << ": " << why.detail;
        return registry.get();
    }

    // Keys are made of the session's id.
    auto create(const std::string& id, const std::string& text = plan_text()) {
        return (*this)->create("create-" + id, {id, digits('c'), text}, judge_all);
    }
    [[nodiscard]] auto authorization(const std::string& id, std::uint64_t for_ms = 1000)
        -> start_authorization {
        const auto now = clock.ms();
        const auto known = (*this)->status(id).value();
        return {1,
                "approval-1",
                id,
                digits('c'),
                known.plan_content_digest,
                now,
                std::min(now + for_ms, known.expires_at_ms)};
    }
    auto reserve(const std::string& id, std::uint64_t for_ms = 1000) {
        return (*this)->reserve_start(id + ".reserve", authorization(id, for_ms));
    }
    auto start(const std::string& id, const start_binding& what = some_binding()) {
        return (*this)->mark_starting(id + ".starting", id, what);
    }
    auto run(const std::string& id, const process_identity& what = some_process()) {
        return (*this)->mark_running(id + ".running", id, what);
    }
    auto stop(const std::string& id) { return (*this)->mark_stopping(id + ".stopping", id); }
    auto exit(const std::string& id) {
        const auto ran = (*this)->record(id)->running_at_ms;
        return (*this)->mark_exited(id + ".exited", id, receipt_at(ran, std::max(ran, clock.ms())));
    }
    auto fail(const std::string& id, std::string_view code) {
        return (*this)->mark_failed(id + ".failed", id, code);
    }
    // From where it is to `to`, by the shortest way.
    void bring(const std::string& id, session_state to, const std::string& text = plan_text()) {
        const auto ok = [&](const auto& done) {
            ASSERT_TRUE(done.has_value()) << id << " " << why_of(done);
        };
        if (!(*this)->status(id)) ok(create(id, text));
        const auto is = state_of(id);
        if (is < preparing && to >= preparing) ok(reserve(id));
        if (is < starting && to >= starting) ok(start(id));
        if (is < running && to >= running) ok(run(id));
        if (to == stopping) ok(stop(id));
        if (to == exited) ok(exit(id));
        if (to == failed) ok(fail(id, "supervisor_error"));
    }

    [[nodiscard]] auto context(const std::string& id) -> guest_context {
        const auto now = clock.ms();
        return {.session_id = id,
                .controller_plan_digest = digits('c'),
                .profile_digest = digits('e'),
                .runtime_id = "codex",
                .projection_digest = digits('d'),
                .policy_revision = 7,
                .channel_id = "channel-1",
                .channel_generation = 1,
                .issued_at_ms = now,
                .expires_at_ms = now + 1000};
    }
    [[nodiscard]] static auto body(const std::string& id, std::string_view schema = test_schema)
        -> adapters::guest_body {
        return {std::string{schema}, id, "guest-capability-inventory", digits('a'), 4};
    }
    auto say(const std::string& session, const std::string& intent,
             std::string_view schema = test_schema) {
        return (*this)->enqueue(context(session), body(intent, schema));
    }
    auto decide(const intent_item& what, intent_disposition as = intent_disposition::accepted) {
        return (*this)->decide({what.context.session_id, what.context.channel_generation,
                                what.body.intent_id, what.intent_digest, as});
    }
    auto state_of(const std::string& id) -> session_state {
        const auto now = (*this)->status(id);
        EXPECT_TRUE(now.has_value()) << id;
        return now ? now->state : failed;
    }
};

} // namespace glove::test
