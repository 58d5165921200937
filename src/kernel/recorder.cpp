// Fills the one event that is used again and again, and stages it. What could not be staged stays a
// problem: nothing is ever recorded after it.
#include "kernel/recorder.hpp"
#include "kernel/texts.hpp"
#include <glove/wire/crypto.hpp>

namespace glove::kernel {

namespace {

// The text's room is kept from one event to the next.
void put(std::optional<std::string>& to, std::string_view text) {
    if (text.empty()) to.reset();
    else if (to) to->assign(text);
    else to.emplace(text);
}

} // namespace

recorder::recorder(audit::batching_sink& sink, std::string run, std::uint64_t call_prefix)
    : sink_{sink}, prefix_{call_prefix} {
    event_.run = std::move(run);
}

void recorder::put_arguments(const std::string& text) {
    if (text.size() <= most_recorded_arguments) return put(event_.arguments, text);
    const auto digest = wire::sha256(text);
    if (!digest) {
        problem_ = digest.error();
        return;
    }
    put(event_.arguments, "{\"bytes\":" + std::to_string(text.size()) + ",\"sha256\":\"" +
                              wire::to_hex(*digest) + "\"}");
}

auto recorder::stage(const entry& what) -> bool {
    if (problem_) return false;
    event_.action = what.action;
    put(event_.tool, what.subject);
    if (what.arguments != nullptr) put_arguments(*what.arguments);
    else event_.arguments.reset();
    event_.status = what.status;
    put(event_.error, what.why);
    event_.timestamp_ns = wall_.count();
    event_.latency_ns = what.latency.count();
    put_call_id(event_.call, prefix_, what.number);
    if (problem_) return false;
    if (auto staged = sink_.stage(event_); !staged) {
        problem_ = staged.error();
        return false;
    }
    return true;
}

auto recorder::commit() -> result<> {
    if (problem_) return std::unexpected(*problem_);
    auto done = sink_.commit();
    if (!done) problem_ = done.error();
    return done;
}

} // namespace glove::kernel
