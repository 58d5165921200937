// The capability document, from what is there and works at this moment. No setting is looked at.
#include "control/handler.hpp"
#include <algorithm>
#include <array>

namespace glove::control {

namespace {

using std::string_view;
using supervisor::backend_kind;

// In the order of the wire.
constexpr std::array session_control{
    string_view{"validate_plan"},  string_view{"create_session"}, string_view{"start_session"},
    string_view{"session_status"}, string_view{"attach"},         string_view{"resize"},
    string_view{"write_stdin"},    string_view{"signal"},         string_view{"detach"},
    string_view{"stop_session"},   string_view{"cleanup_session"}};
constexpr std::array backends{backend_kind::linux_production, backend_kind::apple_container};

// Nothing can be started when nothing can be put on record.
[[nodiscard]] auto has_runtime(const parts& of) -> bool {
    return is_there(part::session_store, of) && of.runtime != nullptr &&
           of.runtime->lifecycle_operational() && of.sessions->operational();
}

[[nodiscard]] auto runs_on(const parts& of, backend_kind backend) -> bool {
    return has_runtime(of) && of.runtime->backend() == backend;
}

void put_enforcement(wire::json::writer& to, const enforcement_mechanisms& by) {
    to.begin_object("resource_enforcement");
    to.member("cpu_time", to_string(by.cpu_time));
    to.member("memory", to_string(by.memory));
    to.member("pids", to_string(by.pids));
    to.member("wall_time", to_string(by.wall_time));
    to.member("disk", to_string(by.disk));
    to.member("terminal_output", to_string(by.terminal_output));
    to.member("receipt_schema_version", by.receipt_schema_version);
    to.end_object();
}

void put_runtime(wire::json::writer& to, const parts& of) {
    const bool works = has_runtime(of);
    const bool on_linux = runs_on(of, backend_kind::linux_production);
    // Without an adapter, a template names the whole command.
    const auto ids = works ? of.runtime->runtime_ids() : std::vector<std::string>{};
    to.member("agent_runtime_adapter_schema_version", ids.empty() ? 0 : 1);
    to.begin_array("managed_runtime_ids");
    for (const auto& id : ids) to.element(id);
    to.end_array();
    const bool exposes = of.exposures != nullptr && of.exposures->operational();
    const int exposures = exposes ? 1 : 0;
    const int retained = on_linux && exposes && of.retained != nullptr ? 1 : 0;
    to.member("path_exposure_admin_schema_version", exposures);
    to.member("path_exposure_catalog_schema_version", exposures);
    to.member("retained_write_schema_version", retained);
    to.member("change_manifest_schema_version", retained);
    to.member("change_apply_authorization_schema_version", 0);
    to.member("refinement_evaluation_protocol_schema_version",
              on_linux && of.runtime->evaluates_refinements() ? 1 : 0);
    to.member("observation_intent_channel_schema_version",
              on_linux && is_there(part::channel_catalog, of) && of.runtime->admits_observations()
                  ? 1
                  : 0);
}

} // namespace

auto capability_document(const parts& of) -> std::string {
    return result_of([&](auto& to) {
        to.begin_object("receipt_audit");
        to.member("envelope_schema_version", 1);
        to.member("algorithm", "hmac_sha256");
        to.member("key_id", of.receipts->key_id());
        to.end_object();
        to.begin_object("session_control");
        for (const auto name : session_control)
            to.member(name, is_operational(*find_method(name), of));
        to.end_object();
        put_runtime(to, of);
        to.begin_array("backends");
        for (const auto backend : backends) {
            to.begin_object();
            to.member("backend", to_string(backend));
            put_enforcement(to, runs_on(of, backend) ? of.runtime->mechanisms()
                                                     : enforcement_mechanisms{});
            to.end_object();
        }
        to.end_array();
    });
}

auto health(service_state&, const call& what) -> answer<std::string> {
    GLOVE_CHECK(require_nothing(what));
    return result_of([](auto& to) { to.member("status", "ready"); });
}

auto capabilities(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_CHECK(require_nothing(what));
    return capability_document(of.has);
}

} // namespace glove::control
