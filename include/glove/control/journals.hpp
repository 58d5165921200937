// The journals of the control plane for somebody who only looks: which kind a file is, and a reader
// that checks each record as the service does when it opens the journal.
//
// Guarantees: a record that is shown was read strictly and has the digest of its content; with
// receipts, the HMAC of the key. Nothing is shown of a record that is refused.
#pragma once
#include <cstdint>
#include <functional>
#include <glove/base/error.hpp>
#include <glove/control/receipt.hpp>
#include <glove/journal/format.hpp>
#include <glove/journal/record_reader.hpp>
#include <glove/journal/storage.hpp>
#include <memory>
#include <string>
#include <string_view>

namespace glove::control {

enum class journal_kind : std::uint8_t { sessions, receipts, exposures };
[[nodiscard]] auto to_string(journal_kind of) noexcept -> std::string_view;

// By the magic. Steps: journal.absent, journal.header, and those of the storage.
[[nodiscard]] auto kind_of(journal::storage& store) -> result<journal_kind>;

struct seen_record {
    std::uint64_t sequence = 0;
    std::string_view payload; // JSON, lives as long as the call
    std::string summary;      // for people, of identifiers and words alone
    journal::origin from{};
};
using record_viewer = std::function<void(const seen_record&)>;

struct journal_view {
    journal::settings how;
    std::unique_ptr<journal::record_reader> reader;
};
// Receipts need the key that they were made with, which must outlive the view. Step: journal.key.
[[nodiscard]] auto view_journal(journal_kind kind, const audit_key* key, record_viewer show)
    -> result<journal_view>;

} // namespace glove::control
