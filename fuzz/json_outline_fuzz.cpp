// Whatever the bytes, the outline accepts exactly the objects that the reader accepts, under wide
// limits and under narrow ones, and its slices are the text of what the reader made.
#include <cstdint>
#include <cstdlib>
#include <glove/wire/json.hpp>
#include <glove/wire/json_outline.hpp>
#include <glove/wire/json_writer.hpp>
#include <glove/wire/utf8.hpp>

namespace {

using namespace glove::wire;

void require(bool holds) {
    if (!holds) std::abort();
}

void check_member(const json::slice& found, const json::member& made, std::string_view text,
                  const json::limits& bounds) {
    require(found.name == made.name && found.type == made.data.type());
    require(found.text.data() >= text.data() &&
            found.text.data() + found.text.size() <= text.data() + text.size());
    const auto again = json::read(found.text, bounds);
    require(again && *again == made.data);
    if (const auto* const string = made.data.as_string(); string != nullptr)
        require(json::decoded_string(found.text) == *string);
}

void check(json::outline& outline, std::string_view text, const json::limits& bounds) {
    const auto made = json::read(text, bounds);
    const auto done = outline.read(text, bounds);
    require(done.has_value() == (made && made->type() == json::kind::object));
    if (!done) {
        require(!done.error().step.empty() && is_utf8(done.error().detail));
        require(outline.members().empty());
        return;
    }
    std::string anew;
    json::append_rewritten(anew, text);
    require(anew == json::to_text(*made));
    const auto& members = *made->as_object();
    require(outline.members().size() == members.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
        const auto& found = outline.members()[i];
        check_member(found, members[i], text, bounds);
        const auto inside = outline.inside(found);
        const auto* const parts = members[i].data.as_object();
        require(inside.size() == (parts == nullptr ? 0 : parts->size()));
        for (std::size_t j = 0; j < inside.size(); ++j)
            check_member(inside[j], (*parts)[j], text, bounds);
    }
}

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    static json::outline outline; // reused, as for messages
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    (void)json::decoded_string(text);
    std::string anyhow;
    json::append_rewritten(anyhow, text); // whatever it is
    json::limits wide;
    wide.form = json::numbers::any;
    wide.depth = json::max_depth;
    wide.number_bytes = wide.bytes;
    check(outline, text, wide);
    const json::limits narrow{.bytes = 400,
                              .depth = 4,
                              .members = 3,
                              .elements = 4,
                              .values = 12,
                              .string_bytes = 12,
                              .number_bytes = 8,
                              .form = json::numbers::integers,
                              .zero = json::nul::refused};
    check(outline, text, narrow);
    return 0;
}
