// The record of a copy that ends with the session stands in a file system of its own, which nobody
// sees and which is gone with its descriptor.
#include "control/host_filesystems.hpp"
#include <algorithm>
#include <fcntl.h>

namespace glove::control {

namespace {

constexpr std::uint64_t page = 4096;
// What the kernel keeps of an inode is not counted as its content, so there is a bound of its own.
constexpr std::uint64_t least_inodes = 4096, most_inodes = 1U << 20U;

[[nodiscard]] auto inodes_for(std::uint64_t bytes, std::uint64_t copied) -> std::uint64_t {
    return std::clamp(bytes / page, least_inodes, most_inodes) + copied;
}

[[nodiscard]] auto of_grant(error why, const std::string& alias) {
    why.detail = "the grant " + alias + ": " + why.detail;
    return std::unexpected(std::move(why));
}

[[nodiscard]] auto copy(const granted_path& grant, sys::fd_ref into, sys::fd_ref records,
                        const std::string& record, container::lasts how_long,
                        const container::tree_patience& patience,
                        std::function<result<>()> settle = {}) -> result<> {
    const auto done =
        container::copy_source({.source = grant.pin,
                                .into = into,
                                .records = records,
                                .record = record,
                                .source_identity_digest = grant.source_identity_digest,
                                .limits = {.bytes = grant.max_bytes},
                                .how_long = how_long,
                                .settle = std::move(settle)},
                               patience);
    if (!done) return std::unexpected(done.error());
    return {};
}

[[nodiscard]] auto receipt_of(const container::change_set& of) -> retained_change_receipt {
    return {.exposure_id = of.subject.exposure_id,
            .generation = of.subject.generation,
            .scope_digest = of.subject.scope_digest,
            .source_identity_digest = of.subject.source_identity_digest,
            .baseline_tree_digest = of.baseline_tree_digest,
            .staged_tree_digest = of.staged_tree_digest,
            .manifest_digest = of.manifest_digest,
            .created = of.created,
            .modified = of.modified,
            .renamed = of.renamed,
            .removed = of.removed,
            .before_bytes = of.before_bytes,
            .after_bytes = of.after_bytes};
}

} // namespace

session_filesystems::~session_filesystems() {
    if (used_ || unused_images_.empty()) return;
    written_.clear(); // an image in use is not removed
    for (const auto& alias : unused_images_) (void)images_->store->remove(session_id_, alias);
}

auto check_means(const shared_images& images, const std::vector<granted_path>& grants) -> result<> {
    for (const auto& grant : grants)
        if (grant.access == supervisor::access_kind::retained_write && !images.store)
            return of_grant(images.store.error(), grant.alias);
    return {};
}

// An image that is there may be of an attempt that was cut short, which goes on; or of an earlier
// session, which wrote to it.
auto session_filesystems::make_image(const granted_path& grant, sys::fd_ref entry,
                                     const container::tree_patience& patience) -> result<> {
    auto& store = *images_->store;
    GLOVE_TRY(const auto before, store.list());
    const bool existed = std::ranges::any_of(before, [&](const auto& one) {
        return one.session_id == session_id_ && one.alias == grant.alias;
    });
    GLOVE_TRY(const auto known, find_copy(store, session_id_, grant.alias));
    if (known && !is_of(*known, created_at_ms_))
        return fail(errc::conflict, "prepare.image",
                    "an earlier session of the id " + session_id_ + " left an image of it",
                    "use another id, or remove the image when its changes are not needed any more");
    if (!existed || known) unused_images_.push_back(grant.alias);
    GLOVE_TRY(auto made, store.make(session_id_, grant.alias, grant.max_bytes, entry));
    written_.push_back({grant.alias, true, grant.exposure, std::move(made.files)});
    auto& files = written_.back().files;
    GLOVE_CHECK(files.attended(*time_, patience.deadline, [&] {
        return copy(grant, files.content(), store.root(),
                    container::session_images::record_name(session_id_, grant.alias),
                    container::lasts::for_good, patience, [&files] { return files.settle(); });
    }));
    if (existed && !known) unused_images_.push_back(grant.alias); // it was empty
    return {};
}

auto session_filesystems::make_copy(const granted_path& grant, sys::fd_ref entry,
                                    const container::tree_patience& patience) -> result<> {
    if (grant.access == supervisor::access_kind::retained_write)
        return make_image(grant, entry, patience);
    GLOVE_TRY(auto made,
              container::make_scratch(grant.max_bytes,
                                      inodes_for(grant.max_bytes, container::most_tree_entries)));
    GLOVE_TRY(const auto records,
              container::make_scratch(2 * container::most_copy_record_bytes, 16));
    written_.push_back({grant.alias, false, grant.exposure, std::move(made)});
    return copy(grant, written_.back().files.content(), records.content(), "copy",
                container::lasts::until_reboot, patience);
}

auto session_filesystems::make(std::uint64_t scratch_bytes, const std::vector<granted_path>& grants,
                               sys::fd_ref entry, std::chrono::nanoseconds deadline) -> result<> {
    GLOVE_TRY(auto scratch, container::make_scratch(scratch_bytes, inodes_for(scratch_bytes, 0)));
    scratch_.emplace(std::move(scratch));
    deadline_ = deadline;
    const container::tree_patience patience{.time = *time_, .deadline = deadline};
    for (const auto& grant : grants)
        if (grant.is_written())
            if (auto made = make_copy(grant, entry, patience); !made)
                return of_grant(std::move(made).error(), grant.alias);
    return {};
}

auto session_filesystems::take_scratch() -> result<sys::unique_fd> {
    return scratch_->take_mount();
}

auto session_filesystems::take_mount(const granted_path& of) -> result<sys::unique_fd> {
    const auto found = std::ranges::find(written_, of.alias, &written::alias);
    if (found == written_.end())
        return fail(errc::wrong_state, "files.mount", "nothing was made for " + of.alias);
    sys::unique_fd out;
    GLOVE_CHECK(found->files.attended(*time_, deadline_, [&]() -> result<> {
        // A file stands alone in the directory that holds its copy.
        const std::string name{of.is_directory() ? "" : container::single_file_name};
        GLOVE_TRY(out, found->files.take_mount(name));
        return {};
    }));
    return out;
}

auto session_filesystems::home() const -> result<sys::unique_fd> {
    return sys::open_beneath(scratch_->content(), "home/agent", O_RDONLY | O_DIRECTORY);
}

void session_filesystems::begin_use() {
    used_ = true;
    scratch_->begin_use();
    for (auto& one : written_) one.files.begin_use();
}

auto session_filesystems::use() -> result<container::filesystem_use> {
    GLOVE_TRY(auto out, scratch_->use());
    for (auto& one : written_) {
        GLOVE_TRY(const auto more, one.files.use());
        out.bytes += more.bytes;
        out.refused = out.refused || more.refused;
    }
    return out;
}

void session_filesystems::conclude_image(written& one, std::stop_token stop,
                                         retained_remains& out) {
    const auto trouble = [&](error why) {
        out.troubles.push_back(of_grant(std::move(why), one.alias).error());
    };
    if (auto closed = one.files.close(*time_, time_->monotonic() + patience_with_files); !closed)
        trouble(std::move(closed).error());
    if (!one.exposure) return;
    auto found = find_changes(*images_->store,
                              {.session_id = session_id_,
                               .exposure_id = one.alias,
                               .generation = one.exposure->generation,
                               .scope_digest = one.exposure->scope_digest,
                               .source_identity_digest = {}},
                              *time_, stop);
    if (!found) return trouble(std::move(found).error());
    out.changes.push_back(receipt_of(**found));
    images_->changes.keep(*std::move(found));
}

auto session_filesystems::conclude(std::stop_token stop) -> retained_remains {
    retained_remains out;
    for (auto& one : written_) {
        if (one.is_image) {
            conclude_image(one, stop, out);
        } else if (auto closed = one.files.close(*time_, time_->monotonic() + patience_with_files);
                   !closed) {
            out.troubles.push_back(std::move(closed).error());
        }
    }
    std::ranges::sort(out.changes, {}, &retained_change_receipt::exposure_id);
    return out;
}

} // namespace glove::control
