// The group is reached by descriptors from the root of its hierarchy, and judged there: no name
// leads this process into a group that is not its own service's.
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/host/user_service.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/process_facts.hpp>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::host {

namespace {

constexpr std::size_t most_bytes = 64UL << 10;

[[nodiscard]] auto refused(std::string what) {
    return fail(errc::not_permitted, "service.subgroup", std::move(what),
                "this is for the service alone: glove daemon start");
}

} // namespace

auto enter_subgroup(const std::string& hierarchy, const std::string& membership) -> result<> {
    GLOVE_TRY(const auto memberships, sys::read_file(membership, most_bytes));
    const auto own = sys::unified_group_in(memberships);
    if (!own) return refused("this machine has no control groups of version 2");
    const std::string path{own->substr(1)};
    if (path.substr(path.rfind('/') + 1) != service_unit_name)
        return refused("this process is in the control group " + in_quotes(path));
    GLOVE_TRY(const auto root, sys::pin(hierarchy, sys::follow::no));
    GLOVE_TRY(const auto group, sys::open_beneath(root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    GLOVE_TRY(const auto facts, sys::inspect(group));
    if (facts.owner != ::geteuid())
        return refused("the control group " + path + " was not delegated to this user");
    const std::string name{service_subgroup};
    if (::mkdirat(group.get(), name.c_str(), 0755) != 0 && errno != EEXIST)
        return fail_os("service.subgroup", errno, path + "/" + name);
    GLOVE_TRY(const auto members,
              sys::open_beneath(group, name + "/cgroup.procs", O_WRONLY | O_NOFOLLOW));
    if (const auto moved = sys::write_all(members, "0"); !moved)
        return fail_os("service.subgroup", moved.error().os, path + "/" + name);
    GLOVE_TRY(const auto left, sys::open_beneath(group, "cgroup.procs", O_RDONLY | O_NOFOLLOW));
    GLOVE_TRY(const auto others, sys::read_all(left, most_bytes));
    if (!others.empty()) return refused("others are in the control group " + path + " too");
    return {};
}

} // namespace glove::host
