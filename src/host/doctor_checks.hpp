// The families of checks: each file looks at one part of the machine and judges it.
#pragma once
#include <glove/host/doctor.hpp>

namespace glove::host {

struct verdict {
    check_status status = check_status::passed;
    std::string message;
    std::string recovery = {};
};
[[nodiscard]] inline auto passed(std::string message) -> verdict {
    return {check_status::passed, std::move(message)};
}
[[nodiscard]] inline auto warning(std::string message, std::string recovery) -> verdict {
    return {check_status::warning, std::move(message), std::move(recovery)};
}
[[nodiscard]] inline auto failed(std::string message, std::string recovery) -> verdict {
    return {check_status::failed, std::move(message), std::move(recovery)};
}

[[nodiscard]] auto look_at_kernel() -> kernel_facts;
[[nodiscard]] auto look_at_services(::uid_t uid) -> service_facts;
[[nodiscard]] auto look_at_places() -> place_facts;

// doctor_kernel.cpp
[[nodiscard]] auto judge_kernel(const facts& seen) -> verdict;
[[nodiscard]] auto judge_namespaces(const facts& seen) -> verdict;
[[nodiscard]] auto judge_apparmor(const facts& seen) -> verdict;
[[nodiscard]] auto judge_seccomp(const facts& seen) -> verdict;
[[nodiscard]] auto judge_mount_api(const facts& seen) -> verdict;
[[nodiscard]] auto judge_proc(const facts& seen) -> verdict;
[[nodiscard]] auto judge_landlock(const facts& seen) -> verdict;
[[nodiscard]] auto judge_keys(const facts& seen) -> verdict;
[[nodiscard]] auto judge_perimeter(const facts& seen) -> verdict;
// doctor_services.cpp
[[nodiscard]] auto judge_cgroup(const facts& seen) -> verdict;
[[nodiscard]] auto judge_user_manager(const facts& seen) -> verdict;
[[nodiscard]] auto judge_lingering(const facts& seen) -> verdict;
[[nodiscard]] auto judge_retained_storage(const facts& seen) -> verdict;
// doctor_places.cpp
[[nodiscard]] auto judge_egress(const facts& seen) -> verdict;
[[nodiscard]] auto judge_terminal(const facts& seen) -> verdict;
[[nodiscard]] auto judge_state(const facts& seen) -> verdict;
[[nodiscard]] auto judge_configuration(const facts& seen) -> verdict;

} // namespace glove::host
