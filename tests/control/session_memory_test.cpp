// What sessions that are over leave in memory: thousands of lives, one after the other, by the
// runtime, with a host that is made up.
#include "session_runtime_scene.hpp"
#include <malloc.h>

namespace {

using namespace glove;
using namespace glove::test;

// docs/gloved.md says so, with what was found.
constexpr int lives_of_a_file = 2000; // more than there are in 10,000 records
constexpr std::size_t most_of_a_life = 8192, most_of_a_receipt = 200;
constexpr int lives_of_a_look = 50;

auto bytes_of(const std::string& text) -> std::size_t {
    return text.capacity() < sizeof text ? 0 : ::malloc_usable_size(const_cast<char*>(text.data()));
}

class quiet_log final : public service_log {
public:
    void write(const log_event&) override {}
};

class one_at_a_time final : public session_host {
public:
    std::shared_ptr<puppet> last;
    auto operational() const noexcept -> bool override { return true; }
    auto evaluates_refinements() const noexcept -> bool override { return false; }
    auto prepare(const session_record&, const supervisor::sealed_plan& plan)
        -> result<std::unique_ptr<hosted_session>> override {
        last = std::make_shared<puppet>();
        return std::make_unique<played_session>(last, plan.plan.limits);
    }
};

class SessionMemory : public testing::Test {
protected:
    void SetUp() override {
        auto made = session_registry::open(store_, {}, nullptr, clock_);
        ASSERT_TRUE(made);
        registry_ = *std::move(made);
        ASSERT_TRUE(archive_.reconcile(receipts_));
        auto runtime = session_runtime::create({.sessions = registry_.get(),
                                                .receipts = &receipts_,
                                                .rules = &rules_,
                                                .host = &host_,
                                                .clock = &clock_,
                                                .log = &log_});
        ASSERT_TRUE(runtime);
        runtime_ = *std::move(runtime);
    }
    void live_and_end() {
        const auto id = "session-" + std::to_string(count_++);
        // None expires meanwhile: then a new file of the registry keeps as many as it may.
        const auto text = plan_text(clock_.ms() + 24UL * 3'600'000);
        const auto made = registry_->create("create-" + id, {id, digits('c'), text}, judge_all);
        ASSERT_TRUE(made) << why_of(made);
        const auto begun = runtime_->start("start-" + id, {1, "approval-" + id, id, digits('c'),
                                                           made->plan_content_digest, clock_.ms(),
                                                           clock_.ms() + 60'000});
        ASSERT_TRUE(begun) << why_of(begun);
        ASSERT_TRUE(host_.last->show("done\n"));
        host_.last->exit(0);
        ASSERT_TRUE(eventually([&] { return is_terminal(registry_->status(id)->state); }));
        ASSERT_TRUE(runtime_->cleanup(id));
        clock_.add(250);
    }
    // What is asked of the heap and not given back, without what stands for the disks. What was
    // alive is given up beside its end: it is waited for that no more is left than of so many
    // lives, and of a table that has grown.
    auto in_use() -> std::size_t {
        host_.last.reset();
        EXPECT_TRUE(archive_.reconcile(receipts_));
        archive_.seen = {};
        const auto most = last_ + lives_of_a_look * most_of_a_life + mib;
        (void)eventually([&] {
            const auto heap = ::mallinfo2();
            last_ = heap.uordblks + heap.hblkhd - disk_bytes(files_) - disk_bytes(receipt_files_);
            return last_ < most;
        });
        EXPECT_LT(last_, most) << "after " << count_;
        return last_;
    }
    static auto disk_bytes(const memory_files& of) -> std::size_t {
        return (of.file ? bytes_of(*of.file) : 0) + bytes_of(of.next) + bytes_of(of.head);
    }
    // The most that is in use at one of so many ends.
    auto most_in_use(int lives) -> std::size_t {
        std::size_t out = 0;
        for (int n = 1; n <= lives; ++n) {
            live_and_end();
            if (HasFatalFailure()) return out;
            if (n % lives_of_a_look == 0) out = std::max(out, in_use());
        }
        return out;
    }

    memory_files files_, receipt_files_;
    memory_storage store_{files_};
    hand_clock clock_{1'700'000'000'000};
    std::unique_ptr<session_registry> registry_;
    receipt_journal receipts_{journal_on(receipt_files_)};
    controller archive_;
    supervisor::session_rules rules_ = accepting_rules();
    one_at_a_time host_;
    quiet_log log_;
    std::unique_ptr<session_runtime> runtime_;
    std::size_t last_ = 2 * mib;
    int count_ = 0;
};

TEST_F(SessionMemory, StopsToGrowOnceTheRegistryHasBegunANewFile) {
    most_in_use(50); // what is made once
    const auto before = in_use();
    const auto young = most_in_use(200);
    EXPECT_GT(young, before + std::size_t{200} * 1024) << "nothing is measured here";
    EXPECT_LT(young, before + 200 * most_of_a_life);
    const auto first = most_in_use(lives_of_a_file);
    EXPECT_LT(first, before + lives_of_a_file * most_of_a_life);
    const auto second = most_in_use(lives_of_a_file);
    EXPECT_LT(second, first + lives_of_a_file * most_of_a_receipt);
    const auto third = most_in_use(lives_of_a_file);
    EXPECT_LT(third, second + lives_of_a_file * most_of_a_receipt);
    std::printf(
        "KiB: %zu at first, %zu after 200, then at most %zu, %zu, %zu; a receipt has %zu bytes "
        "on record\n",
        before / 1024, young / 1024, first / 1024, second / 1024, third / 1024,
        receipt_files_.file->size() / static_cast<std::size_t>(count_));
}

} // namespace
