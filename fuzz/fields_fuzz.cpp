// Whatever the bytes, a text that is decoded as it is read and the tree of it give the same value
// or the same error, and agree on whether the text is the one that is written; under wide limits
// and under narrow ones.
//
//   build/fuzz/fuzz/fields_fuzz -max_total_time=60 -dict=fuzz/json.dict <corpus folder>
//   fuzz/seeds/fields
#include <cstdint>
#include <cstdlib>
#include <wire/both_ways.hpp>
#include <wire/every_rule.hpp>

namespace {

using namespace glove;
using wire::json::limits;

void check(std::string_view text, const limits& bounds) {
    if (!test::disagreement(text, test::every_fields, bounds).empty()) std::abort();
}

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    check(text, {});
    check(text, {.form = wire::json::numbers::any});
    check(text, {.bytes = 700,
                 .depth = 3,
                 .members = 15,
                 .elements = 2,
                 .values = 30,
                 .string_bytes = 12,
                 .number_bytes = 8,
                 .zero = wire::json::nul::refused});
    return 0;
}
