// The options of the verbs that talk to gloved or read its journals. `glove` declares them for help
// and completions and checks the command line; glove-control, which it becomes, reads the same
// words by the same declarations.
#pragma once
#include "cli/verbs.hpp"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace glove::cli {

inline constexpr const char* daemon_usage =
    "glove daemon install|start|stop|restart|status [OPTIONS]";
inline constexpr const char* session_usage =
    "glove session ACTION [OPTIONS] [NAME] [PLAN|TEXT|SIZE|SIGNAL|EXPOSURE]";
inline constexpr const char* exposure_usage =
    "glove exposure create|list|revoke [OPTIONS] [NAME] [PATH]";
inline constexpr const char* journal_usage = "glove journal verify|show|repair [OPTIONS] FILE";

// Which service, and how long to wait for it.
struct service_words {
    std::string config, runtime_directory;
    std::uint64_t patience_ms = 0; // 0: as the action has it
    bool json = false;
};

struct daemon_words {
    std::string action;
    std::vector<std::string> words; // none
    std::string config, gloved;
    bool json = false;
};
struct session_words {
    std::string action;
    std::vector<std::string> words;
    service_words service;
    std::string digest, request_key, after, key, anchor;
    std::string authorization_id, detach_key = "ctrl-]";
    std::uint64_t limit = 0, expires_ms = 120'000;
    std::optional<std::uint64_t> from;
    bool read_only = false, stdin_too = false, from_end = false, enter = false;
};
struct exposure_words {
    std::string action;
    std::vector<std::string> words;
    service_words service;
    std::string root, label, request_key;
    std::vector<std::string> modes, templates;
    std::uint64_t ttl_ms = 0, generation = 0;
};
struct journal_words {
    std::string action;
    std::vector<std::string> words;
    std::string key;
    bool cut = false, accept_loss = false, json = false;
};

void declare(CLI::App& app, daemon_words& words);
void declare(CLI::App& app, session_words& words);
void declare(CLI::App& app, exposure_words& words);
void declare(CLI::App& app, journal_words& words);

// In glove-control.
[[nodiscard]] auto run_daemon(const invocation& call) -> int;
[[nodiscard]] auto run_session(const invocation& call) -> int;
[[nodiscard]] auto run_exposure(const invocation& call) -> int;
[[nodiscard]] auto run_journal(const invocation& call) -> int;

} // namespace glove::cli
