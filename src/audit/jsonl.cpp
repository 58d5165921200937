// One event, one line, one write under a lock: two runs that share a file never mix their lines.
#include <glove/audit/jsonl.hpp>
#include <glove/audit/names.hpp>
#include <glove/sys/files.hpp>
#include <glove/wire/json_writer.hpp>
#include <sys/file.h>

namespace glove::audit {

namespace {

// Held for one append, so that two runs may share a file.
class file_lock {
public:
    explicit file_lock(sys::fd_ref file) noexcept : file_{file} {
        do held_ = ::flock(file_.get(), LOCK_EX) == 0;
        while (!held_ && errno == EINTR);
    }
    file_lock(const file_lock&) = delete;
    auto operator=(const file_lock&) -> file_lock& = delete;
    ~file_lock() {
        if (held_) (void)::flock(file_.get(), LOCK_UN);
    }
    explicit operator bool() const noexcept { return held_; }

private:
    sys::fd_ref file_;
    bool held_ = false;
};

} // namespace

auto to_line(const event& what) -> std::string {
    std::string out;
    {
        wire::json::writer w{out};
        w.begin_object();
        w.member("action", to_string(what.action));
        w.member("tool", what.tool);
        w.member("arguments", what.arguments);
        w.member("status", to_string(what.status));
        w.member("error", what.error);
        w.member("timestamp_ns", what.timestamp_ns);
        w.member("latency_ns", what.latency_ns);
        w.member("run", what.run);
        w.member("call", what.call);
        w.end_object();
    }
    return out += '\n';
}

auto jsonl_sink::open(const std::string& path, durability how) -> result<jsonl_sink> {
    GLOVE_TRY(const auto directory, sys::make_directory(sys::parent_of(path)));
    GLOVE_TRY(auto file, sys::open_private_append(directory, path.substr(path.rfind('/') + 1)));
    if (how == durability::power) GLOVE_CHECK(sys::sync(directory)); // the new name, too
    return jsonl_sink{std::move(file), how};
}

auto jsonl_sink::append(const event& what) -> result<> {
    const file_lock lock{file_};
    if (!lock) return fail_os("audit.lock");
    GLOVE_TRY(const auto before, sys::inspect(file_));
    if (auto written = sys::write_all(file_, to_line(what)); !written) {
        // Half a line would spoil the next one.
        (void)!::ftruncate(file_.get(), static_cast<::off_t>(before.size));
        return written;
    }
    if (how_ == durability::power) GLOVE_CHECK(sys::sync(file_));
    return {};
}

} // namespace glove::audit
