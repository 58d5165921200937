// Lines are staged in memory and go out together, in one write under a lock: two runs that share a
// file never mix their lines, and never cut off each other's.
#include <array>
#include <cerrno>
#include <charconv>
#include <glove/audit/jsonl.hpp>
#include <glove/audit/names.hpp>
#include <glove/sys/files.hpp>
#include <glove/wire/json_writer.hpp>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

namespace glove::audit {

namespace {

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
auto record_file_calls::sync(sys::fd_ref file) noexcept -> bool { return ::fsync(file.get()) == 0; }

auto system_calls() noexcept -> record_file_calls& {
    static record_file_calls real;
    return real;
}

// Written twice for each call of a tool: constant text is not looked through for what needs an
// escape, as the general writer would.
void append_line(std::string& out, const event& what) {
    const auto put = [&](std::string_view lead, const std::optional<std::string>& text) {
        if (!text) return;
        out += lead;
        wire::json::append_quoted(out, *text);
    };
    const auto put_number = [&](std::string_view lead, std::int64_t number) {
        std::array<char, 24> digits{};
        const auto end = std::to_chars(digits.begin(), digits.end(), number).ptr;
        out.append(lead).append(digits.data(), end);
    };
    out.append(R"({"action":")").append(to_string(what.action)).append("\"");
    put(R"(,"tool":)", what.tool);
    put(R"(,"arguments":)", what.arguments);
    out.append(R"(,"status":")").append(to_string(what.status)).append("\"");
    put(R"(,"error":)", what.error);
    put_number(R"(,"timestamp_ns":)", what.timestamp_ns);
    put_number(R"(,"latency_ns":)", what.latency_ns);
    out += R"(,"run":)";
    wire::json::append_quoted(out, what.run);
    out += R"(,"call":)";
    wire::json::append_quoted(out, what.call);
    out += "}\n";
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
    const file_lock lock{*calls_, file_};
    if (!lock) return fail_os("audit.lock");
    for (std::string_view rest{staged_}; !rest.empty();) {
        const auto put = calls_->write(file_, rest);
        if (put > 0) {
            rest.remove_prefix(static_cast<std::size_t>(put));
            continue;
        }
        if (put < 0 && errno == EINTR) continue;
        const int why = put < 0 ? errno : EIO;
        // Half a line would spoil the next one. Of a file that is appended to, the position is the
        // end of what was written last, and the lock keeps others from adding to it.
        const auto written = static_cast<::off_t>(staged_.size() - rest.size());
        if (written != 0) {
            const auto end = ::lseek(file_.get(), 0, SEEK_CUR);
            if (end < written || !calls_->cut_back(file_, end - written)) broken_ = true;
        }
        return fail_os("file.write", why);
    }
    if (how_ == durability::power && !calls_->sync(file_)) return fail_os("file.sync");
    return {};
}

} // namespace glove::audit
