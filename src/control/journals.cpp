// Each kind of journal differs in its codec alone. Nothing here writes, and no record is shown that
// was not read strictly first.
#include "control/receipt_record.hpp"
#include "control/session_book.hpp"
#include <algorithm>
#include <array>
#include <glove/control/journals.hpp>
#include <glove/control/session_record.hpp>
#include <glove/supervisor/exposure_ledger.hpp>
#include <glove/wire/crypto.hpp>
#include <optional>
#include <utility>

namespace glove::control {

namespace {

struct kind_row {
    journal_kind kind;
    std::string_view name;
    const journal::format* form;
};
constexpr std::array kinds{
    kind_row{journal_kind::sessions, "sessions", &journal::session_registry},
    kind_row{journal_kind::receipts, "receipts", &journal::receipts},
    kind_row{journal_kind::exposures, "exposures", &journal::exposures},
};
[[nodiscard]] auto row_of(journal_kind kind) noexcept -> const kind_row& {
    return *std::ranges::find(kinds, kind, &kind_row::kind);
}

// What differs between the kinds.
class exposure_records {
public:
    using record = supervisor::exposure_record;
    [[nodiscard]] static auto decode(std::string_view payload) -> result<record> {
        return supervisor::decode_exposure_record(payload);
    }
    [[nodiscard]] static auto facts_of(const record& of) -> journal::facts {
        return {of.sequence, of.previous_hash, of.record_hash, 0};
    }
    [[nodiscard]] static auto summary_of(const record& of) -> std::string {
        if (const auto* made = std::get_if<supervisor::exposure_created>(&of.fact))
            return "create " + made->descriptor.exposure_id + " generation " +
                   std::to_string(made->descriptor.generation);
        const auto& gone = std::get<supervisor::exposure_revoked>(of.fact);
        return "revoke " + gone.exposure_id + " generation " + std::to_string(gone.generation);
    }
    // That it follows from those before it can be told only while all of these are there.
    [[nodiscard]] auto apply(const record& of, journal::origin from) -> result<> {
        if (from == journal::origin::snapshot) ledger_.reset();
        return ledger_ && of.sequence == ++applied_ ? ledger_->apply(of) : result<>{};
    }
    [[nodiscard]] static auto authenticate(std::string_view bytes) -> result<std::string> {
        GLOVE_TRY(const auto digest, wire::sha256(bytes));
        return wire::to_hex(digest);
    }

private:
    std::optional<supervisor::exposure_ledger> ledger_{std::in_place};
    std::uint64_t applied_ = 0;
};

class session_records {
public:
    using record = session_record;
    [[nodiscard]] static auto decode(std::string_view payload) -> result<record> {
        return decode_session_record(payload);
    }
    [[nodiscard]] static auto facts_of(const record& of) -> journal::facts {
        return {of.sequence, of.previous_hash, of.this_hash,
                static_cast<std::uint8_t>(of.intent ? 1 : 0)};
    }
    [[nodiscard]] static auto summary_of(const record& of) -> std::string {
        return of.operation + " " + of.session_id + " " + std::string{to_string(of.state)};
    }
    // By the rules of the registry, so that what is called sound can be opened.
    [[nodiscard]] auto apply(const record& of, journal::origin) -> result<> {
        GLOVE_TRY(const auto verdict, book_.judge(of));
        book_.note(of, verdict);
        return {};
    }
    [[nodiscard]] static auto authenticate(std::string_view bytes) -> result<std::string> {
        return exposure_records::authenticate(bytes);
    }

private:
    session_book book_{nullptr};
};

class receipt_records {
public:
    using record = chained_receipt;
    explicit receipt_records(const audit_key& key) : codec_{key} {}
    [[nodiscard]] auto decode(std::string_view payload) const -> result<record> {
        return codec_.decode(payload);
    }
    [[nodiscard]] static auto facts_of(const record& of) -> journal::facts {
        return receipt_codec::facts_of(of);
    }
    [[nodiscard]] static auto summary_of(const record& of) -> std::string {
        if (const auto* plain = std::get_if<resource_envelope>(&of.envelope))
            return plain->session_id + " " + std::string{to_string(plain->receipt.cause)};
        const auto& compared = std::get<refinement_envelope>(of.envelope);
        return compared.session_id + " " + std::string{to_string(compared.receipt.resource.cause)} +
               " refinement";
    }
    [[nodiscard]] static auto apply(const record&, journal::origin) -> result<> { return {}; }
    [[nodiscard]] auto authenticate(std::string_view bytes) const -> result<std::string> {
        return codec_.authenticate(bytes);
    }

private:
    receipt_codec codec_;
};

template<class Records> class viewer final : public journal::record_reader {
public:
    viewer(Records of, record_viewer show) : records_{std::move(of)}, show_{std::move(show)} {}
    [[nodiscard]] auto read(std::string_view payload) -> result<journal::facts> override {
        GLOVE_TRY(last_, records_.decode(payload));
        payload_ = payload;
        return Records::facts_of(*last_);
    }
    [[nodiscard]] auto apply(journal::origin from) -> result<> override {
        GLOVE_CHECK(records_.apply(*last_, from));
        if (show_)
            show_(
                {Records::facts_of(*last_).sequence, payload_, Records::summary_of(*last_), from});
        return {};
    }
    [[nodiscard]] auto authenticate(std::string_view bytes) -> result<std::string> override {
        return records_.authenticate(bytes);
    }

private:
    Records records_;
    record_viewer show_;
    std::optional<typename Records::record> last_;
    std::string payload_; // kept until `apply`
};

template<class Records> [[nodiscard]] auto made(Records of, record_viewer show)
    -> std::unique_ptr<journal::record_reader> {
    return std::make_unique<viewer<Records>>(std::move(of), std::move(show));
}

} // namespace

auto to_string(journal_kind of) noexcept -> std::string_view { return row_of(of).name; }

auto kind_of(journal::storage& store) -> result<journal_kind> {
    GLOVE_TRY(const auto size, store.size());
    if (!size) return fail(errc::not_found, "journal.absent", "there is no such file");
    std::array<char, 16> bytes{};
    GLOVE_TRY(const auto got, store.read(0, bytes));
    const std::string_view begin{bytes.data(), got};
    const auto row = std::ranges::find_if(
        kinds, [&](const kind_row& each) { return begin.starts_with(each.form->magic); });
    if (row != kinds.end()) return row->kind;
    return fail(errc::invalid_input, "journal.header",
                "the file does not begin as any journal does");
}

auto view_journal(journal_kind kind, const audit_key* key, record_viewer show)
    -> result<journal_view> {
    journal_view out{.how = {.form = *row_of(kind).form}, .reader = {}};
    switch (kind) {
    case journal_kind::sessions: out.reader = made(session_records{}, std::move(show)); break;
    case journal_kind::exposures: out.reader = made(exposure_records{}, std::move(show)); break;
    case journal_kind::receipts:
        if (key == nullptr)
            return fail(errc::invalid_input, "journal.key",
                        "receipts can be told from forged ones only with the audit key",
                        "name its file with --key");
        out.how.text = key->id();
        out.reader = made(receipt_records{*key}, std::move(show));
        break;
    }
    return out;
}

} // namespace glove::control
