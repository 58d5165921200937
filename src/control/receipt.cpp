// The resource receipt: its rules, its text and its digest.
#include "control/receipt_fields.hpp"
#include "supervisor/refusal.hpp"
#include <glove/sys/files.hpp>
#include <glove/wire/digest.hpp>
#include <glove/wire/words.hpp>

namespace glove::control {

using supervisor::backend_kind;
using supervisor::element_of;
using supervisor::first_out_of_order;
using supervisor::member_of;
using supervisor::refuse;

namespace {

[[nodiscard]] auto check_authority(const resource_receipt& of, const wire::place& at) -> result<> {
    const bool remote = of.backend == backend_kind::remote_linux_container;
    const bool claims = of.authority == observation_authority::trusted_remote_claim;
    if (remote != claims)
        return refuse(errc::invalid_input, "receipt.authority",
                      member_of(at, "observation_authority"), "is not that of the backend");
    if (of.independently_verified == remote)
        return refuse(errc::invalid_input, "receipt.authority",
                      member_of(at, "independently_verified"), "is not what the authority may say");
    if (remote && !of.retained_changes.empty())
        return refuse(errc::invalid_input, "receipt.authority", member_of(at, "retained_changes"),
                      "cannot be claimed from afar");
    return {};
}

[[nodiscard]] auto check_end(const resource_receipt& of, const wire::place& at) -> result<> {
    if ((of.cause == termination_cause::exited) != of.exit_code.has_value())
        return refuse(errc::invalid_input, "receipt.cause", member_of(at, "exit_code"),
                      "goes with the cause exited, and only with it");
    if (of.finished_at_ms < of.started_at_ms)
        return refuse(errc::invalid_input, "receipt.times", member_of(at, "finished_at_ms"),
                      "is before the start");
    return {};
}

[[nodiscard]] auto check_projections(const std::vector<projection_receipt>& list,
                                     const wire::place& at) -> result<> {
    if (const auto i = first_out_of_order(
            list, [](const auto& p) -> const std::string& { return p.projection_id; });
        i < list.size())
        return refuse(errc::invalid_input, "receipt.order", element_of(at, i),
                      "does not come after the one before it");
    for (std::size_t i = 0; i < list.size(); ++i) {
        const auto here = element_of(at, i);
        const auto target = member_of(here, "target_path");
        if (!list[i].target_path.ends_with("/" + list[i].content_digest + ".json"))
            return refuse(errc::invalid_input, "receipt.target", target,
                          "does not end with the digest of its content");
        for (std::size_t j = 0; j < list.size(); ++j)
            if (i != j && sys::holds(list[j].target_path, list[i].target_path))
                return refuse(errc::invalid_input, "receipt.target", target,
                              "overlaps another target");
    }
    return {};
}

[[nodiscard]] auto check_changes(const resource_receipt& of, const wire::place& at) -> result<> {
    const auto& list = of.retained_changes;
    if (const auto i = first_out_of_order(
            list, [](const auto& c) -> const std::string& { return c.exposure_id; });
        i < list.size())
        return refuse(errc::invalid_input, "receipt.order", element_of(at, i),
                      "does not come after the one before it");
    for (std::size_t i = 0; i < list.size(); ++i) {
        const auto& c = list[i];
        if (c.created + c.modified + c.renamed + c.removed > most_changes)
            return refuse(errc::invalid_input, "receipt.changes", element_of(at, i),
                          "counts more than 100000 changes");
        if (std::max(c.before_bytes, c.after_bytes) > of.configured_limits.disk_bytes)
            return refuse(errc::invalid_input, "receipt.changes", element_of(at, i),
                          "holds more bytes than the limit of the disk");
    }
    return {};
}

void put(wire::digest_encoder& out, const supervisor::resource_limits& limits) {
    out.u64(limits.cpu_time_ms).u64(limits.memory_bytes).u32(limits.pids);
    out.u64(limits.wall_time_ms).u64(limits.disk_bytes).u64(limits.terminal_output_bytes);
}
void put(wire::digest_encoder& out, const observed_use& used) {
    out.u64(used.cpu_time_ms).u64(used.peak_memory_bytes).u32(used.peak_pids);
    out.u64(used.wall_time_ms).u64(used.disk_bytes).u64(used.terminal_output_bytes);
}
void put(wire::digest_encoder& out, const enforcement_mechanisms& by) {
    for (const auto one :
         {by.cpu_time, by.memory, by.pids, by.wall_time, by.disk, by.terminal_output})
        out.str(to_string(one));
    out.u8(by.receipt_schema_version);
}
void put(wire::digest_encoder& out, const std::vector<projection_receipt>& list) {
    if (list.empty()) return;
    out.str("glove.library-projection-receipts").u8(1).count(list.size());
    for (const auto& p : list)
        out.str(p.projection_id).str(p.destination_alias).str(p.target_path).str(p.content_digest);
}
void put(wire::digest_encoder& out, const std::vector<retained_change_receipt>& list) {
    if (list.empty()) return;
    out.str("glove.retained-change-receipts").u8(1).count(list.size());
    for (const auto& c : list) {
        out.str(c.exposure_id).u64(c.generation).str(c.scope_digest).str(c.source_identity_digest);
        out.str(c.baseline_tree_digest).str(c.staged_tree_digest).str(c.manifest_digest);
        out.u64(c.created).u64(c.modified).u64(c.renamed).u64(c.removed);
        out.u64(c.before_bytes).u64(c.after_bytes);
    }
}

} // namespace

auto to_string(termination_cause of) noexcept -> std::string_view {
    return wire::name_in(cause_words, of);
}
auto to_string(mechanism of) noexcept -> std::string_view {
    return wire::name_in(mechanism_words, of);
}
auto to_string(observation_authority of) noexcept -> std::string_view {
    return wire::name_in(authority_words, of);
}

auto linux_mechanisms() noexcept -> enforcement_mechanisms {
    using enum mechanism;
    return {.cpu_time = cgroup_v2,
            .memory = cgroup_v2,
            .pids = cgroup_v2,
            .wall_time = watchdog,
            .disk = filesystem_quota,
            .terminal_output = byte_counter,
            .receipt_schema_version = 1};
}

auto check_rules(const resource_receipt& of, const wire::place& at) -> result<> {
    GLOVE_CHECK(check_authority(of, at));
    GLOVE_CHECK(check_end(of, at));
    GLOVE_CHECK(check_projections(of.library_projections, member_of(at, "library_projections")));
    return check_changes(of, member_of(at, "retained_changes"));
}

auto encode(const resource_receipt& what) -> result<std::string> {
    return checked_text(what, resource_receipt_fields);
}
auto decode_resource_receipt(std::string_view text) -> result<resource_receipt> {
    return checked_value(text, resource_receipt_fields);
}

auto receipt_digest(const resource_receipt& of) -> result<std::string> {
    wire::digest_encoder out;
    out.str("glove.resource-enforcement-receipt").u8(1).u8(of.schema_version);
    out.str(of.profile_digest).str(to_string(of.backend)).str(of.backend_id);
    if (of.backend == backend_kind::remote_linux_container)
        out.str("glove.remote-observation-authority")
            .u8(1)
            .str(to_string(of.authority))
            .boolean(of.independently_verified);
    put(out, of.configured_limits);
    put(out, of.mechanisms);
    put(out, of.observed);
    out.str(to_string(of.cause)).boolean(of.exit_code.has_value());
    if (of.exit_code) out.u32(*of.exit_code);
    out.u64(of.started_at_ms).u64(of.finished_at_ms);
    put(out, of.library_projections);
    put(out, of.retained_changes);
    return out.sha256_hex();
}

} // namespace glove::control
