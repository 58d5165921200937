// A few bytes that must not outlive their use: a page of their own that is overwritten before it is
// given back.
//
// Guarantees: not part of a core dump, and zeros in a child process; kept out of swap where the
// system's limits allow it, which `locked` tells. Moving moves the page, so nothing stays behind.
#pragma once
#include <cstddef>
#include <glove/base/error.hpp>
#include <span>
#include <string_view>
#include <utility>

namespace glove::sys {

class secret_memory {
public:
    // Zeros; at most 4096. Step: secret.memory.
    [[nodiscard]] static auto make(std::size_t bytes) -> result<secret_memory>;
    secret_memory(secret_memory&& other) noexcept
        : page_{std::exchange(other.page_, nullptr)}, size_{std::exchange(other.size_, 0)},
          locked_{std::exchange(other.locked_, false)} {}
    auto operator=(secret_memory&& other) noexcept -> secret_memory& {
        std::swap(page_, other.page_);
        std::swap(size_, other.size_);
        std::swap(locked_, other.locked_);
        other.release();
        return *this;
    }
    ~secret_memory() { release(); }

    [[nodiscard]] auto bytes() noexcept -> std::span<char> { return {page_, size_}; }
    // Nothing once it was moved from.
    [[nodiscard]] auto view() const noexcept -> std::string_view { return {page_, size_}; }
    [[nodiscard]] auto locked() const noexcept -> bool { return locked_; }

private:
    secret_memory() = default;
    void release() noexcept;

    char* page_ = nullptr;
    std::size_t size_ = 0;
    bool locked_ = false;
};

} // namespace glove::sys
