// `glove doctor`: what this machine offers to Glove, found by trying, and what to do about the
// rest.
//
// Probing and judging are apart: `look_at_machine` gathers facts and decides nothing, `judge` is a
// pure function of them. Nothing of the host is changed, no network is used, and no directory of
// the user is listed.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/container/probe.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glove::host {

struct kernel_facts {
    std::string release, machine;
    container::abilities can;
    int landlock = 0;
    std::string max_user_namespaces, unprivileged_userns_clone; // settings; empty: there is none
    std::string apparmor_restricts, apparmor_label;
    bool under_filter = false; // a system-call filter of whoever started this
    bool inside_glove = false;
    bool proc_covered = false;
    std::optional<std::uint64_t> keys, most_keys; // of this user
};

struct perimeter_facts {
    std::optional<error> refusal; // what `glove exec -- true` would tell
    bool has_true = true;
};

struct service_facts {
    bool cgroup2_mounted = false;
    std::string cgroup; // directory of the own one; empty when it is not known
    std::vector<std::string> controllers;
    bool old_hierarchies = false; // they hold controllers
    bool cgroup_is_own = false;   // delegated: the user's, and writable
    bool user_manager = false;
    std::vector<std::string> manager_controllers; // that its groups can have
    std::string user_name;                        // empty when /etc/passwd does not tell
    bool lingering = false;
    int loop_control = 0;    // 0, or why it cannot be opened
    int fuse = 0;            // the same of /dev/fuse
    std::string ext4_maker;  // the path of mke2fs
    std::string ext4_mender; // of e2fsck
    std::string ext4_server; // of fuse2fs
};

// A directory of Glove's own, or what keeps it from being used.
struct directory_facts {
    std::string path;             // empty: `problem` says why
    std::optional<error> problem; // of finding its place
    int os = 0;                   // why it could not be looked at; ENOENT is no fault
    bool is_directory = false;
    bool is_own = false;
    ::mode_t permissions = 0;
    bool takes_files = false; // of this process
    bool can_be_made = false; // of one that does not exist
};

struct terminal_facts {
    bool input = false, output = false;
    std::string kind; // TERM
    int columns = 0, rows = 0;
};

struct place_facts {
    std::string egress_program; // empty: not found
    std::optional<error> egress_problem;
    directory_facts state, audit, configuration; // `audit` is where records of runs go
    terminal_facts terminal;
};

struct facts {
    ::uid_t uid = 0;
    std::string program; // of this process
    kernel_facts kernel;
    perimeter_facts perimeter;
    service_facts services;
    place_facts places;
};

// Each child that is spent on a probe has this long at most.
inline constexpr std::chrono::milliseconds probe_patience{2000};

[[nodiscard]] auto look_at_machine(container::argument_area arguments) -> facts;

enum class check_status : std::uint8_t { passed, warning, failed };
[[nodiscard]] auto to_string(check_status status) noexcept -> std::string_view;

struct check {
    std::string_view code;
    check_status status = check_status::passed;
    std::string message;
    std::string_view effect; // what does not work; empty when it passed
    std::string recovery;    // empty when it passed
};

struct report {
    std::string config_path; // of the file that would be read; empty when there is no place for it
    std::vector<check> checks;
    // `glove exec` works here.
    [[nodiscard]] auto healthy() const noexcept -> bool;
};

[[nodiscard]] auto judge(const facts& seen) -> report;

[[nodiscard]] auto to_json(const report& from) -> std::string; // ends in a newline
[[nodiscard]] auto to_text(const report& from, bool colours) -> std::string;

} // namespace glove::host
