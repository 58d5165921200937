// Nothing is asked of a service that the configuration or the caller did not name.
#include "cli/control_process/service.hpp"
#include <algorithm>
#include <array>
#include <cstdio>
#include <glove/base/text.hpp>
#include <glove/control/service_config.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/user_directories.hpp>

namespace glove::cli {

namespace {

struct mend {
    std::string_view code, what;
};
constexpr std::array mends{
    mend{"unauthorized", "ask again: the service was started anew in between"},
    mend{"deadline_exceeded", "give it more time with --timeout; and compare the clocks"},
    mend{"method_not_found", "the service was started without what this needs: gloved --help"},
    mend{"invalid_plan", "the log of gloved says which member of the plan, and why"},
    mend{"session_conflict", "choose another name for the session"},
    mend{"session_not_found", "glove session list"},
    mend{"session_capacity", "end sessions, or wait until plans of some have expired"},
    mend{"idempotency_conflict", "leave --request-key out, or give another one"},
    mend{"path_exposure_rejected", "the log of gloved says which rule of the exposure policy"},
    mend{"audit_reconciliation_failed",
         "fetch what is behind the anchor first: glove session receipts --key FILE"},
};

[[nodiscard]] auto settings_of(const service_words& words) -> result<control::client_settings> {
    control::client_settings out;
    out.patience = std::chrono::milliseconds{words.patience_ms};
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
        out.start_hint = "gloved --config " + config;
        return out;
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
    out.start_hint = "gloved --config " + config;
    return out;
}

} // namespace

auto service::of(const service_words& words) -> result<std::unique_ptr<service>> {
    GLOVE_TRY(auto how, settings_of(words));
    return std::unique_ptr<service>{new service{std::move(how)}};
}

auto service::change(std::string_view method, std::string payload, std::string key) const
    -> result<control::remote_answer> {
    if (key.empty()) {
        GLOVE_TRY(key, sys::random_id(random_));
    }
    auto out = client_.call(method, std::move(payload), key);
    if (!out && (out.error().step == "client.deadline" || out.error().step == "client.receive"))
        out.error().remedy =
            "it may have been carried out; to learn that, ask again with --request-key " + key;
    return out;
}

auto told(const control::remote_error& said) -> int {
    std::string text = "error[" + printable(said.code) + "]: " + printable(said.message) + "\n";
    const auto* const row = std::ranges::find(mends, said.code, &mend::code);
    if (row != mends.end()) text.append("Try: ").append(row->what).append("\n");
    (void)std::fputs(text.c_str(), stderr);
    return answer_is_no;
}

auto service_options() -> std::vector<std::string_view> {
    return {"--config", "--runtime-dir", "--timeout", "--json"};
}

auto strange_answer(std::string_view why) -> std::unexpected<error> {
    return fail(errc::corrupt, "client.reply",
                "the service's result is not what the method gives: " + std::string{why});
}

} // namespace glove::cli
