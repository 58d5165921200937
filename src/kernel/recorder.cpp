// One event at a time, in room that is kept.
#include "kernel/recorder.hpp"
#include "kernel/texts.hpp"
#include <glove/wire/crypto.hpp>

namespace glove::kernel {

namespace {

constexpr std::size_t half_of_call_id = 16;

// The text's room is kept from one event to the next.
void put(std::optional<std::string>& to, std::string_view text) {
    if (text.empty()) to.reset();
    else if (to) to->assign(text);
    else to.emplace(text);
}

} // namespace

recorder::recorder(audit::batching_sink& sink, std::string run, std::uint64_t call_prefix)
    : sink_{sink} {
    intent_.run = run;
    outcome_.run = std::move(run);
    for (auto* const each : {&intent_, &outcome_}) {
        each->call.resize(2 * half_of_call_id);
        put_hexadecimal(each->call.data(), call_prefix);
    }
}

void recorder::put_arguments(std::optional<std::string>& to, const std::string& text) {
    if (text.size() <= most_recorded_arguments) return put(to, text);
    const auto digest = wire::sha256(text);
    if (!digest) {
        problem_ = digest.error();
        return;
    }
    put(to, "{\"bytes\":" + std::to_string(text.size()) + ",\"sha256\":\"" + wire::to_hex(*digest) +
                "\"}");
}

auto recorder::stage(const entry& what) -> bool {
    if (problem_) return false;
    auto& event = what.status == audit::status::pending ? intent_ : outcome_;
    event.action = what.action;
    put(event.tool, what.subject);
    if (what.arguments != nullptr) put_arguments(event.arguments, *what.arguments);
    else event.arguments.reset();
    event.status = what.status;
    put(event.error, what.why);
    event.timestamp_ns = wall_.count();
    event.latency_ns = what.latency.count();
    put_hexadecimal(event.call.data() + half_of_call_id, what.number);
    if (problem_) return false;
    if (auto staged = sink_.stage(event); !staged) {
        problem_ = staged.error();
        return false;
    }
    staged_ = true;
    return true;
}

auto recorder::commit() -> result<> {
    if (problem_) return std::unexpected(*problem_);
    staged_ = false;
    auto done = sink_.commit();
    if (!done) problem_ = done.error();
    return done;
}

} // namespace glove::kernel
