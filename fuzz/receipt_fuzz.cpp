// Whatever the bytes: reading receipts, envelopes, pages and records of their journal answers
// without a fault; what is accepted is written again as it can be read, and a record as it was.
//
//   build/fuzz/fuzz/receipt_fuzz -max_total_time=60 -dict=fuzz/json.dict <corpus folder>
//   fuzz/seeds/receipt
#include "control/receipt_record.hpp"
#include <cstdint>
#include <cstdlib>
#include <glove/control/receipt_journal.hpp>

namespace {

using namespace glove;
using namespace glove::control;

void require(bool holds) {
    if (!holds) std::abort();
}

template<class T> void comes_back(const result<T>& read, result<T> (*decode)(std::string_view)) {
    if (!read) return;
    const auto text = encode(*read);
    require(text.has_value());
    const auto again = decode(*text);
    require(again.has_value() && *again == *read && encode(*again).value() == *text);
}

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    comes_back(decode_resource_receipt(text), decode_resource_receipt);
    comes_back(decode_refinement_receipt(text), decode_refinement_receipt);
    comes_back(decode_resource_envelope(text), decode_resource_envelope);
    comes_back(decode_refinement_envelope(text), decode_refinement_envelope);
    if (const auto page = decode_receipt_page(text)) require(encode(*page).has_value());
    const auto record = decode_chained_receipt(text);
    require(!record || encode(*record).value() == text);
    return 0;
}
