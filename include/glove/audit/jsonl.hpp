// The local activity record: one JSON object a line, in a file of the owner alone.
//
// Guarantees: what is committed is appended whole, in one write, or the commit fails and nothing of
// it stays but, at the most, white space; a file that is a link, has a second name, belongs to
// another or can be read by others is refused. It does not protect the file from a host process of
// the same user.
#pragma once
#include <cstddef>
#include <glove/base/audit.hpp>
#include <glove/sys/fd.hpp>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>

namespace glove::audit {

enum class durability : std::uint8_t {
    process, // survives a crash of Glove
    power,   // survives a power cut: each commit is synced
};

[[nodiscard]] auto to_line(const event& what) -> std::string; // ends in a newline
void append_line(std::string& out, const event& what);

// The system calls that a record depends on; tests have them fail. They set errno.
class record_file_calls {
public:
    virtual ~record_file_calls() = default;
    [[nodiscard]] virtual auto lock(sys::fd_ref file) noexcept -> bool;
    virtual void unlock(sys::fd_ref file) noexcept;
    [[nodiscard]] virtual auto write(sys::fd_ref file, std::string_view bytes) noexcept
        -> ::ssize_t;
    [[nodiscard]] virtual auto cut_back(sys::fd_ref file, ::off_t size) noexcept -> bool;
    // Whether its file system keeps the appends of several writers apart.
    [[nodiscard]] virtual auto is_orderly(sys::fd_ref file) noexcept -> bool;
    [[nodiscard]] virtual auto write_over(sys::fd_ref file, std::string_view bytes,
                                          ::off_t at) noexcept -> bool;
    [[nodiscard]] virtual auto sync(sys::fd_ref file) noexcept -> bool;
};
[[nodiscard]] auto system_calls() noexcept -> record_file_calls&;

class jsonl_sink final : public batching_sink {
public:
    // `path` is absolute; its directory is made (0700) when it does not exist. `calls` outlive the
    // sink.
    [[nodiscard]] static auto open(const std::string& path, durability how,
                                   record_file_calls& calls = system_calls()) -> result<jsonl_sink>;
    // Commits what is staged, too. When nothing was, a failure leaves the file as it was and the
    // sink in use, unless what was written could not be cut off again.
    [[nodiscard]] auto append(const event& what) -> result<> override;
    [[nodiscard]] auto stage(const event& what) -> result<> override;
    [[nodiscard]] auto commit() -> result<> override;

private:
    jsonl_sink(sys::unique_fd file, std::string path, durability how, record_file_calls& calls)
        : file_{std::move(file)}, path_{std::move(path)}, how_{how}, calls_{&calls},
          is_orderly_{calls.is_orderly(file_)} {}
    [[nodiscard]] auto write_staged() -> result<>;
    [[nodiscard]] auto write_whole() -> result<>;
    [[nodiscard]] auto write_at_once() -> result<>;
    [[nodiscard]] auto write_locked() -> result<>;
    [[nodiscard]] auto write_some(std::string_view bytes) -> ::ssize_t;
    [[nodiscard]] auto blank(std::size_t bytes) -> bool;

    sys::unique_fd file_;
    std::string path_; // for messages
    durability how_;
    record_file_calls* calls_;
    bool is_orderly_;
    std::string staged_; // whole lines
    bool broken_ = false;
};

} // namespace glove::audit
