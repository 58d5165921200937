// One field table, one digest by the rule of the journal's own chain.
#include "journal/snapshot.hpp"
#include <array>
#include <glove/wire/crypto.hpp>
#include <glove/wire/digest.hpp>
#include <glove/wire/fields.hpp>
#include <limits>

namespace glove::journal {

namespace {

struct form {
    std::string kind;
    std::uint64_t generation = 0;
    std::uint64_t sequence = 0;
    std::string previous_hash;
    std::uint64_t live_records = 0;
    std::uint64_t live_bytes = 0;
    std::string live_digest;
    std::string this_hash;
};

constexpr std::string_view beginning = R"({"kind":"journal_snapshot_v1",)";
constexpr std::string_view kind_name = "journal_snapshot_v1";
constexpr std::array kind_words{wire::word<std::string_view>{kind_name, kind_name}};
constexpr auto most = std::numeric_limits<std::uint64_t>::max();

constexpr auto rows =
    wire::table(wire::row<&form::kind, wire::choice<kind_words>{}>("kind"),
                wire::row<&form::generation, wire::integer{2, most}>("generation"),
                wire::row<&form::sequence, wire::integer{0, most - 1}>("sequence"),
                wire::row<&form::previous_hash, wire::hex64>("previous_hash"),
                wire::row<&form::live_records, wire::integer{0, most}>("live_records"),
                wire::row<&form::live_bytes, wire::integer{0, most}>("live_bytes"),
                wire::row<&form::live_digest, wire::hex64>("live_digest"),
                wire::row<&form::this_hash, wire::hex64>("this_hash"));

[[nodiscard]] auto digest_of(const form& what, std::string_view header, record_reader& reader)
    -> result<std::string> {
    wire::digest_encoder out;
    out.str("glove.journal.snapshot").u8(1).str(header);
    out.u64(what.generation).u64(what.sequence).str(what.previous_hash);
    out.u64(what.live_records).u64(what.live_bytes).str(what.live_digest);
    GLOVE_TRY(const auto bytes, out.bytes());
    return reader.authenticate(bytes);
}

[[nodiscard]] auto form_of(const snapshot& what) -> form {
    return {.kind = std::string{kind_name},
            .generation = what.generation,
            .sequence = what.base.sequence,
            .previous_hash = what.base.digest,
            .live_records = what.live_records,
            .live_bytes = what.live_bytes,
            .live_digest = what.live_digest,
            .this_hash = std::string(64, '0')};
}

} // namespace

auto is_snapshot(std::string_view payload) noexcept -> bool {
    return payload.starts_with(beginning);
}

auto encode(const snapshot& what, std::string_view header, record_reader& reader)
    -> result<std::string> {
    auto out = form_of(what);
    GLOVE_TRY(out.this_hash, digest_of(out, header, reader));
    return wire::encode(out, rows);
}

auto decode_snapshot(std::string_view payload, std::string_view header, record_reader& reader)
    -> result<snapshot> {
    GLOVE_TRY(const auto read, wire::decode_and_compare(payload, rows));
    const auto& in = read.data;
    GLOVE_TRY(const auto own, digest_of(in, header, reader));
    if (!wire::equal_in_constant_time(own, in.this_hash) || !read.is_as_encoded)
        return fail(errc::corrupt, "journal.snapshot", "its digest is not that of its content");
    return snapshot{.generation = in.generation,
                    .base = {.sequence = in.sequence, .digest = in.previous_hash},
                    .live_records = in.live_records,
                    .live_bytes = in.live_bytes,
                    .live_digest = in.live_digest};
}

} // namespace glove::journal
