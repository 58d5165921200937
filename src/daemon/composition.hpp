// The parts of the service, from what the operator decided.
//
// Guarantees: a part is there when its settings are, or the service does not start; nothing is
// there that was not asked for. One thing is told and left out instead: what a machine lacks for
// running sessions, because plans, exposures and receipts do not need it.
#pragma once
#include <chrono>
#include <glove/container/launcher.hpp>
#include <glove/container/session_groups.hpp>
#include <glove/control/linux_host.hpp>
#include <glove/control/methods.hpp>
#include <glove/control/recorded_processes.hpp>
#include <glove/control/service_config.hpp>
#include <glove/control/session_processes.hpp>
#include <glove/control/session_runtime.hpp>
#include <glove/journal/file_storage.hpp>
#include <memory>
#include <optional>

namespace glove::daemon {

class composition {
public:
    // `clock` and `log` must outlive it. Without a launcher no session is run. `config_file`: the
    // absolute path of where `config` was read, if it was.
    [[nodiscard]] static auto open(const control::service_config& config,
                                   const std::optional<std::string>& config_file,
                                   std::optional<container::launcher> launcher,
                                   const sys::clock& clock, control::service_log& log)
        -> result<std::unique_ptr<composition>>;
    [[nodiscard]] auto parts() -> control::parts;
    // Ends every session, with its receipt where there is time for it. Nobody asks any more.
    void end_sessions(std::chrono::nanoseconds deadline);

private:
    composition(std::optional<container::launcher> launcher, const sys::clock& clock,
                control::service_log& log)
        : launcher_{std::move(launcher)}, clock_{clock}, log_{log} {}
    [[nodiscard]] auto open_receipts(const control::service_config& config) -> result<>;
    [[nodiscard]] auto open_exposures(const control::service_config& config) -> result<>;
    [[nodiscard]] auto open_channels(const control::service_config& config) -> result<>;
    [[nodiscard]] auto open_sessions(const control::service_config& config) -> result<>;
    [[nodiscard]] auto open_runtime(const control::service_config& config,
                                    const std::optional<std::string>& config_file) -> result<>;
    void sweep_groups();

    std::optional<container::launcher> launcher_;
    const sys::clock& clock_;
    control::service_log& log_;
    control::recorded_processes processes_;
    std::unique_ptr<control::receipt_journal> receipts_;
    std::optional<supervisor::session_policy> policy_;
    control::channel_host channels_;
    std::unique_ptr<journal::file_storage> exposure_file_, session_file_;
    std::unique_ptr<control::exposure_store> exposures_;
    std::unique_ptr<control::session_registry> sessions_;
    std::optional<container::session_groups> groups_;
    std::optional<control::session_group_finder> found_groups_;
    std::optional<control::session_processes> session_processes_;
    std::unique_ptr<control::linux_host> host_;
    std::unique_ptr<control::retained_store> retained_;
    std::unique_ptr<control::session_runtime> runtime_;
};

} // namespace glove::daemon
