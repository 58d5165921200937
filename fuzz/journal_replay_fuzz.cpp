// Whatever the bytes of a journal: opening, looking and repairing answer without a fault and agree.
// What opens is made of whole frames, is not changed by that, and opens again; what a repair has
// mended opens; what it refuses it leaves as it is.
//
// The codec takes a record's digest as it stands, so that mutations get behind it.
//
//   build/fuzz/fuzz/journal_replay_fuzz -max_total_time=60 <corpus folder>
//   fuzz/seeds/journal_replay
#include <cstdint>
#include <cstdlib>
#include <glove/journal/inspect.hpp>
#include <journal/notes.hpp>

namespace {

using namespace glove;

void require(bool holds) {
    if (!holds) std::abort();
}

class trusting_reader final : public journal::record_reader {
public:
    auto read(std::string_view payload) -> result<journal::facts> override {
        GLOVE_TRY(const auto what, wire::decode_text(payload, test::note_rows));
        return journal::facts{what.sequence, what.previous_hash, what.this_hash,
                              static_cast<std::uint8_t>(what.guest ? 1 : 0)};
    }
    auto apply(journal::origin) -> result<> override { return {}; }
    auto authenticate(std::string_view) -> result<std::string> override {
        return std::string(64, 'a');
    }
};

struct looked {
    bool opens = false;
    journal::mark head;
    std::uint64_t bytes = 0;
};

auto look(test::failing_disk& disk, const journal::settings& how) -> looked {
    test::failing_storage store{disk};
    trusting_reader reader;
    auto opened = journal::log::open(store, how, reader);
    if (!opened) return {};
    for (const auto& one : opened->records()) require(opened->payload(one.sequence).has_value());
    return {true, opened->head(), disk.content().size()};
}

void check(const journal::format& form, std::string_view bytes) {
    auto how = test::settings_of(form);
    how.missing = journal::absence::refused;
    test::failing_disk disk;
    disk.put("file", std::string{bytes});
    trusting_reader reader;
    const auto seen = [&] {
        test::failing_storage store{disk};
        return journal::inspect(store, how, reader);
    }();
    require(seen.has_value() && disk.content() == bytes);
    require(seen->defect.has_value() || seen->found.bytes + seen->cut_bytes == bytes.size());
    const auto first = look(disk, how);
    require(first.opens == seen->sound() && disk.content() == bytes);
    if (first.opens) {
        const auto again = look(disk, how); // and now there is a witness
        require(again.opens && again.head == first.head && disk.content() == bytes);
    }
    test::failing_storage store{disk};
    const bool mended = journal::repair(store, how, reader).has_value();
    require(mended == !seen->defect.has_value());
    require(disk.content() == bytes.substr(0, mended ? seen->found.bytes : bytes.size()));
    require(!mended || look(disk, how).opens);
}

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    const std::string_view bytes{reinterpret_cast<const char*>(data), size};
    for (const auto& form : test::all_formats)
        if (bytes.starts_with(form.magic.substr(0, 6))) check(form, bytes);
    return 0;
}
