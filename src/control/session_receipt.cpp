// Puts together; the forms are judged by the encoders of receipts.
#include <algorithm>
#include <glove/control/session_receipt.hpp>

namespace glove::control {

auto settle(resource_watch& watch, const container::pty_account& terminal, const process_end& end,
            termination& into) -> settled_end {
    if (terminal.exceeded) (void)into.note(termination_cause::terminal_output_limit);
    settled_end out;
    if (auto last = watch.finish(); !last) out.trouble = std::move(last).error();
    if (!terminal.ended || !terminal.drained) {
        (void)into.note(termination_cause::supervisor_error);
        if (!out.trouble)
            out.trouble = error{
                errc::timed_out, "session.drain", 0, "the terminal was not drained to its end", {}};
    }
    (void)into.note_end(end, watch.is_over_memory());
    out.verdict = *into.verdict();
    out.observed = watch.observed();
    out.observed.terminal_output_bytes = terminal.output_bytes;
    return out;
}

auto receipt_of(receipt_facts facts, const settled_end& end) -> result<resource_receipt> {
    resource_receipt out;
    out.profile_digest = std::move(facts.profile_digest);
    out.backend = supervisor::backend_kind::linux_production;
    out.backend_id = std::move(facts.backend_id);
    out.authority = observation_authority::local_enforcement;
    out.independently_verified = true;
    out.configured_limits = facts.limits;
    out.mechanisms = facts.mechanisms;
    out.observed = end.observed;
    out.cause = end.verdict.cause;
    out.exit_code = end.verdict.exit_code;
    out.started_at_ms = facts.started_at_ms;
    out.finished_at_ms = std::max(facts.started_at_ms, facts.finished_at_ms);
    out.library_projections = std::move(facts.library_projections);
    out.retained_changes = std::move(facts.retained_changes);
    GLOVE_CHECK(encode(out));
    return out;
}

auto evaluated(const settled_end& end, bool transcript_complete) -> evaluated_end {
    return {.cause = end.verdict.cause,
            .exit_code = end.verdict.exit_code,
            .wall_time_ms = end.observed.wall_time_ms,
            .drained = transcript_complete};
}

auto receipt_of(resource_receipt resource, const supervisor::session_plan& plan,
                refinement_evidence evidence) -> result<refinement_receipt> {
    if (!plan.refinement)
        return fail(errc::invalid_input, "receipt.plan", "its plan compares nothing");
    refinement_receipt out;
    out.runtime_template_id = plan.runtime_template_id;
    out.resource = std::move(resource);
    out.status = evidence.status;
    out.variant = plan.refinement->variant;
    out.fixture = plan.refinement->fixture;
    out.base = plan.refinement->base;
    out.candidate = plan.refinement->candidate;
    out.matched_context_digest = plan.refinement->matched_context_digest;
    out.outcome = std::move(evidence.outcome);
    out.evaluated_outcome = std::move(evidence.evaluated_outcome);
    out.transcript = std::move(evidence.transcript);
    out.evaluator = std::move(evidence.evaluator);
    GLOVE_CHECK(encode(out));
    return out;
}

} // namespace glove::control
