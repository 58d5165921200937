// A service with all parts there are: real journals on disks in memory, a runtime and a store of
// changes that are made up, and a clock in the hand.
#pragma once
#include "service_scene.hpp"
#include <atomic>
#include <glove/adapters/sage.hpp>
#include <glove/control/methods.hpp>
#include <glove/wire/json_writer.hpp>
#include <supervisor/exposure_scene.hpp>
#include <supervisor/policy_scene.hpp>
#include <support/failing_disk.hpp>

namespace glove::test {

inline void expect_code(const auto& outcome) {
    if (!outcome)
        ADD_FAILURE() << to_string(outcome.error().code) << " " << outcome.error().why.step << " "
                      << outcome.error().why.detail;
}

class two_clocks final : public sys::clock {
public:
    auto monotonic() const noexcept -> std::chrono::nanoseconds override { return monotonic_; }
    auto wall() const noexcept -> std::chrono::nanoseconds override { return wall_; }
    void add(std::chrono::milliseconds ms) {
        monotonic_ = monotonic_.load() + ms;
        wall_ = wall_.load() + ms;
    }
    void step_wall(std::chrono::milliseconds ms) { wall_ = wall_.load() + ms; }

private:
    std::atomic<std::chrono::nanoseconds> monotonic_{5s}, wall_{1000ms};
};

// Says what it was asked for.
class made_up_runtime final : public control::managed_runtime {
public:
    auto lifecycle_operational() const noexcept -> bool override { return operational; }
    auto backend() const noexcept -> supervisor::backend_kind override {
        return supervisor::backend_kind::linux_production;
    }
    auto mechanisms() const -> control::enforcement_mechanisms override {
        return control::linux_mechanisms();
    }
    auto has_sessions() const noexcept -> bool override { return holds; }
    auto runtime_ids() const -> std::vector<std::string> override { return ids; }
    auto evaluates_refinements() const noexcept -> bool override { return operational; }
    auto admits_observations() const -> bool override { return operational; }
    auto start(std::string_view key, const control::start_authorization& what)
        -> control::answer<control::session_view> override {
        return view("start " + std::string{key} + " " + what.authorization_id, what.session_id);
    }
    auto attach(std::string_view, std::uint64_t cursor, std::size_t most)
        -> control::answer<control::transcript_page> override {
        return control::transcript_page{
            1, cursor + 3, false, true,
            std::string{"\x00\x7f\xff", std::min<std::size_t>(3, most)}};
    }
    auto write_input(std::string_view id, std::string_view bytes) -> control::answer<> override {
        return note("input " + std::string{id} + " " + std::string{bytes});
    }
    auto resize(std::string_view id, std::uint16_t rows, std::uint16_t columns)
        -> control::answer<> override {
        return note("resize " + std::string{id} + " " + std::to_string(rows) + "x" +
                    std::to_string(columns));
    }
    auto signal(std::string_view id, control::session_signal which) -> control::answer<> override {
        return note("signal " + std::string{id} + " " + std::string{to_string(which)});
    }
    auto detach(std::string_view id, std::uint64_t cursor) -> control::answer<> override {
        return note("detach " + std::string{id} + " " + std::to_string(cursor));
    }
    auto stop(std::string_view key, std::string_view id)
        -> control::answer<control::session_view> override {
        return view("stop " + std::string{key}, std::string{id});
    }
    auto cleanup(std::string_view id) -> control::answer<> override {
        return note("cleanup " + std::string{id});
    }

    bool operational = true;
    bool holds = false; // sessions
    std::vector<std::string> ids{"codex", "pi"};
    bool fails = false;
    std::vector<std::string> done;

private:
    std::mutex lock_;
    auto note(std::string what) -> control::answer<> {
        if (fails)
            return control::refuse(control::error_code::session_input_failed, errc::io, "test.io");
        const std::lock_guard held{lock_};
        done.push_back(std::move(what));
        return {};
    }
    auto view(std::string what, std::string id) -> control::answer<control::session_view> {
        (void)note(std::move(what));
        control::session_view out;
        out.session_id = std::move(id);
        out.controller_plan_digest = out.plan_content_digest = digits('c');
        out.state = control::session_state::running;
        out.policy_revision = 7;
        out.expires_at_ms = out.created_at_ms = 1;
        return out;
    }
};

class made_up_changes final : public control::retained_store {
public:
    auto changes(std::string_view id, std::string_view exposure, std::uint64_t offset,
                 std::size_t limit) -> control::answer<std::string> override {
        if (offset == 77) return "\"" + std::string(control::most_frame_bytes, 'x') + "\"";
        return "\"" + std::string{id} + " " + std::string{exposure} + " " + std::to_string(offset) +
               " " + std::to_string(limit) + "\"";
    }
};

class no_processes final : public control::process_observer {
public:
    auto observe(const control::session_record&) -> control::observed_process override {
        return control::observed_process::gone;
    }
};

class whole_service {
public:
    whole_service() {
        std::filesystem::create_directories(folder_.path() + "/code/proj");
        auto rules = accepting_rules();
        rules.path_aliases.front().host_path = folder_.directory("aliased");
        policy_.emplace(take(supervisor::session_policy::freeze(std::move(rules))));
        expect_ok(channels_.add(adapters::sage::observation_channel()));
        expect_ok(channels_.freeze());
        session_file_ = std::make_unique<failing_storage>(session_disk_);
        exposure_file_ = std::make_unique<failing_storage>(exposure_disk_);
        sessions_ = take(control::session_registry::open(*session_file_, {}, &channels_, clock));
        exposures_ =
            take(control::exposure_store::open(*exposure_file_,
                                               take(supervisor::exposure_policy::freeze(
                                                   usual_exposure_rules(folder_.path() + "/code"))),
                                               clock));
        receipts_.emplace(
            [this]() -> result<std::unique_ptr<journal::storage>> {
                return std::make_unique<failing_storage>(receipt_disk_);
            },
            take(control::audit_key::parse(digits('1'))));
        has = {.receipts = &*receipts_,
               .policy = &*policy_,
               .sessions = sessions_.get(),
               .channels = &channels_,
               .exposures = exposures_.get(),
               .runtime = &runtime,
               .retained = &changes_,
               .processes = &processes_,
               .clock = &clock,
               .log = &log};
    }

