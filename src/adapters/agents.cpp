#include "adapters/agents.hpp"
#include <algorithm>
#include <array>

namespace glove::adapters {

namespace {

constexpr std::array all{&claude, &codex, &gemini, &copilot, &opencode, &pi};

} // namespace

auto agents() noexcept -> std::span<const agent_description* const> { return all; }

auto find_agent(std::string_view name) noexcept -> const agent_description* {
    const auto found = std::ranges::find(all, name, &agent_description::name);
    return found == all.end() ? nullptr : *found;
}

} // namespace glove::adapters
