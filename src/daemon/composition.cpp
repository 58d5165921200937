// A part is there when its settings are, or the service does not start.
#include "daemon/composition.hpp"
#include <glove/adapters/sage.hpp>
#include <glove/sys/files.hpp>
#include <utility>

namespace glove::daemon {

namespace {

[[nodiscard]] auto open_file(const std::string& path)
    -> result<std::unique_ptr<journal::file_storage>> {
    const auto name = path.substr(path.rfind('/') + 1);
    GLOVE_TRY(auto opened,
              journal::file_storage::open(sys::parent_of(path), name, journal::access::write));
    return std::make_unique<journal::file_storage>(std::move(opened));
}

// An error says which setting it comes of.
template<class T> [[nodiscard]] auto of(std::string_view setting, result<T> what) -> result<T> {
    if (!what) what.error().detail = std::string{setting} + ": " + what.error().detail;
    return what;
}

} // namespace

// The journal itself is opened when a controller vouches for its beginning or for a place in it.
auto composition::open_receipts(const control::service_config& config) -> result<> {
    GLOVE_TRY(auto key, of("audit_key", control::audit_key::load(config.audit_key)));
    const auto storage =
        [path = config.receipt_journal]() -> result<std::unique_ptr<journal::storage>> {
        GLOVE_TRY(auto file, open_file(path));
        return file;
    };
    receipts_ = std::make_unique<control::receipt_journal>(storage, std::move(key));
    return {};
}

auto composition::open_exposures(const control::service_config& config) -> result<> {
    if (!config.path_exposure_policy) return {};
    GLOVE_TRY(auto policy, of("path_exposure_policy",
                              supervisor::exposure_policy::load(*config.path_exposure_policy)));
    GLOVE_TRY(exposure_file_,
              of("path_exposure_journal", open_file(*config.path_exposure_journal)));
    GLOVE_TRY(exposures_,
              of("path_exposure_journal",
                 control::exposure_store::open(*exposure_file_, std::move(policy), clock_)));
    return {};
}

auto composition::open_channels(const control::service_config& config) -> result<> {
    if (!config.local_service_proxy || !config.local_service_proxy->guest_channel_adapter)
        return {};
    const auto& wanted = *config.local_service_proxy->guest_channel_adapter;
    const auto channel = adapters::sage::observation_channel();
    if (wanted.adapter_id != adapters::sage::adapter_id ||
        wanted.channel_schema_id != channel.schema_id)
        return fail(errc::unsupported, "config.channel",
                    "$.local_service_proxy.guest_channel_adapter names an adapter or a schema that "
                    "this build does not have",
                    "use " + std::string{adapters::sage::adapter_id} + " with " +
                        channel.schema_id);
    GLOVE_CHECK(channels_.add(channel));
    return channels_.freeze();
}

auto composition::open_sessions(const control::service_config& config) -> result<> {
    if (!config.session_policy) return {};
    GLOVE_TRY(auto policy,
              of("session_policy", supervisor::session_policy::load(*config.session_policy)));
    policy_.emplace(std::move(policy));
    if (!config.session_store) return {};
    GLOVE_CHECK(open_channels(config));
    GLOVE_TRY(session_file_, of("session_store", open_file(*config.session_store)));
    GLOVE_TRY(sessions_,
              of("session_store",
                 control::session_registry::open(
                     *session_file_, {}, channels_.frozen() ? &channels_ : nullptr, clock_)));
    return {};
}

auto composition::open(const control::service_config& config, const sys::clock& clock,
                       control::service_log& log) -> result<std::unique_ptr<composition>> {
    GLOVE_CHECK(control::check_supported(config));
    std::unique_ptr<composition> out{new composition{clock, log}};
    GLOVE_CHECK(out->open_receipts(config));
    GLOVE_CHECK(out->open_exposures(config));
    GLOVE_CHECK(out->open_sessions(config));
    if (config.materialization_root || config.library_bundle_root || config.local_service_proxy)
        log.write({.name = "settings.unused",
                   .text = "this build starts no sessions: their files, libraries and services "
                           "are not looked at, and nothing of it is advertised"});
    return out;
}

auto composition::parts() -> control::parts {
    return {.receipts = receipts_.get(),
            .policy = policy_ ? &*policy_ : nullptr,
            .sessions = sessions_.get(),
            .channels = channels_.frozen() ? &channels_ : nullptr,
            .exposures = exposures_.get(),
            .runtime = nullptr,
            .retained = nullptr,
            .processes = &processes_,
            .clock = &clock_,
            .log = &log_};
}

} // namespace glove::daemon
