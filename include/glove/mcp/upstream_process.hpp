// One tool server: a process of the host, in a session and process group of its own, so that no
// terminal is its. It is in no sandbox, unless it has a perimeter: then it is started by `glove
// exec`, in one of its own, and by nothing else.
//
// Guarantees: it gets exactly the arguments, variables and three streams that are named, and no
// other descriptor. It dies with the thread that started it. Its stderr is always drained, into a
// bounded tail and, line by line, to whoever wants to hear. `end` reaches its whole group; nothing
// here blocks. No shell, no search beyond PATH.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <glove/base/error.hpp>
#include <glove/mcp/framing.hpp>
#include <glove/sys/child_process.hpp>
#include <glove/sys/fd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace glove::mcp {

// What a contained server may see, change and reach.
struct upstream_grants {
    std::vector<std::string> read, write, egress; // absolute paths; rules of --egress-allow
    auto operator==(const upstream_grants&) const -> bool = default;
};

// Set for the `glove exec` that contains a server, which then keeps what may be a secret among the
// server's words off the record. The server does not get it.
inline constexpr const char* contained_server_variable = "GLOVE_CONTAINED_SERVER";

// What it is contained with.
struct upstream_perimeter {
    std::string glove;                         // the program that does it, absolute
    std::string program;                       // of the server, absolute
    std::vector<std::string> needs;            // paths that the program must see
    std::vector<std::string> directories;      // before the system's on its PATH
    std::optional<std::string> workspace;      // of those that it may change, to start in
    std::optional<std::string> audit_log = {}; // absolute
    auto operator==(const upstream_perimeter&) const -> bool = default;
};

// An upstream as the operator names it.
struct upstream_wish {
    std::string name; // no dot, no "__"; letters, digits, '-' and '_'; at most 32
    std::vector<std::string> argv;
    std::vector<std::pair<std::string, std::string>> environment; // set
    std::vector<std::string> passed;                              // names, passed on when set
    std::optional<std::string> directory;                         // to start in
    bool required = true;                                         // a run does not begin without it
    std::optional<std::chrono::milliseconds> start_timeout = {}, call_timeout = {};
    upstream_grants grants = {};                      // only of one that is contained
    std::optional<upstream_perimeter> perimeter = {}; // none: it is not contained
    auto operator==(const upstream_wish&) const -> bool = default;
};

// `name=cmd[,arg...]`, split at commas, no escaping.
[[nodiscard]] auto parse_upstream(std::string_view word) -> result<upstream_wish>;
// A file in the customary form: {"mcpServers": {NAME: {"command", "args", "env", "cwd"}}}; what a
// contained server may do stands in a member "glove": {"read", "write", "egress"}. Other
// members of a server are refused by name when they change what runs (`url`, `type` other than
// stdio) and listed in `ignored` otherwise.
struct upstream_file {
    std::vector<upstream_wish> upstreams;
    std::vector<std::string> ignored;
};
[[nodiscard]] auto parse_upstream_file(std::string_view text, const std::string& file)
    -> result<upstream_file>;
// Names once each, none reserved ("glove").
[[nodiscard]] auto check_upstreams(const std::vector<upstream_wish>& all) -> result<>;

class upstream_process {
public:
    // `outer` is the caller's environment, from which PATH, HOME, LANG and the like and what is to
    // be passed is taken.
    [[nodiscard]] static auto start(const upstream_wish& what, const char* const* outer)
        -> result<upstream_process>;
    upstream_process(upstream_process&&) noexcept = default;
    ~upstream_process(); // kills the group

    [[nodiscard]] auto input() const noexcept -> sys::fd_ref { return input_; }   // its stdin
    [[nodiscard]] auto output() const noexcept -> sys::fd_ref { return output_; } // its stdout
    [[nodiscard]] auto errors() const noexcept -> sys::fd_ref { return errors_; } // its stderr
    // Readable when the process has ended. Gone once `advance` has said that it is over.
    [[nodiscard]] auto ended() const noexcept -> sys::fd_ref { return process_.descriptor(); }

    // Reads its stderr without waiting, at most 256 KiB; each whole line goes to `hear`, at most
    // 4 KiB of it. False at the end of the stream.
    [[nodiscard]] auto drain_errors(const std::function<void(std::string_view)>& hear) -> bool;
    // The last 4 KiB of its stderr, for a message: control bytes are escaped.
    [[nodiscard]] auto error_tail() const -> std::string;

    // The orderly end: its stdin is closed; SIGTERM to the group after `patience`, SIGKILL after
    // as much again. Call `advance` at `deadline` and when `ended` is readable, also of one that
    // ended by itself. Whatever of the group is left when the process has ended is killed; only
    // then is it reaped, so nobody else may reap it.
    void begin_end(std::chrono::nanoseconds now, std::chrono::nanoseconds patience);
    [[nodiscard]] auto deadline() const noexcept -> std::optional<std::chrono::nanoseconds>;
    // True when it is over.
    [[nodiscard]] auto advance(std::chrono::nanoseconds now) -> bool;
    // How it ended, in words: "ended with status 3", "was killed by signal 9".
    [[nodiscard]] auto ending() -> std::string;

private:
    upstream_process(sys::child_process process, sys::unique_fd input, sys::unique_fd output,
                     sys::unique_fd errors);
    sys::child_process process_;
    sys::unique_fd input_, output_, errors_;
    std::string tail_, line_;
    std::optional<std::chrono::nanoseconds> deadline_;
    std::chrono::nanoseconds patience_{};
    std::uint8_t stage_ = 0;
    std::string ending_;
};

} // namespace glove::mcp
