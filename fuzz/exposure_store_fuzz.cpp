// Whatever the bytes of an exposure journal: opening answers without a fault and changes nothing.
// What opens gives the same ledger again, goes on, and never gives a generation twice.
//
// Bytes that begin with the magic are a file. Others are a script of records, which are hashed and
// chained as they should be, so that what follows from what is looked at, too.
//
//   build/fuzz/fuzz/exposure_store_fuzz -max_total_time=60 <corpus folder>
//   fuzz/seeds/exposure_store
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <glove/control/exposure_store.hpp>
#include <glove/journal/format.hpp>
#include <support/memory_storage.hpp>

namespace {

using namespace glove;
using namespace glove::control;
using namespace glove::supervisor;

void require(bool holds) {
    if (!holds) std::abort();
}

class still_clock final : public sys::clock {
public:
    [[nodiscard]] auto monotonic() const noexcept -> std::chrono::nanoseconds override {
        return {};
    }
    [[nodiscard]] auto wall() const noexcept -> std::chrono::nanoseconds override {
        return std::chrono::seconds{10};
    }
};

auto root() -> const std::string& {
    static const std::string made = [] {
        std::string name = std::filesystem::canonical(std::filesystem::temp_directory_path());
        name += "/glove-fuzz-XXXXXX";
        require(::mkdtemp(name.data()) != nullptr);
        std::filesystem::create_directory(name + "/p");
        return name;
    }();
    return made;
}

auto policy() -> exposure_policy {
    exposure_rules rules;
    rules.roots = {
        {"root", root(), {{access_kind::read, {}, 0, cleanup_kind::retain}}, 100, {"t"}}};
    auto out = exposure_policy::freeze(std::move(rules));
    require(out.has_value());
    return *std::move(out);
}

void append_frame(std::string& file, std::string_view payload) {
    for (int end = 0; end < 2; ++end) {
        if (end == 1) file += payload;
        for (const unsigned shift : {24U, 16U, 8U, 0U})
            file += static_cast<char>(payload.size() >> shift & 0xffU);
    }
}

// Four bytes a record: what, whose, which generation, and the request.
auto file_of(std::string_view script) -> std::string {
    std::string out{journal::exposures.magic};
    std::string previous(64, '0');
    std::uint64_t sequence = 0;
    for (; script.size() >= 4; script.remove_prefix(4)) {
        const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(script[i]); };
        const std::string id{static_cast<char>('a' + byte(1) % 4)};
        const std::uint64_t generation = byte(2) % 8;
        const auto request = "k" + std::to_string(byte(3) % 64);
        exposure_record record{++sequence, {}, previous, {}};
        if (byte(0) % 2 == 0) {
            exposure_descriptor made{id,
                                     generation,
                                     "root",
                                     std::string(64, '1'),
                                     {},
                                     "label",
                                     {{access_kind::read, {}, 0, cleanup_kind::retain}},
                                     byte(0) * 100U + 1U,
                                     {"t"}};
            made.scope_digest = scope_digest(made).value();
            record.fact = exposure_created{made, request, std::string(64, '2'), root() + "/p",
                                           std::string(64, '3')};
        } else {
            const revoke_exposure what{id, generation};
            record.fact = exposure_revoked{request, request_digest(request, what).value(), id,
                                           generation, byte(0)};
        }
        record.record_hash = record_hash(record).value();
        previous = record.record_hash;
        const auto text = encode(record);
        if (!text) break;
        append_frame(out, *text);
    }
    return out;
}

auto ledger_of(const exposure_store& store) -> exposure_snapshot {
    exposure_snapshot out;
    store.with([&](const exposures_now& now) { out = now.ledger.snapshot(); });
    return out;
}

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    static const still_clock clock;
    const std::string_view input{reinterpret_cast<const char*>(data), size};
    const std::string bytes =
        input.starts_with(journal::exposures.magic) ? std::string{input} : file_of(input);
    test::memory_files files{.file = bytes, .next = {}, .head = {}, .on_sync = {}};
    test::memory_storage store{files};
    exposure_snapshot before;
    {
        const auto opened = exposure_store::open(store, policy(), clock);
        require(files.file == bytes);
        if (!opened) return 0;
        before = ledger_of(**opened);
        (void)(*opened)->list();
        const auto made =
            (*opened)->create("a-new-key", {"fresh",
                                            "root",
                                            root() + "/p",
                                            "label",
                                            {{access_kind::read, {}, 0, cleanup_kind::retain}},
                                            10,
                                            {"t"}});
        if (made)
            for (const auto& kept : before.kept)
                require(kept.created.descriptor.exposure_id != "fresh" ||
                        kept.created.descriptor.generation < made->generation);
        before = ledger_of(**opened);
    }
    const auto again = exposure_store::open(store, policy(), clock);
    require(again.has_value() && ledger_of(**again) == before);
    return 0;
}
