// The rows, one defined in each file of this folder.
#pragma once
#include <glove/adapters/agent.hpp>

namespace glove::adapters {

extern const agent_description claude, codex, copilot, gemini, opencode, pi;

} // namespace glove::adapters
