// What a session has used, by its control group and its file systems.
//
// Guarantees: what a reader tells once is never less later, whatever it says then. Nothing is made
// up: what cannot be read is an error.
#pragma once
#include <cstdint>
#include <functional>
#include <glove/base/error.hpp>
#include <glove/container/session_files.hpp>
#include <glove/container/session_groups.hpp>
#include <glove/control/resource_meter.hpp>
#include <utility>

namespace glove::control {

class session_meter final : public resource_meter {
public:
    // Of all its writable file systems together.
    using disk_reader = std::function<result<container::filesystem_use>()>;
    struct readers {
        std::function<result<std::uint64_t>()> cpu_us;
        std::function<result<container::session_group_usage>()> group;
        disk_reader disk;
    };
    explicit session_meter(readers from) : from_{std::move(from)} {}
    // `group` outlives the meter.
    session_meter(const container::session_group& group, disk_reader disk);

    [[nodiscard]] auto cpu_us() -> result<std::uint64_t> override;
    [[nodiscard]] auto state() -> result<resource_state> override;

private:
    readers from_;
    std::uint64_t cpu_us_ = 0;
    resource_state most_;
};

} // namespace glove::control
