// Names and times come from the directory; nothing of a file is read before it is opened and
// judged.
#include "host/log_files.hpp"
#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <glove/sys/files.hpp>
#include <memory>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

namespace glove::host {

namespace {

constexpr std::string_view log_ending = ".jsonl";
constexpr int patience_ms = 2000;      // with a watch, for file systems that tell nothing
constexpr int blind_patience_ms = 300; // without one

struct directory_closer {
    void operator()(::DIR* directory) const noexcept { (void)::closedir(directory); }
};

struct dated {
    std::string name;
    std::int64_t written_ns;
};

[[nodiscard]] auto is_log_name(std::string_view name) noexcept -> bool {
    return name.size() > log_ending.size() && name.ends_with(log_ending) && !name.starts_with('.');
}

} // namespace

auto is_log(const std::string& path) noexcept -> bool {
    struct ::stat facts{};
    return is_log_name(std::string_view{path}.substr(path.rfind('/') + 1)) &&
           ::lstat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}

auto choose_logs(const std::string& directory, std::string_view run, std::size_t newest,
                 std::optional<std::int64_t> since_ns) -> result<log_choice> {
    const std::unique_ptr<::DIR, directory_closer> opened{::opendir(directory.c_str())};
    if (!opened) {
        if (errno == ENOENT) return log_choice{};
        return fail_os("log.directory", errno, directory);
    }
    std::vector<dated> found;
    log_choice out;
    while (const auto* const entry = ::readdir(opened.get())) {
        const std::string_view name{entry->d_name};
        if (!is_log_name(name)) continue;
        ++out.all;
        if (!name.starts_with(run)) continue;
        struct ::stat facts{};
        if (::fstatat(::dirfd(opened.get()), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(facts.st_mode))
            continue;
        const auto written = facts.st_mtim.tv_sec * 1'000'000'000LL + facts.st_mtim.tv_nsec;
        if (since_ns && written < *since_ns) continue;
        found.push_back({std::string{name}, written});
    }
    const auto order = [](const dated& a, const dated& b) {
        return a.written_ns != b.written_ns ? a.written_ns < b.written_ns : a.name < b.name;
    };
    std::ranges::sort(found, order);
    if (!since_ns && run.empty() && found.size() > newest)
        found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(newest));
    for (const auto& each : found) out.paths.push_back(directory + "/" + each.name);
    return out;
}

auto log_file::open(const std::string& path, bool asked) -> result<log_file> {
    const int more = asked ? 0 : O_NOFOLLOW | O_NONBLOCK;
    sys::unique_fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | more)};
    if (!file) return fail_os("log.open", errno, path);
    struct ::stat facts{};
    if (::fstat(file.get(), &facts) != 0) return fail_os("log.open", errno, path);
    if (S_ISDIR(facts.st_mode)) return fail_os("log.open", EISDIR, path);
    if (!asked && !S_ISREG(facts.st_mode))
        return fail(errc::not_permitted, "log.open", path + " is not a regular file");
    return log_file{path, std::move(file)};
}

auto log_file::read(const std::function<void(const audit::line_cutter::line&)>& take) -> result<> {
    struct ::stat facts{};
    // An append that failed is taken back to the last whole line, or what there is of it is made
    // white space: half a line is read again.
    if (::fstat(file_.get(), &facts) == 0 && S_ISREG(facts.st_mode)) {
        const auto size = static_cast<std::uint64_t>(facts.st_size);
        const auto from = std::min(size, offset_ - lines_.held_bytes());
        if (from < offset_ && size != offset_) {
            lines_.drop_torn();
            offset_ = from;
            if (::lseek(file_.get(), static_cast<::off_t>(from), SEEK_SET) < 0)
                return fail_os("log.read", errno, path_);
        }
    }
    std::vector<char> bytes(64UL * 1024);
    for (;;) {
        const auto got = ::read(file_.get(), bytes.data(), bytes.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_os("log.read", errno, path_);
        if (got == 0) return {};
        offset_ += static_cast<std::uint64_t>(got);
        lines_.feed({bytes.data(), static_cast<std::size_t>(got)}, take);
    }
}

log_watch::log_watch() : changes_{::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)} {
    ::sigset_t ends;
    ::sigemptyset(&ends);
    ::sigaddset(&ends, SIGINT);
    ::sigaddset(&ends, SIGTERM);
    if (::sigprocmask(SIG_BLOCK, &ends, nullptr) == 0)
        signals_ = sys::unique_fd{::signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK)};
    blind_ = !changes_;
}

void log_watch::add(const std::string& path) {
    if (!changes_ ||
        ::inotify_add_watch(changes_.get(), path.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0)
        blind_ = true;
}

auto log_watch::wait(std::vector<std::string>& changed) -> bool {
    std::array<::pollfd, 2> sources{::pollfd{signals_.get(), POLLIN, 0},
                                    ::pollfd{changes_.get(), POLLIN, 0}};
    if (::poll(sources.data(), sources.size(), blind_ ? blind_patience_ms : patience_ms) < 0)
        return errno == EINTR;
    if (sources[0].revents != 0) return false;
    if (sources[1].revents == 0) return true;
    alignas(::inotify_event) std::array<char, 16UL * 1024> bytes{};
    for (;;) {
        const auto got = ::read(changes_.get(), bytes.data(), bytes.size());
        if (got <= 0) return true;
        for (std::size_t at = 0; at + sizeof(::inotify_event) <= static_cast<std::size_t>(got);) {
            ::inotify_event event{};
            std::memcpy(&event, bytes.data() + at, sizeof event);
            if ((event.mask & IN_Q_OVERFLOW) != 0) blind_ = true;
            if (event.len > 0) changed.emplace_back(bytes.data() + at + sizeof event);
            at += sizeof event + event.len;
        }
    }
}

} // namespace glove::host
