// What is counted for a record that is still to come, against the real encoding of the longest one.
#include "control/session_fields.hpp"
#include "control/session_room.hpp"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace {

using namespace glove;
using namespace glove::control;

constexpr auto most = std::numeric_limits<std::uint64_t>::max();

auto encoded_bytes(const session_record& what) -> std::size_t {
    std::string out;
    wire::json::writer to{out};
    wire::write_object(to, what, session_fields);
    return out.size();
}

auto hex(char c) -> std::string { return std::string(64, c); }

// A number of any length.
auto any_number() -> std::uint64_t {
    return *rc::gen::arbitrary<std::uint64_t>() >> *rc::gen::inRange(0, 64);
}

// What a creation says, with no regard to what a plan may be.
auto any_creation() -> session_record {
    session_record out;
    out.sequence = any_number();
    out.operation = "create";
    out.idempotency_key = std::string(*rc::gen::inRange<std::size_t>(1, 129), 'k');
    out.session_id = std::string(*rc::gen::inRange<std::size_t>(1, 129), 's');
    out.controller_plan_digest = out.request_digest = out.plan_content_digest = hex('b');
    out.state = session_state::created;
    out.policy_revision = any_number();
    out.expires_at_ms = any_number();
    out.created_at_ms = any_number();
    out.canonical_plan_json = *rc::gen::arbitrary<std::string>();
    out.previous_hash = out.this_hash = hex('a');
    return out;
}
auto any_plan() -> plan_facts {
    return {.runtime_id = "codex",
            .most_partitions = *rc::gen::inRange<std::size_t>(0, most_partitions + 1)};
}

// What the steps up to a state bring, each as long or as short as its row allows.
void live_on(session_record& of, session_state to, std::size_t partitions) {
    const auto size = [](std::size_t longest) {
        return *rc::gen::element<std::size_t>(1, longest);
    };
    of.state = to;
    if (to >= session_state::preparing) {
        of.authorization_id = std::string(size(128), 'z');
        of.authorized_at_ms = any_number();
        of.authorization_expires_at_ms = any_number();
    }
    if (to >= session_state::starting) {
        of.launch_profile_digest = hex('c');
        of.starting_at_ms = any_number();
        of.cgroup = cgroup_identity{1, any_number(), any_number()};
        of.filesystem = filesystem_identity{1, any_number(), {}};
        for (std::size_t i = 0; i < partitions; ++i)
            of.filesystem->partitions.push_back({std::string(size(128), 'p'), any_number()});
        if (*rc::gen::arbitrary<bool>())
            of.managed_runtime = managed_runtime_identity{1, "apple_container",
                                                          std::string(size(128), 'i'), hex('d')};
    }
    if (to >= session_state::running) {
        of.running_at_ms = any_number();
        of.process = {1,    UINT32_MAX, std::string(boot_id_bytes, 'e'), most, any_number(),
                      most, hex('f')};
    }
}

RC_GTEST_PROP(SessionRoom, WhatIsCountedForANewSessionIsWhatItsLongestRecordTakes, ()) {
    const auto created = any_creation();
    const auto plan = any_plan();
    RC_ASSERT(longest_record(created, plan) == encoded_bytes(longest_life(created, plan)));
    RC_ASSERT(longest_record(created, plan) >= encoded_bytes(created));
}

// And what was reserved at the beginning is what is reserved again.
RC_GTEST_PROP(SessionRoom, WhatIsCountedIsTheSameInEveryState, ()) {
    auto record = any_creation();
    const auto plan = any_plan();
    const auto counted = longest_record(record, plan);
    const auto to = *rc::gen::element(session_state::preparing, session_state::starting,
                                      session_state::running, session_state::stopping);
    live_on(record, to, *rc::gen::inRange<std::size_t>(0, plan.most_partitions + 1));
    RC_ASSERT(longest_record(record, plan) == counted);
    RC_ASSERT(encoded_bytes(longest_life(record, plan)) <= counted);
    RC_ASSERT(encoded_bytes(record) <= counted);
}

// A record of somebody else may have more partitions than its plan has room for.
RC_GTEST_PROP(SessionRoom, PartitionsThatAreThereAreCounted, ()) {
    auto record = any_creation();
    live_on(record, session_state::running, most_partitions);
    const plan_facts plan{.runtime_id = "codex",
                          .most_partitions = *rc::gen::inRange<std::size_t>(0, 9)};
    RC_ASSERT(encoded_bytes(longest_life(record, plan)) <= longest_record(record, plan));
}

} // namespace
