// glove-mediator: the mediation between agents and tool servers. Started by `glove`, never by
// people.
//
// Guarantees: it reads no argument; what it is to do comes over one descriptor as one text,
// strictly read. It owns the rules, the pins and the audit log, and no agent has a way to them but
// through its messages. It leaves no process behind.
#include "kernel/mediator_process/service.hpp"
#include "kernel/mediator_process/verbs.hpp"
#include "kernel/mediator_process/warden.hpp"
#include "sys/syscalls.hpp"
#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <glove/audit/jsonl.hpp>
#include <glove/base/error_text.hpp>
#include <glove/base/text.hpp>
#include <glove/sys/entropy.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/standard_error.hpp>
#include <glove/sys/standard_output.hpp>
#include <malloc.h>
#include <span>
#include <unistd.h>

namespace {

using namespace glove;
using namespace glove::kernel;

constexpr int failed_to_start = 125, wrong_use = 2;
constexpr std::size_t longest_mediation = 32UL << 20;

// In one line: what a server had to say was passed on as it came.
void report(error problem) {
    problem.detail.resize(std::min(problem.detail.find('\n'), problem.detail.size()));
    (void)sys::write_all(sys::fd_ref::standard_error(), error_text(problem));
}

// A server's text draws nothing on a terminal; a program that reads JSON gets it as it is.
[[nodiscard]] auto print(const std::string& text, bool is_json) -> result<> {
    return is_json ? sys::print_json(text) : sys::write_all(sys::fd_ref::standard_output(), text);
}

// For what is only looked at.
class no_record final : public audit::batching_sink {
public:
    [[nodiscard]] auto append(const audit::event&) -> result<> override { return {}; }
    [[nodiscard]] auto stage(const audit::event&) -> result<> override { return {}; }
    [[nodiscard]] auto commit() -> result<> override { return {}; }
};

[[nodiscard]] auto read_mediation() -> result<mediation> {
    if (::fcntl(mediation_descriptor, F_SETFD, FD_CLOEXEC) != 0)
        return fail_os("mcp.mediation", errno, "glove-mediator is started by glove");
    const sys::unique_fd from{mediation_descriptor};
    GLOVE_TRY(const auto text, sys::read_all(from, longest_mediation));
    return decode_mediation(text);
}

[[nodiscard]] auto load_rules(const mediation& what) -> result<policy::engine> {
    GLOVE_CHECK(mcp::check_upstreams(what.upstreams));
    std::vector<std::string> names;
    auto rules = what.rules;
    for (const auto& each : what.upstreams) {
        names.push_back(each.name);
        rules.started_in.push_back(each.directory.value_or(""));
    }
    return policy::engine::load(rules, names, what.directory);
}

[[nodiscard]] auto options_for(const mediation& what) -> result<gateway_options> {
    gateway_options out;
    // One that is to be contained is not started without.
    for (const auto& each : what.upstreams)
        if (each.perimeter.has_value() != what.contain_upstreams)
            return fail(errc::invalid_input, "mcp.contain",
                        "the server " + in_quotes(each.name) +
                            (what.contain_upstreams ? " has no perimeter"
                                                    : " has a perimeter that nobody asked for"));
    out.upstreams = what.upstreams;
    for (const auto& word : what.relay) {
        const auto feature = mcp::relayable(word);
        if (!feature)
            return fail(errc::invalid_input, "mcp.relay", in_quotes(word),
                        "resources, prompts, completion, logging, sampling, elicitation");
        out.relay.add(*feature);
    }
    out.names = what.names;
    out.renames = what.renames;
    out.start_timeout = std::chrono::milliseconds{what.start_timeout_ms};
    out.call_timeout = std::chrono::milliseconds{what.call_timeout_ms};
    out.result_bytes = what.result_bytes;
    out.instructions = what.instructions;
    out.run = what.run;
    out.version = GLOVE_VERSION;
    sys::system_entropy random;
    GLOVE_CHECK(random.fill(std::as_writable_bytes(std::span{&out.call_prefix, 1})));
    return out;
}

struct setting {
    const mediation& what;
    policy::engine& rules;
    gateway_options options;
};

[[nodiscard]] auto open_pins(const mediation& what) -> result<std::optional<policy::pin_store>> {
    std::optional<policy::pin_store> out;
    if (!what.pinning) return out;
    GLOVE_TRY(auto opened, policy::pin_store::open(what.state));
    out.emplace(std::move(opened));
    return out;
}

[[nodiscard]] auto serve(setting& with, control& channel) -> result<int> {
    const auto& what = with.what;
    const sys::system_clock time;
    GLOVE_TRY(auto pins, open_pins(what));
    GLOVE_TRY(auto log, audit::jsonl_sink::open(what.audit_log, what.audit_sync
                                                                    ? audit::durability::power
                                                                    : audit::durability::process));
    policy::meter meter;
    const bool alone = !channel;
    service loop{
        {what.task == task::bridge ? service_options::kind::bridge : service_options::kind::serve,
         alone, what.audit_log},
        time,
        std::move(channel)};
    GLOVE_TRY(auto gate, gateway::make(with.options, {loop, log, with.rules, meter,
                                                      pins ? &*pins : nullptr, time}));
    loop.attach(gate, what.upstreams);
    const int status = loop.run();
    // Over its channel, `glove` was told.
    if (status != 0 && alone && loop.problem()) report(*loop.problem());
    return status;
}

[[nodiscard]] auto look(setting& with) -> result<int> {
    auto what = with.what;
    const sys::system_clock time;
    if (what.task == task::pin && !what.pinning)
        return fail(errc::invalid_input, "mcp.pin", "pins are looked at and not used (--no-pins)");
    GLOVE_TRY(auto pins, open_pins(what));
    no_record log;
    policy::meter meter;
    // What cannot be started is told, and the rest is shown.
    for (auto& each : with.options.upstreams) each.required = false;
    with.options.optional_patience = std::chrono::hours{24};
    with.options.pins_first_use = false;
    service loop{{service_options::kind::look, true, {}}, time, {}};
    GLOVE_TRY(auto gate, gateway::make(with.options, {loop, log, with.rules, meter,
                                                      pins ? &*pins : nullptr, time}));
    loop.attach(gate, what.upstreams);
    const int status = loop.run();
    if (status != 0) {
        if (loop.problem()) report(*loop.problem());
        return status;
    }
    if (!loop.was_ready()) return failed_to_start; // told to end
    printed out;
    if (what.task == task::tools) out = print_tools(gate, what.json);
    else {
        GLOVE_TRY(out, print_pins(what, gate, *pins));
    }
    GLOVE_CHECK(print(out.text, what.json));
    return out.status;
}

[[nodiscard]] auto work(setting& with, control& channel) -> int {
    const auto what = with.what.task;
    auto done = what == task::tools || what == task::pin ? look(with) : serve(with, channel);
    if (done) return *done;
    if (channel) channel.say(control_word::failed, in_words(done.error()));
    else report(done.error());
    const bool misused = done.error().step == "mcp.accept" || done.error().step == "mcp.pin";
    return misused ? wrong_use : failed_to_start;
}

[[nodiscard]] auto check(const mediation& what, const policy::engine& rules) -> int {
    const auto out = print_check(what, rules);
    if (!out) {
        report(out.error());
        return wrong_use;
    }
    const auto written = print(out->text, what.json);
    return written ? out->status : failed_to_start;
}

[[nodiscard]] auto forget(const mediation& what) -> int {
    const auto done = [&]() -> result<> {
        GLOVE_TRY(auto pins, policy::pin_store::open(what.state));
        GLOVE_TRY(const auto out, print_forgotten(what, pins));
        return print(out.text, what.json);
    }();
    if (done) return 0;
    report(done.error());
    return done.error().step == "pins.forget" ? wrong_use : failed_to_start;
}

[[nodiscard]] auto run() -> int {
    auto channel = control::adopt();
    // What whoever started this forgot to close is nobody's here.
    const auto first =
        static_cast<unsigned>(channel ? control_descriptor : mediation_descriptor) + 1;
    (void)sys::close_range(first, ~0U, 0);
    const auto refuse = [&](const error& why, int status) {
        if (channel) channel.say(control_word::failed, in_words(why));
        else report(why);
        return status;
    };
    const auto what = read_mediation();
    if (!what) return refuse(what.error(), failed_to_start);
    if (what->task == task::pin && !what->forget.empty()) return forget(*what);
    auto rules = load_rules(*what);
    if (!rules) return refuse(rules.error(), wrong_use);
    if (what->task == task::check) return check(*what, *rules);
    auto options = options_for(*what);
    if (!options) return refuse(options.error(), wrong_use);
    if (auto fit = check_names(*options); !fit) return refuse(fit.error(), wrong_use);
    setting with{*what, *rules, *std::move(options)};
    const auto status =
        under_warden(static_cast<bool>(channel), [&] { return work(with, channel); });
    if (!status) return refuse(status.error(), failed_to_start);
    return *status;
}

} // namespace

auto main() -> int {
    // Room that a large message needed is given back when it has gone.
    (void)::mallopt(M_MMAP_THRESHOLD, 256 * 1024);
    try {
        return run();
    } catch (const std::exception& problem) {
        report({errc::io, step_name{"mcp.mediator"}.text, 0, problem.what(), {}});
        return failed_to_start;
    }
}
