// Which sessions there are, durably, and what their guests left for the controller.
//
// Guarantees: what was answered is on the disk; a key means one request as long as its session is
// remembered, and its replay gives what was answered then, even when the plan has expired; a
// session takes only the steps of lifecycle.hpp; nothing a guest does can keep a step of a
// session's life from being written, since room for these is reserved when it is created; a full
// file is rotated, and what is over is forgotten then, those whose plan has expired first
// (docs/journal-format.md). An intent whose schema is not admitted any more is never acted upon: it
// is kept as metadata. After a write that failed nothing more is written, and looking goes on.
//
// Safe for use by several threads. Looking never waits for the disk.
#pragma once
#include <cstdint>
#include <functional>
#include <glove/adapters/guest_channel.hpp>
#include <glove/control/answer.hpp>
#include <glove/control/channel_host.hpp>
#include <glove/control/session_record.hpp>
#include <glove/journal/storage.hpp>
#include <glove/supervisor/plan.hpp>
#include <glove/sys/clock.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glove::control {

struct create_session {
    std::string session_id;
    std::string controller_plan_digest;
    std::string plan_text; // as received
};

// What the operator of the controller approved: who may start which plan until when.
struct start_authorization {
    std::uint8_t schema_version = 1;
    std::string authorization_id;
    std::string session_id;
    std::string controller_plan_digest;
    std::string plan_content_digest;
    std::uint64_t approved_at_ms = 0;
    std::uint64_t expires_at_ms = 0;
    auto operator==(const start_authorization&) const -> bool = default;
};

struct start_binding {
    std::string launch_profile_digest;
    std::optional<cgroup_identity> cgroup;
    std::optional<filesystem_identity> filesystem;
    std::optional<managed_runtime_identity> managed_runtime; // then neither of the above
};

// The part of a receipt's envelope that ends a session.
struct terminal_envelope {
    std::uint64_t sequence = 0;
    std::string key_id;
    std::string receipt_digest;
    std::string previous_hmac;
    std::string this_hmac;
    std::string termination_cause;
    std::uint64_t started_at_ms = 0;
    std::uint64_t finished_at_ms = 0;
    std::optional<std::uint32_t> exit_code;
    bool refinement = false; // of which kind of receipt
};

// Which session's guest speaks, over which channel; told by the host, never by the guest.
struct guest_context {
    std::string session_id;
    std::string controller_plan_digest;
    std::string profile_digest;
    std::string runtime_id;
    std::string projection_digest;
    std::uint64_t policy_revision = 0;
    std::string channel_id;
    std::uint64_t channel_generation = 0;
    std::uint64_t issued_at_ms = 0;
    std::uint64_t expires_at_ms = 0;
};

struct intent_item {
    std::uint64_t sequence = 0; // of the record that admitted it
    adapters::guest_body body;
    guest_context context;
    std::string intent_digest;
    intent_disposition disposition{};
    std::uint64_t decided_at_ms = 0;
};
struct intent_page {
    std::vector<intent_item> items;
    std::optional<std::uint64_t> next_after_sequence; // when more remain
};
struct intent_decision {
    std::string session_id;
    std::uint64_t channel_generation = 0;
    std::string intent_id;
    std::string intent_digest;
    intent_disposition disposition{};
};

enum class closed_reason : std::uint8_t { schema_unavailable, schema_incompatible };
struct quarantined_intent {
    std::uint64_t sequence = 0;
    std::string session_id;
    std::string schema_id;
    std::string intent_id;
    std::uint64_t channel_generation = 0;
    closed_reason reason{};
};

// What has become of a process that was recorded.
enum class observed_process : std::uint8_t {
    gone,
    ended,   // by this look at it, because it was still there
    unknown, // something is there that may not be it: nothing was signalled
};
class process_observer {
public:
    virtual ~process_observer() = default;
    [[nodiscard]] virtual auto observe(const session_record& of) -> observed_process = 0;
};
// The durable receipt of a session, when there is one. An error ends a recovery, which can be tried
// again.
using receipt_finder =
    std::function<result<std::optional<terminal_envelope>>(const session_record&)>;

