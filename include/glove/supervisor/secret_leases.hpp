// Copies of the operator's credentials that sessions use, one session at a time. A runtime may
// renew its login: what a session made of its copy is taken back, and lent to the next one.
//
// Guarantees: a source is read through no link and is the caller's alone. A lease gets its name
// when it is whole and on the disk, so what was cut short is never used. While a session has it
// nobody else does, in this process or another. A session works on a copy in its own file system,
// whose quota bounds it, and never on the lease. What is not of the present policy is overwritten
// and removed, as is each content that a newer one replaces, after a crash by the next sweep. (A
// file system that does not write in place, or a disk that moves its blocks, may keep what was
// overwritten.) Errors never hold a content.
//
// In the directory ".credential-leases" of the materialization root, both 0700: `lease-ID` and
// `lock-ID`, where ID is the SHA-256 of RUNTIME:HANDLE:SHA-256 of the source's content, so another
// source content is another lease.
#pragma once
#include <cstdint>
#include <functional>
#include <glove/base/error.hpp>
#include <glove/base/wipe.hpp>
#include <glove/supervisor/session_policy.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/fd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glove::supervisor {

inline constexpr std::size_t most_secret_bytes = 1UL << 20U;
inline constexpr const char* leases_directory = ".credential-leases";

// Asked before each durable step by its name: copy, take, retire, wipe, remove. Its error ends the
// work.
using lease_step = std::function<result<>(std::string_view)>;

// Ends the exclusive use when it is destroyed.
class secret_lease {
public:
    secret_lease(secret_lease&& other) noexcept = default;
    auto operator=(secret_lease&&) -> secret_lease& = delete;
    ~secret_lease() { wipe(content_); }

    [[nodiscard]] auto name() const -> const std::string& { return name_; }

    // A new file of mode 0600 in a directory of the session's own file system. Its quota is told as
    // errc::limit_exceeded. Step: lease.give.
    [[nodiscard]] auto give(sys::fd_ref directory, const std::string& name) const -> result<>;

    // What the session has made of it, when it is over. A regular file of the caller with one link
    // and 1 byte to 1 MiB; anything else is refused, and the lease stays as it was. Whether it had
    // changed. Steps: lease.returned, lease.take, lease.wipe, lease.remove.
    [[nodiscard]] auto take_back(sys::fd_ref directory, const std::string& name) -> result<bool>;

private:
    friend class lease_store;
    secret_lease(sys::unique_fd directory, sys::unique_fd lock, std::string name,
                 std::string content, const sys::clock& time, lease_step before)
        : directory_{std::move(directory)}, lock_{std::move(lock)}, name_{std::move(name)},
          content_{std::move(content)}, time_{time}, before_{std::move(before)} {}

    sys::unique_fd directory_, lock_;
    std::string name_, content_;
    const sys::clock& time_;
    lease_step before_;
};

struct lease_sweep {
    std::vector<std::string> removed; // leases
    std::vector<std::string> in_use;  // and of no policy; the next sweep removes them
};

class lease_store {
public:
    // `root` is the materialization root; the clock outlives the store and its leases. Step:
    // lease.directory.
    [[nodiscard]] static auto open(sys::fd_ref root, const sys::clock& time, lease_step before = {})
        -> result<lease_store>;

    // Steps: lease.source, lease.busy (errc::conflict: another session has it), lease.lock,
    // lease.copy, lease.damaged.
    [[nodiscard]] auto lend(const secret_mount& what) const -> result<secret_lease>;

    // To be asked at the start and after a change of the policy. While one source cannot be read,
    // nothing is removed: its lease could not be told from one of no policy. Steps: lease.source,
    // lease.list, lease.wipe, lease.remove.
    [[nodiscard]] auto sweep(std::span<const secret_mount> policy) const -> result<lease_sweep>;

private:
    lease_store(sys::unique_fd directory, const sys::clock& time, lease_step before)
        : directory_{std::move(directory)}, time_{time}, before_{std::move(before)} {}

    sys::unique_fd directory_;
    const sys::clock& time_;
    lease_step before_;
};

} // namespace glove::supervisor
