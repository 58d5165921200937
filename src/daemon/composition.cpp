// Opens what the settings name, in the order in which the parts need each other. What is not
// configured is not there.
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

// The command that mends it, as a whole.
template<class T> [[nodiscard]] auto of_journal(std::string_view setting, const std::string& path,
                                                result<T> what) -> result<T> {
    if (!what && what.error().step == "journal.torn")
        what.error().remedy = "glove journal repair shows what it would cut off; this cuts it: "
                              "glove journal repair --cut " +
                              path;
    return of(setting, std::move(what));
}

// What no session gets to see, beside its own places.
[[nodiscard]] auto places_of(const control::service_config& config,
                             const std::optional<std::string>& config_file)
    -> control::linux_host_places {
    control::linux_host_places out{
        .materialization_root = *config.materialization_root,
        .library_bundle_root = config.library_bundle_root,
        .egress_log = sys::parent_of(config.receipt_journal) + "/egress-audit.jsonl",
        .own_files = {config.runtime_directory, config.audit_key, config.receipt_journal}};
    for (const auto* path :
         {&config.session_policy, &config.session_store, &config.path_exposure_policy,
          &config.path_exposure_journal, &config_file})
        if (*path) out.own_files.push_back(**path);
    return out;
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
    GLOVE_TRY(exposures_, of_journal("path_exposure_journal", *config.path_exposure_journal,
                                     control::exposure_store::open(*exposure_file_,
                                                                   std::move(policy), clock_)));
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
    GLOVE_TRY(sessions_, of_journal("session_store", *config.session_store,
                                    control::session_registry::open(
                                        *session_file_, {},
                                        channels_.frozen() ? &channels_ : nullptr, clock_)));
    return {};
}

// The recovery looks at the groups of those that have a process on record, and at no others: what a
// start that was cut short has left would keep the next one from its name.
void composition::sweep_groups() {
    constexpr std::chrono::seconds patience{5};
    const auto has_process = [this](std::string_view id) {
        const auto known = sessions_->status(id);
        return known && (known->state == control::session_state::running ||
                         known->state == control::session_state::stopping);
    };
    const auto swept =
        control::sweep_groups(*found_groups_, has_process, clock_, clock_.monotonic() + patience);
    if (!swept) return log_.write({.name = "sessions.sweep_failed", .why = &swept.error()});
    for (const auto& id : swept->removed) log_.write({.name = "session.group_swept", .text = id});
    for (const auto& [id, why] : swept->troubles)
        log_.write({.name = "session.group_left", .why = &why, .text = id});
}

// A machine on which a limit cannot be held is no reason to leave the rest undone.
auto composition::open_runtime(const control::service_config& config,
                               const std::optional<std::string>& config_file) -> result<> {
    if (!launcher_ || !sessions_ || !config.materialization_root) return {};
    auto groups = container::session_groups::open();
    if (!groups) {
        log_.write({.name = "sessions.unavailable",
                    .why = &groups.error(),
                    .text = "no session can be started, and none is advertised"});
        return {};
    }
    groups_.emplace(*std::move(groups));
    found_groups_.emplace(*groups_);
    session_processes_.emplace(control::session_processes::wish{
        .groups = &*found_groups_,
        .clock = &clock_,
        .tell = [this](std::string_view id, const error& why) {
            log_.write({.name = "session.unknown", .why = &why, .text = id});
        }});
    GLOVE_TRY(host_, control::linux_host::open({.policy = &*policy_,
                                                .exposures = exposures_.get(),
                                                .clock = &clock_,
                                                .log = &log_,
                                                .groups = &*groups_,
                                                .launcher = &*launcher_},
                                               places_of(config, config_file)));
    sweep_groups();
    host_->sweep(*sessions_);
    retained_ = host_->retained(*sessions_);
    GLOVE_TRY(runtime_, control::session_runtime::create({.sessions = sessions_.get(),
                                                          .receipts = receipts_.get(),
                                                          .rules = &policy_->rules(),
                                                          .host = host_.get(),
                                                          .clock = &clock_,
                                                          .log = &log_}));
    return {};
}

void composition::end_sessions(std::chrono::nanoseconds deadline) {
    if (!runtime_) return;
    for (const auto& id : runtime_->stop_all(deadline))
        log_.write(
            {.name = "session.left", .text = id + ": the next start finds out how it ended"});
}

auto composition::open(const control::service_config& config,
                       const std::optional<std::string>& config_file,
                       std::optional<container::launcher> launcher, const sys::clock& clock,
                       control::service_log& log) -> result<std::unique_ptr<composition>> {
    // What the operator decided is right, and this build cannot do it: that is no reason to leave
    // the rest undone. Nothing of it is there.
    if (const auto supported = control::check_supported(config); !supported)
        log.write({.name = "settings.unsupported",
                   .why = &supported.error(),
                   .text = "nothing of it is advertised, and no session can be started"});
    std::unique_ptr<composition> out{new composition{std::move(launcher), clock, log}};
    GLOVE_CHECK(out->open_receipts(config));
    GLOVE_CHECK(out->open_exposures(config));
    GLOVE_CHECK(out->open_sessions(config));
    GLOVE_CHECK(out->open_runtime(config, config_file));
    if (config.local_service_proxy)
        log.write({.name = "settings.unused",
                   .text = "this build passes no local services on: local_service_proxy is not "
                           "looked at, and nothing of it is advertised"});
    return out;
}

auto composition::parts() -> control::parts {
    control::process_observer* observer = &processes_;
    if (session_processes_) observer = &*session_processes_;
    return {.receipts = receipts_.get(),
            .policy = policy_ ? &*policy_ : nullptr,
            .sessions = sessions_.get(),
            .channels = channels_.frozen() ? &channels_ : nullptr,
            .exposures = exposures_.get(),
            .runtime = runtime_.get(),
            .retained = retained_.get(),
            .processes = observer,
            .clock = &clock_,
            .log = &log_};
}

} // namespace glove::daemon
