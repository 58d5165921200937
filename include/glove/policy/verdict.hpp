// The answer of every decision.
#pragma once
#include <string>

namespace glove::policy {

struct verdict {
    bool allowed = false;
    // Why not: names the rule in the operator's own terms ("argument /path is not below a permitted
    // directory"). Goes to the agent, so it never holds a path of the host, another rule's text or
    // a value that the agent did not send.
    std::string rule = {};
};

} // namespace glove::policy
