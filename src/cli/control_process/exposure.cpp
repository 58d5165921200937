// `glove exposure`: an operator's words to requests. What comes back holds no path.
#include "cli/columns.hpp"
#include "cli/control_process/service.hpp"
#include "cli/options.hpp"
#include <glove/base/numbers.hpp>
#include <glove/base/text.hpp>
#include <glove/base/times.hpp>
#include <glove/supervisor/exposure.hpp>
#include <glove/sys/files.hpp>
#include <glove/wire/json_writer.hpp>

namespace glove::cli {

namespace {

using supervisor::catalog_entry;
using supervisor::exposure_mode;
namespace json = wire::json;

constexpr std::uint64_t hour_secs = 3600;

// --- words to modes and back ---

[[nodiscard]] auto mode_named(const std::string& text) -> result<exposure_mode> {
    using namespace supervisor;
    const auto wrong = [&] {
        return wrong_usage("--allow " + text + ": not a mode", "read, copy=SIZE or retain=SIZE");
    };
    if (text == "read")
        return exposure_mode{access_kind::read, materialization_kind::bind, 0,
                             cleanup_kind::retain};
    const auto cut = text.find('=');
    const auto bytes = cut == text.npos ? std::nullopt : parse_size(text.substr(cut + 1));
    if (!bytes) return wrong();
    const auto name = text.substr(0, cut);
    if (name == "copy")
        return exposure_mode{access_kind::ephemeral_write, materialization_kind::copy, *bytes,
                             cleanup_kind::remove};
    if (name == "retain")
        return exposure_mode{access_kind::retained_write, materialization_kind::copy, *bytes,
                             cleanup_kind::retain};
    return wrong();
}

[[nodiscard]] auto word_of(const exposure_mode& mode) -> std::string {
    switch (mode.access) {
    case supervisor::access_kind::ephemeral_write: return "copy=" + size_text(mode.max_bytes);
    case supervisor::access_kind::retained_write: return "retain=" + size_text(mode.max_bytes);
    default: return std::string{to_string(mode.access)};
    }
}

[[nodiscard]] auto joined(const std::vector<std::string>& words) -> std::string {
    std::string out;
    for (const auto& word : words) out += (out.empty() ? "" : " ") + printable(word);
    return out;
}

[[nodiscard]] auto time_of(std::uint64_t ms) -> std::string {
    constexpr std::uint64_t latest = 9'000'000'000'000; // further is not a date
    return ms > latest ? "never" : utc_text(static_cast<std::int64_t>(ms) * 1'000'000);
}

[[nodiscard]] auto table_of(const std::vector<catalog_entry>& all) -> std::string {
    std::vector<std::array<std::string, 7>> rows{
        {"NAME", "GENERATION", "STATE", "EXPIRES", "ALLOWS", "TEMPLATES", "LABEL"}};
    for (const auto& each : all) {
        std::vector<std::string> modes;
        for (const auto& mode : each.allowed_modes) modes.push_back(word_of(mode));
        rows.push_back({printable(each.exposure_id), std::to_string(each.generation),
                        std::string{to_string(each.state)}, time_of(each.expires_at_ms),
                        joined(modes), joined(each.allowed_runtime_template_ids),
                        printable(each.display_label)});
    }
    return in_columns(rows);
}

// --- results ---

[[nodiscard]] auto entry_of(const json::value& data) -> result<catalog_entry> {
    return supervisor::decode_catalog_entry(json::to_text(data));
}
// The member `name` of a result of schema version 1.
[[nodiscard]] auto member_of(const json::value& result_data, std::string_view name)
    -> result<json::value> {
    const auto* const version = result_data.find("schema_version");
    const auto* const found = result_data.find(name);
    if (version == nullptr || version->as_unsigned() != 1 || found == nullptr)
        return fail(errc::corrupt, "client.reply", "it has no " + std::string{name});
    return *found;
}

[[nodiscard]] auto one_of(const std::string& text) -> result<catalog_entry> {
    GLOVE_TRY(const auto tree, json::read(text));
    GLOVE_TRY(const auto data, member_of(tree, "exposure"));
    return entry_of(data);
}
[[nodiscard]] auto all_of(const std::string& text) -> result<std::vector<catalog_entry>> {
    GLOVE_TRY(const auto tree, json::read(text));
    GLOVE_TRY(const auto data, member_of(tree, "exposures"));
    const auto* const list = data.as_array();
    if (list == nullptr) return fail(errc::corrupt, "client.reply", "exposures is no list");
    std::vector<catalog_entry> out;
    for (const auto& each : *list) {
        GLOVE_TRY(out.emplace_back(), entry_of(each));
    }
    return out;
}

// --- actions ---

[[nodiscard]] auto requested(const exposure_words& words) -> result<supervisor::create_exposure> {
    supervisor::create_exposure out;
    out.exposure_id = words.words[0];
    GLOVE_TRY(out.host_path, sys::absolute(words.words[1]));
    while (out.host_path.size() > 1 && out.host_path.ends_with('/')) out.host_path.pop_back();
    if (words.root.empty())
        return wrong_usage("create needs --root", "name a root_id of the exposure policy");
    out.root_id = words.root;
    if (words.templates.empty())
        return wrong_usage("create needs --template", "name a template of the session policy");
    out.allowed_runtime_template_ids = words.templates;
    out.display_label =
        words.label.empty() ? out.host_path.substr(out.host_path.rfind('/') + 1) : words.label;
    out.ttl_secs = words.ttl_ms == 0 ? hour_secs : words.ttl_ms / 1000;
    for (const auto& mode : words.modes) {
        GLOVE_TRY(out.allowed_modes.emplace_back(), mode_named(mode));
    }
    if (out.allowed_modes.empty()) {
        GLOVE_TRY(out.allowed_modes.emplace_back(), mode_named("read"));
    }
    return out;
}

[[nodiscard]] auto show_one(const result<control::remote_answer>& answer, bool as_json)
    -> result<int> {
    if (!answer) return std::unexpected(answer.error());
    if (!*answer) return told(answer->error());
    const auto entry = one_of(**answer);
    if (!entry) return strange_answer(entry.error().detail);
    GLOVE_CHECK(print(as_json ? printable_json(**answer) + "\n" : table_of({*entry})));
    return done;
}

auto create(const exposure_words& words) -> result<int> {
    GLOVE_TRY(auto wish, requested(words));
    auto text = supervisor::encode(wish);
    if (!text) return wrong_usage(text.error().detail, exposure_usage);
    GLOVE_TRY(const auto asks, service::of(words.service));
    return show_one(asks->change("create_path_exposure", *std::move(text), words.request_key),
                    words.service.json);
}

auto list(const exposure_words& words) -> result<int> {
    GLOVE_TRY(const auto asks, service::of(words.service));
    GLOVE_TRY(const auto answer, asks->ask("list_path_exposures"));
    if (!answer) return told(answer.error());
    const auto all = all_of(*answer);
    if (!all) return strange_answer(all.error().detail);
    GLOVE_CHECK(print(words.service.json ? printable_json(*answer) + "\n" : table_of(*all)));
    return done;
}

// The newest of this name that there is.
struct newest_or_refused {
    std::uint64_t generation = 0;
    std::optional<control::remote_error> refused = {};
};
[[nodiscard]] auto newest(const service& asks, const std::string& name)
    -> result<newest_or_refused> {
    GLOVE_TRY(const auto answer, asks.ask("list_path_exposures"));
    if (!answer) return newest_or_refused{0, answer.error()};
    const auto all = all_of(*answer);
    if (!all) return strange_answer(all.error().detail);
    std::uint64_t out = 0;
    for (const auto& each : *all)
        if (each.exposure_id == name) out = std::max(out, each.generation);
    if (out == 0)
        return fail(errc::not_found, "exposure.unknown", "there is no exposure " + name,
                    "glove exposure list");
    return newest_or_refused{.generation = out};
}

auto revoke(const exposure_words& words) -> result<int> {
    supervisor::revoke_exposure what{words.words[0], words.generation};
    GLOVE_TRY(const auto asks, service::of(words.service));
    if (what.generation == 0) {
        GLOVE_TRY(const auto found, newest(*asks, what.exposure_id));
        if (found.refused) return told(*found.refused);
        what.generation = found.generation;
    }
    auto text = supervisor::encode(what);
    if (!text) return wrong_usage(text.error().detail, exposure_usage);
    return show_one(asks->change("revoke_path_exposure", *std::move(text), words.request_key),
                    words.service.json);
}

} // namespace

auto run_exposure(const invocation& call) -> int {
    exposure_words words;
    CLI::App app;
    declare(app, words);
    if (const auto ended = parse_options(app, exposure_usage, call)) return *ended;
    words.words.insert(words.words.end(), call.command.begin(), call.command.end());
    const std::vector<action_row<exposure_words>> rows{
        {"create",
         create,
         2,
         2,
         "a name and a path",
         {"--root", "--label", "--allow", "--template", "--ttl", "--request-key"}},
        {"list", list, 0, 0, "no name", {}},
        {"revoke", revoke, 1, 1, "one name", {"--generation", "--request-key"}},
    };
    return status_of(act(app, "exposure", exposure_usage, rows, words, service_options()));
}

} // namespace glove::cli
