// The rules of config.json beyond the form of its members.
#include "control/backend_rules.hpp"
#include "control/service_config_fields.hpp"
#include <algorithm>
#include <glove/base/text.hpp>
#include <glove/sys/files.hpp>
#include <span>
#include <sys/un.h>

namespace glove::control {

namespace {

struct named_path {
    std::string_view member;
    std::string path;
};

[[nodiscard]] auto paths_of(const service_config& config) -> std::vector<named_path> {
    std::vector<named_path> out{{"runtime_directory", config.runtime_directory},
                                {"audit_key", config.audit_key},
                                {"receipt_journal", config.receipt_journal}};
    const auto add = [&](std::string_view member, const std::optional<std::string>& path) {
        if (path) out.push_back({member, *path});
    };
    add("session_policy", config.session_policy);
    add("session_store", config.session_store);
    add("materialization_root", config.materialization_root);
    add("library_bundle_root", config.library_bundle_root);
    add("path_exposure_policy", config.path_exposure_policy);
    add("path_exposure_journal", config.path_exposure_journal);
    return out;
}

// A client names the socket in it by the whole path, which has room for so much.
constexpr std::size_t most_runtime_path = sizeof ::sockaddr_un{}.sun_path - sizeof "/gloved.sock";

[[nodiscard]] auto check_length(const service_config& config) -> result<> {
    if (config.runtime_directory.size() <= most_runtime_path) return {};
    return fail(errc::limit_exceeded, "config.runtime",
                "$.runtime_directory has " + std::to_string(config.runtime_directory.size()) +
                    " bytes: clients could not name the socket in it",
                "choose a directory whose path has at most " + std::to_string(most_runtime_path) +
                    " bytes");
}

[[nodiscard]] auto check_distinct(const service_config& config) -> result<> {
    const auto paths = paths_of(config);
    const auto derived = derived_files(config);
    for (std::size_t i = 0; i < paths.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j)
            if (paths[i].path == paths[j].path)
                return fail(errc::conflict, "config.paths",
                            "$." + std::string{paths[i].member} + " is the path of $." +
                                std::string{paths[j].member});
        // Its secret is written anew at every start, and its files are the service's own.
        if (i > 0 && sys::holds(config.runtime_directory, paths[i].path))
            return fail(errc::conflict, "config.paths",
                        "$." + std::string{paths[i].member} + " lies in $.runtime_directory",
                        "keep it in another directory");
        if (std::ranges::find(derived, paths[i].path) != derived.end())
            return fail(errc::conflict, "config.paths",
                        "$." + std::string{paths[i].member} +
                            " is a file that the service writes beside $.receipt_journal");
    }
    return {};
}

// A member that makes no sense without another, or beside it.
struct pairing {
    std::string_view member;
    bool present;
    std::string_view other;
    bool other_present;
};
[[nodiscard]] auto check_needs(const service_config& c) -> result<> {
    const bool store = c.session_store.has_value();
    const bool policy = c.session_policy.has_value();
    const bool remote = c.remote_backend.has_value();
    const std::array needs{
        pairing{"session_store", store, "session_policy", policy},
        pairing{"materialization_root", c.materialization_root.has_value(), "session_store", store},
        pairing{"library_bundle_root", c.library_bundle_root.has_value(), "session_store", store},
        pairing{"path_exposure_policy", c.path_exposure_policy.has_value(), "path_exposure_journal",
                c.path_exposure_journal.has_value()},
        pairing{"path_exposure_journal", c.path_exposure_journal.has_value(),
                "path_exposure_policy", c.path_exposure_policy.has_value()},
        pairing{"remote_backend", remote, "session_policy", policy},
        pairing{"remote_backend", remote, "session_store", store},
    };
    for (const auto& [member, present, other, other_present] : needs)
        if (present && !other_present)
            return fail(errc::invalid_input, "config.needs",
                        "$." + std::string{member} + " needs $." + std::string{other});
    return {};
}
[[nodiscard]] auto check_excludes(const service_config& c) -> result<> {
    const bool remote = c.remote_backend.has_value();
    const std::array excludes{
        pairing{"remote_backend", remote, "materialization_root",
                c.materialization_root.has_value()},
        pairing{"remote_backend", remote, "apple_container", c.apple_container.has_value()},
        pairing{"remote_backend", remote, "local_service_proxy", c.local_service_proxy.has_value()},
    };
    for (const auto& [member, present, other, other_present] : excludes)
        if (present && other_present)
            return fail(errc::conflict, "config.excludes",
                        "$." + std::string{member} + " and $." + std::string{other} +
                            " exclude each other");
    return {};
}

[[nodiscard]] auto check_endpoint(const service_endpoint& one, const service_config& config,
                                  const std::string& at) -> result<> {
    if (!std::ranges::all_of(one.socket_path, [](char c) { return c >= ' ' && c <= '~'; }))
        return fail(errc::invalid_input, "config.endpoint", at + ".socket_path is not ASCII");
    for (const auto& [member, path] : paths_of(config))
        if (sys::holds(path, one.socket_path))
            return fail(errc::conflict, "config.endpoint",
                        at + ".socket_path is in $." + std::string{member});
    if (std::ranges::adjacent_find(one.runtime_ids, std::ranges::greater_equal{}) !=
        one.runtime_ids.end())
        return fail(errc::invalid_input, "config.endpoint",
                    at + ".runtime_ids are not sorted without repetition");
    return {};
}
[[nodiscard]] auto check_local_service(const service_config& config) -> result<> {
    if (!config.local_service_proxy) return {};
    const auto& endpoints = config.local_service_proxy->endpoints;
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
        const auto at = "$.local_service_proxy.endpoints[" + std::to_string(i) + "]";
        GLOVE_CHECK(check_endpoint(endpoints[i], config, at));
        if (i > 0 && endpoints[i].alias <= endpoints[i - 1].alias)
            return fail(errc::invalid_input, "config.endpoint",
                        at + ".alias does not come after the one before it");
        for (std::size_t j = 0; j < i; ++j)
            if (endpoints[i].socket_path == endpoints[j].socket_path)
                return fail(errc::conflict, "config.endpoint",
                            at + ".socket_path is that of another endpoint");
    }
    return {};
}

} // namespace

