// What the receipt journal knows while it is open. Every member but `reconciled` and those that
// never change is looked at with the mutex held.
#pragma once
#include "control/receipt_record.hpp"
#include <array>
#include <atomic>
#include <glove/control/receipt_journal.hpp>
#include <glove/wire/digest.hpp>
#include <map>
#include <mutex>
#include <set>

namespace glove::control {

struct receipt_room::held {
    held(std::shared_ptr<receipt_journal::state> of, journal::reservation taken, std::size_t size);
    held(const held&) = delete;
    auto operator=(const held&) -> held& = delete;
    ~held();

    std::shared_ptr<receipt_journal::state> journal;
    journal::reservation room;
    std::size_t bytes;
};

struct receipt_journal::state {
    using chain = journal::typed_log<receipt_codec>;
    using subject = wire::digest256; // of session, plan and profile

    state(make_storage with, audit_key of, std::uint64_t most)
        : make{std::move(with)}, key{std::move(of)}, file_bytes{most} {}

    [[nodiscard]] static auto subject_of(std::string_view session_id, std::string_view plan_digest,
                                         std::string_view profile_digest) -> result<subject>;
    [[nodiscard]] auto remember(const chained_receipt& what) -> result<>;
    [[nodiscard]] auto known(const subject& whose) -> result<std::optional<terminal_envelope>>;
    // On an error it is to be closed.
    [[nodiscard]] auto open(const receipt_anchor& by) -> result<>;
    void close();
    // That the anchor is a place of this chain which the file still shows.
    [[nodiscard]] auto require_place(const receipt_anchor& of) -> result<>;
    [[nodiscard]] auto anchor() const -> receipt_anchor;
    [[nodiscard]] auto read_page(std::uint64_t after, std::size_t limit) -> result<receipt_page>;
    [[nodiscard]] auto rotate() -> result<>;
    template<class Receipt>
    [[nodiscard]] auto put(envelope_of<Receipt> what, receipt_room::held& from)
        -> result<terminal_envelope>;
    // When it is not clear any more what the disk holds, nothing may be started.
    void note_trouble();

    const make_storage make;
    const audit_key key;
    const std::uint64_t file_bytes;
    std::atomic<bool> reconciled = false;

    std::mutex mutex;
    std::unique_ptr<journal::storage> store;
    std::optional<chain> log;
    std::uint64_t acknowledged = 0; // up to here a controller has said that it has it
    // Only where each is: there are tens of thousands, and hardly one is ever asked for.
    std::map<subject, std::uint64_t> by_subject;
    std::set<receipt_room::held*> rooms;
};

} // namespace glove::control
