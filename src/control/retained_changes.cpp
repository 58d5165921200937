// The registry says whose copy it is, the record beside the image what it was, and the image what
// it became.
#include "control/host_images.hpp"
#include <algorithm>
#include <glove/control/retained_changes.hpp>

namespace glove::control {

namespace {

constexpr std::chrono::seconds patience_with_others{2};

[[nodiscard]] auto unavailable(error why) {
    return refuse(error_code::retained_changes_unavailable, std::move(why));
}

// The grant as the session's plan has it.
[[nodiscard]] auto subject_of(const session_record& record, std::string_view exposure_id)
    -> result<container::change_subject> {
    if (!is_terminal(record.state) || record.running_at_ms == 0)
        return fail(errc::wrong_state, "retained.session",
                    "the session " + record.session_id + " is not over, or never ran");
    GLOVE_TRY(const auto sealed,
              supervisor::unseal(record.canonical_plan_json,
                                 {record.controller_plan_digest, record.plan_content_digest}));
    if (const auto* grants = std::get_if<1>(&sealed.plan.grants))
        for (const auto& grant : *grants)
            if (grant.exposure_id == exposure_id &&
                grant.access == supervisor::access_kind::retained_write)
                return container::change_subject{.session_id = record.session_id,
                                                 .exposure_id = grant.exposure_id,
                                                 .generation = grant.generation,
                                                 .scope_digest = grant.scope_digest,
                                                 .source_identity_digest = {}};
    return fail(errc::not_found, "retained.exposure",
                "the session " + record.session_id + " has no retained copy of that name");
}

} // namespace

auto retained_changes::changes(std::string_view session_id, std::string_view exposure_id,
                               std::uint64_t offset, std::size_t limit) -> answer<std::string> {
    GLOVE_TRY(const auto record, sessions_.record(session_id));
    auto subject = subject_of(record, exposure_id);
    if (!subject) return unavailable(std::move(subject).error());
    auto found = images_.changes.find(session_id, exposure_id);
    if (!found) {
        const std::unique_lock held{reading_, patience_with_others};
        if (!held)
            return unavailable({.code = errc::timed_out,
                                .step = "retained.busy",
                                .detail = "another image is being read",
                                .remedy = "ask again"});
        found = images_.changes.find(session_id, exposure_id); // somebody else may have read it
        if (!found) {
            if (!images_.store) return unavailable(images_.store.error());
            auto read = find_changes(*images_.store, *std::move(subject), time_, {});
            if (!read) return unavailable(std::move(read).error());
            found = *std::move(read);
            images_.changes.keep(found);
        }
    }
    return or_refuse(container::change_page(*found, offset, limit),
                     error_code::retained_changes_unavailable);
}

} // namespace glove::control
