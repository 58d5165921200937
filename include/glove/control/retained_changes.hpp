// What became of the retained copies of sessions that are over, page by page.
//
// Guarantees: only a session that is over and ran is looked at, and its image is never written;
// what is told of it is the same each time, also after the service was started again. What cannot
// be told is refused by name: a session that left a link or a socket has no changes to show.
//
// Safe for use by several threads.
#pragma once
#include <glove/control/managed_runtime.hpp>
#include <glove/control/session_registry.hpp>
#include <glove/sys/clock.hpp>
#include <mutex>

namespace glove::control {

struct shared_images;

class retained_changes final : public retained_store {
public:
    // All of it outlives the store.
    retained_changes(shared_images& images, const session_registry& sessions,
                     const sys::clock& time)
        : images_{images}, sessions_{sessions}, time_{time} {}

    // session_not_found, or retained_changes_unavailable with why: retained.session (it is not
    // over, or never ran), retained.exposure (it has no retained copy of that name), retained.copy,
    // retained.busy (errc::timed_out: another image is being read; ask again), and the steps of
    // images, trees and changes.
    [[nodiscard]] auto changes(std::string_view session_id, std::string_view exposure_id,
                               std::uint64_t offset, std::size_t limit)
        -> answer<std::string> override;

private:
    shared_images& images_;
    const session_registry& sessions_;
    const sys::clock& time_;
    // One image at a time, since that is what costs; who comes meanwhile waits, but not for long: a
    // session may have left one that takes minutes.
    std::timed_mutex reading_;
};

} // namespace glove::control
