// The parts of the service, from what the operator decided.
//
// Guarantees: a part is there when its settings are, or the service does not start; nothing is
// there that was not asked for.
#pragma once
#include <glove/control/methods.hpp>
#include <glove/control/recorded_processes.hpp>
#include <glove/control/service_config.hpp>
#include <glove/journal/file_storage.hpp>
#include <memory>
#include <optional>

namespace glove::daemon {

class composition {
public:
    // `clock` and `log` must outlive it.
    [[nodiscard]] static auto open(const control::service_config& config, const sys::clock& clock,
                                   control::service_log& log)
        -> result<std::unique_ptr<composition>>;
    [[nodiscard]] auto parts() -> control::parts;

private:
    composition(const sys::clock& clock, control::service_log& log) : clock_{clock}, log_{log} {}
    [[nodiscard]] auto open_receipts(const control::service_config& config) -> result<>;
    [[nodiscard]] auto open_exposures(const control::service_config& config) -> result<>;
    [[nodiscard]] auto open_channels(const control::service_config& config) -> result<>;
    [[nodiscard]] auto open_sessions(const control::service_config& config) -> result<>;

    const sys::clock& clock_;
    control::service_log& log_;
    control::recorded_processes processes_;
    std::unique_ptr<control::receipt_journal> receipts_;
    std::optional<supervisor::session_policy> policy_;
    control::channel_host channels_;
    std::unique_ptr<journal::file_storage> exposure_file_, session_file_;
    std::unique_ptr<control::exposure_store> exposures_;
    std::unique_ptr<control::session_registry> sessions_;
};

} // namespace glove::daemon
