// What becomes of the protected places of a run, as the operator and the report hear of it.
#pragma once
#include <glove/container/run_files.hpp>
#include <string>
#include <vector>

namespace glove::run {

// A finding with the name that the operator knows.
struct place_change {
    container::finding_kind kind;
    std::string path;
};

// Tells of runs that were killed and left something, once.
void tell_of_killed_runs(const std::string& state);

class protection {
public:
    // Puts on record what is protected and what is absent, before anything runs.
    [[nodiscard]] static auto begin(const std::string& state, const std::string& run,
                                    const container::plan& plan) -> result<protection>;
    // Looks for changes and tells of them; the run is over.
    [[nodiscard]] auto end() -> std::vector<place_change>;

private:
    container::run_manifest manifest_;
    container::own_manifest file_;
};

} // namespace glove::run
