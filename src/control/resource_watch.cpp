// What is exceeded is decided in one place, after whatever was looked at.
#include <algorithm>
#include <glove/control/resource_watch.hpp>
#include <limits>
#include <string>

namespace glove::control {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr auto most_us =
    static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / 1000;

// In units that cannot overflow, whatever a plan asks for.
[[nodiscard]] constexpr auto us_of(std::uint64_t ms) noexcept -> std::uint64_t {
    return ms > most_us / 1000 ? most_us : ms * 1000;
}
[[nodiscard]] constexpr auto ms_of(std::uint64_t us) noexcept -> std::uint64_t {
    return us / 1000 + (us % 1000 == 0 ? 0U : 1U);
}
[[nodiscard]] auto wall_limit(const supervisor::resource_limits& of) -> nanoseconds {
    return microseconds{static_cast<std::int64_t>(us_of(of.wall_time_ms))};
}
// A counter that goes back counts something else.
[[nodiscard]] auto since(std::uint64_t now, std::uint64_t first, std::string_view what)
    -> result<std::uint64_t> {
    if (now < first)
        return fail(errc::corrupt, "watch.meter",
                    std::string{what} + " went back from " + std::to_string(first) + " to " +
                        std::to_string(now));
    return now - first;
}

} // namespace

auto resource_watch::begin(const wish& with) -> result<resource_watch> {
    const auto& most = with.limits;
    if (with.clock == nullptr || with.meter == nullptr || with.into == nullptr || with.cpus == 0 ||
        with.cpus > most_cpus || most.cpu_time_ms == 0 || most.memory_bytes == 0 ||
        most.pids == 0 || most.wall_time_ms == 0 || most.disk_bytes == 0 ||
        most.terminal_output_bytes == 0)
        return fail(errc::invalid_input, "watch.limits",
                    "every limit must be set, and the processors be 1 to " +
                        std::to_string(most_cpus));
    resource_watch out{with};
    GLOVE_TRY(out.first_cpu_us_, with.meter->cpu_us());
    GLOVE_TRY(out.first_, with.meter->state());
    out.begun_ = with.clock->monotonic();
    out.cpu_due_ = out.state_due_ = out.begun_;
    return out;
}

auto resource_watch::wall_now() const -> nanoseconds {
    return wall_ ? *wall_ : std::max(nanoseconds{0}, with_.clock->monotonic() - begun_);
}

auto resource_watch::cpu_left_us() const -> std::uint64_t {
    const auto limit = us_of(with_.limits.cpu_time_ms);
    return limit - std::min(limit, cpu_us_);
}

auto resource_watch::look_at_cpu() -> result<> {
    // Before the reading: what is used while it is made must not be left out.
    const auto asked = with_.clock->monotonic();
    GLOVE_TRY(const auto now, with_.meter->cpu_us());
    GLOVE_TRY(const auto used, since(now, first_cpu_us_, "processor time"));
    GLOVE_CHECK(since(used, cpu_us_, "processor time"));
    cpu_us_ = used;
    // All processors together need this long for the rest.
    const auto alone =
        microseconds{static_cast<std::int64_t>(std::min(cpu_left_us() / with_.cpus, most_us))};
    cpu_due_ = asked + std::clamp<nanoseconds>(alone, shortest_look, longest_look);
    return {};
}

auto resource_watch::look_at_state() -> result<> {
    GLOVE_TRY(const auto now, with_.meter->state());
    GLOVE_TRY(state_.memory_kills,
              since(now.memory_kills, first_.memory_kills, "the count of kills"));
    GLOVE_TRY(state_.memory_limit_met,
              since(now.memory_limit_met, first_.memory_limit_met, "the count of full memory"));
    GLOVE_TRY(state_.pids_refused,
              since(now.pids_refused, first_.pids_refused, "the count of refused processes"));
    state_.peak_memory_bytes = std::max(state_.peak_memory_bytes, now.peak_memory_bytes);
    state_.peak_pids = std::max(state_.peak_pids, now.peak_pids);
    state_.disk_bytes = std::max(state_.disk_bytes, now.disk_bytes);
    state_.disk_refused = state_.disk_refused || now.disk_refused;
    state_due_ = with_.clock->monotonic() + longest_look;
    return {};
}

// Nobody is asked in vain: what is exceeded was found by what was read.
void resource_watch::judge() {
    using enum termination_cause;
    auto& to = *with_.into;
    if (state_.is_over_memory()) (void)to.note(memory_limit);
    // More than there may be: who could lift the limit did, and the kernel refused none.
    if (state_.pids_refused != 0 || state_.peak_pids > with_.limits.pids) (void)to.note(pid_limit);
    if (state_.disk_refused) (void)to.note(disk_limit);
    if (cpu_us_ > us_of(with_.limits.cpu_time_ms)) (void)to.note(cpu_time_limit);
    if (wall_now() > wall_limit(with_.limits)) (void)to.note(wall_time_limit);
}

auto resource_watch::look(bool at_all) -> result<> {
    const auto now = with_.clock->monotonic();
    result<> read = {};
    if (at_all || now >= state_due_) read = look_at_state();
    if (at_all || now >= cpu_due_)
        if (auto cpu = look_at_cpu(); !cpu && read) read = std::move(cpu);
    // What was found still counts before what could not be.
    judge();
    if (!read) (void)with_.into->note(termination_cause::supervisor_error);
    return read;
}

auto resource_watch::check() -> result<nanoseconds> {
    GLOVE_CHECK(look(false));
    // Equal is fine, so the first moment at which it is not is one later.
    const auto wall_due =
        begun_ + std::min(wall_limit(with_.limits) + nanoseconds{1}, nanoseconds::max() - begun_);
    return std::min({cpu_due_, state_due_, wall_ ? state_due_ : wall_due});
}

void resource_watch::end_wall_time() {
    if (!wall_) wall_ = wall_now();
}

auto resource_watch::finish() -> result<> {
    end_wall_time();
    return look(true);
}

auto resource_watch::observed() const -> observed_use {
    const auto wall_us =
        static_cast<std::uint64_t>(std::chrono::ceil<microseconds>(wall_now()).count());
    return {.cpu_time_ms = ms_of(cpu_us_),
            .peak_memory_bytes = state_.peak_memory_bytes,
            .peak_pids = state_.peak_pids,
            .wall_time_ms = ms_of(wall_us),
            .disk_bytes = state_.disk_bytes,
            .terminal_output_bytes = 0};
}

} // namespace glove::control
