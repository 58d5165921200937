// Whatever the bytes of a session registry: opening answers without a fault, changes nothing that
// it refuses, and what it opens it opens again, to the same sessions; a session can be made in it.
//
// The file is tried as it is, and once more with places and digests made good, so that mutations
// get behind the chain to the rules of records and of lives.
//
//   build/fuzz/fuzz/session_registry_fuzz -max_total_time=60 <corpus folder>
//   fuzz/seeds/session_registry
#include "control/session_fields.hpp"
#include "control/session_state.hpp"
#include <cstdlib>
#include <glove/adapters/sage.hpp>
#include <support/failing_disk.hpp>

namespace {

using namespace glove;
using namespace glove::control;

void require(bool holds) {
    if (!holds) std::abort();
}

class still_clock final : public sys::clock {
public:
    auto monotonic() const noexcept -> std::chrono::nanoseconds override { return wall(); }
    auto wall() const noexcept -> std::chrono::nanoseconds override {
        return std::chrono::milliseconds{1500};
    }
};

auto channels() -> const channel_host& {
    static const auto host = [] {
        channel_host out;
        require(out.add(adapters::sage::observation_channel()).has_value());
        require(out.freeze().has_value());
        return out;
    }();
    return host;
}

struct seen {
    std::vector<session_view> sessions;
    std::size_t pending = 0;
    std::size_t quarantined = 0;
    auto operator==(const seen&) const -> bool = default;
};

auto look(test::failing_disk& disk, bool make = false) -> std::optional<seen> {
    test::failing_storage store{disk};
    const still_clock clock;
    const auto opened = session_registry::open(store, {}, &channels(), clock);
    if (!opened) return std::nullopt;
    auto& registry = **opened;
    if (make) {
        const auto refused = registry.create("a key", {}, nullptr);
        require(!refused.has_value());
    }
    return seen{registry.list("", 256).sessions, registry.pending(0, 256).items.size(),
                registry.quarantined(0, 256).size()};
}

void check(std::string_view file) {
    test::failing_disk disk;
    disk.put("file", std::string{file});
    const auto first = look(disk);
    if (!first) {
        require(disk.content() == file);
        return;
    }
    const auto kept = disk.content();
    require(look(disk, true) == first && disk.content() == kept);
}

auto length_at(std::string_view file, std::size_t at) -> std::size_t {
    std::size_t out = 0;
    for (std::size_t i = 0; i < 4; ++i) out = out << 8 | static_cast<unsigned char>(file[at + i]);
    return out;
}
void put_length(std::string& out, std::size_t length) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(length >> shift & 0xff);
}

// Frames of whatever can be read as a record, in a chain.
auto made_good(std::string_view file) -> std::string {
    const session_codec codec;
    std::string out{"GLVSES05"};
    journal::mark head;
    for (std::size_t at = 8; at + 4 <= file.size();) {
        const auto length = length_at(file, at);
        if (length > file.size() - at - 4) break;
        auto record = wire::decode_text(file.substr(at + 4, length), session_fields);
        at += length + 8;
        if (!record) continue;
        const auto payload = codec.seal(*record, head);
        if (!payload) continue;
        put_length(out, payload->size());
        out += *payload;
        put_length(out, payload->size());
        head = {record->sequence, record->this_hash};
    }
    return out;
}

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    const std::string_view bytes{reinterpret_cast<const char*>(data), size};
    check(bytes);
    if (bytes.starts_with("GLVSES05")) check(made_good(bytes));
    return 0;
}
