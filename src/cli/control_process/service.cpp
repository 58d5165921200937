// Nothing is asked of a service that the configuration or the caller did not name.
#include "cli/control_process/service.hpp"
#include <algorithm>
#include <array>
#include <cstdio>
#include <glove/base/text.hpp>
#include <glove/control/service_config.hpp>
#include <glove/host/user_service.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/user_directories.hpp>

namespace glove::cli {

namespace {

using namespace std::string_view_literals;

struct mend {
    std::string_view code, what;
    bool in_log = false; // which the command shows that is added
};
constexpr std::array mends{
    mend{"unauthorized", "ask again: the service was started anew in between"},
    mend{"deadline_exceeded", "give it more time with --timeout; and compare the clocks"},
    mend{"method_not_found",
         "its configuration lacks what this needs: session_policy and session_store"},
    mend{"invalid_authorization",
         "the approval or the plan has expired: start it without --request-key, or create another"},
    mend{"invalid_session_state", "what it may do depends on its state: glove session status NAME"},
    mend{"session_start_failed", "the log of gloved says why", true},
    mend{"session_stop_failed", "only one that runs is stopped: glove session status NAME"},
    mend{"session_attach_failed",
         "it was not started, was cleaned up, ended with an earlier service, or never showed as "
         "much: glove session status NAME"},
    mend{"session_input_failed",
         "it does not run, or its terminal did not take it within a second: glove session status "
         "NAME"},
    mend{"session_resize_failed", "it does not run: glove session status NAME"},
    mend{"session_signal_failed",
         "it does not run, or nothing is in the foreground: glove session status NAME"},
    mend{"session_cleanup_failed", "only one that is over is cleaned up: glove session stop NAME"},
    mend{"session_reconciliation_failed", "the log of gloved says which session", true},
    mend{"audit_reconciliation_required",
         "glove session receipts --key FILE, and then glove session ack"},
    mend{"retained_changes_unavailable",
         "only what was exposed with retain=SIZE, of a session that is over, has changes"},
    mend{"invalid_plan", "the log of gloved says which member of the plan, and why", true},
    mend{"session_conflict", "choose another name for the session"},
    mend{"session_not_found", "glove session list"},
    mend{"session_capacity", "end sessions, or wait until plans of some have expired"},
    mend{"idempotency_conflict", "leave --request-key out, or give another one"},
    mend{"path_exposure_rejected", "the log of gloved says which rule of the exposure policy",
         true},
    mend{"audit_reconciliation_failed",
         "fetch what is behind the anchor first: glove session receipts --key FILE"},
};

// What these cannot do is not the same as what others cannot.
constexpr std::array no_exposures{"create_path_exposure"sv, "list_path_exposures"sv,
                                  "revoke_path_exposure"sv};
constexpr std::array no_sessions{"start_session"sv, "attach"sv,         "write_stdin"sv,
                                 "resize"sv,        "signal"sv,         "detach"sv,
                                 "stop_session"sv,  "cleanup_session"sv};

[[nodiscard]] auto mend_of(std::string_view code, std::string_view method) -> std::string {
    if (code == "method_not_found" && std::ranges::find(no_sessions, method) != no_sessions.end())
        return "this service cannot run sessions: run it with your systemd, by glove daemon "
               "install "
               "(docs/managed-sessions.md says what it needs); its log says what is missing";
    if (code == "method_not_found" && method == "inspect_retained_changes")
        return "this service keeps no copies: name a materialization_root in its configuration";
    if (code == "method_not_found" && std::ranges::find(no_exposures, method) != no_exposures.end())
        return "its configuration lacks what this needs: path_exposure_policy and "
               "path_exposure_journal";
    const auto* const row = std::ranges::find(mends, code, &mend::code);
    if (row == mends.end()) return {};
    return std::string{row->what} + (row->in_log ? ": " + command_for_log() : "");
}

// As it is started here: by the service manager, when that has this very configuration.
[[nodiscard]] auto command_to_start(const std::string& config) -> std::string {
    if (const auto where = host::places_of_caller()) {
        const auto unit =
            sys::read_file(where->unit_directory + "/" + std::string{host::service_unit_name},
                           host::most_unit_bytes);
        if (unit && host::config_of_unit(*unit) == config) return "glove daemon start";
    }
    return "gloved --config " + config;
}

} // namespace

auto service::find(const service_words& words, const asking& how) -> result<where> {
    where found;
    auto& out = found.client;
    out.patience =
        words.patience_ms == 0 ? how.patience : std::chrono::milliseconds{words.patience_ms};
    out.interrupt = how.interrupt;
    std::string config = words.config;
    if (config.empty()) {
        GLOVE_TRY(config, sys::configuration_directory());
        config += "/config.json";
    }
    GLOVE_TRY(config, sys::absolute(config));
    if (!words.runtime_directory.empty()) {
        GLOVE_TRY(out.runtime_directory, sys::absolute(words.runtime_directory));
        while (out.runtime_directory.size() > 1 && out.runtime_directory.ends_with('/'))
            out.runtime_directory.pop_back();
        out.start_hint = command_to_start(config);
        return found;
    }
    auto read = control::load_service_config(config);
    if (!read) {
        if (read.error().code == errc::not_found)
            read.error().remedy =
                "set the service up with gloved --init-state, or name its runtime "
                "directory with --runtime-dir";
        return std::unexpected(std::move(read).error());
    }
    out.runtime_directory = std::move(read->runtime_directory);
    out.start_hint = command_to_start(config);
    found.key_file = std::move(read->audit_key);
    return found;
}

auto service::of(const service_words& words, const asking& how)
    -> result<std::unique_ptr<service>> {
    GLOVE_TRY(auto found, find(words, how));
    return std::unique_ptr<service>{new service{std::move(found)}};
}

auto service::change(std::string_view method, std::string payload, std::string key) const
    -> result<control::remote_answer> {
    if (key.empty()) {
        GLOVE_TRY(key, fresh_key());
    }
    auto out = client_.call(method, std::move(payload), key);
    if (!out && (out.error().step == "client.deadline" || out.error().step == "client.receive"))
        out.error().remedy =
            "it may have been carried out; to learn that, ask again with --request-key " + key;
    return out;
}

auto told(const control::remote_error& said, std::string_view method) -> int {
    std::string text = "error[" + printable(said.code) + "]: " + printable(said.message) + "\n";
    const auto mend = mend_of(said.code, method);
    if (!mend.empty()) text.append("Try: ").append(mend).append("\n");
    (void)std::fputs(text.c_str(), stderr);
    return answer_is_no;
}

auto service_options() -> std::vector<std::string_view> {
    return {"--config", "--runtime-dir", "--timeout", "--json"};
}

auto command_for_log() -> std::string {
    return "journalctl --user -u " + std::string{host::service_unit_name};
}

auto strange_answer(std::string_view why) -> std::unexpected<error> {
    return fail(errc::corrupt, "client.reply",
                "the service's result is not what the method gives: " + std::string{why});
}

} // namespace glove::cli
