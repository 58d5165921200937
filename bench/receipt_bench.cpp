// What a receipt costs over what it cannot do without: room, digest, HMAC, reading it back and a
// durable append against a write and fdatasync of as many bytes on the same disk. In a folder below
// TMPDIR, which should be on the disk in question.
#include "against_bare.hpp"
#include <benchmark/benchmark.h>
#include <control/receipt_journal_scene.hpp>
#include <fcntl.h>
#include <glove/journal/file_storage.hpp>
#include <support/folder.hpp>

namespace {

using namespace glove;
using bench::must;
using namespace glove::control;

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
    bench::seconds bare, ours;
    std::size_t count = 0;
    for (auto _ : state) {
        bare.add([&] { bench::write_durably(file, frame); });
        const auto session = "s" + std::to_string(count++);
        ours.add([&] {
            must(journal.append(session, test::digits('a'), receipt,
                                must(journal.reserve(plan, rules))));
        });
        state.SetIterationTime(ours.last());
    }
    state.counters["bytes"] = static_cast<double>(size);
    state.counters["bare_us"] = bare.median_us();
    state.counters["receipt_us"] = ours.median_us();
    state.counters["ratio"] = ours.median_us() / bare.median_us();
}
BENCHMARK(receipt_against_bare)->Iterations(1'000)->UseManualTime();

} // namespace

BENCHMARK_MAIN();
