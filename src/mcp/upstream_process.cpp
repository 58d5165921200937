// A process in a session of its own, so that it has no terminal and its group can be reached as a
// whole. The kernel kills it when the thread that started it ends.
#include "mcp/upstream_start.hpp"
#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/mcp/upstream_process.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/spawn.hpp>

namespace glove::mcp {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t longest_error_line = 4096;
constexpr std::size_t tail_bytes = 4096;
constexpr std::size_t error_part = 16UL << 10;
constexpr int parts_at_once = 16; // so that one that never stops does not hold the loop up
constexpr std::chrono::nanoseconds least_patience = 10ms;

// How far the end has come.
enum stage : std::uint8_t { running, asked_to_end, told_to_end, killed, over };

struct pipe_ends {
    sys::unique_fd read, write;
};

[[nodiscard]] auto make_pipe() -> result<pipe_ends> {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_os("mcp.pipe");
    return pipe_ends{sys::unique_fd{ends[0]}, sys::unique_fd{ends[1]}};
}

// The two ends of a pipe have flags of their own, so the server's end still waits.
[[nodiscard]] auto do_not_wait(sys::fd_ref end) -> result<> {
    const int flags = ::fcntl(end.get(), F_GETFL);
    if (flags < 0 || ::fcntl(end.get(), F_SETFL, flags | O_NONBLOCK) != 0)
        return fail_os("mcp.pipe");
    return {};
}

struct mend {
    int os;
    std::string_view words;
};
constexpr std::array mends{
    mend{ENOENT,
         "install it, or name it with its whole path; a script's interpreter must be there"},
    mend{EACCES, "make it executable"},
    mend{ENOEXEC, "a script begins with #! and its interpreter: no shell is asked"},
};

// The same failure, with the server's name and what can be done.
[[nodiscard]] auto of_server(const upstream_wish& what, error why) -> error {
    if (why.step == "mcp.program") return why;
    why.detail = "the server " + in_quotes(what.name) + ": " + printable(why.detail);
    const auto* const found = std::ranges::find(mends, why.os, &mend::os);
    if (why.step == "spawn.program" && found != mends.end()) why.remedy = found->words;
    return why;
}

[[nodiscard]] auto request_for(const upstream_wish& what, const char* const* outer)
    -> result<sys::spawn_request> {
    sys::spawn_request out;
    if (what.perimeter) {
        out.program = what.perimeter->glove;
        out.arguments = contained_arguments(what);
    } else {
        GLOVE_TRY(out.program, find_upstream_program(what, outer));
        out.arguments = what.argv;
    }
    out.environment = upstream_environment(what, outer);
    out.own_session = true;
    out.dies_with_parent = true;
    if (what.directory) {
        GLOVE_TRY(out.directory, sys::absolute(*what.directory));
    }
    return out;
}

[[nodiscard]] auto words_for(const ::siginfo_t& end) -> std::string {
    if (end.si_code == CLD_EXITED) return "ended with status " + std::to_string(end.si_status);
    return "was killed by signal " + std::to_string(end.si_status);
}

} // namespace

auto upstream_process::start(const upstream_wish& what, const char* const* outer)
    -> result<upstream_process> {
    GLOVE_CHECK(check_upstreams({what}));
    const auto begin = [&]() -> result<upstream_process> {
        GLOVE_TRY(auto request, request_for(what, outer));
        GLOVE_TRY(auto input, make_pipe());
        GLOVE_TRY(auto output, make_pipe());
        GLOVE_TRY(auto errors, make_pipe());
        for (const auto* ours : {&input.write, &output.read, &errors.read})
            GLOVE_CHECK(do_not_wait(*ours));
        request.descriptors = {{.child = 0, .ours = input.read},
                               {.child = 1, .ours = output.write},
                               {.child = 2, .ours = errors.write}};
        GLOVE_TRY(auto process, sys::spawn(request));
        return upstream_process{std::move(process), std::move(input.write), std::move(output.read),
                                std::move(errors.read)};
    };
    auto started = begin();
    if (!started) return std::unexpected(of_server(what, std::move(started).error()));
    return started;
}

upstream_process::upstream_process(sys::child_process process, sys::unique_fd input,
                                   sys::unique_fd output, sys::unique_fd errors)
    : process_{std::move(process)}, input_{std::move(input)}, output_{std::move(output)},
      errors_{std::move(errors)} {}

upstream_process::~upstream_process() {
    (void)process_.signal_group(SIGKILL); // the leader is reaped after this
}

auto upstream_process::drain_errors(const std::function<void(std::string_view)>& hear) -> bool {
    const auto end_line = [&] {
        if (line_.ends_with('\r')) line_.pop_back();
        if (!line_.empty() && hear) hear(line_);
        line_.clear();
    };
    const auto take = [&](std::string_view text) {
        text = text.substr(0, longest_error_line - std::min(line_.size(), longest_error_line));
        line_.append(text);
    };
    std::array<char, error_part> part;
    for (int i = 0; i < parts_at_once; ++i) {
        const auto got = ::read(errors_.get(), part.data(), part.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return true;
        if (got <= 0) {
            end_line();
            return false;
        }
        std::string_view text{part.data(), static_cast<std::size_t>(got)};
        tail_.append(text.substr(text.size() - std::min(text.size(), tail_bytes)));
        tail_.erase(0, tail_.size() - std::min(tail_.size(), tail_bytes));
        for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
            take(text.substr(0, end));
            end_line();
            text.remove_prefix(end + 1);
        }
        take(text);
    }
    return true;
}

auto upstream_process::error_tail() const -> std::string {
    std::string_view rest{tail_};
    while (rest.ends_with('\n') || rest.ends_with('\r')) rest.remove_suffix(1);
    std::string out;
    for (;;) {
        const auto end = std::min(rest.find('\n'), rest.size());
        auto line = rest.substr(0, end);
        if (line.ends_with('\r')) line.remove_suffix(1);
        out += printable(line);
        if (end == rest.size()) return out;
        out += '\n';
        rest.remove_prefix(end + 1);
    }
}

void upstream_process::begin_end(std::chrono::nanoseconds now, std::chrono::nanoseconds patience) {
    if (stage_ != running) return;
    input_ = {};
    patience_ = std::max(patience, least_patience);
    deadline_ = now + patience_;
    stage_ = asked_to_end;
}

auto upstream_process::deadline() const noexcept -> std::optional<std::chrono::nanoseconds> {
    return deadline_;
}

auto upstream_process::advance(std::chrono::nanoseconds now) -> bool {
    if (stage_ == over) return true;
    const auto ended = process_.has_ended();
    if (!ended || *ended) {
        // The leader still holds the number of its group, if it is there.
        if (ended) (void)process_.signal_group(SIGKILL);
        const auto how = process_.wait();
        ending_ = how ? words_for(*how) : "ended, and it is not known how";
        input_ = {};
        deadline_.reset();
        stage_ = over;
        return true;
    }
    if (!deadline_ || now < *deadline_) return false;
    stage_ = stage_ == asked_to_end ? told_to_end : killed;
    (void)process_.signal_group(stage_ == told_to_end ? SIGTERM : SIGKILL);
    deadline_ = now + patience_;
    return false;
}

auto upstream_process::ending() -> std::string {
    (void)advance({});
    return ending_.empty() ? "is running" : ending_;
}

} // namespace glove::mcp
