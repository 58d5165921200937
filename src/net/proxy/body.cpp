// The body of a forwarded request, read piece by piece and written anew, so that where it ends is
// decided here and not by the server.
#include "net/proxy/request.hpp"
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace glove::net::proxy {

namespace {

constexpr std::size_t longest_chunk_line = 256;
constexpr std::size_t longest_trailer = 8192;

} // namespace

auto body_filter::take_line(std::string_view& bytes, std::size_t longest) -> bool {
    line_ended_ = false;
    while (!bytes.empty()) {
        const char c = bytes.front();
        bytes.remove_prefix(1);
        if (c == '\n') {
            if (!line_.ends_with('\r')) return false;
            line_.pop_back();
            line_ended_ = true;
            return true;
        }
        const auto byte = static_cast<unsigned char>(c);
        if (line_.ends_with('\r') || (byte < 0x20 && c != '\t' && c != '\r') || byte == 0x7f)
            return false;
        if (line_.size() == longest) return false;
        line_ += c;
    }
    return true;
}

// SIZE[;EXTENSION]: extensions are for this hop alone and end here.
auto body_filter::read_size(std::string_view line) -> bool {
    constexpr std::size_t most_digits = 15;
    const auto digits = line.substr(0, line.find(';'));
    if (digits.empty() || digits.size() > most_digits) return false;
    const auto* const last = digits.data() + digits.size();
    const auto [end, problem] = std::from_chars(digits.data(), last, left_, 16);
    return problem == std::errc{} && end == last;
}

auto body_filter::feed(std::string_view bytes, std::string& out) -> bool {
    if (broken_ || done_) return !broken_;
    if (kind_ == body_kind::sized) {
        const auto piece = bytes.substr(0, std::min<std::uint64_t>(left_, bytes.size()));
        out.append(piece);
        left_ -= piece.size();
        done_ = left_ == 0;
        return true;
    }
    while (!done_ && !bytes.empty()) {
        if (part_ == part::data) {
            take_data(bytes, out);
            continue;
        }
        const auto longest =
            part_ == part::trailer ? longest_trailer - trailer_bytes_ : longest_chunk_line;
        broken_ = !take_line(bytes, longest) || (line_ended_ && !end_line());
        if (broken_) return false;
    }
    if (done_) out += "0\r\n\r\n";
    return true;
}

void body_filter::take_data(std::string_view& bytes, std::string& out) {
    const auto piece = bytes.substr(0, std::min<std::uint64_t>(left_, bytes.size()));
    std::array<char, 20> size{};
    const auto end = std::to_chars(size.data(), size.data() + size.size(), piece.size(), 16);
    out.append(size.data(), end.ptr).append("\r\n").append(piece).append("\r\n");
    bytes.remove_prefix(piece.size());
    left_ -= piece.size();
    if (left_ == 0) part_ = part::data_end;
}

auto body_filter::end_line() -> bool {
    const auto line = std::exchange(line_, {});
    switch (part_) {
    case part::size:
        if (!read_size(line)) return false;
        part_ = left_ == 0 ? part::trailer : part::data;
        return true;
    case part::data_end: part_ = part::size; return line.empty();
    case part::trailer:
        // Trailers are for this hop alone and end here.
        trailer_bytes_ += line.size();
        done_ = line.empty();
        return true;
    case part::data: break;
    }
    return false;
}

} // namespace glove::net::proxy
