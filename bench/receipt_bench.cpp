// What a receipt costs over what it cannot do without: room, digest, HMAC, reading it back and a
// durable append against a write and fdatasync of as many bytes on the same disk. In a folder below
// TMPDIR, which should be on the disk in question.
#include <algorithm>
#include <benchmark/benchmark.h>
#include <chrono>
#include <control/receipt_journal_scene.hpp>
#include <fcntl.h>
#include <glove/journal/file_storage.hpp>
#include <support/folder.hpp>

namespace {

using namespace glove;
using namespace glove::control;

template<class T, class E> auto must(std::expected<T, E> outcome) -> T {
    if (!outcome) std::abort();
    if constexpr (!std::is_void_v<T>) return *std::move(outcome);
}

auto median_us(std::vector<double>& seconds) -> double {
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::ranges::nth_element(seconds, middle);
    return *middle * 1e6;
}

// One after the other, so that both meet the same moods of the disk.
void receipt_against_bare(benchmark::State& state) {
    const test::folder folder;
    const auto home = folder.directory("state", 0700);
    receipt_journal journal{
        [&]() -> result<std::unique_ptr<journal::storage>> {
            GLOVE_TRY(auto store,
                      journal::file_storage::open(home, "receipts", journal::access::write));
            return std::make_unique<journal::file_storage>(std::move(store));
        },
        test::usual_key()};
    test::controller sage;
    must(sage.reconcile(journal));
    const auto plan = test::usual_plan();
    const auto rules = test::usual_rules();
    auto receipt = test::usual_receipt();
    receipt.library_projections = {test::projection_at("sage-core", 'b')};
    must(journal.append("sample", test::digits('a'), receipt, must(journal.reserve(plan, rules))));
    const auto size = std::filesystem::file_size(home + "/receipts") - 72;
    const std::string frame(static_cast<std::size_t>(size), 'x');
    const sys::unique_fd file{
        ::open((folder / "bare").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
    std::vector<double> bare, ours;
    const auto timed = [](std::vector<double>& into, auto&& what) {
        const auto begin = std::chrono::steady_clock::now();
        what();
        into.push_back(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    };
    std::size_t count = 0;
    for (auto _ : state) {
        timed(bare, [&] {
            must(sys::write_all(file, frame));
            if (::fdatasync(file.get()) != 0) std::abort();
        });
        const auto session = "s" + std::to_string(count++);
        timed(ours, [&] {
            must(journal.append(session, test::digits('a'), receipt,
                                must(journal.reserve(plan, rules))));
        });
        state.SetIterationTime(ours.back());
    }
    state.counters["bytes"] = static_cast<double>(size);
    state.counters["bare_us"] = median_us(bare);
    state.counters["receipt_us"] = median_us(ours);
    state.counters["ratio"] = median_us(ours) / median_us(bare);
}
BENCHMARK(receipt_against_bare)->Iterations(1'000)->UseManualTime();

} // namespace

BENCHMARK_MAIN();
