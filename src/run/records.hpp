// What a run leaves in writing: its audit lines and, when asked for, its report.
//
// Guarantees: everything that can be refused about these files is refused by `open`, before
// anything runs; the intent is on record before the agent starts, or it does not start.
#pragma once
#include "run/description.hpp"
#include <glove/audit/jsonl.hpp>
#include <glove/sys/clock.hpp>

namespace glove::run {

struct file_places {
    std::string state, configuration;
    std::string audit_log; // empty: a new file for this run, under `state`
    std::optional<std::string> report;
};

class run_records {
public:
    // `plan`, `mediation` and `time` outlive the records.
    [[nodiscard]] static auto open(const file_places& places, audit::durability how,
                                   const container::plan& plan,
                                   const std::optional<mediation_request>& mediation,
                                   const sys::clock& time) -> result<run_records>;

    [[nodiscard]] auto intend() -> result<>;
    // Records how the run went, and what was armed and reached meanwhile.
    [[nodiscard]] auto conclude(const result<outcome>& ended, run_facts facts) -> result<>;

    // Where the parts of the run put theirs on record, and under which id.
    [[nodiscard]] auto log() noexcept -> audit::sink& { return audit_; }
    [[nodiscard]] auto run() const noexcept -> const std::string& { return record_.run; }
    // The file of it, which another program of the run appends to as well.
    [[nodiscard]] auto file() const noexcept -> const std::string& { return record_.audit_log; }

private:
    run_records(audit::jsonl_sink audit, const sys::clock& time)
        : audit_{std::move(audit)}, time_{&time} {}
    [[nodiscard]] auto event(audit::action what, audit::status status) const -> audit::event;

    audit::jsonl_sink audit_;
    const sys::clock* time_;
    std::string call_; // joins the intent and the outcome
    sys::unique_fd report_directory_;
    std::string report_name_; // empty: no report
    run_record record_;
};

} // namespace glove::run
