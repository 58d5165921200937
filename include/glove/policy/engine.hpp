// Which tools an agent may see and call, and with which arguments.
//
// Guarantees: what no rule allows is denied, and a denial wins over every permission; a decision
// depends on the decoded values alone, never on the order of members or on escapes; rules come from
// the operator's command line and one owner-only file, never from an agent, a server or a project.
// `decides` includes everything `shows` asks, so it is the one point of enforcement.
//
// Decisions are pure but for path rules, which look at the file system beneath directories that
// were pinned when the rules were loaded.
#pragma once
#include <chrono>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/policy/verdict.hpp>
#include <glove/wire/json.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glove::policy {

struct tool_name {
    std::string_view upstream, tool;
};

// In the operator's words.
struct wish {
    std::vector<std::string> allow = {};     // "up.tool", "up.*"
    std::vector<std::string> deny = {};      // the same; wins
    std::vector<std::string> allow_arg = {}; // "up.tool:field=prefix"
    std::optional<std::string> file = {};    // TOML, owner-only, absolute
    // Where each of the upstreams starts, in their order; empty: not known. Text that a server
    // could take for a path is looked up there, too.
    std::vector<std::string> started_in = {};
    auto operator==(const wish&) const -> bool = default;
};

struct tool_limits {
    std::optional<std::chrono::milliseconds> timeout = {};
    std::optional<std::uint64_t> result_bytes = {};
    std::optional<std::uint64_t> calls = {};      // in a run
    std::optional<std::uint64_t> per_minute = {}; // sliding
};

// Directories told to servers that ask for roots.
struct root {
    std::string uri, name;
};

// By so many bytes a text grows at most while it is redacted.
inline constexpr std::size_t longest_redaction = 16UL << 20;

struct engine_rules; // loaded

class engine {
public:
    // `upstreams` are the names that rules may speak of; `directory` (absolute) is where relative
    // paths of rules begin. Errors name file, key and rule.
    [[nodiscard]] static auto load(const wish& what, std::span<const std::string> upstreams,
                                   const std::string& directory) -> result<engine>;
    // The same with the text of a policy file, for tests and the fuzzer.
    [[nodiscard]] static auto parse(const wish& what, std::string_view file_text,
                                    std::span<const std::string> upstreams,
                                    const std::string& directory) -> result<engine>;
    engine(engine&&) noexcept;
    auto operator=(engine&&) noexcept -> engine&;
    ~engine();

    // List time.
    [[nodiscard]] auto shows(const tool_name& tool) const -> verdict;
    // Call time. `arguments` is null when the call has none.
    [[nodiscard]] auto decides(const tool_name& tool, const wire::json::value* arguments) const
        -> verdict;
    // Whether a decision about the tool depends on the arguments.
    [[nodiscard]] auto judges_arguments(const tool_name& tool) const -> bool;
    // Of resources and prompts, where they are relayed: the operator may narrow them.
    [[nodiscard]] auto reads(std::string_view upstream, std::string_view uri) const -> verdict;
    [[nodiscard]] auto prompts(std::string_view upstream, std::string_view name) const -> verdict;

    [[nodiscard]] auto limits_of(const tool_name& tool) const -> tool_limits;
    // Replaces what matches a pattern of the tool's `redact` inside of every JSON string of
    // `result` by "[redacted]"; false when there was nothing to do. One that would grow by more
    // than `most_growth` bytes on the way becomes empty, before it has grown.
    [[nodiscard]] auto redact(const tool_name& tool, std::string& result,
                              std::size_t most_growth = longest_redaction) const -> bool;
    [[nodiscard]] auto redacts(const tool_name& tool) const -> bool;
    [[nodiscard]] auto roots(std::string_view upstream) const -> std::span<const root>;
    // Names of exact tools (not patterns) that rules speak of, so that one no server has can be
    // told: a misspelled name must not be silent.
    [[nodiscard]] auto named_tools() const -> std::vector<std::string>; // "up.tool"
    // All rules, a line each, for `glove mcp check` and --explain.
    [[nodiscard]] auto describe() const -> std::string;

private:
    explicit engine(std::unique_ptr<engine_rules> rules);
    std::unique_ptr<engine_rules> rules_;
};

// Counts calls against the limits of their tool.
class meter {
public:
    [[nodiscard]] auto admit(std::string_view qualified, const tool_limits& limits,
                             std::chrono::nanoseconds now) -> verdict;
    meter();
    meter(meter&&) noexcept;
    ~meter();

private:
    struct counts;
    std::unique_ptr<counts> counts_;
};

} // namespace glove::policy
