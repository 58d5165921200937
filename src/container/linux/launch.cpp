// Makes the namespaces, writes the id maps, and speaks with init over the control channel.
#include "container/linux/cgroup.hpp"
#include "container/linux/control_channel.hpp"
#include "container/linux/launch_parts.hpp"
#include "container/linux/namespaces.hpp"
#include "container/linux/prepared_launch.hpp"
#include "container/linux/protocol.hpp"
#include "container/linux/steps.hpp"
#include <algorithm>
#include <glove/container/launch.hpp>
#include <glove/sys/sockets.hpp>
#include <limits>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

namespace glove::container {

namespace {

constexpr std::string_view clone_layers[] = {"user namespace",  "pid namespace",
                                             "mount namespace", "network namespace",
                                             "ipc namespace",   "uts namespace"};

[[nodiscard]] auto clone_init(const setup_plan& plan) -> cloned {
    return clone_into_namespaces(
        [](const void* given) noexcept { run_init(*static_cast<const setup_plan*>(given)); },
        &plan);
}

// In one piece: the kernel takes each write for a process of its own.
[[nodiscard]] auto enter_group(sys::fd_ref entry, ::pid_t init) -> result<> {
    const auto number = std::to_string(init);
    if (::write(entry.get(), number.data(), number.size()) != static_cast<ssize_t>(number.size()))
        return fail_os("launch.group", errno, "write cgroup.procs");
    return {};
}

// Why the program itself could not be started; everything before it is in force by then.
[[nodiscard]] auto exec_error(const news_message& news, const plan& source) -> error {
    const auto index = source.programs.size() == 1 ? 0 : news.index; // the only one, if any
    error out{.code = classify(news.value),
              .step = exec_step,
              .os = news.value,
              .detail =
                  index < source.programs.size() ? source.programs[index] : source.argv.front()};
    if (news.value == ELIBBAD) {
        out.code = errc::not_permitted;
        out.os = 0;
        out.detail += " is there, but the interpreter that it names is not";
        out.remedy = "grant the interpreter's directory with --read";
    }
    return out;
}

[[nodiscard]] auto step_error(const news_message& news, const plan& source) -> error {
    if (news.where == call::execve) return exec_error(news, source);
    const auto step = setup_steps()[news.step].name;
    std::string detail{call_names[static_cast<std::size_t>(news.where)]};
    const bool of_tree = step == "mount.tree" && news.index < source.tree.size();
    if (of_tree) detail += " for " + source.tree[news.index].path;
    if (step == "mount.listeners" && news.index < source.listeners.size())
        detail += " for " + source.listeners[news.index].path;
    if (news.value == ESTALE && of_tree)
        detail = source.tree[news.index].path + " was replaced while the sandbox was being built";
    return {classify(news.value), step, news.value, std::move(detail),
            remedy_for(step, news.value)};
}

[[nodiscard]] auto is_requested(const setup_step& step, const plan& wanted) -> bool {
    return !step.layer.empty() && (!step.of_bridge || wanted.bridge.has_value());
}

[[nodiscard]] auto plausible(const news_message& news) -> bool {
    return news.step < setup_steps().size() &&
           static_cast<std::size_t>(news.where) < call_names.size();
}

} // namespace

auto requested_layers(const plan& wanted) -> std::vector<layer> {
    std::vector<layer> out;
    for (const auto name : clone_layers) out.push_back({name});
    for (const auto& step : setup_steps())
        if (is_requested(step, wanted)) out.push_back({step.layer});
    return out;
}

running::running(sys::child_process init, sys::unique_fd control,
                 std::unique_ptr<prepared_launch> keep)
    : init_{std::move(init)}, control_{std::move(control)}, keep_{std::move(keep)},
      listeners_due_(keep_->listeners.size(), true), terminal_due_{keep_->child.terminal.wanted} {}
running::running(running&&) noexcept = default;
running::~running() = default;

auto running::release(std::optional<std::chrono::seconds> at_most) -> result<> {
    constexpr std::chrono::seconds longest{std::numeric_limits<std::int32_t>::max()};
    const auto bound = std::min(at_most.value_or(std::chrono::seconds{0}), longest);
    auto sent = send_order(control_, order::release, static_cast<std::int32_t>(bound.count()));
    if (!sent && is_hang_up(sent.error().os)) return {}; // init has failed: `collect` tells why
    return sent;
}
auto running::signal(int number) -> result<> { return send_order(control_, order::signal, number); }
auto running::signal_group(int number) -> result<> {
    return send_order(control_, order::signal_group, number);
}
auto running::signal_foreground(int number) const -> result<> {
    return send_order(control_, order::signal_foreground, number);
}
auto running::go_on(bool in_foreground) -> result<> {
    return send_order(control_, in_foreground ? order::foreground : order::background);
}
auto running::hear_stop() -> result<> { return send_order(control_, order::heard); }
auto running::kill() -> result<> {
    killed_ = true;
    return init_.signal(SIGKILL);
}

auto running::end() const -> result<> { return init_.signal(SIGKILL); }

auto running::accept_listener(sys::unique_fd came, std::size_t index) -> result<sys::unique_fd> {
    if (index >= listeners_due_.size() || !listeners_due_[index])
        return fail(errc::not_permitted, "launch.listener", "what came is no socket of the plan");
    listeners_due_[index] = false;
    return container::accept_listener(std::move(came), keep_->listeners[index]);
}

auto running::hear() -> result<> {
    auto [got, message, came] = receive_news(control_);
    const bool whole = got == sizeof message && plausible(message);
    if (whole && message.what == news::listener) {
        GLOVE_TRY(listener_.socket, accept_listener(std::move(came), message.index));
        listener_.index = message.index;
        return {};
    }
    if (whole && message.what == news::terminal) {
        GLOVE_TRY(terminal_, accept_terminal(std::move(came), terminal_due_));
        return {};
    }
    if (whole) {
        armed_ = message.armed;
        stop_ = message.what == news::stopped ? message.value : 0;
        takes_input_ = message.what == news::started || message.what == news::went_on;
        if (message.what == news::stopped || takes_input_) return {};
    }
    if (got != sizeof message && killed_) last_ = ending{.wait_status = SIGKILL};
    else if (!whole)
        last_ = fail(errc::io, "launch.init", "the sandbox's init ended without a report");
    else if (message.what == news::failed)
        last_ = std::unexpected(step_error(message, *keep_->source));
    else last_ = ending{.wait_status = message.value};
    return {};
}

// Init is the last to leave: once it is reaped, the namespace is empty.
auto running::reap() -> result<std::optional<ending>> {
    GLOVE_CHECK(init_.wait());
    GLOVE_TRY(const auto how, *last_);
    return how;
}

auto running::read_news() -> result<std::optional<ending>> {
    if (!last_) GLOVE_CHECK(hear());
    if (!last_) return std::nullopt;
    return reap();
}

auto running::look_for_news() -> result<std::optional<ending>> {
    ::pollfd control{control_.get(), POLLIN, 0};
    if (!last_ && ::poll(&control, 1, 0) > 0) GLOVE_CHECK(hear());
    if (!last_) return std::nullopt;
    GLOVE_TRY(const bool ended, init_.has_ended());
    if (!ended) return std::nullopt;
    return reap();
}

auto running::layers() const -> std::vector<layer> {
    auto out = requested_layers(*keep_->source);
    std::size_t at = 0;
    for (; at < std::size(clone_layers); ++at) out[at].armed = true; // or there would be no child
    for (std::size_t i = 0; i < setup_steps().size(); ++i)
        if (is_requested(setup_steps()[i], *keep_->source))
            out[at++].armed = (armed_ >> i & 1U) != 0;
    return out;
}

started_init::started_init(sys::child_process made, sys::unique_fd channel,
                           std::unique_ptr<prepared_launch> memory)
    : init{std::move(made)}, control{std::move(channel)}, keep{std::move(memory)} {}
started_init::started_init(started_init&&) noexcept = default;
started_init::~started_init() = default;

auto running_elsewhere(const plan& of, sys::child_process init, sys::unique_fd control) -> running {
    auto known = std::make_unique<prepared_launch>();
    known->source = &of;
    known->child.terminal.wanted = true;
    return running{std::move(init), std::move(control), std::move(known)};
}

auto known_step(std::string_view word) -> std::string_view {
    constexpr std::string_view own[] = {
        "launch.bridge", "launch.control_channel", "launch.mounts",   "launch.namespaces",
        "launch.group",  "launch.id_maps",         "launch.order",    exec_step,
        "launcher.fork", "launcher.plan",          "limits.oom_score"};
    if (const auto* at = std::ranges::find(own, word); at != std::end(own)) return *at;
    const auto steps = setup_steps();
    const auto at = std::ranges::find(steps, word, &setup_step::name);
    return at == steps.end() ? std::string_view{} : at->name;
}

auto start_init(const launch_request& request) -> result<started_init> {
    if (request.plan->bridge.has_value() != (request.bridge != nullptr))
        return fail(errc::wrong_state, "launch.bridge", "a bridge and its channel go together");
    GLOVE_TRY(auto ends, sys::message_channel("launch.control_channel"));
    auto& [ours, theirs] = ends;
    GLOVE_TRY(auto keep, prepare(request, theirs.get()));
    const auto child = clone_init(keep->child);
    if (child.pid < 0) {
        auto problem = fail_os("launch.namespaces", errno, "clone3");
        problem.error().remedy = remedy_for("launch.namespaces", problem.error().os);
        return problem;
    }
    sys::child_process init{sys::unique_fd{child.pidfd}};
    theirs = {};
    if (request.bridge != nullptr) *request.bridge = {};
    if (request.group != nullptr) GLOVE_CHECK(request.group->admit(child.pid));
    if (request.entry) {
        GLOVE_CHECK(enter_group(*request.entry, child.pid));
        GLOVE_CHECK(cgroup::let_be_killed(child.pid));
    }
    if (auto mapped = write_id_maps(child.pid, request.plan->user); !mapped) {
        // The maps of an init that has ended cannot be written: then why it ended is the reason.
        news_message news{};
        if (::recv(ours.get(), &news, sizeof news, MSG_DONTWAIT) == sizeof news && plausible(news))
            return std::unexpected(step_error(news, *request.plan));
        auto problem = std::move(mapped).error();
        problem.remedy = remedy_for(problem.step, problem.os);
        return std::unexpected(std::move(problem));
    }
    // A child that already failed has closed its end; `collect` tells why.
    if (auto told = send_order(ours, order::maps_written); !told && !is_hang_up(told.error().os))
        return std::unexpected(std::move(told).error());
    return started_init{std::move(init), std::move(ours), std::move(keep)};
}

auto launch(const launch_request& request) -> result<running> {
    GLOVE_TRY(auto started, start_init(request));
    return running{std::move(started.init), std::move(started.control), std::move(started.keep)};
}

auto check_identity() -> result<> {
    if (::getuid() == ::geteuid() && ::getgid() == ::getegid()) return {};
    return fail(errc::not_permitted, "exec.identity",
                "the real and the effective user or group differ",
                "start glove as one user; it needs no set-uid program around it");
}

auto raise_open_files() -> result<::rlimit> {
    ::rlimit before{};
    if (::getrlimit(RLIMIT_NOFILE, &before) != 0) return fail_os("launch.open_files");
    const ::rlimit raised{before.rlim_max, before.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) != 0) return fail_os("launch.open_files");
    return before;
}

} // namespace glove::container
