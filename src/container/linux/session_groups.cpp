// Everything is judged before the one thing that is changed, which is the list of controllers of
// the parent. Names are used once, below a descriptor.
#include "container/linux/cgroup.hpp"
#include "container/linux/session_group.hpp"
#include <algorithm>
#include <array>
#include <fcntl.h>
#include <glove/base/numbers.hpp>
#include <glove/base/text.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/process_facts.hpp>
#include <glove/wire/crypto.hpp>
#include <glove/wire/grammar.hpp>
#include <limits>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::container {

namespace {

constexpr std::string_view prefix = "glove-session-";
constexpr std::string_view path_domain = "glove.linux-cgroup-path:";
constexpr std::size_t longest_id = 64;
constexpr std::array<std::string_view, 3> controllers{"cpu", "memory", "pids"};
constexpr int directory_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

constexpr std::string_view mend = "start it as a service: glove daemon install and glove daemon "
                                  "start, or a unit with Delegate=cpu "
                                  "memory pids and DelegateSubgroup=glove-host";

[[nodiscard]] auto as(step_name step, error problem) {
    problem.step = step.text;
    if (problem.remedy.empty()) problem.remedy = mend;
    return std::unexpected(std::move(problem));
}

[[nodiscard]] auto refused(errc code, step_name step, std::string detail) {
    return fail(code, step, std::move(detail), std::string{mend});
}

[[nodiscard]] auto is_session_id(std::string_view text) -> bool {
    return !text.empty() && text.size() <= longest_id && wire::conforms(wire::grammar::alias, text);
}

[[nodiscard]] auto name_of(std::string_view session_id) -> result<std::string> {
    if (is_session_id(session_id)) return std::string{prefix}.append(session_id);
    return fail(errc::invalid_input, "group.name",
                in_quotes(session_id) + " cannot be part of a control group's name",
                "a session's id has 1 to 64 characters A-Z a-z 0-9 - _ .");
}

// The numbers of the processes in a group, without those that cannot be seen from here: each of
// these is 0.
[[nodiscard]] auto members(sys::fd_ref group) -> result<std::vector<::pid_t>> {
    GLOVE_TRY(const auto text, cgroup::read(group, "cgroup.procs"));
    std::vector<::pid_t> out;
    for (std::string_view rest{text}; !rest.empty();) {
        const auto line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        const auto number = parse_decimal(line, std::numeric_limits<::pid_t>::max());
        if (!number) return fail(errc::corrupt, "limits.file", "cgroup.procs: " + in_quotes(line));
        out.push_back(static_cast<::pid_t>(*number));
    }
    return out;
}

// This process, or one that it is an ancestor of. A process whose parent has ended has another one.
[[nodiscard]] auto is_of_this_process(::pid_t process) -> bool {
    constexpr int most_generations = 64;
    const auto self = ::getpid();
    for (int i = 0; i < most_generations && process > 1; ++i) {
        if (process == self) return true;
        const auto facts = sys::facts_of_process(process);
        if (!facts) return false;
        process = facts->parent;
    }
    return process == self;
}

// A process that ends while it is looked at is nobody: it is not in the group any more then.
[[nodiscard]] auto check_alone(sys::fd_ref own, const std::string& path) -> result<> {
    constexpr int attempts = 16;
    ::pid_t stranger = 0;
    for (int i = 0; i < attempts; ++i) {
        const auto all = members(own);
        if (!all) return as("groups.busy", all.error());
        if (std::ranges::find(*all, ::getpid()) == all->end())
            return refused(errc::conflict, "groups.own",
                           path + " at /sys/fs/cgroup is not the control group of this process");
        const auto found = std::ranges::find_if_not(*all, is_of_this_process);
        if (found == all->end()) return {};
        stranger = *found;
    }
    return refused(errc::conflict, "groups.busy",
                   "process " + std::to_string(stranger) + " is in the control group " + path +
                       " of this service, and is none of its own");
}

[[nodiscard]] auto check_empty(sys::fd_ref parent, const std::string& path) -> result<> {
    const auto all = members(parent);
    if (!all) return as("groups.busy", all.error());
    if (all->empty()) return {};
    return refused(errc::conflict, "groups.busy",
                   "process " + std::to_string(all->front()) + " is in the control group " + path +
                       ", so that none below it can have limits");
}

struct place {
    std::string own_path, path; // of the parent
    sys::unique_fd own, parent;
};

// The parent by its path and by the way up from the own group must be the same.
[[nodiscard]] auto find_parent(place& at) -> result<> {
    at.path = sys::parent_of(at.own_path);
    auto parent = cgroup::open_own(at.path);
    if (!parent) return as("groups.parent", parent.error());
    const sys::unique_fd above{::openat(at.own.get(), "..", directory_flags)};
    if (!above) return fail_os("groups.parent", errno, at.own_path + "/..");
    GLOVE_TRY(const auto by_path, sys::inspect(*parent));
    GLOVE_TRY(const auto by_way, sys::inspect(above));
    if (by_path.identity != by_way.identity)
        return refused(errc::conflict, "groups.parent",
                       at.path + " is not what " + at.own_path + " is in");
    if (!cgroup::is_delegated(*parent, at.own_path))
        return refused(errc::not_permitted, "groups.parent",
                       at.path + " was not delegated: it belongs to the service manager");
    at.parent = *std::move(parent);
    return {};
}

[[nodiscard]] auto find_place() -> result<place> {
    place at;
    auto path = cgroup::path_of(::getpid());
    if (!path) return as("groups.own", path.error());
    at.own_path = *std::move(path);
    if (at.own_path == "/")
        return refused(errc::unsupported, "groups.own",
                       "this process is in the first control group, which has none around it");
    auto own = cgroup::open_own(at.own_path);
    if (!own) return as("groups.own", own.error());
    at.own = *std::move(own);
    GLOVE_CHECK(find_parent(at));
    GLOVE_CHECK(check_alone(at.own, at.own_path));
    GLOVE_CHECK(check_empty(at.parent, at.path));
    return at;
}

[[nodiscard]] auto check_kernel(sys::fd_ref own) -> result<> {
    if (::faccessat(own.get(), "cgroup.kill", W_OK, 0) != 0)
        return fail(errc::unsupported, "groups.controllers",
                    "this kernel cannot end a control group at once (cgroup.kill)",
                    "start Linux 5.14 or newer");
    auto none = cgroup::check_huge_pages();
    if (!none) return as("groups.huge_pages", none.error());
    return {};
}

[[nodiscard]] auto lacking(sys::fd_ref parent, const char* file)
    -> result<std::vector<std::string>> {
    const auto there = cgroup::read(parent, file);
    if (!there) return as("groups.controllers", there.error());
    std::vector<std::string> out;
    for (const auto one : controllers)
        if (!cgroup::lists(*there, one)) out.emplace_back(one);
    return out;
}

[[nodiscard]] auto enable_controllers(const place& at) -> result<> {
    GLOVE_TRY(const auto absent, lacking(at.parent, "cgroup.controllers"));
    if (!absent.empty())
        return refused(errc::unsupported, "groups.controllers",
                       "there is no controller " + absent.front() + " below " + at.path);
    GLOVE_TRY(const auto wanted, lacking(at.parent, "cgroup.subtree_control"));
    if (wanted.empty()) return {};
    std::string words;
    for (const auto& one : wanted) words.append(words.empty() ? "+" : " +").append(one);
    if (const auto done = cgroup::write(at.parent, "cgroup.subtree_control", words); !done)
        return as("groups.controllers", done.error());
    GLOVE_TRY(const auto left, lacking(at.parent, "cgroup.subtree_control"));
    if (left.empty()) return {};
    return refused(errc::unsupported, "groups.controllers",
                   "the kernel does not keep the controller " + left.front() + " below " + at.path);
}

[[nodiscard]] auto values_for(const session_group_limits& limits, bool swap)
    -> std::vector<held_value> {
    std::vector<held_value> out{
        {"cgroup.max.descendants", "0"},
        {"pids.max", std::to_string(limits.processes)},
        {"memory.oom.group", "1"},
        {"memory.max", std::to_string(cgroup::page_floor(limits.memory_bytes))}};
    if (swap) out.emplace_back("memory.swap.max", "0");
    return out;
}

[[nodiscard]] auto check_limits(const session_group_limits& limits) -> result<> {
    if (cgroup::page_floor(limits.memory_bytes) != 0 && limits.processes != 0) return {};
    return fail(errc::invalid_input, "group.limit",
                "there is no session with " + std::to_string(limits.memory_bytes) +
                    " bytes of memory and " + std::to_string(limits.processes) + " processes");
}

} // namespace

