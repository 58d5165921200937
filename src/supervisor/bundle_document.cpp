// Bundles as text: their fields, and that their digests are those of what they hold.
#include "supervisor/bundle_fields.hpp"
#include "supervisor/refusal.hpp"
#include <glove/wire/crypto.hpp>

namespace glove::supervisor {

namespace {

[[nodiscard]] auto check_rules(const bundle_document& of) -> result<> {
    const wire::place root;
    const auto list = member_of(root, "entries");
    if (const auto i = first_repeated(
            of.entries, [](const bundle_entry& e) -> std::string_view { return e.key; });
        i < of.entries.size()) {
        const auto at = element_of(list, i);
        return refuse(errc::invalid_input, "bundle.key", member_of(at, "key"), "appears twice");
    }
    for (std::size_t i = 0; i < of.entries.size(); ++i) {
        GLOVE_TRY(const auto digest, wire::sha256_hex(of.entries[i].content));
        if (digest == of.entries[i].content_digest) continue;
        const auto at = element_of(list, i);
        return refuse(errc::corrupt, "bundle.content", member_of(at, "content_digest"),
                      "is not the digest of the content");
    }
    return {};
}

} // namespace

auto decode_bundle(std::string_view text) -> result<bundle_document> {
    GLOVE_TRY(auto out, wire::decode_text<bundle_document>(
                            text, bundle_fields,
                            {.bytes = most_bundle_bytes, .string_bytes = most_bundle_content + 1}));
    GLOVE_CHECK(check_rules(out));
    return out;
}

auto encode(const bundle_document& what) -> result<std::string> {
    GLOVE_CHECK(wire::check_object(what, bundle_fields, wire::place{}));
    GLOVE_CHECK(check_rules(what));
    GLOVE_TRY(auto out, wire::encode(what, bundle_fields));
    if (out.size() > most_bundle_bytes)
        return fail(errc::limit_exceeded, "bundle.total", "a bundle has at most 16777216 bytes");
    return out;
}

} // namespace glove::supervisor