    [[nodiscard]] auto service() -> control::service& {
        if (!made_)
            made_ = std::make_unique<control::service>(has, control::bootstrap_secret{secret()});
        return *made_;
    }
    [[nodiscard]] static auto secret() -> std::string { return digits('5'); }
    [[nodiscard]] auto now() const -> control::arrival { return {clock.monotonic(), clock.wall()}; }
    [[nodiscard]] auto now_ms() const -> std::uint64_t {
        return static_cast<std::uint64_t>(clock.wall() / 1ms);
    }
    [[nodiscard]] auto request(std::string_view method, std::string_view payload = "null",
                               std::optional<std::string> key = {}) const -> control::request {
        return {.id = "sage-1",
                .method = std::string{method},
                .bootstrap_secret = secret(),
                .deadline_ms = now_ms() + 5000,
                .idempotency_key = std::move(key),
                .payload = std::string{payload}};
    }
    // The result or the code, without what every answer has.
    [[nodiscard]] auto answer(const control::request& what) -> std::string {
        auto text = *control::encode(what);
        const auto out = control::decode_reply(service().answer_to(text, now()));
        EXPECT_TRUE(text.empty()) << "the secret is still there";
        if (!out) return "[no reply] " + out.error().detail;
        EXPECT_EQ(out->id, what.id);
        return out->outcome ? *out->outcome : out->outcome.error().code;
    }
    [[nodiscard]] auto ask(std::string_view method, std::string_view payload = "null",
                           std::optional<std::string> key = {}) -> std::string {
        return answer(request(method, payload, std::move(key)));
    }

    [[nodiscard]] auto project() const -> std::string { return folder_.path() + "/code/proj"; }
    [[nodiscard]] auto key_id() const -> std::string { return receipts_->key_id(); }
    [[nodiscard]] auto genesis() const -> std::string {
        return R"({"key_id":")" + key_id() + R"(","sequence":0,"head_hmac":")" + digits('0') +
               "\"}";
    }
    [[nodiscard]] static auto plan(std::uint64_t expires_at_ms = 61'000) -> std::string {
        auto out = usual_plan();
        out.expires_at_ms = expires_at_ms;
        return *supervisor::canonical_text(out);
    }
    [[nodiscard]] static auto creation(std::string_view id = "session-1",
                                       std::string_view text = {}) -> std::string {
        return R"({"session_id":")" + std::string{id} + R"(","controller_plan_digest":")" +
               digits('c') + R"(","plan":)" + (text.empty() ? plan() : std::string{text}) + "}";
    }

    // From now on, nothing reaches these disks.
    void break_session_disk() { break_disk(session_disk_); }
    void break_exposure_disk() { break_disk(exposure_disk_); }

    two_clocks clock;
    kept_log log;
    made_up_runtime runtime;
    control::parts has;

private:
    template<class T> static auto take(result<T> what) -> T {
        expect_ok(what);
        return *std::move(what);
    }

    static void break_disk(failing_disk& disk) {
        disk.plan({.at = 1, .does = effect::none, .after = then::stays_broken});
    }

    folder folder_;
    failing_disk session_disk_, exposure_disk_, receipt_disk_;
    std::unique_ptr<failing_storage> session_file_, exposure_file_;
    std::optional<supervisor::session_policy> policy_;
    control::channel_host channels_;
    std::unique_ptr<control::session_registry> sessions_;
    std::unique_ptr<control::exposure_store> exposures_;
    std::optional<control::receipt_journal> receipts_;
    made_up_changes changes_;
    no_processes processes_;
    std::unique_ptr<control::service> made_;
};

} // namespace glove::test