auto derived_files(const service_config& config) -> std::vector<std::string> {
    const auto beside = sys::parent_of(config.receipt_journal);
    const auto directory = beside == "/" ? beside : beside + "/";
    return {directory + "local-service-audit.jsonl", directory + "control-audit.jsonl",
            directory + "egress-audit.jsonl"};
}

auto check_config(const service_config& config) -> result<> {
    GLOVE_CHECK(wire::check_object(config, config_fields, {}));
    GLOVE_CHECK(check_needs(config));
    GLOVE_CHECK(check_excludes(config));
    GLOVE_CHECK(check_length(config));
    GLOVE_CHECK(check_distinct(config));
    if (config.apple_container) GLOVE_CHECK(check_apple(*config.apple_container));
    if (config.remote_backend) GLOVE_CHECK(check_remote(*config.remote_backend));
    return check_local_service(config);
}

auto parse_service_config(std::string_view text) -> result<service_config> {
    GLOVE_TRY(auto out, wire::decode_text(text, config_fields));
    GLOVE_CHECK(check_config(out));
    return out;
}

auto service_config_text(const service_config& config) -> result<std::string> {
    GLOVE_CHECK(check_config(config));
    GLOVE_TRY(auto out, wire::encode(config, config_fields));
    return out + "\n";
}

auto load_service_config(const std::string& path) -> result<service_config> {
    GLOVE_TRY(const auto text, sys::read_private_file(path, most_config_bytes));
    auto out = parse_service_config(text);
    if (!out) out.error().detail = printable(path) + ": " + out.error().detail;
    return out;
}

auto check_supported(const service_config& config) -> result<> {
    const auto refuse = [](std::string_view member) {
        return fail(errc::unsupported, "config.unsupported",
                    "$." + std::string{member} + " is not supported by this build",
                    "remove it from the configuration");
    };
    if (config.apple_container) return refuse("apple_container");
    if (config.remote_backend) return refuse("remote_backend");
    return {};
}

} // namespace glove::control
