// The file systems that a managed session can write, each with a quota that the kernel holds:
// tmpfs for what ends with it, an ext4 image for what it leaves.
//
// Guarantees: the size was read back and is the quota (a tmpfs has one page more, so that a session
// that exceeds its quota can be told from one that reaches it). A mount stands nowhere until the
// launch takes it into a sandbox: it has no name, and is gone with its last descriptor. An image is
// as large as its quota from the first, its bytes reserved; it is a regular file of the caller with
// mode 0600, held by a lock while it is in use; what is mounted of it is nosuid and nodev.
// What cannot be done on this machine is refused by name.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <glove/base/error.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/fd.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace glove::container {

struct filesystem_use {
    std::uint64_t bytes = 0; // that the session's data takes, without what was there at the start
    bool refused = false;    // there was no room for a write or for a file
};

class session_filesystem {
public:
    session_filesystem(session_filesystem&&) noexcept;
    auto operator=(session_filesystem&&) noexcept -> session_filesystem&;
    // Ends its use as `close` does, but nobody hears of an error.
    ~session_filesystem();

    // The directory that a session gets, for the service's own use: to copy into and to look at.
    // Good until `close`, whatever became of the session's mount of it.
    [[nodiscard]] auto content() const -> sys::fd_ref;
    // A mount of that directory, or of the regular file `name` in it, to be taken into one sandbox.
    // Once. It is not the one that `content` is on: what becomes of the one, read-only for example,
    // does not become of the other, and what is mounted in the one is not seen in the other. Steps:
    // files.mount.
    [[nodiscard]] auto take_mount(const std::string& name = {}) -> result<sys::unique_fd>;
    // Since `begin_use`, which is when the session begins. `use` never waits: of an image that a
    // process serves it tells what was known last. `refused` stays once it was seen. Step:
    // files.use.
    void begin_use();
    [[nodiscard]] auto use() -> result<filesystem_use>;
    // Does what may wait for whoever serves it, for the service itself. At the deadline, on the
    // clock's monotonic time, the server is killed: then whoever waits gets an error, and so does
    // everybody after that. One at a time, and not of a look. Step: files.thread.
    [[nodiscard]] auto attended(const sys::clock& time, std::chrono::nanoseconds deadline,
                                const std::function<result<>()>& work) -> result<>;
    // What was written to an image is on the disk: also where a program serves it, for which a sync
    // is to hand on what it has. To be attended. Steps: files.sync.
    [[nodiscard]] auto settle() -> result<>;
    // Everything is on the disk (an image), and nothing of it is in use any more. No process may
    // have it any more. Steps: files.sync, files.close.
    [[nodiscard]] auto close(const sys::clock& time, std::chrono::nanoseconds deadline) -> result<>;

private:
    friend class session_images;
    friend auto make_scratch(std::uint64_t bytes, std::uint64_t inodes)
        -> result<session_filesystem>;
    struct state;
    explicit session_filesystem(std::unique_ptr<state> own);
    std::unique_ptr<state> state_;
};

// A tmpfs of that quota. Steps: files.scratch.
[[nodiscard]] auto make_scratch(std::uint64_t bytes, std::uint64_t inodes)
    -> result<session_filesystem>;

// By which means an image becomes a file system here.
enum class image_means : std::uint8_t {
    loop, // the kernel's ext4 on an autoclear loop device: takes root
    fuse, // fuse2fs, in a perimeter of its own, in the session's control group
};
[[nodiscard]] auto to_string(image_means means) noexcept -> std::string_view;

enum class image_state : std::uint8_t { good, repaired, quarantined };

struct opened_image {
    session_filesystem files;
    image_state state = image_state::good; // never `quarantined`
};

struct image_options {
    std::optional<image_means> only = {}; // the first that works when there is none
    std::string program = {};             // of glove-image; the installed one when it is empty
    // How long a look may last that a process serves: the process was told what to serve by a
    // session, and may never answer. Then whoever waits for it gets an error.
    std::chrono::nanoseconds patience_with_look = std::chrono::minutes{15};
};

// The images beneath one directory, the materialization root, which is the caller's alone. Any
// thread; two uses of one image at a time are refused, whoever they are.
class session_images {
public:
    // Tries out which means there are: makes a file system, and mounts it. Steps: files.root;
    // files.means (errc::unsupported, with what is missing).
    [[nodiscard]] static auto open(const std::string& root, const image_options& how = {})
        -> result<session_images>;
    session_images(session_images&&) noexcept;
    ~session_images();

    [[nodiscard]] auto means() const -> image_means;
    // The directory itself, and the one beside the images in which copies keep their records.
    [[nodiscard]] auto root() const -> sys::fd_ref;

    // A new image and its file system. `entry`: the control group in which a process that serves it
    // runs (session_group::entry); without one it is the service's own. When there is such an image
    // already, it is checked and opened: a copy that was interrupted goes on. Steps: files.image,
    // files.format, files.check, files.quarantined, files.mount, files.busy; files.loop and
    // files.program of what serves it, files.thread of the machine.
    [[nodiscard]] auto make(std::string_view session_id, std::string_view alias,
                            std::uint64_t bytes, std::optional<sys::fd_ref> entry)
        -> result<opened_image>;
    // One that is there, to be looked at: nothing can be written. Every image is checked first,
    // whatever it says of itself, and mended where that loses nothing; what cannot be mended is put
    // under quarantine: it has another name then, and nothing opens it any more. Steps: files.image
    // (errc::not_found), files.check (it could not be), files.quarantined (errc::corrupt),
    // and the others of `make`. Told to stop, the check is broken off with errc::wrong_state, and
    // the image stays as it is.
    [[nodiscard]] auto look(std::string_view session_id, std::string_view alias,
                            const std::stop_token& stop = {}) -> result<opened_image>;
    // The name that the copy's record has in `root`.
    [[nodiscard]] static auto record_name(std::string_view session_id, std::string_view alias)
        -> std::string;
    // Of an image with its record. Gone is no error.
    [[nodiscard]] auto remove(std::string_view session_id, std::string_view alias) -> result<>;

    struct kept_image {
        std::string session_id, alias;
        bool quarantined = false;
        auto operator==(const kept_image&) const -> bool = default;
    };
    // Only what has the names and the form of images of this store.
    [[nodiscard]] auto list() const -> result<std::vector<kept_image>>;

private:
    struct state;
    explicit session_images(std::unique_ptr<state> own);
    std::unique_ptr<state> state_;
};

} // namespace glove::container
