// A runtime over real journals on disks in memory, and a host whose sessions a test plays itself:
// each has a real terminal, a meter that says what it is told, and an end when the test wants one.
#pragma once
#include "receipt_journal_scene.hpp"
#include "service_scene.hpp"
#include "session_scene.hpp"
#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <glove/control/session_runtime.hpp>
#include <map>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace glove::test {

inline auto entries(const char* folder) -> std::size_t {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator{folder},
                                                  std::filesystem::directory_iterator{}));
}
// True as soon as it is, and false after a time that is too long for anything.
inline auto eventually(const std::function<bool()>& what, std::chrono::milliseconds most = 20s)
    -> bool {
    const auto until = std::chrono::steady_clock::now() + most;
    while (!what()) {
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

// What a test plays, and what it sees.
class puppet final : public resource_meter {
public:
    // How it is to go wrong.
    std::atomic<bool> refuses_launch = false, has_no_terminal = false, is_not_released = false;
    std::atomic<bool> outlives_kill = false, broken_meter = false, unknown_end = false;
    std::atomic<bool> holds_terminal_open = false, ends_silently = false;
    std::atomic<int> failing_kills = 0;
    std::function<void()> during_launch;
    std::vector<retained_change_receipt> changes;
    std::string fixture_output; // not empty: it has an evaluator
    std::function<void(std::stop_token)> during_conclude;
    std::string profile = digits('e');

    // What was done to it.
    std::atomic<int> launched = 0, released = 0, killed = 0, concluded = 0, dropped = 0;
    std::atomic<int> last_signal = 0;

    std::atomic<std::uint64_t> cpu = 0;
    void use(const resource_state& says) {
        const std::scoped_lock hold{lock_};
        says_ = says;
    }
    auto cpu_us() -> result<std::uint64_t> override {
        if (broken_meter) return fail(errc::io, "meter.cpu", "gone");
        return cpu.load();
    }
    auto state() -> result<resource_state> override {
        const std::scoped_lock hold{lock_};
        return says_;
    }

    auto open() -> sys::unique_fd {
        if (has_no_terminal) return {};
        sys::unique_fd master{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
        const int locked = 0;
        EXPECT_EQ(::ioctl(master.get(), TIOCSPTLCK, &locked), 0);
        sys::unique_fd peer{::ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)};
        ::termios modes{};
        EXPECT_EQ(::tcgetattr(peer.get(), &modes), 0);
        ::cfmakeraw(&modes);
        EXPECT_EQ(::tcsetattr(peer.get(), TCSANOW, &modes), 0);
        const std::scoped_lock hold{lock_};
        peer_ = std::move(peer);
        return master;
    }
    // The session's side of the terminal.
    [[nodiscard]] auto side() -> sys::unique_fd {
        const std::scoped_lock hold{lock_};
        return sys::unique_fd{::fcntl(peer_.get(), F_DUPFD_CLOEXEC, 3)};
    }
    // False when the other side went first.
    auto show(std::string_view text) -> bool {
        const auto to = side();
        while (!text.empty()) {
            const auto put = ::write(to.get(), text.data(), text.size());
            if (put <= 0) return false;
            text.remove_prefix(static_cast<std::size_t>(put));
        }
        return true;
    }
    auto hear(std::size_t bytes) -> std::string {
        const auto from = side();
        std::string out(bytes, '\0');
        std::size_t got = 0;
        while (got < bytes) {
            const auto n = ::read(from.get(), out.data() + got, bytes - got);
            if (n <= 0) break;
            got += static_cast<std::size_t>(n);
        }
        out.resize(got);
        return out;
    }
    // The first end stands.
    void end(process_end how) {
        const std::scoped_lock hold{lock_};
        if (end_) return;
        end_ = how;
        if (!holds_terminal_open) peer_ = {};
        if (ends_silently) return;
        const std::uint64_t one = 1;
        EXPECT_EQ(::write(over_.get(), &one, sizeof one), ssize_t{sizeof one});
    }
    void exit(std::uint32_t code) { end({process_end::how::exited, code}); }
    auto kill() -> result<> {
        ++killed;
        if (failing_kills > 0) {
            --failing_kills;
            return fail(errc::io, "puppet.kill", "not now");
        }
        if (!outlives_kill) end({process_end::how::signaled, 0});
        return {};
    }
    auto advance() -> result<std::optional<process_end>> {
        const std::scoped_lock hold{lock_};
        if (end_ && unknown_end) return fail(errc::io, "puppet.end", "nobody knows");
        return end_;
    }
    [[nodiscard]] auto over() const -> sys::fd_ref { return over_; }

private:
    std::mutex lock_;
    resource_state says_{.peak_memory_bytes = mib, .peak_pids = 2, .disk_bytes = 4096};
    sys::unique_fd peer_;
    sys::unique_fd over_{::eventfd(0, EFD_CLOEXEC)};
    std::optional<process_end> end_;
};

class played_session final : public hosted_session {
public:
    played_session(std::shared_ptr<puppet> of, supervisor::resource_limits limits)
        : of_{std::move(of)}, limits_{limits} {
        binding_ = some_binding();
        binding_.launch_profile_digest = of_->profile;
    }
    played_session(const played_session&) = delete;
    auto operator=(const played_session&) -> played_session& = delete;
    ~played_session() override {
        of_->outlives_kill = false;
        of_->failing_kills = 0;
        (void)of_->kill();
        ++of_->dropped;
    }
    auto binding() const -> const start_binding& override { return binding_; }
    auto facts() const -> receipt_facts override {
        return {.profile_digest = of_->profile,
                .backend_id = "linux-production:cgroup-v2-v1",
                .limits = limits_,
                .library_projections = {},
                .retained_changes = {}};
    }
    auto take_evaluator() -> std::optional<transcript_evaluator> override {
        if (of_->fixture_output.empty()) return std::nullopt;
        return transcript_evaluator::start(
                   {termination_cause::exited, 0, {of_->fixture_output}, {}, {}})
            .value();
    }
    auto launch(std::chrono::nanoseconds) -> result<process_identity> override {
        ++of_->launched;
        if (of_->during_launch) of_->during_launch();
        if (of_->refuses_launch) return fail(errc::not_permitted, "puppet.launch", "not today");
        master_ = of_->open();
        return some_process();
    }
    auto take_terminal() -> sys::unique_fd override { return std::move(master_); }
    auto meter() -> resource_meter& override { return *of_; }
    auto processors() const -> unsigned override { return 2; }
    auto release() -> result<> override {
        ++of_->released;
        if (of_->is_not_released) return fail(errc::io, "puppet.release", "it does not listen");
        return {};
    }
    auto descriptors() const -> std::vector<sys::fd_ref> override { return {of_->over()}; }
    auto advance() -> result<std::optional<process_end>> override { return of_->advance(); }
    auto signal_foreground(int number) const -> result<> override {
        of_->last_signal = number;
        return {};
    }
    auto kill() const -> result<> override { return of_->kill(); }
    auto conclude(std::stop_token stop) -> session_remains override {
        ++of_->concluded;
        if (of_->during_conclude) of_->during_conclude(stop);
        return {of_->changes, {}};
    }

private:
    std::shared_ptr<puppet> of_;
    supervisor::resource_limits limits_;
    start_binding binding_;
    sys::unique_fd master_;
};

class played_host final : public session_host {
public:
    std::atomic<bool> works = true, refuses = false;
    std::atomic<int> prepared = 0;
    std::function<void(puppet&)> dress; // a new one

    auto operational() const noexcept -> bool override { return works; }
    auto evaluates_refinements() const noexcept -> bool override { return true; }
    auto prepare(const session_record& of, const supervisor::sealed_plan& plan)
        -> result<std::unique_ptr<hosted_session>> override {
        if (refuses) return fail(errc::conflict, "puppet.prepare", "another policy");
        auto made = std::make_shared<puppet>();
        if (dress) dress(*made);
        const std::scoped_lock hold{lock_};
        ++prepared;
        all_[of.session_id].push_back(made);
        return std::make_unique<played_session>(std::move(made), plan.plan.limits);
    }
    // The last one of the session.
    [[nodiscard]] auto operator[](const std::string& id) -> std::shared_ptr<puppet> {
        const std::scoped_lock hold{lock_};
        const auto at = all_.find(id);
        return at == all_.end() ? nullptr : at->second.back();
    }
    [[nodiscard]] auto launches(const std::string& id) -> int {
        const std::scoped_lock hold{lock_};
        int out = 0;
        for (const auto& one : all_[id]) out += one->launched;
        return out;
    }
    // What a test holds of them.
    void forget() {
        const std::scoped_lock hold{lock_};
        all_.clear();
    }
    // Everything that was prepared has been given back.
    [[nodiscard]] auto all_dropped() -> bool {
        const std::scoped_lock hold{lock_};
        for (const auto& [id, list] : all_)
            for (const auto& one : list)
                if (one->dropped != 1) return false;
        return true;
    }

private:
    std::mutex lock_;
    std::map<std::string, std::vector<std::shared_ptr<puppet>>> all_;
};

// Steps that fail, by name, so many times each.
class broken_steps {
public:
    void fail_at(const std::string& step, int times) {
        const std::scoped_lock hold{lock_};
        left_[step] = times;
    }
    void hold_at(const std::string& step, std::function<void()> what) {
        const std::scoped_lock hold{lock_};
        before_[step] = std::move(what);
    }
    [[nodiscard]] auto seen() -> std::vector<std::string> {
        const std::scoped_lock hold{lock_};
        return seen_;
    }
    auto ask(std::string_view step) -> result<> {
        std::function<void()> before;
        bool fails = false;
        {
            const std::scoped_lock hold{lock_};
            seen_.emplace_back(step);
            if (const auto at = before_.find(step); at != before_.end()) before = at->second;
            if (const auto at = left_.find(step); at != left_.end() && at->second > 0) {
                --at->second;
                fails = true;
            }
        }
        if (before) before();
        return fails ? result<>{fail(errc::io, "test.step", std::string{step})} : result<>{};
    }

private:
    std::mutex lock_;
    std::map<std::string, int, std::less<>> left_;
    std::map<std::string, std::function<void()>, std::less<>> before_;
    std::vector<std::string> seen_;
};

class runtime_scene {
public:
    registry_scene records;
    failing_disk receipt_disk;
    std::uint64_t receipt_bytes = 0;
    std::optional<receipt_journal> receipts;
    controller archive;
    supervisor::session_rules rules = accepting_rules();
    played_host host;
    kept_log log;
    broken_steps steps;
    runtime_settings how{.first_retry = 1ms, .longest_retry = 4ms};
    std::unique_ptr<session_runtime> runtime;

    runtime_scene() { records.clock.set(1'700'000'000'000); }
    ~runtime_scene() { close(); }
    runtime_scene(const runtime_scene&) = delete;
    auto operator=(const runtime_scene&) -> runtime_scene& = delete;

    auto operator->() -> session_runtime* {
        if (runtime == nullptr) open();
        return runtime.get();
    }
    void open() {
        if (records.registry == nullptr) {
            ASSERT_TRUE(records.open()) << records.why.detail;
        }
        if (!receipts) {
            receipts.emplace(journal_on(receipt_disk, receipt_bytes));
            const auto done = archive.reconcile(*receipts);
            ASSERT_TRUE(done.has_value()) << why(done);
        }
        how.before_step = [this](std::string_view step, std::string_view) {
            return steps.ask(step);
        };
        auto made = session_runtime::create({.sessions = records.registry.get(),
                                             .receipts = &*receipts,
                                             .rules = &rules,
                                             .host = &host,
                                             .clock = &records.clock,
                                             .log = &log},
                                            how);
        ASSERT_TRUE(made.has_value());
        runtime = *std::move(made);
    }
    void close() { runtime.reset(); }
    // A new process over what is on the disks; sessions of the old one are gone.
    void restart() {
        close();
        receipts.reset();
        records.registry.reset();
        records.store.reset();
        open();
        recover();
    }
    void recover() {
        struct gone final : process_observer {
            auto observe(const session_record&) -> observed_process override {
                return observed_process::gone;
            }
        } nobody;
        const auto left = records->recover(
            [this](const session_record& of) {
                return receipts->find(of.session_id, of.controller_plan_digest,
                                      of.launch_profile_digest);
            },
            nobody);
        ASSERT_TRUE(left.has_value());
        EXPECT_TRUE(left->empty());
    }

    void create(const std::string& id, const supervisor::session_plan& plan = usual_plan()) {
        const auto done = records.create(id, plan_text(records.clock.ms() + 600'000, plan));
        ASSERT_TRUE(done.has_value()) << why_of(done);
    }
    // Of a session that was created just now.
    auto authorization(const std::string& id, std::uint64_t for_ms = 60'000) {
        if (!given_.contains(id)) given_[id] = records.authorization(id, for_ms);
        return given_[id];
    }
    auto start(const std::string& id) { return (*this)->start("start-" + id, authorization(id)); }
    // Created and started; null when it was refused.
    auto begin(const std::string& id, const supervisor::session_plan& plan = usual_plan())
        -> std::shared_ptr<puppet> {
        create(id, plan);
        const auto done = start(id);
        EXPECT_TRUE(done.has_value()) << why_of(done) << log.text();
        return done ? host[id] : nullptr;
    }
    auto state_of(const std::string& id) -> session_state { return records.state_of(id); }
    auto is(const std::string& id, session_state what) -> bool {
        return eventually([&] { return state_of(id) == what; });
    }
    // Whether a look of the runtime finds it. The clock goes on again when it does not: the look
    // may have been just before there was something to find, and the clock of a test stands still.
    auto is_found(const std::function<bool()>& what) -> bool {
        return eventually([&] {
            if (what()) return true;
            records.clock.add(250);
            return eventually(what, 2s);
        });
    }
    auto is_killed(const puppet& it) -> bool {
        return is_found([&] { return it.killed > 0; });
    }
    // Its end, on record.
    auto end_of(const std::string& id) -> session_record {
        EXPECT_TRUE(eventually([&] { return is_terminal(state_of(id)); })) << log.text();
        return records->record(id).value();
    }
    auto cause_of(const std::string& id) -> std::string { return end_of(id).termination_cause; }
    // What the terminal showed, to its end.
    auto shown(const std::string& id) -> std::string {
        std::string out;
        for (;;) {
            const auto page = (*this)->attach(id, out.size(), 65'536);
            if (!page) return "refused " + code_of(page);
            out += page->bytes;
            if (page->eof) return out;
            if (page->bytes.empty()) std::this_thread::sleep_for(1ms);
        }
    }
    // The receipt of the session, after the whole chain was verified.
    auto receipt_of(const std::string& id) -> std::optional<resource_receipt> {
        std::optional<resource_receipt> out;
        controller reader;
        for (;;) {
            const auto page = receipts->page(reader.anchor, 15);
            EXPECT_TRUE(page.has_value()) << why(page);
            if (!page) return out;
            EXPECT_TRUE(reader.take(*page)) << "the chain is broken";
            for (const auto& one : page->envelopes)
                if (one.session_id == id) out = one.receipt;
            if (!page->has_more) return out;
        }
    }
    auto logged(std::string_view text) -> bool { return log.text().contains(text); }

private:
    std::map<std::string, start_authorization> given_;
};

// Of threads and descriptors, as many as before.
class nothing_more {
public:
    [[nodiscard]] auto holds() const -> bool {
        return eventually([this] {
            return entries("/proc/self/task") == threads_ && entries("/proc/self/fd") == files_;
        });
    }

private:
    std::size_t threads_ = entries("/proc/self/task"), files_ = entries("/proc/self/fd");
};

} // namespace glove::test
