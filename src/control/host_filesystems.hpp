// The file systems that one session writes: its scratch space, and one for each copy.
//
// Guarantees: each has the quota that the plan says; a copy is whole before anybody gets it; when
// the session never ran, nothing is left of it, and when it did, nothing that it wrote is deleted;
// whoever serves an image holds nobody beyond the deadline.
#pragma once
#include "control/host_grants.hpp"
#include "control/host_images.hpp"
#include <chrono>
#include <glove/base/error.hpp>
#include <glove/container/session_files.hpp>
#include <glove/control/receipt.hpp>
#include <glove/control/session_record.hpp>
#include <glove/sys/clock.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace glove::control {

struct retained_remains {
    std::vector<retained_change_receipt> changes; // by id
    std::vector<error> troubles;
};

// Before anything is made: whether there are the means for what the grants ask for. Step:
// files.means (errc::unsupported).
[[nodiscard]] auto check_means(const shared_images& images, const std::vector<granted_path>& grants)
    -> result<>;

class session_filesystems {
public:
    // `images` and `time` outlive it.
    session_filesystems(const session_record& of, shared_images& images, const sys::clock& time)
        : session_id_{of.session_id}, created_at_ms_{of.created_at_ms}, images_{&images},
          time_{&time} {}
    session_filesystems(session_filesystems&&) noexcept = default;
    auto operator=(session_filesystems&&) -> session_filesystems& = delete;
    // Of a session that never ran, its images are removed.
    ~session_filesystems();

    // `entry` as in session_images::make. By the deadline, on the monotonic clock. Steps:
    // prepare.image (errc::conflict: an earlier session of this id left one), files.*, copy.*,
    // tree.*; the detail names the grant.
    [[nodiscard]] auto make(std::uint64_t scratch_bytes, const std::vector<granted_path>& grants,
                            sys::fd_ref entry, std::chrono::nanoseconds deadline) -> result<>;

    // Detached, once each.
    [[nodiscard]] auto take_scratch() -> result<sys::unique_fd>;
    [[nodiscard]] auto take_mount(const granted_path& of) -> result<sys::unique_fd>;
    // The session's home, once its sandbox was built.
    [[nodiscard]] auto home() const -> result<sys::unique_fd>;

    // Now the session runs: from here on nothing of it is ever deleted.
    void begin_use();
    [[nodiscard]] auto use() -> result<container::filesystem_use>; // of all together
    // Everything is closed, and what was left in retained copies is read. No process of the session
    // is there any more.
    [[nodiscard]] auto conclude(std::stop_token stop) -> retained_remains;

private:
    struct written {
        std::string alias;
        bool is_image = false;
        std::optional<granted_exposure> exposure;
        container::session_filesystem files;
    };
    [[nodiscard]] auto make_image(const granted_path& grant, sys::fd_ref entry,
                                  const container::tree_patience& patience) -> result<>;
    [[nodiscard]] auto make_copy(const granted_path& grant, sys::fd_ref entry,
                                 const container::tree_patience& patience) -> result<>;
    void conclude_image(written& one, std::stop_token stop, retained_remains& out);

    std::string session_id_;
    std::uint64_t created_at_ms_;
    shared_images* images_;
    const sys::clock* time_;
    std::optional<container::session_filesystem> scratch_;
    std::vector<written> written_;
    std::vector<std::string> unused_images_; // nobody ever wrote to them but this object
    std::chrono::nanoseconds deadline_{};    // of what is made
    bool used_ = false;
};

} // namespace glove::control
