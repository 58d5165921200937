// Threads that are beside what the process is for.
//
// Guarantees: no signal is delivered to one; that the machine has none to give is an error.
#pragma once
#include <functional>
#include <glove/base/error.hpp>
#include <thread>

namespace glove::sys {

[[nodiscard]] auto start_thread(std::function<void()> body, step_name step) -> result<std::thread>;

} // namespace glove::sys
