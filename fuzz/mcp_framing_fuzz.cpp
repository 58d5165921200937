// Whatever the bytes and however they are cut: the lines are those that a plain split gives, a line
// beyond the bound is told with its size and the next one is whole, and no more than the bound is
// held.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <glove/mcp/framing.hpp>
#include <vector>

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

struct seen {
    std::string text;
    bool too_long;
    std::size_t bytes;
    std::string tail = {};
    auto operator==(const seen&) const -> bool = default;
};

// The definition, of bytes that are all there.
auto split(std::string_view bytes, std::size_t longest) -> std::vector<seen> {
    std::vector<seen> out;
    for (;;) {
        const auto end = bytes.find('\n');
        if (end == std::string_view::npos) return out;
        auto line = bytes.substr(0, end);
        bytes.remove_prefix(end + 1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty()) continue;
        const bool too_long = line.size() > longest;
        const auto shown = too_long ? std::min<std::size_t>(256, longest) : line.size();
        const auto tail = std::min({line.size() - shown, 2048UL, (longest - shown) / 2});
        out.push_back({std::string{line.substr(0, shown)}, too_long, line.size(),
                       std::string{too_long ? line.substr(line.size() - tail) : ""}});
    }
}

} // namespace

// The first byte is the bound, the second the size of the pieces.
extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    if (size < 2) return 0;
    const auto longest = data[0] < 200 ? 1U + data[0] : 300U * (data[0] - 199U);
    const auto piece = 1UL + data[1] * (1UL + data[1] / 16U);
    const std::string_view bytes{reinterpret_cast<const char*>(data) + 2, size - 2};
    glove::mcp::line_reader reader{longest};
    std::vector<seen> out;
    for (auto rest = bytes; !rest.empty(); rest.remove_prefix(std::min(piece, rest.size()))) {
        reader.feed(rest.substr(0, piece));
        while (const auto line = reader.next())
            out.push_back(
                {std::string{line->text}, line->too_long, line->bytes, std::string{line->tail}});
        require(reader.held_bytes() <= longest + 1);
    }
    require(out == split(bytes, longest));
    return 0;
}