struct session_list {
    std::vector<session_view> sessions; // by id
    std::optional<std::string> next_after;
};

struct registry_settings {
    std::uint64_t file_bytes = 0; // 0: as many as the format allows
    std::size_t records = 0;      // likewise
    std::size_t most_live = 1000; // sessions that are not over
    std::size_t most_kept = 256;  // that are over
    std::size_t intents_per_session = 256;
    // Each intent counts as the longest record that it may lead to, its plan included.
    std::uint64_t intent_bytes_per_session = 2U << 20;
};

class session_registry {
public:
    // `store`, `channels` and `clock` must outlive it; `channels` is frozen, or null: no guest is
    // heard. Steps: registry.* and those of the journal.
    [[nodiscard]] static auto open(journal::storage& store, const registry_settings& how,
                                   const channel_host* channels, const sys::clock& clock)
        -> result<std::unique_ptr<session_registry>>;
    ~session_registry();

    // Decodes and validates the plan; asked only when the request is no replay, and without a lock.
    // The id is 1 to 64 letters, digits, '-', '_' and '.', the first of them a letter or a digit:
    // another one could never be started, or be told from an option.
    using plan_judge = std::function<answer<supervisor::sealed_plan>(const create_session&)>;
    [[nodiscard]] auto create(std::string_view key, const create_session& what,
                              const plan_judge& judge) -> answer<session_view>;
    // Whether anything could be written now. Never waits: while somebody writes, it is as it was.
    [[nodiscard]] auto operational() const -> bool;
    [[nodiscard]] auto status(std::string_view session_id) const -> answer<session_view>;
    // The newest record, its plan included.
    [[nodiscard]] auto record(std::string_view session_id) const -> answer<session_record>;
    [[nodiscard]] auto list(std::string_view after, std::size_t limit) const -> session_list;

    // The steps of a life. A replay of a key gives the state as it is now. Members of bad form, and
    // receipts that do not fit the session, are session_control_failed.
    [[nodiscard]] auto reserve_start(std::string_view key, const start_authorization& what)
        -> answer<session_view>;
    [[nodiscard]] auto mark_starting(std::string_view key, std::string_view session_id,
                                     const start_binding& what) -> answer<session_view>;
    [[nodiscard]] auto mark_running(std::string_view key, std::string_view session_id,
                                    const process_identity& what) -> answer<session_view>;
    [[nodiscard]] auto mark_stopping(std::string_view key, std::string_view session_id)
        -> answer<session_view>;
    [[nodiscard]] auto mark_exited(std::string_view key, std::string_view session_id,
                                   const terminal_envelope& what) -> answer<session_view>;
    // One of authorization_expired, launch_failed, supervisor_error, recovered_without_process,
    // recovered_terminated; which of them depends on the state.
    [[nodiscard]] auto mark_failed(std::string_view key, std::string_view session_id,
                                   std::string_view failure_code) -> answer<session_view>;
    // The record that a key made, whatever the session is now; nothing when the key is not known.
    [[nodiscard]] auto replayed(std::string_view key) const -> std::optional<session_view>;

    // Sessions that were starting, running or stopping when the last process ended. The ids of
    // those whose process could not be identified: they are left as they are and never signalled,
    // and nothing can be started for them. Until one is settled, its steps are refused as
    // session_reconciliation_failed. Again is fine: it looks at those that are left.
    [[nodiscard]] auto recover(const receipt_finder& receipts, process_observer& processes)
        -> result<std::vector<std::string>>;

    [[nodiscard]] auto enqueue(const guest_context& from, const adapters::guest_body& what)
        -> answer<intent_item>;
    // Stamped with the clock of the host. The same decision again is answered with the first.
    [[nodiscard]] auto decide(const intent_decision& what) -> answer<intent_item>;
    [[nodiscard]] auto pending(std::uint64_t after_sequence, std::size_t limit) const
        -> intent_page;
    [[nodiscard]] auto quarantined(std::uint64_t after_sequence, std::size_t limit) const
        -> std::vector<quarantined_intent>;

private:
    struct state;
    explicit session_registry(std::unique_ptr<state> owned);
    std::unique_ptr<state> state_;
};

} // namespace glove::control