auto count_processors(std::string_view list) -> std::optional<unsigned> {
    constexpr std::uint64_t most = 65'535;
    std::uint64_t out = 0;
    while (!list.empty()) {
        const auto part = list.substr(0, list.find(','));
        list.remove_prefix(std::min(part.size() + 1, list.size()));
        const auto dash = std::min(part.find('-'), part.size());
        const auto first = parse_decimal(part.substr(0, dash), most);
        const auto last = dash == part.size() ? first : parse_decimal(part.substr(dash + 1), most);
        if (!first || !last || *last < *first) return std::nullopt;
        out += *last - *first + 1;
    }
    if (out == 0 || out > most + 1) return std::nullopt;
    return static_cast<unsigned>(out);
}

auto check_swap(sys::fd_ref group) -> result<bool> {
    if (::faccessat(group.get(), "memory.swap.max", W_OK, 0) == 0) return true;
    if (errno == ENOENT && !sys::exists("/proc/swaps")) return false;
    return fail(errc::unsupported, "group.limit",
                "memory.swap.max: this kernel does not count what control groups swap out",
                "start Linux without swapaccount=0 in its parameters");
}

struct session_groups::state {
    sys::unique_fd own;
    std::shared_ptr<const sys::unique_fd> parent;
    std::string path; // of the parent

