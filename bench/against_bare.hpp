// What benchmarks need that set something against what it cannot do without: both in turns, so that
// they meet the same moods of the disk, and the middle of each. What fails ends the program.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>

#include <glove/sys/fd.hpp>
#include <glove/sys/files.hpp>

namespace glove::bench {

// Of a result or an answer.
template<class Outcome> auto must(Outcome outcome) -> typename Outcome::value_type {
    if (!outcome) {
        if constexpr (requires { outcome.error().step; })
            std::fprintf(stderr, "%s: %s\n", std::string{outcome.error().step}.c_str(),
                         outcome.error().detail.c_str());
        std::abort();
    }
    if constexpr (!std::is_void_v<typename Outcome::value_type>) return *std::move(outcome);
}

class seconds {
public:
    void add(auto&& what) {
        const auto begin = std::chrono::steady_clock::now();
        what();
        all_.push_back(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    [[nodiscard]] auto last() const -> double { return all_.back(); }
    [[nodiscard]] auto median_us() -> double {
        const auto middle = all_.begin() + static_cast<std::ptrdiff_t>(all_.size() / 2);
        std::ranges::nth_element(all_, middle);
        return *middle * 1e6;
    }

private:
    std::vector<double> all_;
};

// What nobody who puts something on record durably can do without.
inline void write_durably(sys::fd_ref file, std::string_view bytes) {
    must(sys::write_all(file, bytes));
    if (::fdatasync(file.get()) != 0) std::abort();
}

} // namespace glove::bench
