// What of retained copies is shared by everybody: the images, if this machine has the means, and
// the changes that were found in the last few of them.
#pragma once
#include <chrono>
#include <deque>
#include <glove/base/error.hpp>
#include <glove/container/session_changes.hpp>
#include <glove/container/session_copy.hpp>
#include <glove/container/session_files.hpp>
#include <glove/sys/clock.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace glove::control {

inline constexpr std::chrono::minutes patience_with_trees{2};
inline constexpr std::chrono::seconds patience_with_files{30};

// Safe for use by several threads.
class change_cache {
public:
    using found = std::shared_ptr<const container::change_set>;
    [[nodiscard]] auto find(std::string_view session_id, std::string_view exposure_id) -> found;
    void keep(found what);

private:
    static constexpr std::size_t most_sets = 4;
    std::mutex lock_;
    std::deque<found> sets_; // the last one used is the first
};

struct shared_images {
    result<container::session_images> store; // or why there are none
    change_cache changes;
};

// What is on record of a copy, and when that was written.
struct known_copy {
    container::copy_record record;
    std::uint64_t written_ms = 0; // wall clock
};
[[nodiscard]] auto find_copy(container::session_images& images, const std::string& session_id,
                             const std::string& alias) -> result<std::optional<known_copy>>;
// Whether no session can have written to it but one that was created at that time or later: it
// never was whole, or it is not older. The ids of sessions that were forgotten come again.
[[nodiscard]] auto is_of(const known_copy& copy, std::uint64_t created_at_ms) noexcept -> bool;

// What a session, which is over, left of one retained copy. The image is looked at anew, whatever
// became of the process that served it. Steps: those of `look`, of a tree and of changes;
// retained.copy (it never was whole).
[[nodiscard]] auto find_changes(container::session_images& images,
                                container::change_subject subject, const sys::clock& time,
                                std::stop_token stop) -> result<change_cache::found>;

} // namespace glove::control
