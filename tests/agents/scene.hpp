// One hostile program in one place: bare, and inside Glove. Every denial is asserted next to its
// twin, which shows that the attack is real or that the honest neighbour works.
#pragma once
#include "support/glove_process.hpp"
#include <algorithm>

namespace glove::test {

enum class verdict : int { worked = 0, denied = 10, untried = 20 };

inline auto operator<<(std::ostream& out, verdict what) -> std::ostream& {
    switch (what) {
    case verdict::worked: return out << "worked";
    case verdict::denied: return out << "denied";
    case verdict::untried: return out << "untried";
    }
    return out << "status " << static_cast<int>(what);
}

struct outcome {
    verdict what = verdict::untried;
    std::string said;
    finished whole;
};

inline auto operator<<(std::ostream& out, const outcome& seen) -> std::ostream& {
    return out << seen.what << " " << seen.said << "\n" << seen.whole;
}

[[nodiscard]] inline auto judged(finished whole) -> outcome {
    auto text = whole.output.substr(0, whole.output.find_last_not_of('\n') + 1);
    return {static_cast<verdict>(whole.status()), std::move(text), std::move(whole)};
}

[[nodiscard]] inline auto worked(const outcome& seen) -> testing::AssertionResult {
    if (seen.what == verdict::worked) return testing::AssertionSuccess();
    return testing::AssertionFailure() << seen;
}

[[nodiscard]] inline auto denied(const outcome& seen, std::string_view why = {})
    -> testing::AssertionResult {
    if (seen.what == verdict::denied && (why.empty() || seen.said == why))
        return testing::AssertionSuccess();
    return testing::AssertionFailure() << seen << "\nwanted: denied " << why;
}

inline const std::string hostile_binary = HOSTILE;

// A home, a workspace and a place that is not granted.
class Scene : public testing::Test {
protected:
    // With the workspace granted, and the program itself.
    [[nodiscard]] auto inside(const words& attack, const words& options = {}) const -> outcome {
        return judged(run(inside_command(attack, options)));
    }
    [[nodiscard]] auto inside_command(const words& attack, const words& options = {}) const
        -> command {
        return glove_exec(home, words{"--workspace", workspace, "--read", hostile_binary} + options,
                          words{hostile_binary} + attack);
    }
    [[nodiscard]] auto bare(const words& attack) const -> outcome {
        return judged(run({.argv = words{hostile_binary} + attack,
                           .environment = environment_in(home),
                           .directory = workspace}));
    }
    // With every capability over namespaces of its own: what an agent of root would have.
    [[nodiscard]] auto powerful(const words& attack) const -> outcome {
        return judged(run({.argv = words{"unshare", "-Urm", hostile_binary} + attack,
                           .environment = environment_in(home),
                           .directory = workspace}));
    }
    // The same after a few lines of shell.
    [[nodiscard]] auto powerful_after(const std::string& script, const words& attack) const
        -> outcome {
        return judged(run({.argv = words{"unshare", "-Urm", "sh", "-ec", script + "\nexec \"$@\"",
                                         "sh", hostile_binary} +
                                   attack,
                           .environment = environment_in(home),
                           .directory = workspace}));
    }

    temporary_directory place;
    std::string home = place.make("home");
    std::string workspace = place.make("desk");
    std::string elsewhere = place.make("elsewhere");
};

} // namespace glove::test
