// An image that is looked at again shows what is on its disk, so what is told once is told for
// ever.
#include "control/host_images.hpp"
#include <algorithm>
#include <fcntl.h>
#include <glove/sys/files.hpp>

namespace glove::control {

auto change_cache::find(std::string_view session_id, std::string_view exposure_id) -> found {
    const std::lock_guard held{lock_};
    const auto at = std::ranges::find_if(sets_, [&](const found& one) {
        return one->subject.session_id == session_id && one->subject.exposure_id == exposure_id;
    });
    if (at == sets_.end()) return {};
    std::rotate(sets_.begin(), at, at + 1);
    return sets_.front();
}

void change_cache::keep(found what) {
    const std::lock_guard held{lock_};
    std::erase_if(sets_, [&](const found& one) {
        return one->subject.session_id == what->subject.session_id &&
               one->subject.exposure_id == what->subject.exposure_id;
    });
    sets_.push_front(std::move(what));
    if (sets_.size() > most_sets) sets_.pop_back();
}

namespace {

[[nodiscard]] auto read(container::session_filesystem& files, const container::copy_record& record,
                        const container::tree_patience& patience)
    -> result<container::session_tree> {
    const container::tree_limits limits{.bytes = record.max_bytes};
    return record.tree.directory ? container::read_tree(files.content(), limits, patience)
                                 : container::read_single(files.content(), limits, patience);
}

} // namespace

auto find_copy(container::session_images& images, const std::string& session_id,
               const std::string& alias) -> result<std::optional<known_copy>> {
    const auto name = container::session_images::record_name(session_id, alias);
    GLOVE_TRY(auto record, container::find_copy_record(images.root(), name));
    if (!record) return std::optional<known_copy>{};
    GLOVE_TRY(const auto file, sys::open_beneath(images.root(), name, O_PATH | O_NOFOLLOW));
    GLOVE_TRY(const auto facts, sys::inspect(file));
    const auto ms = std::max<std::int64_t>(facts.written_ns, 0) / 1'000'000;
    return std::optional{known_copy{*std::move(record), static_cast<std::uint64_t>(ms)}};
}

auto is_of(const known_copy& copy, std::uint64_t created_at_ms) noexcept -> bool {
    return copy.record.state == container::copy_state::begun || copy.written_ms >= created_at_ms;
}

auto find_changes(container::session_images& images, container::change_subject subject,
                  const sys::clock& time, std::stop_token stop) -> result<change_cache::found> {
    const auto name =
        container::session_images::record_name(subject.session_id, subject.exposure_id);
    GLOVE_TRY(const auto record, container::find_copy_record(images.root(), name));
    if (!record || record->state != container::copy_state::whole)
        return fail(errc::not_found, "retained.copy",
                    "the session " + subject.session_id + " has no whole copy of " +
                        subject.exposure_id);
    GLOVE_TRY(auto opened, images.look(subject.session_id, subject.exposure_id, stop));
    const auto now = time.monotonic();
    const auto staged = read(opened.files, *record,
                             {.time = time, .deadline = now + patience_with_trees, .stop = stop});
    const auto closed = opened.files.close(time, time.monotonic() + patience_with_files);
    if (!staged) return std::unexpected(staged.error());
    GLOVE_CHECK(closed);
    subject.source_identity_digest = record->source_identity_digest;
    subject.max_bytes = record->max_bytes;
    GLOVE_TRY(auto changes, container::changes_between(subject, record->tree, *staged));
    return std::make_shared<const container::change_set>(std::move(changes));
}

} // namespace glove::control
