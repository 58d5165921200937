// The manifests of runs, one file each, in a directory of the operator's: RUN.json while a run goes
// on, or when it was killed; RUN.found.json when it ended and something was found.
//
// Guarantees: the files are owner-only and whole from the moment that they have their name; a run
// that does not begin leaves none; a run holds a lock on its own, which ends with its process,
// so a manifest without a lock is one of a run that is over.
#pragma once
#include <functional>
#include <glove/container/manifest.hpp>
#include <glove/sys/fd.hpp>

namespace glove::container {

inline constexpr std::size_t most_manifests = 256; // that are looked at

// The manifest of the run that this process is.
class own_manifest {
public:
    // Writes nothing when there is nothing to be watched.
    [[nodiscard]] static auto write(const std::string& directory, const run_manifest& from)
        -> result<own_manifest>;
    // The run is over: removes the file, or keeps it under its other name for `glove quarantine`.
    [[nodiscard]] auto conclude(bool keep) -> result<>;

private:
    [[nodiscard]] auto hold(const std::string& name) -> result<>;

    sys::unique_fd directory_, file_;
    std::string run_;
};

struct past_run {
    run_manifest manifest;
    bool was_told = false; // the operator has heard of it
};

// `leave` changes nothing, not even that the run was told.
enum class verdict : std::uint8_t { forget, keep, leave };

struct review_choice {
    std::string only = {}; // one run by its whole name, or all
    bool told = true;      // also those of which the operator has heard
};

// Runs that are over, each with its manifest locked meanwhile; what `judge` keeps counts as told
// from then on. A run that starts waits for no `judge`, and no lock is waited for longer than 15
// seconds. `tell` gets what could not be read, and that there were more than `most_manifests`.
[[nodiscard]] auto review_runs(const std::string& directory, const review_choice& choice,
                               const std::function<verdict(const past_run&)>& judge,
                               const std::function<void(const error&)>& tell) -> result<>;

} // namespace glove::container
