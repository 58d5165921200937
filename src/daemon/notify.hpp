// Tells the service manager how far the service is, as sd_notify(3) does.
//
// Guarantees: without a manager, nothing is done; never waits, and never fails the service.
#pragma once
#include <string_view>

namespace glove::daemon {

// "READY=1", "STOPPING=1"; to $NOTIFY_SOCKET, a path or, after '@', an abstract name.
void notify(std::string_view state);

} // namespace glove::daemon
