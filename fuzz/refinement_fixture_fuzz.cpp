// Whatever the bytes: a fixture that is accepted is written again to the byte, and has a digest; a
// stream gives the same evidence however it is cut, and valid evidence only when it is UTF-8.
//
//   build/fuzz/fuzz/refinement_fixture_fuzz -max_total_time=60 -dict=fuzz/json.dict <corpus folder>
//   fuzz/seeds/refinement_fixture
#include <cstdint>
#include <cstdlib>
#include <glove/control/refinement_fixture.hpp>
#include <glove/wire/utf8.hpp>

namespace {

using namespace glove;
using namespace glove::control;

void require(bool holds) {
    if (!holds) std::abort();
}

auto evidence_of(const fixture_assertions& expected, std::string_view bytes, std::size_t piece)
    -> refinement_evidence {
    auto eye = transcript_evaluator::start(expected);
    require(eye.has_value());
    while (!bytes.empty()) {
        require(eye->feed(bytes.substr(0, piece)).has_value());
        bytes.remove_prefix(std::min(piece, bytes.size()));
    }
    auto out = std::move(*eye).finish({termination_cause::exited, 0, 5, true});
    require(out.has_value());
    return *std::move(out);
}

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    fixture_assertions expected{
        termination_cause::exited, 0, {"a", "aba", "\xc3\xa4"}, {"ab", "b"}, 10};
    if (const auto fixture = decode_refinement_fixture(text)) {
        require(encode(*fixture).value() == text);
        require(matched_context_digest(*fixture, std::string(64, '0')).has_value());
        expected = fixture->assertions;
    }
    const auto whole = evidence_of(expected, text, text.size());
    require(whole == evidence_of(expected, text, 1) && whole == evidence_of(expected, text, 7));
    require(whole.evaluator.transcript_utf8 == wire::is_utf8(text));
    return 0;
}
