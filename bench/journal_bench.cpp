// What a journal costs over what it cannot do without: a durable append against a write and
// fdatasync of the same bytes on the same disk, and recovery against reading and hashing the same
// file. In a folder below TMPDIR, which should be on the disk in question.
//
// `plain` records are a fixed form around their text, so that the log itself is measured; `json`
// records are read with the strict reader, as those of the control plane are.
#include "against_bare.hpp"
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <glove/base/numbers.hpp>
#include <glove/journal/file_storage.hpp>
#include <glove/journal/typed_log.hpp>
#include <journal/notes.hpp>
#include <support/folder.hpp>

namespace {

using namespace glove;
using bench::must;

// 20 digits, the digest before, the own one, text.
class plain_codec {
public:
    struct record {
        std::uint64_t sequence = 0;
        std::string previous, digest, text;
    };
    static auto decode(std::string_view payload) -> result<record> {
        if (payload.size() < fixed) return fail(errc::corrupt, "plain.size");
        auto digits = payload.substr(0, 20);
        digits.remove_prefix(std::min<std::size_t>(digits.find_first_not_of('0'), 19));
        record out{.sequence = parse_decimal(digits, UINT64_MAX).value_or(0),
                   .previous = std::string{payload.substr(20, 64)},
                   .digest = std::string{payload.substr(84, 64)},
                   .text = std::string{payload.substr(fixed)}};
        GLOVE_TRY(const auto own, digest_of(payload));
        if (own != out.digest) return fail(errc::corrupt, "plain.digest");
        return out;
    }
    static auto facts_of(const record& of) -> journal::facts {
        return {of.sequence, of.previous, of.digest, 0};
    }
    static auto seal(record& what, const journal::mark& last) -> result<std::string> {
        auto digits = std::to_string(last.sequence + 1);
        std::string out = std::string(20 - digits.size(), '0') + digits + last.digest;
        out += std::string(64, '0') + what.text;
        GLOVE_TRY(const auto own, digest_of(out));
        return out.replace(84, 64, own);
    }
    static auto authenticate(std::string_view bytes) -> result<std::string> {
        GLOVE_TRY(const auto digest, wire::sha256(bytes));
        return wire::to_hex(digest);
    }

private:
    static constexpr std::size_t fixed = 148;
    static auto digest_of(std::string_view payload) -> result<std::string> {
        GLOVE_TRY(auto hash, wire::sha256_stream::start());
        GLOVE_CHECK(hash.update(payload.substr(0, 84)));
        GLOVE_CHECK(hash.update(payload.substr(fixed)));
        GLOVE_TRY(const auto digest, std::move(hash).finish());
        return wire::to_hex(digest);
    }
};

template<class C> struct journal_here {
    journal::file_storage store;
    journal::typed_log<C> log;
    static auto open(const std::string& home) -> std::unique_ptr<journal_here> {
        auto store = must(journal::file_storage::open(home, "bench", journal::access::write));
        return std::unique_ptr<journal_here>{new journal_here{std::move(store)}};
    }

private:
    explicit journal_here(journal::file_storage adopted)
        : store{std::move(adopted)},
          log{must(journal::typed_log<C>::open(
              store, {.form = journal::session_registry, .missing = journal::absence::creates}, C{},
              [](auto&&, journal::origin) -> result<> { return {}; }))} {}
};

// One after the other, so that both meet the same moods of the disk.
template<class C> void append_against_bare(benchmark::State& state) {
    const test::folder folder;
    const auto bytes = static_cast<std::size_t>(state.range(0));
    auto journal = journal_here<C>::open(folder.directory("state", 0700));
    typename C::record sample;
    sample.text = std::string(bytes - must(C{}.seal(sample, {})).size(), 'x');
    const std::string frame(bytes + 8, 'x');
    const sys::unique_fd file{
        ::open((folder / "bare").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
    bench::seconds bare, ours;
    for (auto _ : state) {
        bare.add([&] { bench::write_durably(file, frame); });
        ours.add([&] { must(journal->log.append(sample)); });
        state.SetIterationTime(ours.last());
    }
    state.counters["bare_us"] = bare.median_us();
    state.counters["journal_us"] = ours.median_us();
    state.counters["ratio"] = ours.median_us() / bare.median_us();
}

// A journal of so many records that take so many bytes together.
template<class C> auto filled(const std::string& home, std::size_t records, std::size_t bytes)
    -> std::string {
    std::string out{journal::session_registry.magic};
    journal::mark head;
    C codec;
    typename C::record sample;
    const auto least = must(codec.seal(sample, head)).size() + 8;
    for (std::size_t i = 0; i < records; ++i) {
        sample.text = std::string((bytes - out.size()) / (records - i) - least - 4, 'x');
        const auto payload = must(codec.seal(sample, head));
        for (int end = 0; end < 2; ++end) {
            if (end == 1) out += payload;
            for (const unsigned shift : {24U, 16U, 8U, 0U})
                out += static_cast<char>(payload.size() >> shift & 0xffU);
        }
        const auto facts = codec.facts_of(must(codec.decode(payload)));
        head = {facts.sequence, facts.digest};
    }
    std::ofstream{home + "/bench"} << out;
    if (::chmod((home + "/bench").c_str(), 0600) != 0) std::abort();
    return home + "/bench";
}

void count(benchmark::State& state) {
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(1));
}

void read_and_hash(benchmark::State& state) {
    const test::folder folder;
    const auto path = filled<plain_codec>(folder.directory("state", 0700),
                                          static_cast<std::size_t>(state.range(0)),
                                          static_cast<std::size_t>(state.range(1)));
    std::string piece(256UL << 10, '\0');
    for (auto _ : state) {
        const sys::unique_fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
        auto hash = must(wire::sha256_stream::start());
        for (;;) {
            const auto got = ::read(file.get(), piece.data(), piece.size());
            if (got <= 0) break;
            must(hash.update(std::string_view{piece}.substr(0, static_cast<std::size_t>(got))));
        }
        benchmark::DoNotOptimize(must(std::move(hash).finish()));
    }
    count(state);
}

template<class C> void recover(benchmark::State& state) {
    const test::folder folder;
    const auto home = folder.directory("state", 0700);
    filled<C>(home, static_cast<std::size_t>(state.range(0)),
              static_cast<std::size_t>(state.range(1)));
    for (auto _ : state) {
        const auto journal = journal_here<C>::open(home);
        if (journal->log.core().records().size() != static_cast<std::size_t>(state.range(0)))
            std::abort();
    }
    count(state);
}

constexpr auto appends = 1'000;
constexpr std::int64_t mib = 1 << 20;
void recoveries(benchmark::internal::Benchmark* of) {
    of->Args({10'000, 10 * mib})->Args({10'000, 64 * mib})->Args({100, 64 * mib});
    of->Unit(benchmark::kMillisecond);
}
BENCHMARK(append_against_bare<plain_codec>)
    ->Arg(1024)
    ->Arg(4096)
    ->Iterations(appends)
    ->UseManualTime();
BENCHMARK(append_against_bare<test::note_codec>)
    ->Arg(1024)
    ->Arg(4096)
    ->Iterations(appends)
    ->UseManualTime();
BENCHMARK(read_and_hash)->Apply(recoveries);
BENCHMARK(recover<plain_codec>)->Apply(recoveries);
BENCHMARK(recover<test::note_codec>)->Apply(recoveries);

} // namespace

BENCHMARK_MAIN();
