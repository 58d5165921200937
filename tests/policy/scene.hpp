// Engines from text, and what they answer, for the tests of rules.
#pragma once
#include <glove/policy/engine.hpp>
#include <gtest/gtest.h>

namespace glove::policy::scene {

inline const std::vector<std::string> upstreams{"fs", "git", "up"};
inline const std::string nowhere = "/";

inline auto json(std::string_view text) -> wire::json::value {
    auto out = wire::json::read(text, {.form = wire::json::numbers::any});
    if (!out) ADD_FAILURE() << text << ": " << out.error().detail;
    return out ? *std::move(out) : wire::json::value{};
}

inline auto told(const error& problem) -> std::string {
    return std::string{to_string(problem.code)} + ": " + std::string{problem.step} + ": " +
           problem.detail + " | " + problem.remedy;
}

inline auto made(const wish& what, std::string_view file = {},
                 const std::string& directory = nowhere) -> engine {
    auto out = engine::parse(what, file, upstreams, directory);
    if (!out) throw std::runtime_error{told(out.error())};
    return *std::move(out);
}

// What is wrong with it; empty when nothing is.
inline auto problem_of(const wish& what, std::string_view file = {},
                       const std::string& directory = nowhere) -> std::string {
    const auto out = engine::parse(what, file, upstreams, directory);
    return out ? std::string{} : told(out.error());
}

// "ok", or the rule that was broken.
inline auto answer(const engine& of, const tool_name& tool, std::string_view arguments)
    -> std::string {
    const auto given = json(arguments);
    const auto out = of.decides(tool, &given);
    EXPECT_EQ(out.allowed, out.rule.empty());
    return out.allowed ? "ok" : out.rule;
}

// The same for the tool up.t, of which a file speaks in one table.
inline auto answer_of(std::string_view table, std::string_view arguments) -> std::string {
    const auto of = made({}, "[tool.\"up.t\"]\nallow = true\n" + std::string{table});
    return answer(of, {"up", "t"}, arguments);
}

} // namespace glove::policy::scene
