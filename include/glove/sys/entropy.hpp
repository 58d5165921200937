// Randomness as a seam: production asks the kernel, tests count.
#pragma once
#include <cstddef>
#include <glove/base/error.hpp>
#include <span>
#include <string>

namespace glove::sys {

class entropy {
public:
    virtual ~entropy() = default;
    [[nodiscard]] virtual auto fill(std::span<std::byte> out) -> result<> = 0;
};

class system_entropy final : public entropy {
public:
    [[nodiscard]] auto fill(std::span<std::byte> out) -> result<> override;
};

// 32 lower-case hexadecimal digits: the name of a run or a call.
[[nodiscard]] auto random_id(entropy& source) -> result<std::string>;

} // namespace glove::sys
