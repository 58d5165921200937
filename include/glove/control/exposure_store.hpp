// The exposures of this host, durably: the ledger of supervisor, on a journal.
//
// Guarantees: what was answered is on the disk; replays are those of the ledger; a journal that is
// full begins anew with what lives, and no generation comes twice because of it.
//
// Safe for use by several threads. Looking never waits for the disk.
#pragma once
#include <cstdint>
#include <functional>
#include <glove/control/answer.hpp>
#include <glove/journal/storage.hpp>
#include <glove/supervisor/exposure_ledger.hpp>
#include <glove/supervisor/exposure_policy.hpp>
#include <glove/supervisor/validate.hpp>
#include <glove/sys/clock.hpp>
#include <memory>
#include <string_view>
#include <vector>

namespace glove::control {

class exposure_store {
public:
    // `store` and `clock` must outlive it.
    [[nodiscard]] static auto open(journal::storage& store, supervisor::exposure_policy policy,
                                   const sys::clock& clock)
        -> result<std::unique_ptr<exposure_store>>;
    ~exposure_store();

    // The request id is the caller's idempotency key.
    [[nodiscard]] auto create(std::string_view request_id, supervisor::create_exposure what)
        -> answer<supervisor::catalog_entry>;
    [[nodiscard]] auto revoke(std::string_view request_id, const supervisor::revoke_exposure& what)
        -> answer<supervisor::catalog_entry>;
    // Whether anything could be written now. Never waits: while somebody writes, it is as it was.
    [[nodiscard]] auto operational() const -> bool;
    [[nodiscard]] auto list() const -> std::vector<supervisor::catalog_entry>;
    // With what is there now held still.
    void with(const std::function<void(const supervisor::exposures_now&)>& look) const;

private:
    struct state;
    explicit exposure_store(std::unique_ptr<state> owned);
    std::unique_ptr<state> state_;
};

} // namespace glove::control
