// Lines are staged in memory and go out together, in one write: two runs that share a file never
// mix their lines, and never spoil each other's. Where the file system sees to the first, what was
// written by half becomes white space where it stands, whoever has added to it meanwhile; elsewhere
// a lock is held until it is cut off again.
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <glove/audit/jsonl.hpp>
#include <glove/audit/names.hpp>
#include <glove/sys/files.hpp>
#include <glove/wire/json_writer.hpp>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <unistd.h>
#include <utility>

namespace glove::audit {

namespace {

// Those whose appends are whole whoever else appends on this machine, and which write over what is
// there without new room. Not one of those that machines share.
constexpr std::array<std::uint32_t, 3> orderly_file_systems{EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,
                                                            TMPFS_MAGIC};

class file_lock {
public:
    file_lock(record_file_calls& calls, sys::fd_ref file) noexcept
        : calls_{calls}, file_{file}, held_{calls.lock(file)} {}
    file_lock(const file_lock&) = delete;
    auto operator=(const file_lock&) -> file_lock& = delete;
    ~file_lock() {
        if (held_) calls_.unlock(file_);
    }
    explicit operator bool() const noexcept { return held_; }

private:
    record_file_calls& calls_;
    sys::fd_ref file_;
    bool held_;
};

[[nodiscard]] auto longest_line_of(const event& what) -> std::size_t {
    constexpr std::size_t constant = 256; // names of members and numbers, and then some
    auto out = constant + wire::json::most_quoted(what.run.size() + what.call.size());
    for (const auto* const text : {&what.tool, &what.arguments, &what.error})
        if (*text) out += wire::json::most_quoted((*text)->size());
    return out;
}

// Into room for so many bytes; returns where the line ends.
[[nodiscard]] auto put_line(char* to, const event& what) -> char* {
    const auto put = [&](std::string_view text) {
        std::memcpy(to, text.data(), text.size());
        to += text.size();
    };
    const auto put_text = [&](std::string_view lead, const std::optional<std::string>& text) {
        if (!text) return;
        put(lead);
        to = wire::json::put_quoted(to, *text);
    };
    const auto put_number = [&](std::string_view lead, std::int64_t number) {
        constexpr std::ptrdiff_t longest = 20;
        put(lead);
        to = std::to_chars(to, to + longest, number).ptr;
    };
    put(R"({"action":")");
    put(to_string(what.action));
    put("\"");
    put_text(R"(,"tool":)", what.tool);
    put_text(R"(,"arguments":)", what.arguments);
    put(R"(,"status":")");
    put(to_string(what.status));
    put("\"");
    put_text(R"(,"error":)", what.error);
    put_number(R"(,"timestamp_ns":)", what.timestamp_ns);
    put_number(R"(,"latency_ns":)", what.latency_ns);
    put(R"(,"run":)");
    to = wire::json::put_quoted(to, what.run);
    put(R"(,"call":)");
    to = wire::json::put_quoted(to, what.call);
    put("}\n");
    return to;
}

} // namespace

auto record_file_calls::lock(sys::fd_ref file) noexcept -> bool {
    int done = 0;
    do done = ::flock(file.get(), LOCK_EX);
    while (done != 0 && errno == EINTR);
    return done == 0;
}
void record_file_calls::unlock(sys::fd_ref file) noexcept { (void)::flock(file.get(), LOCK_UN); }
auto record_file_calls::write(sys::fd_ref file, std::string_view bytes) noexcept -> ::ssize_t {
    return ::write(file.get(), bytes.data(), bytes.size());
}
auto record_file_calls::cut_back(sys::fd_ref file, ::off_t size) noexcept -> bool {
    return ::ftruncate(file.get(), size) == 0;
}
auto record_file_calls::is_orderly(sys::fd_ref file) noexcept -> bool {
    struct ::statfs found{};
    return ::fstatfs(file.get(), &found) == 0 &&
           std::ranges::count(orderly_file_systems, static_cast<std::uint32_t>(found.f_type)) != 0;
}
// Of a file that is appended to, nothing else can be written.
auto record_file_calls::write_over(sys::fd_ref file, std::string_view bytes, ::off_t at) noexcept
    -> bool {
    const int flags = ::fcntl(file.get(), F_GETFL);
    if (flags < 0 || ::fcntl(file.get(), F_SETFL, flags & ~O_APPEND) != 0) return false;
    const auto put = ::pwrite(file.get(), bytes.data(), bytes.size(), at);
    return ::fcntl(file.get(), F_SETFL, flags) == 0 && std::cmp_equal(put, bytes.size());
}
auto record_file_calls::sync(sys::fd_ref file) noexcept -> bool { return ::fsync(file.get()) == 0; }

auto system_calls() noexcept -> record_file_calls& {
    static record_file_calls real;
    return real;
}

// Written twice for each call of a tool, so the string grows once for a line.
void append_line(std::string& out, const event& what) {
    const auto before = out.size();
    out.resize_and_overwrite(before + longest_line_of(what), [&](char* data, std::size_t) {
        return static_cast<std::size_t>(put_line(data + before, what) - data);
    });
}

auto to_line(const event& what) -> std::string {
    std::string out;
    append_line(out, what);
    return out;
}

auto jsonl_sink::open(const std::string& path, durability how, record_file_calls& calls)
    -> result<jsonl_sink> {
    GLOVE_TRY(const auto directory, sys::make_directory(sys::parent_of(path)));
    GLOVE_TRY(auto file, sys::open_private_append(directory, path.substr(path.rfind('/') + 1)));
    if (how == durability::power) GLOVE_CHECK(sys::sync(directory)); // the new name, too
    return jsonl_sink{std::move(file), path, how, calls};
}

auto jsonl_sink::stage(const event& what) -> result<> {
    if (broken_) return fail(errc::wrong_state, "audit.broken", "an earlier write had failed");
    append_line(staged_, what);
    return {};
}

auto jsonl_sink::commit() -> result<> {
    if (broken_) return fail(errc::wrong_state, "audit.broken", "an earlier write had failed");
    if (staged_.empty()) return {};
    auto done = write_staged();
    if (!done) broken_ = true;
    return done;
}

auto jsonl_sink::append(const event& what) -> result<> {
    const bool alone = staged_.empty();
    GLOVE_CHECK(stage(what));
    return alone ? write_staged() : commit();
}

// Whether it succeeds or fails, nothing stays staged: what failed must not come out later.
auto jsonl_sink::write_staged() -> result<> {
    constexpr std::size_t kept = 1UL << 20;
    auto done = write_whole();
    if (!done) {
        done.error().detail = "the audit record " + path_ + " could not be written";
        done.error().remedy = "make room there, or name another file with --audit-log";
    }
    staged_.clear();
    if (staged_.capacity() > kept) staged_ = {};
    return done;
}

auto jsonl_sink::write_whole() -> result<> {
    GLOVE_CHECK(is_orderly_ ? write_at_once() : write_locked());
    if (how_ == durability::power && !calls_->sync(file_)) return fail_os("file.sync");
    return {};
}

auto jsonl_sink::write_some(std::string_view bytes) -> ::ssize_t {
    for (;;)
        if (const auto put = calls_->write(file_, bytes); put >= 0 || errno != EINTR) return put;
}

// Another's line may follow a write that ended early, so all is written again, and not the rest.
auto jsonl_sink::write_at_once() -> result<> {
    constexpr int tries = 2; // the second tells why the first ended early
    for (int i = 0; i < tries; ++i) {
        const auto put = write_some(staged_);
        if (std::cmp_equal(put, staged_.size())) return {};
        if (put <= 0) return fail_os("file.write", put < 0 ? errno : EIO);
        if (!blank(static_cast<std::size_t>(put))) {
            broken_ = true;
            break;
        }
    }
    return fail_os("file.write", EIO);
}

// The position is the end of what was written last. A line of nothing but spaces is none.
auto jsonl_sink::blank(std::size_t bytes) -> bool {
    std::string nothing(bytes - 1, ' ');
    nothing += '\n';
    const auto end = ::lseek(file_.get(), 0, SEEK_CUR);
    return std::cmp_greater_equal(end, bytes) &&
           calls_->write_over(file_, nothing, end - static_cast<::off_t>(bytes));
}

auto jsonl_sink::write_locked() -> result<> {
    const file_lock lock{*calls_, file_};
    if (!lock) return fail_os("audit.lock");
    for (std::string_view rest{staged_}; !rest.empty();) {
        const auto put = write_some(rest);
        if (put > 0) {
            rest.remove_prefix(static_cast<std::size_t>(put));
            continue;
        }
        const int why = put < 0 ? errno : EIO;
        // Half a line would spoil the next one, and the lock keeps others from adding to it.
        const auto written = static_cast<::off_t>(staged_.size() - rest.size());
        if (written != 0) {
            const auto end = ::lseek(file_.get(), 0, SEEK_CUR);
            if (end < written || !calls_->cut_back(file_, end - written)) broken_ = true;
        }
        return fail_os("file.write", why);
    }
    return {};
}

} // namespace glove::audit
