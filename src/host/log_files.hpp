// Which audit files there are, and reading them to their present end, again and again.
#pragma once
#include <functional>
#include <glove/audit/reader.hpp>
#include <glove/sys/fd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace glove::host {

struct log_choice {
    std::vector<std::string> paths; // the oldest first
    std::size_t all = 0;            // how many there are
};
// Records of runs in `directory`: those whose name begins with `run`; of these the `newest`, or all
// that were written to since `since_ns`. A directory that does not exist holds none.
[[nodiscard]] auto choose_logs(const std::string& directory, std::string_view run,
                               std::size_t newest, std::optional<std::int64_t> since_ns)
    -> result<log_choice>;

// Whether the path is one that `choose_logs` may give.
[[nodiscard]] auto is_log(const std::string& path) noexcept -> bool;

class log_file {
public:
    // `asked`: named by the operator, so it may be whatever can be read; else it is a regular file
    // and no link.
    [[nodiscard]] static auto open(const std::string& path, bool asked) -> result<log_file>;
    // Gives every whole line that was not given before.
    [[nodiscard]] auto read(const std::function<void(const audit::line_cutter::line&)>& take)
        -> result<>;
    [[nodiscard]] auto path() const noexcept -> const std::string& { return path_; }
    [[nodiscard]] auto is_torn() const noexcept -> bool { return lines_.is_torn(); }
    [[nodiscard]] auto next_line() const noexcept -> std::uint64_t { return lines_.next_number(); }

private:
    log_file(std::string path, sys::unique_fd file)
        : path_{std::move(path)}, file_{std::move(file)} {}
    std::string path_;
    sys::unique_fd file_;
    audit::line_cutter lines_;
    std::uint64_t offset_ = 0;
};

// Wakes when one of the files, or a file of the directory, changes; where the kernel has no watch
// left, by the clock.
class log_watch {
public:
    log_watch();
    void add(const std::string& path);
    // Until something may have changed; false when the operator asked for the end. `changed` gets
    // the names of files of a watched directory.
    [[nodiscard]] auto wait(std::vector<std::string>& changed) -> bool;
    // Names cannot be told: the directory is to be looked through.
    [[nodiscard]] auto is_blind() const noexcept -> bool { return blind_; }

private:
    sys::unique_fd changes_, signals_;
    bool blind_ = false;
};

} // namespace glove::host
