// Counts what was admitted; a call that is refused uses up nothing.
#include <deque>
#include <glove/policy/engine.hpp>
#include <map>

namespace glove::policy {

namespace {

constexpr std::chrono::nanoseconds minute = std::chrono::minutes{1};

struct tool_counts {
    std::uint64_t calls = 0;
    std::deque<std::chrono::nanoseconds> recent; // at most as many as are allowed in a minute
};

[[nodiscard]] auto seconds_until(std::chrono::nanoseconds then, std::chrono::nanoseconds now)
    -> std::string {
    return std::to_string(std::chrono::ceil<std::chrono::seconds>(then - now).count());
}

} // namespace

struct meter::counts {
    std::map<std::string, tool_counts, std::less<>> tools;
};

meter::meter() : counts_{std::make_unique<counts>()} {}
meter::meter(meter&&) noexcept = default;
meter::~meter() = default;

auto meter::admit(std::string_view qualified, const tool_limits& limits,
                  std::chrono::nanoseconds now) -> verdict {
    if (!limits.calls && !limits.per_minute) return {.allowed = true};
    auto found = counts_->tools.find(qualified);
    if (found == counts_->tools.end())
        found = counts_->tools.emplace(std::string{qualified}, tool_counts{}).first;
    auto& [calls, recent] = found->second;
    const auto refuse = [&](std::uint64_t limit, std::string_view of, const std::string& when) {
        return verdict{false, wire::json::readable_name(qualified) + " has reached its limit of " +
                                  std::to_string(limit) + (limit == 1 ? " call " : " calls ") +
                                  std::string{of} + when};
    };
    if (limits.calls && calls >= *limits.calls) return refuse(*limits.calls, "in a run", {});
    if (limits.per_minute) {
        while (!recent.empty() && now - recent.front() >= minute) recent.pop_front();
        if (recent.size() >= *limits.per_minute)
            return refuse(*limits.per_minute, "a minute",
                          recent.empty() ? ""
                                         : "; the next is possible in " +
                                               seconds_until(recent.front() + minute, now) + " s");
        recent.push_back(now);
    }
    ++calls;
    return {.allowed = true};
}

} // namespace glove::policy
