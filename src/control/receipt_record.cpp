// A receipt in its journal: one tagged envelope in a frame, or a bare one of old files. The chain
// is checked here; who is believed is up to the journal's owner.
#include "control/receipt_record.hpp"

#include "control/refinement_fields.hpp"
#include <glove/journal/format.hpp>
#include <glove/wire/crypto.hpp>

namespace glove::control {

namespace {

// Each alternative as its one member; what is in a frame has just one of them.
struct tagged {
    std::string kind;
    std::optional<resource_envelope> resource;
    std::optional<refinement_envelope> refinement;
};
constexpr std::string_view resource_kind = "resource_enforcement_v1";
constexpr std::string_view refinement_kind = "refinement_evaluation_v1";
constexpr wire::word<std::string_view> kind_words[] = {{resource_kind, resource_kind},
                                                       {refinement_kind, refinement_kind}};
constexpr auto tagged_fields = wire::table(
    wire::row<&tagged::kind, wire::choice<kind_words>{}>("kind"),
    wire::row<&tagged::resource, wire::record<resource_envelope_fields>{}>("resource"),
    wire::row<&tagged::refinement, wire::record<refinement_envelope_fields>{}>("refinement"));

[[nodiscard]] auto untagged(tagged in) -> result<chained_receipt> {
    if (in.resource.has_value() != (in.kind == resource_kind) ||
        in.refinement.has_value() != (in.kind == refinement_kind))
        return fail(errc::corrupt, "receipt.kind", "the envelope is not of the kind that is named");
    if (in.resource) return chained_receipt{*std::move(in.resource)};
    return chained_receipt{*std::move(in.refinement)};
}

// A receipt, and whether its text is the one that `encode` makes of it.
struct read_receipt {
    chained_receipt receipt;
    bool is_as_encoded = false;
};

constexpr wire::json::limits record_limits{.bytes = journal::receipts.most.record_bytes};

[[nodiscard]] auto read_text(std::string_view payload) -> result<read_receipt> {
    read_receipt out;
    // The fields of an old one have no kind, and each of the others has one.
    if (auto old = wire::take_text(payload, resource_envelope_fields, record_limits)) {
        out.receipt = {.envelope = std::move(old->data), .bare = true};
        out.is_as_encoded = old->is_as_encoded;
        return out;
    }
    if (auto taken = wire::take_text(payload, tagged_fields, record_limits)) {
        GLOVE_TRY(out.receipt, untagged(std::move(taken->data)));
        out.is_as_encoded = taken->is_as_encoded;
        return out;
    }
    GLOVE_TRY(const auto tree, wire::json::read(payload, record_limits));
    if (tree.find("kind") != nullptr) {
        GLOVE_TRY(auto in, wire::decode(tree, tagged_fields));
        GLOVE_TRY(out.receipt, untagged(std::move(in)));
    } else {
        GLOVE_TRY(out.receipt.envelope, wire::decode(tree, resource_envelope_fields));
        out.receipt.bare = true;
    }
    GLOVE_TRY(const auto canonical, encode(out.receipt));
    out.is_as_encoded = canonical == payload;
    return out;
}

[[nodiscard]] auto check_rules_of(const chained_receipt& of) -> result<> {
    return std::visit([](const auto& e) { return check_rules(e, wire::place{}); }, of.envelope);
}

} // namespace

auto encode(const chained_receipt& what) -> result<std::string> {
    if (what.bare) {
        if (const auto* old = std::get_if<resource_envelope>(&what.envelope)) return encode(*old);
        return fail(errc::invalid_input, "receipt.kind", "no refinement was ever without its kind");
    }
    tagged out;
    if (const auto* resource = std::get_if<resource_envelope>(&what.envelope)) {
        out.kind = resource_kind;
        out.resource = *resource;
    } else {
        out.kind = refinement_kind;
        out.refinement = std::get<refinement_envelope>(what.envelope);
    }
    GLOVE_CHECK(check_rules_of(what));
    return wire::encode(out, tagged_fields);
}

auto decode_chained_receipt(std::string_view payload) -> result<chained_receipt> {
    GLOVE_TRY(auto read, read_text(payload));
    GLOVE_CHECK(check_rules_of(read.receipt));
    if (!read.is_as_encoded)
        return fail(errc::corrupt, "receipt.form", "the record is not in its canonical form");
    return std::move(read.receipt);
}

auto receipt_codec::decode(std::string_view payload) const -> result<chained_receipt> {
    GLOVE_TRY(auto out, decode_chained_receipt(payload));
    const auto check = [&](const auto& envelope) -> result<> {
        if (envelope.key_id != key_->id())
            return fail(errc::corrupt, "receipt.key", "the record is another key's");
        GLOVE_TRY(const auto own, envelope_hmac(envelope, *key_));
        if (!wire::equal_in_constant_time(own, envelope.this_hmac))
            return fail(errc::corrupt, "receipt.hmac",
                        "the HMAC of record " + std::to_string(envelope.sequence) +
                            " is not that of its content");
        return {};
    };
    GLOVE_CHECK(std::visit(check, out.envelope));
    return out;
}

auto receipt_codec::facts_of(const chained_receipt& of) -> journal::facts {
    return std::visit(
        [](const auto& e) { return journal::facts{e.sequence, e.previous_hmac, e.this_hmac, 0}; },
        of.envelope);
}

auto receipt_codec::seal(chained_receipt& what, const journal::mark& last) const
    -> result<std::string> {
    what.bare = false;
    const auto place = [&](auto& envelope) -> result<> {
        envelope.schema_version = 1;
        envelope.sequence = last.sequence + 1;
        envelope.key_id = key_->id();
        envelope.previous_hmac = last.digest;
        GLOVE_TRY(envelope.receipt_digest, receipt_digest(envelope.receipt));
        GLOVE_TRY(envelope.this_hmac, envelope_hmac(envelope, *key_));
        return {};
    };
    GLOVE_CHECK(std::visit(place, what.envelope));
    return encode(what);
}

} // namespace glove::control
