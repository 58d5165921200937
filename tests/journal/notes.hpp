// A record type for the tests of the log: a text, and whether a guest sent it. Its digest is
// SHA-256 or, with a key, HMAC; like every codec it accepts only what it would write.
#pragma once
#include <glove/journal/typed_log.hpp>
#include <glove/wire/crypto.hpp>
#include <glove/wire/digest.hpp>
#include <glove/wire/fields.hpp>
#include <ostream>
#include <string>
#include <support/failing_disk.hpp>
#include <vector>

namespace glove::journal {
inline void PrintTo(const format& what, std::ostream* out) { *out << what.name; }
} // namespace glove::journal

namespace glove::test {

struct note {
    std::uint64_t sequence = 0;
    bool guest = false;
    std::string text;
    std::string previous_hash = std::string(64, '0');
    std::string this_hash = std::string(64, '0');
};

inline constexpr auto note_rows =
    wire::table(wire::row<&note::sequence, wire::integer{1}>("sequence"),
                wire::row<&note::guest, wire::flag{}>("guest"),
                wire::row<&note::text, wire::text{wire::grammar::utf8, 0, 1UL << 20}>("text"),
                wire::row<&note::previous_hash, wire::hex64>("previous_hash"),
                wire::row<&note::this_hash, wire::hex64>("this_hash"));

class note_codec {
public:
    using record = note;
    explicit note_codec(std::string key = {}) : key_{std::move(key)} {}

    [[nodiscard]] auto decode(std::string_view payload) const -> result<note> {
        GLOVE_TRY(auto out, wire::decode_text(payload, note_rows, {.bytes = 2UL << 20}));
        GLOVE_TRY(const auto canonical, wire::encode(out, note_rows));
        if (canonical != payload) return fail(errc::corrupt, "note.form");
        GLOVE_TRY(const auto own, digest_of(out));
        if (!wire::equal_in_constant_time(own, out.this_hash))
            return fail(errc::corrupt, "note.digest", "the digest is another one");
        return out;
    }
    [[nodiscard]] auto facts_of(const note& of) const -> journal::facts {
        return {of.sequence, of.previous_hash, of.this_hash,
                static_cast<std::uint8_t>(of.guest ? 1 : 0)};
    }
    [[nodiscard]] auto seal(note& what, const journal::mark& last) const -> result<std::string> {
        what.sequence = last.sequence + 1;
        what.previous_hash = last.digest;
        GLOVE_TRY(what.this_hash, digest_of(what));
        return wire::encode(what, note_rows);
    }
    [[nodiscard]] auto authenticate(std::string_view bytes) const -> result<std::string> {
        if (key_.empty()) {
            GLOVE_TRY(const auto digest, wire::sha256(bytes));
            return wire::to_hex(digest);
        }
        GLOVE_TRY(const auto digest, wire::hmac_sha256(key_, bytes));
        return wire::to_hex(digest);
    }

private:
    [[nodiscard]] auto digest_of(const note& of) const -> result<std::string> {
        wire::digest_encoder out;
        out.str("test.note").u8(1).u64(of.sequence).boolean(of.guest);
        out.str(of.text).str(of.previous_hash);
        GLOVE_TRY(const auto bytes, out.bytes());
        return authenticate(bytes);
    }
    std::string key_;
};

static_assert(journal::record_codec<note_codec>);
using note_log = journal::typed_log<note_codec>;

// Each journal of the table with a codec of its kind.
inline auto settings_of(const journal::format& form) -> journal::settings {
    return {.form = form,
            .text = std::string(form.text_bytes, 'a'),
            .missing = journal::absence::creates};
}
inline auto codec_of(const journal::format& form) -> note_codec {
    return note_codec{form.text_bytes > 0 ? "a key of the test" : ""};
}
inline constexpr std::array all_formats{journal::session_registry, journal::receipts,
                                        journal::exposures};

struct opened_notes {
    std::unique_ptr<failing_storage> store;
    std::vector<std::string> texts{}; // that were read back
    std::vector<journal::origin> origins{};
    std::optional<note_log> log{};
    error why{}; // when there is no log
};

inline auto open_notes(failing_disk& disk, const journal::settings& how,
                       const std::optional<journal::mark>& vouched = {}) -> opened_notes {
    opened_notes out{.store = std::make_unique<failing_storage>(disk)};
    auto opened = note_log::open(
        *out.store, how, codec_of(how.form),
        [&](note&& what, journal::origin from) -> result<> {
            out.texts.push_back(std::move(what.text));
            out.origins.push_back(from);
            return {};
        },
        vouched);
    if (opened) out.log.emplace(*std::move(opened));
    else out.why = opened.error();
    return out;
}

// Reads records without keeping them.
class note_reader final : public journal::record_reader {
public:
    explicit note_reader(note_codec of) : codec_{std::move(of)} {}
    auto read(std::string_view payload) -> result<journal::facts> override {
        GLOVE_TRY(last_, codec_.decode(payload));
        return codec_.facts_of(last_);
    }
    auto apply(journal::origin) -> result<> override {
        texts.push_back(last_.text);
        return {};
    }
    auto authenticate(std::string_view bytes) -> result<std::string> override {
        return codec_.authenticate(bytes);
    }
    std::vector<std::string> texts;

private:
    note_codec codec_;
    note last_;
};

} // namespace glove::test
