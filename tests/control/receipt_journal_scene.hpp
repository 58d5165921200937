// A controller with a copy of the chain, and journals over disks that tests break.
#pragma once
#include "receipt_scene.hpp"
#include "refusals.hpp"
#include "supervisor/policy_scene.hpp"
#include <glove/control/receipt_journal.hpp>
#include <support/failing_disk.hpp>
#include <support/memory_storage.hpp>

namespace glove::test {

template<class Storage, class Files>
auto journal_on(Files& files, std::uint64_t file_bytes = 0, control::audit_key key = usual_key())
    -> control::receipt_journal {
    return {[&files]() -> result<std::unique_ptr<journal::storage>> {
                return std::make_unique<Storage>(files);
            },
            std::move(key), file_bytes};
}
inline auto journal_on(failing_disk& disk, std::uint64_t file_bytes = 0)
    -> control::receipt_journal {
    return journal_on<failing_storage>(disk, file_bytes);
}
inline auto journal_on(memory_files& files, std::uint64_t file_bytes = 0)
    -> control::receipt_journal {
    return journal_on<memory_storage>(files, file_bytes);
}

// Archives what it is shown, after it has verified it, and acknowledges.
struct controller {
    control::audit_key key = usual_key();
    control::receipt_anchor anchor = beginning(key);
    std::vector<std::string> seen{}; // the sessions

    auto take(const control::receipt_page& page) -> bool {
        auto resource = page.envelopes.begin();
        auto refinement = page.refinement_envelopes.begin();
        const auto next = [&](auto& at) {
            auto moved = verify(*at, key, anchor);
            if (!moved) return false;
            anchor = *std::move(moved);
            seen.push_back(at->session_id);
            ++at;
            return true;
        };
        while (resource != page.envelopes.end() || refinement != page.refinement_envelopes.end()) {
            const bool first =
                refinement == page.refinement_envelopes.end() ||
                (resource != page.envelopes.end() && resource->sequence < refinement->sequence);
            if (!(first ? next(resource) : next(refinement))) return false;
        }
        return true;
    }
    auto archive(control::receipt_journal& from, std::size_t limit = 1000)
        -> control::answer<void> {
        for (;;) {
            const auto page = from.page(anchor, limit);
            if (!page) return std::unexpected(page.error());
            if (!take(*page))
                return control::refuse(control::error_code::audit_reconciliation_failed,
                                       errc::corrupt, "controller.chain");
            if (!page->has_more) return {};
        }
    }
    auto reconcile(control::receipt_journal& with) -> control::answer<void> {
        if (auto done = archive(with); !done) return done;
        if (auto done = with.acknowledge(anchor); !done) return std::unexpected(done.error());
        return {};
    }
};

inline auto put_receipt(control::receipt_journal& into, const std::string& session)
    -> control::answer<control::terminal_envelope> {
    auto room = into.reserve(usual_plan(), usual_rules());
    if (!room) return std::unexpected(room.error());
    return into.append(session, digits('a'), usual_receipt(), *std::move(room));
}

template<class T> auto why(const control::answer<T>& out) -> std::string {
    if (out) return "";
    return std::string{to_string(out.error().code)} + " " + std::string{out.error().why.step} +
           " " + out.error().why.detail;
}

} // namespace glove::test
