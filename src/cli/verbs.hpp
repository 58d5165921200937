// The verbs of `glove`: one row each, one file each.
#pragma once
#include <glove/container/launch.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace glove::cli {

// What is left of the command line once the verb is known, split at the first "--".
struct invocation {
    std::string_view verb;
    std::vector<std::string> options;
    std::vector<std::string> command; // after "--", never looked into
    bool has_command = false;
    container::argument_area arguments;
};

struct verb {
    std::string_view name;
    std::string_view summary;
    int (*run)(const invocation&);
    void (*declare)(CLI::App&); // its options, for help and completions
};
[[nodiscard]] auto verbs() -> std::span<const verb>;

auto exec_verb(const invocation& call) -> int;
void declare_exec(CLI::App& app);
auto run_verb(const invocation& call) -> int;
void declare_run(CLI::App& app);
auto mcp_verb(const invocation& call) -> int;
void declare_mcp(CLI::App& app);
auto doctor_verb(const invocation& call) -> int;
void declare_doctor(CLI::App& app);
auto log_verb(const invocation& call) -> int;
void declare_log(CLI::App& app);
auto profile_verb(const invocation& call) -> int;
void declare_profile(CLI::App& app);
auto home_verb(const invocation& call) -> int;
void declare_home(CLI::App& app);
auto quarantine_verb(const invocation& call) -> int;
void declare_quarantine(CLI::App& app);
auto session_verb(const invocation& call) -> int;
void declare_session(CLI::App& app);
auto exposure_verb(const invocation& call) -> int;
void declare_exposure(CLI::App& app);
auto journal_verb(const invocation& call) -> int;
void declare_journal(CLI::App& app);
auto daemon_verb(const invocation& call) -> int;
void declare_daemon(CLI::App& app);
auto completion_verb(const invocation& call) -> int;
void declare_completion(CLI::App& app);

} // namespace glove::cli