    [[nodiscard]] auto know(std::string name, sys::unique_fd group) const
        -> result<std::unique_ptr<session_group::state>>;
};

// What there is to know of a group that is open.
auto session_groups::state::know(std::string name, sys::unique_fd group) const
    -> result<std::unique_ptr<session_group::state>> {
    auto out = std::make_unique<session_group::state>();
    out->parent = parent;
    out->path = path + (path == "/" ? "" : "/") + name;
    out->name = std::move(name);
    out->group = std::move(group);
    GLOVE_TRY(const auto facts, sys::inspect(out->group));
    GLOVE_TRY(auto digest, wire::sha256_hex(std::string{path_domain} + out->path));
    out->identity = {facts.identity.device, facts.identity.inode, std::move(digest)};
    GLOVE_CHECK(out->open_files());
    return out;
}

session_groups::session_groups(std::unique_ptr<state> own) : state_{std::move(own)} {}
session_groups::session_groups(session_groups&&) noexcept = default;
session_groups::~session_groups() = default;

auto session_groups::open() -> result<session_groups> {
    GLOVE_TRY(auto at, find_place());
    GLOVE_CHECK(check_kernel(at.own));
    GLOVE_CHECK(enable_controllers(at));
    auto out = std::make_unique<state>();
    out->own = std::move(at.own);
    out->parent = std::make_shared<const sys::unique_fd>(std::move(at.parent));
    out->path = std::move(at.path);
    return session_groups{std::move(out)};
}

auto session_groups::make(std::string_view session_id, const session_group_limits& limits)
    -> result<session_group> {
    GLOVE_TRY(const auto name, name_of(session_id));
    GLOVE_CHECK(check_limits(limits));
    auto made = cgroup::make(*state_->parent, name);
    if (!made) {
        made.error().step = step_name{"group.name"}.text;
        return std::unexpected(std::move(made).error());
    }
    auto known = state_->know(name, *std::move(made));
    if (!known) {
        (void)cgroup::remove(*state_->parent, name);
        return std::unexpected(std::move(known).error());
    }
    (*known)->made = true;
    auto& of = **known;
    session_group out{*std::move(known)}; // gone again, whatever is refused from here on
    GLOVE_TRY(const bool swap, check_swap(of.group));
    of.held = values_for(limits, swap);
    of.processes = limits.processes;
    for (const auto& [file, value] : of.held)
        if (auto written = cgroup::write(of.group, file, value); !written) {
            written.error().step = step_name{"group.limit"}.text;
            return std::unexpected(std::move(written).error());
        }
    GLOVE_CHECK(of.check_held());
    return out;
}

auto session_groups::find(std::string_view session_id) -> result<std::optional<session_group>> {
    GLOVE_TRY(const auto name, name_of(session_id));
    auto group = sys::open_beneath(*state_->parent, name, directory_flags);
    if (!group && group.error().os == ENOENT) return std::nullopt;
    if (!group) return fail_os("group.name", group.error().os, name);
    auto known = state_->know(name, *std::move(group));
    // Gone in this very moment.
    if (!known && known.error().os == ENOENT) return std::nullopt;
    if (!known) return std::unexpected(std::move(known).error());
    return session_group{*std::move(known)};
}

auto session_groups::list() const -> result<std::vector<std::string>> {
    auto names = sys::list_names(*state_->parent, "");
    if (!names) {
        names.error().step = step_name{"group.name"}.text;
        return std::unexpected(std::move(names).error());
    }
    std::vector<std::string> out;
    for (const auto& [name, type] : *names) {
        const std::string_view text{name};
        if (type == S_IFDIR && text.starts_with(prefix) &&
            is_session_id(text.substr(prefix.size())))
            out.emplace_back(text.substr(prefix.size()));
    }
    std::ranges::sort(out);
    return out;
}

// Not by the affinity of this process, which a session can give up.
auto session_groups::processors() const -> unsigned {
    if (const auto list = cgroup::read(*state_->parent, "cpuset.cpus.effective"))
        if (const auto count = count_processors(*list)) return *count;
    return static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_CONF)));
}

} // namespace glove::container
