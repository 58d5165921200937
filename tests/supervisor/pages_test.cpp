// The reference page against the field tables, its examples against the reader, and the seeds of
// the fuzz targets, which must get past the first check to be of use.
#include "policy_scene.hpp"
#include "supervisor/bundle_fields.hpp"
#include "supervisor/exposure_fields.hpp"
#include "supervisor/plan_fields.hpp"
#include "supervisor/session_policy_fields.hpp"
#include <gtest/gtest.h>
#include <support/folder.hpp>

namespace {

using namespace glove;
using namespace glove::supervisor;

auto source(const std::string& path) -> std::string {
    return test::content_of(std::string{GLOVE_SOURCE} + "/" + path);
}
auto page() -> std::string { return source("docs/session-policy.md"); }

auto bounds(const wire::shape& form, const std::string& unit) -> std::string {
    return std::to_string(form.min) + " to " + std::to_string(form.max) + unit;
}
auto words_for(const wire::shape& form) -> std::string {
    using enum wire::json::kind;
    switch (form.type) {
    case integer:
        if (form.max < UINT64_MAX) return "integer, " + bounds(form, "");
        return form.min == 0 ? "integer, any" : "integer, from " + std::to_string(form.min);
    case boolean: return "true or false";
    case array: return "list of " + bounds(form, "");
    case object: return "object";
    case string:
        if (form.grammar == "choice") return "word";
        return "`" + std::string{form.grammar} + "`, " + bounds(form, " bytes");
    default: return "anything";
    }
}

// The first three cells of each row.
template<class T, std::size_t N> auto rows_of(const wire::fields<T, N>& table)
    -> std::vector<std::string> {
    std::vector<std::string> out;
    for (const auto& row : table)
        out.push_back("| `" + std::string{row.name} + "` | " +
                      (row.presence == wire::need::required ? "yes" : "no") + " | " +
                      words_for(row.form) + " |");
    return out;
}
auto rows_in_page(const std::string& name) -> std::vector<std::string> {
    const auto text = page();
    auto at = text.find("<!-- fields: " + name + " -->\n");
    std::vector<std::string> out;
    if (at == text.npos) return out;
    for (at = text.find('\n', at) + 1; text[at] == '|'; at = text.find('\n', at) + 1) {
        auto end = at;
        for (int bar = 0; bar < 3; ++bar) end = text.find('|', end + 1);
        out.push_back(text.substr(at, end + 1 - at));
    }
    if (out.size() > 2) out.erase(out.begin(), out.begin() + 2); // head and line
    return out;
}

TEST(Page, SaysOfEachMemberWhatItsTableSays) {
    const auto same = [](const std::string& name, const auto& table) {
        EXPECT_EQ(rows_in_page(name), rows_of(table)) << name;
    };
    same("session_rules", session_rules_fields);
    same("runtime_template", template_fields);
    same("launch", launch_fields);
    same("adoption", adoption_fields);
    same("path_alias", alias_fields);
    same("alias_access", alias_access_fields);
    same("destination", destination_fields);
    same("resource_profile", profile_fields);
    same("egress_policy", egress_policy_fields);
    same("egress_target", egress_target_fields);
    same("secret_mount", secret_mount_fields);
    same("bundle_document", bundle_fields);
    same("bundle_entry", bundle_entry_fields);
    same("exposure_rules", exposure_rules_fields);
    same("exposure_root", root_fields);
    same("exposure_mode", mode_fields);
}

auto example(const std::string& name) -> std::string {
    const auto text = page();
    const std::string fence = "```json\n";
    const auto at = text.find(fence, text.find("<!-- example: " + name + " -->"));
    return text.substr(at + fence.size(), text.find("```", at + fence.size()) - at - fence.size());
}

TEST(Page, HasExamplesThatLoad) {
    const test::folder place;
    const auto at = [](std::string text, const std::string& from, const std::string& to) {
        return text.replace(text.find(from), from.size(), to);
    };
    const auto rules = parse_session_rules(example("session_rules"));
    ASSERT_TRUE(rules) << rules.error().detail;
    const auto sessions =
        place.file("sessions.json",
                   at(example("session_rules"), "/srv/project", place.directory("project")), 0600);
    EXPECT_TRUE(session_policy::load(sessions));
    const auto exposures =
        place.file("exposures.json",
                   at(example("exposure_rules"), "/srv/work", place.directory("work")), 0600);
    const auto loaded = exposure_policy::load(exposures);
    EXPECT_TRUE(loaded) << loaded.error().detail;
}

TEST(Seeds, AreAccepted) {
    for (const auto* name : {"version_1", "version_2", "refinement"}) {
        const auto out =
            decode_plan(source("fuzz/seeds/session_plan/" + std::string{name} + ".json"));
        EXPECT_TRUE(out) << name << out.error().detail;
    }
    const auto rules = parse_session_rules(source("fuzz/seeds/session_policy/whole.json"));
    EXPECT_TRUE(rules) << rules.error().detail;
    const std::string place = "fuzz/seeds/exposure_policy/";
    EXPECT_TRUE(parse_exposure_rules(source(place + "roots.json")));
    EXPECT_TRUE(decode_create(source(place + "create.json")));
    EXPECT_TRUE(decode_revoke(source(place + "revoke.json")));
    EXPECT_TRUE(decode_catalog_entry(source(place + "shown.json")));
    EXPECT_TRUE(decode_exposure_record(source(place + "record.json")));
}

} // namespace
