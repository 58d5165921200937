// Rows of text as columns, for tables that people read.
#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace glove::cli {

// The last column is as long as it needs to be. The cells are fit for a terminal already.
template<std::size_t N>
[[nodiscard]] auto in_columns(const std::vector<std::array<std::string, N>>& rows) -> std::string {
    std::array<std::size_t, N> widths{};
    for (const auto& each : rows)
        for (std::size_t i = 0; i < N; ++i) widths[i] = std::max(widths[i], each[i].size());
    std::string out;
    for (const auto& each : rows) {
        for (std::size_t i = 0; i + 1 < N; ++i)
            out.append(each[i]).append(widths[i] - each[i].size() + 2, ' ');
        out.append(each.back()).append("\n");
    }
    return out;
}

} // namespace glove::cli
