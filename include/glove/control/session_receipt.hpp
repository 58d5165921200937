// From the end of a session to its receipt: in which order the end is settled, and what of it
// stands in the receipt.
//
// Guarantees: the end itself is noted after everything that came before it, so a session that
// exceeded a limit in its last moment did not exit. What a receipt says was used is what was
// measured: never less because a limit would be exceeded, never more because one should be. What
// is assembled here is of the form that journals take. Nothing here waits or writes.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/container/pty_channel.hpp>
#include <glove/container/transcript.hpp>
#include <glove/control/receipt.hpp>
#include <glove/control/refinement_fixture.hpp>
#include <glove/control/refinement_receipt.hpp>
#include <glove/control/resource_watch.hpp>
#include <glove/control/termination.hpp>
#include <glove/supervisor/plan.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glove::control {

// Shows an evaluator every byte of a transcript, before any of them can be forgotten.
class evaluator_feed final : public container::transcript_sink {
public:
    explicit evaluator_feed(transcript_evaluator eye) : eye_{std::move(eye)} {}
    [[nodiscard]] auto take(std::string_view bytes) -> result<> override {
        return eye_.feed(bytes);
    }
    // Once, after the transcript has ended.
    [[nodiscard]] auto finish(const evaluated_end& end) -> result<refinement_evidence> {
        return std::move(eye_).finish(end);
    }

private:
    transcript_evaluator eye_;
};

struct settled_end {
    termination_verdict verdict;
    observed_use observed;
    std::optional<error> trouble; // why what was observed may be too little
};
// After every process of the session has ended and its terminal was drained; `terminal` as the
// channel accounts for it then. A terminal that was not drained to its end is an error of the
// supervisor's, when nothing came before.
[[nodiscard]] auto settle(resource_watch& watch, const container::pty_account& terminal,
                          const process_end& end, termination& into) -> settled_end;

// What is known of a session besides its end.
struct receipt_facts {
    std::string profile_digest;
    std::string backend_id;
    supervisor::resource_limits limits;
    enforcement_mechanisms mechanisms = linux_mechanisms();
    // By the wall clock. One that was set back meanwhile makes it end when it began: how long it
    // took, `observed` says.
    std::uint64_t started_at_ms = 0;
    std::uint64_t finished_at_ms = 0;
    std::vector<projection_receipt> library_projections; // by id
    std::vector<retained_change_receipt> retained_changes;
};
// Of a session on this machine. Steps: those of a receipt's form.
[[nodiscard]] auto receipt_of(receipt_facts facts, const settled_end& end)
    -> result<resource_receipt>;

// The end as an evaluator is told of it.
[[nodiscard]] auto evaluated(const settled_end& end, bool transcript_complete) -> evaluated_end;
// Of one half of a comparison. Steps: those of a receipt's form; receipt.plan when the plan is
// none.
[[nodiscard]] auto receipt_of(resource_receipt resource, const supervisor::session_plan& plan,
                              refinement_evidence evidence) -> result<refinement_receipt>;

} // namespace glove::control
