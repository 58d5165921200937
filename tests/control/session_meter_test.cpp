// Two readers become one meter.
#include <glove/control/session_meter.hpp>
#include <gtest/gtest.h>

namespace glove::control {
namespace {

struct scene {
    result<std::uint64_t> cpu = 5;
    result<container::session_group_usage> group =
        container::session_group_usage{.cpu_us = 7,
                                       .memory_peak = 100,
                                       .out_of_memory = 1,
                                       .memory_limit_met = 2,
                                       .processes_peak = 3,
                                       .processes_refused = 4};
    result<container::filesystem_use> disk = container::filesystem_use{50, true};
    session_meter meter{session_meter::readers{.cpu_us = [this] { return cpu; },
                                               .group = [this] { return group; },
                                               .disk = [this] { return disk; }}};
};

TEST(SessionMeter, everything_has_its_place) {
    scene s;
    EXPECT_EQ(s.meter.state().value(), (resource_state{.peak_memory_bytes = 100,
                                                       .memory_kills = 1,
                                                       .memory_limit_met = 2,
                                                       .peak_pids = 3,
                                                       .pids_refused = 4,
                                                       .disk_bytes = 50,
                                                       .disk_refused = true}));
    EXPECT_EQ(s.meter.cpu_us().value(), 7U); // as it said itself
    s.cpu = 9;
    EXPECT_EQ(s.meter.cpu_us().value(), 9U);
}

TEST(SessionMeter, what_was_told_once_is_never_less) {
    scene s;
    const auto most = s.meter.state().value();
    s.cpu = 3;
    s.group = container::session_group_usage{};
    s.disk = container::filesystem_use{};
    EXPECT_EQ(s.meter.state().value(), most);
    EXPECT_EQ(s.meter.cpu_us().value(), 7U);
    s.disk = container::filesystem_use{51, false};
    EXPECT_EQ(s.meter.state().value().disk_bytes, 51U);
}

TEST(SessionMeter, what_cannot_be_read_is_an_error) {
    scene cpu, group, disk;
    cpu.cpu = fail(errc::io, "group.usage");
    group.group = fail(errc::io, "group.limit");
    disk.disk = fail(errc::io, "files.use");
    EXPECT_EQ(cpu.meter.cpu_us().error().step, "group.usage");
    EXPECT_EQ(group.meter.state().error().step, "group.limit");
    EXPECT_EQ(disk.meter.state().error().step, "files.use");
}

} // namespace
} // namespace glove::control
