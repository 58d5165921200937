// Ownership of descriptors. The only place that calls ::close.
//
// Guarantees: an owned descriptor is closed exactly once; a borrow is made from an owner, never
// from a bare number, because a raw number has no known owner.
#pragma once
#include <unistd.h>
#include <utility>

namespace glove::sys {

class unique_fd {
public:
    unique_fd() = default;
    explicit unique_fd(int adopted) noexcept : fd_{adopted} {}
    unique_fd(unique_fd&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
    auto operator=(unique_fd&& other) noexcept -> unique_fd& {
        unique_fd{std::move(other)}.swap(*this);
        return *this;
    }
    ~unique_fd() {
        if (fd_ >= 0) (void)::close(fd_); // Linux frees the slot even on EINTR
    }
    explicit operator bool() const noexcept { return fd_ >= 0; }
    [[nodiscard]] auto get() const noexcept -> int { return fd_; }
    [[nodiscard]] auto release() noexcept -> int { return std::exchange(fd_, -1); }
    void swap(unique_fd& other) noexcept { std::swap(fd_, other.fd_); }

private:
    int fd_ = -1;
};

class fd_ref {
public:
    fd_ref(const unique_fd& owner) noexcept : fd_{owner.get()} {}
    fd_ref(unique_fd&&) = delete;
    [[nodiscard]] auto get() const noexcept -> int { return fd_; }
    // The three standard streams belong to the process as a whole.
    [[nodiscard]] static auto standard_input() noexcept -> fd_ref { return fd_ref{0}; }
    [[nodiscard]] static auto standard_output() noexcept -> fd_ref { return fd_ref{1}; }
    [[nodiscard]] static auto standard_error() noexcept -> fd_ref { return fd_ref{2}; }

private:
    explicit fd_ref(int number) noexcept : fd_{number} {}
    int fd_;
};

} // namespace glove::sys
