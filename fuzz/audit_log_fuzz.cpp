// Whatever the bytes: pieces of any size make the same lines; a line that is read is a record that
// reads the same when it is written again; and no row of the table holds a control character but
// its own line's end.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <glove/audit/jsonl.hpp>
#include <glove/audit/table.hpp>

namespace {

using namespace glove;

void require(bool holds) {
    if (!holds) std::abort();
}

[[nodiscard]] auto lines_of(std::string_view bytes, std::size_t piece) -> std::vector<std::string> {
    audit::line_cutter cutter;
    std::vector<std::string> out;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
        cutter.feed(bytes.substr(at, piece),
                    [&](const auto& line) { out.emplace_back(line.text); });
    return out;
}

void check_row(const audit::row& row) {
    for (const std::size_t width : {std::size_t{0}, std::size_t{40}, std::size_t{120}})
        for (const char c : audit::table_line(row, {.width = width, .colours = false})) {
            const auto byte = static_cast<unsigned char>(c);
            require(c == '\n' || (byte >= 0x20 && byte != 0x7f));
        }
}

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    const std::string_view bytes{reinterpret_cast<const char*>(data), size};
    const auto whole = lines_of(bytes, std::max<std::size_t>(size, 1));
    require(whole == lines_of(bytes, 3));
    audit::row_joiner joiner;
    for (const auto& line : whole) {
        const auto record = audit::read_record(line);
        if (!record) continue;
        auto again = audit::to_line(record->data);
        again.pop_back();
        const auto twice = audit::read_record(again);
        require(twice.has_value() && twice->data.run == record->data.run &&
                twice->data.tool == record->data.tool && twice->argv == record->argv &&
                twice->data.timestamp_ns == record->data.timestamp_ns);
        joiner.add(*record, 0);
    }
    joiner.settle(0);
    for (const auto& row : joiner.rows()) check_row(row);
    return 0;
}
