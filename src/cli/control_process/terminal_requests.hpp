// What is asked of a session's terminal, as payloads of the wire; and a page of what it showed.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace glove::cli {

struct window_size {
    std::uint16_t rows = 0, columns = 0;
    auto operator==(const window_size&) const -> bool = default;
};
// ROWSxCOLUMNS, each 1 to 4096.
[[nodiscard]] auto size_named(std::string_view text) -> std::optional<window_size>;

// Of one request: small, so that one that is refused takes little with it, and no frame is large.
inline constexpr std::size_t most_input_piece = 4096;
inline constexpr std::size_t most_page_bytes = 65'536;

// 1 to 65536 bytes.
[[nodiscard]] auto input_request(std::string_view session_id, std::string_view bytes)
    -> std::string;
[[nodiscard]] auto resize_request(std::string_view session_id, const window_size& size)
    -> std::string;
[[nodiscard]] auto signal_request(std::string_view session_id, std::string_view name)
    -> std::string;
[[nodiscard]] auto page_request(std::string_view session_id, std::uint64_t cursor) -> std::string;

struct shown_page {
    std::uint64_t oldest_cursor = 0, next_cursor = 0;
    bool truncated = false, eof = false;
    std::string bytes;
    [[nodiscard]] auto cursor() const -> std::uint64_t { return next_cursor - bytes.size(); }
};
// The page that was asked for: of this session, and with cursors that fit to the one asked for.
[[nodiscard]] auto decode_page(std::string_view answer, std::string_view session_id,
                               std::uint64_t cursor) -> result<shown_page>;

} // namespace glove::cli
