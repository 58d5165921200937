#include "container/mount_table.hpp"
#include <gtest/gtest.h>

namespace {

using namespace glove;
using container::mount_table;

auto with(const std::string& line) -> mount_table {
    return mount_table::parse("1 0 8:1 / / rw - ext4 /dev/sda rw\n"
                              "2 1 0:5 / /proc rw shared:1 - proc proc rw\n" +
                              line)
        .value();
}

TEST(MountTable, AFreshProcIsNotCovered) {
    EXPECT_FALSE(with("").covers_proc());
    EXPECT_FALSE(with("3 1 0:6 /proc/x /mnt/proc rw - ext4 /dev/sda rw\n").covers_proc());
    EXPECT_FALSE(with("3 1 0:6 / /processes rw - tmpfs tmpfs rw\n").covers_proc());
}

TEST(MountTable, AMountOverAPartOfProcCoversIt) {
    EXPECT_TRUE(with("3 2 0:6 / /proc/acpi ro - tmpfs tmpfs ro\n").covers_proc());
    EXPECT_TRUE(with("3 2 0:5 /sys /proc/sys ro - proc proc ro\n").covers_proc());
}

TEST(MountTable, AMountAtAPlaceThatIsKeptEmptyCoversNothing) {
    const std::string binfmt =
        "3 2 0:6 / /proc/sys/fs/binfmt_misc rw shared:2 - binfmt_misc binfmt_misc rw\n";
    EXPECT_FALSE(with(binfmt).covers_proc());
    EXPECT_TRUE(with(binfmt + "4 2 0:7 / /proc/scsi ro - tmpfs tmpfs ro\n").covers_proc());
}

TEST(MountTable, ALineThatMakesNoSenseIsAnError) {
    EXPECT_FALSE(mount_table::parse("3 2 0:6 / proc rw - tmpfs tmpfs ro\n"));
    EXPECT_FALSE(mount_table::parse("3 2 0:6 / /proc rw\n"));
}

} // namespace
