// The field tables of a bundle, in canonical order. The tests break each row of them.
#pragma once
#include "supervisor/words.hpp"
#include <glove/supervisor/bundle_store.hpp>

namespace glove::supervisor {

inline constexpr wire::word<bundle_kind> bundle_kind_words[] = {{"skill", bundle_kind::skill}};

inline constexpr auto bundle_entry_fields = wire::table(
    wire::row<&bundle_entry::key, wire::skill_key>("key"),
    wire::row<&bundle_entry::kind, wire::choice<bundle_kind_words>{}>("kind"),
    wire::row<&bundle_entry::content_digest, wire::hex64>("content_digest"),
    wire::row<&bundle_entry::content, wire::text{wire::grammar::no_nul, 1, most_bundle_content}>(
        "content"));

inline constexpr auto bundle_fields = wire::table(
    wire::row<&bundle_document::schema_version, version_1>("schema_version"),
    wire::row<&bundle_document::source_library_ref, wire::token>("source_library_ref"),
    wire::row<&bundle_document::source_manifest_digest, wire::hex64>("source_manifest_digest"),
    wire::row<&bundle_document::entries,
              wire::list<wire::record<bundle_entry_fields>{}>{0, most_bundle_entries}>("entries"));

} // namespace glove::supervisor
