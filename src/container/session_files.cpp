// A session's file system while it is in use, and the one that ends with it.
#include "container/linux/loop_device.hpp"
#include "container/session_filesystem.hpp"
#include <algorithm>
#include <fcntl.h>
#include <glove/sys/threads.hpp>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>

namespace glove::container {

namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::seconds patience_at_begin{1};
constexpr std::chrono::seconds patience_at_end{30};

[[nodiscard]] auto page_bytes() -> std::uint64_t {
    return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

[[nodiscard]] auto refuse_scratch(std::uint64_t bytes, std::uint64_t inodes, const char* why) {
    return fail(errc::invalid_input, "files.scratch",
                std::to_string(bytes) + " bytes and " + std::to_string(inodes) + " files: " + why);
}

} // namespace

auto use_watch::over(sys::fd_ref content) -> result<std::unique_ptr<use_watch>> {
    std::unique_ptr<use_watch> out{new use_watch};
    out->content_ = sys::unique_fd{::fcntl(content.get(), F_DUPFD_CLOEXEC, 3)};
    if (!out->content_) return fail_os("files.use");
    GLOVE_TRY(out->thread_, sys::start_thread([&self = *out] { self.answer(); }, "files.thread"));
    return out;
}

use_watch::~use_watch() {
    {
        const std::scoped_lock held{lock_};
        over_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

auto use_watch::ask() -> std::optional<result<room>> {
    const std::scoped_lock held{lock_};
    if (asked_ == answered_) ++asked_;
    changed_.notify_all();
    return last_;
}

auto use_watch::ask_and_wait() -> std::optional<result<room>> {
    std::unique_lock held{lock_};
    const auto mine = ++asked_;
    changed_.notify_all();
    (void)changed_.wait_for(held, patience_at_begin, [&] { return answered_ >= mine; });
    return last_;
}

void use_watch::answer() {
    std::unique_lock held{lock_};
    for (;;) {
        changed_.wait(held, [this] { return over_ || asked_ != answered_; });
        if (over_) return;
        const auto question = asked_;
        held.unlock();
        auto now = room_in(content_, "files.use");
        held.lock();
        last_ = std::move(now);
        answered_ = question;
        changed_.notify_all();
    }
}

auto session_filesystem::state::look() -> std::optional<result<room>> {
    return watch ? watch->ask() : room_in(content, "files.use");
}

void session_filesystem::state::drop() {
    watch.reset();
    content = {};
    mount = {};
}

auto session_filesystem::state::sync(const sys::clock& time, nanoseconds deadline) -> result<> {
    result<std::unique_ptr<watchdog>> patience;
    if (server)
        patience = watchdog::over(*server, std::max(deadline - time.monotonic(), nanoseconds{0}));
    if (!patience) server->kill(); // or this could wait for it for ever
    const bool synced = !image || !writable || ::syncfs(content.get()) == 0;
    const int os = errno;
    drop();
    if (!patience) return std::unexpected(std::move(patience).error());
    if (!synced) return fail_os("files.sync", os, "the image's file system");
    return {};
}

auto session_filesystem::state::await_release(const sys::clock& time, nanoseconds deadline)
    -> result<> {
    if (server) {
        GLOVE_TRY(const auto status, server->wait(time, deadline));
        if (status == 0) return {};
        return fail(errc::io, "files.close",
                    "the program that served the image ended with " + std::to_string(status) +
                        ": " + server->words());
    }
    while (!loop.empty()) {
        GLOVE_TRY(const bool attached, is_attached(loop, image));
        if (!attached) break;
        if (time.monotonic() >= deadline)
            return fail(errc::timed_out, "files.close", loop + " still has the image");
        (void)::poll(nullptr, 0, 2);
    }
    return {};
}

auto session_filesystem::state::close(const sys::clock& time, nanoseconds deadline) -> result<> {
    auto synced = sync(time, deadline);
    lifetime.reset(); // nobody may signal what is being reaped
    auto released = await_release(time, deadline);
    server.reset();
    const bool durable = !image || ::fsync(image.get()) == 0;
    const int os = errno;
    // Not by the last descriptor: a program that another thread starts has a copy until it begins.
    if (image && released) (void)::flock(image.get(), LOCK_UN);
    image = {};
    if (!synced) return synced;
    if (!released) return released;
    if (!durable) return fail_os("files.sync", os, "the image");
    return {};
}

session_filesystem::session_filesystem(std::unique_ptr<state> own) : state_{std::move(own)} {}
session_filesystem::session_filesystem(session_filesystem&&) noexcept = default;
auto session_filesystem::operator=(session_filesystem&& other) noexcept -> session_filesystem& {
    session_filesystem gone{std::move(*this)};
    state_ = std::move(other.state_);
    return *this;
}
session_filesystem::~session_filesystem() {
    if (!state_ || !state_->content) return;
    const sys::system_clock time;
    (void)state_->close(time, time.monotonic() + patience_at_end);
}

namespace {

// Only the sync of a file that is open for writing makes fuse2fs write what it holds back, and then
// all of it. The file is beside what the session gets of the image.
[[nodiscard]] auto hand_on(sys::fd_ref mount) -> result<> {
    constexpr const char* name = "settle";
    sys::unique_fd file{
        ::openat(mount.get(), name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)};
    if (!file || ::fsync(file.get()) != 0)
        return fail_os("files.sync", errno, "the program that serves the image");
    file = {};
    (void)::unlinkat(mount.get(), name, 0); // an empty file that nobody sees
    return {};
}

} // namespace

auto session_filesystem::content() const -> sys::fd_ref { return state_->content; }

auto session_filesystem::take_mount(const std::string& name) -> result<sys::unique_fd> {
    auto& s = *state_;
    if (s.taken || !s.content)
        return fail(errc::wrong_state, "files.mount", "the mount was taken already");
    const auto found = sys::open_beneath(s.content, name, O_PATH | O_NOFOLLOW);
    if (!found) return fail_os("files.mount", found.error().os, name);
    const auto& part = *found;
    const auto facts = sys::inspect(part);
    if (!facts) return fail_os("files.mount", facts.error().os, name);
    if (facts->identity.type != (name.empty() ? S_IFDIR : S_IFREG))
        return fail(errc::invalid_input, "files.mount", name + " is no regular file");
    GLOVE_TRY(auto out, second_mount(s.mount, part, s.how, "files.mount"));
    s.taken = true;
    return out;
}

void session_filesystem::begin_use() {
    auto& s = *state_;
    const auto now = s.watch ? s.watch->ask_and_wait() : s.look();
    s.seen = {};
    s.baseline = now && *now ? (*now)->bytes_used : 0;
}

auto session_filesystem::use() -> result<filesystem_use> {
    auto& s = *state_;
    if (!s.content) return fail(errc::wrong_state, "files.use", "it was closed");
    const auto now = s.look();
    if (!now) return s.seen;
    if (!*now) return std::unexpected(now->error());
    const auto& found = **now;
    s.seen.bytes = found.bytes_used - std::min(found.bytes_used, s.baseline);
    if (found.bytes_left < s.least_bytes || found.files_left < s.least_files) s.seen.refused = true;
    return s.seen;
}

auto session_filesystem::attended(const sys::clock& time, nanoseconds deadline,
                                  const std::function<result<>()>& work) -> result<> {
    std::unique_ptr<watchdog> patience;
    if (state_->server) {
        GLOVE_TRY(patience, watchdog::over(*state_->server,
                                           std::max(deadline - time.monotonic(), nanoseconds{0})));
    }
    return work();
}

auto session_filesystem::settle() -> result<> {
    auto& s = *state_;
    if (!s.image) return {};
    if (s.server) GLOVE_CHECK(hand_on(s.mount));
    if (::syncfs(s.content.get()) != 0 || ::fsync(s.image.get()) != 0)
        return fail_os("files.sync", errno, "the image");
    return {};
}

auto session_filesystem::close(const sys::clock& time, nanoseconds deadline) -> result<> {
    if (!state_->content) return {};
    return state_->close(time, deadline);
}

auto make_scratch(std::uint64_t bytes, std::uint64_t inodes) -> result<session_filesystem> {
    constexpr auto most = std::uint64_t{1} << 62U;
    if (bytes == 0) return refuse_scratch(bytes, inodes, "the kernel takes 0 for no limit");
    if (bytes > most || inodes > most)
        return refuse_scratch(bytes, inodes, "more than there can be");
    const auto page = page_bytes();
    // One page and one file more show that the session went beyond its own; the directory itself is
    // a file too.
    const auto size = ((bytes + page - 1) / page + 1) * page;
    const auto files = inodes + 2;
    const auto size_text = std::to_string(size), files_text = std::to_string(files);
    const mount_option options[] = {{"size", size_text.c_str()},
                                    {"nr_inodes", files_text.c_str()},
                                    {"mode", "0755"},
                                    {"huge", "never"}};
    auto own = std::make_unique<session_filesystem::state>();
    GLOVE_TRY(own->mount, make_mount("tmpfs", options, 0, "files.scratch"));
    GLOVE_TRY(own->content, sys::open_beneath(own->mount, "", O_RDONLY | O_DIRECTORY));
    GLOVE_TRY(const auto made, room_in(own->content, "files.scratch"));
    if (made.bytes != size || made.files != files)
        return fail(errc::unsupported, "files.scratch",
                    "the kernel holds " + std::to_string(made.bytes) + " bytes and " +
                        std::to_string(made.files) + " files instead of " + size_text + " and " +
                        files_text);
    own->least_bytes = page;
    return session_filesystem{std::move(own)};
}

} // namespace glove::container
