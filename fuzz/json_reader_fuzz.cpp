// Whatever the bytes, the reader answers without a fault. What it accepts, written and read again,
// is equal and gives the same text; each slice of an object reads as the member's value; and the
// default limits accept nothing that wider limits refuse.
#include <cstdint>
#include <cstdlib>
#include <glove/wire/json.hpp>
#include <glove/wire/json_writer.hpp>
#include <glove/wire/utf8.hpp>

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

void check_slices(const glove::wire::json::value& tree, std::string_view text,
                  const glove::wire::json::limits& bounds) {
    const auto slices = glove::wire::json::member_slices(text);
    const auto* members = tree.as_object();
    require(slices.size() == (members == nullptr ? 0 : members->size()));
    for (std::size_t i = 0; i < slices.size(); ++i) {
        const auto part = glove::wire::json::read(slices[i], bounds);
        require(part && *part == (*members)[i].data);
    }
}

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    using namespace glove::wire;
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    (void)json::member_slices(text);

    json::limits wide;
    wide.form = json::numbers::any;
    wide.depth = json::max_depth;
    wide.number_bytes = wide.bytes;
    const auto strict = json::read(text);
    const auto out = json::read(text, wide);
    require(!strict || (out && *strict == *out));
    if (!out) {
        require(!out.error().step.empty() && is_utf8(out.error().detail));
        return 0;
    }
    require(is_utf8(text));
    const auto written = json::to_text(*out);
    const auto again = json::read(written, wide);
    require(again && *again == *out && json::to_text(*again) == written);
    check_slices(*out, text, wide);
    check_slices(*again, written, wide);
    return 0;
}
