// The reference page against the tables that the registry works with, and the fixtures against the
// program that made them.
#include "control/session_fields.hpp"
#include "session_scene.hpp"
#include <gmock/gmock.h>
#include <support/folder.hpp>

namespace {

using namespace glove;
using namespace glove::test;

auto page() -> std::string {
    return content_of(std::string{GLOVE_SOURCE} + "/docs/journal-format.md");
}

// The first `cells` cells of each row.
auto rows_in_page(const std::string& name, int cells) -> std::vector<std::string> {
    const auto text = page();
    const auto mark = "<!-- control: " + name + " -->\n";
    auto at = text.find(mark);
    std::vector<std::string> out;
    if (at == text.npos) return out;
    for (at += mark.size(); text[at] == '|'; at = text.find('\n', at) + 1) {
        auto end = at;
        for (int bar = 0; bar < cells; ++bar) end = text.find('|', end + 1);
        out.push_back(text.substr(at, end + 1 - at));
    }
    if (out.size() > 2) out.erase(out.begin(), out.begin() + 2); // head and line
    return out;
}
auto quoted(std::string_view what) -> std::string { return "`" + std::string{what} + "`"; }

auto words_for(const wire::shape& form) -> std::string {
    const auto bounds = std::to_string(form.min) + " to " + std::to_string(form.max);
    switch (form.type) {
    case wire::json::kind::integer:
        if (form.max < UINT64_MAX) return "integer, " + bounds;
        return form.min == 0 ? "integer" : "integer, from " + std::to_string(form.min);
    case wire::json::kind::array: return "list of " + bounds;
    case wire::json::kind::object: return "object";
    default:
        if (form.grammar == "choice") return "word";
        return quoted(form.grammar) + ", " + bounds + " bytes";
    }
}
template<class T, std::size_t N> auto rows_of(const wire::fields<T, N>& table)
    -> std::vector<std::string> {
    std::vector<std::string> out;
    for (const auto& row : table)
        out.push_back("| " + quoted(row.name) +
                      (row.presence == wire::need::required ? "" : ", optional") + " | " +
                      words_for(row.form) + " |");
    return out;
}

TEST(SessionPage, SaysWhatARecordHolds) {
    EXPECT_EQ(rows_in_page("record", 2), rows_of(session_fields));
    EXPECT_EQ(rows_in_page("cgroup_identity", 2), rows_of(cgroup_fields));
    EXPECT_EQ(rows_in_page("filesystem_identity", 2), rows_of(filesystem_fields));
    EXPECT_EQ(rows_in_page("partition", 2), rows_of(partition_fields));
    EXPECT_EQ(rows_in_page("managed_runtime_identity", 2), rows_of(managed_fields));
    EXPECT_EQ(rows_in_page("observation_intent", 2), rows_of(intent_fields));
}

TEST(SessionPage, SaysWhichStepsThereAre) {
    std::vector<std::string> wanted;
    for (const auto& row : transitions)
        wanted.push_back("| " + (row.from ? quoted(to_string(*row.from)) : "nothing") + " | " +
                         quoted(operation_name(row.on, session_kind::plain)) + " | " +
                         quoted(to_string(row.to)) + " |");
    EXPECT_EQ(rows_in_page("transitions", 3), wanted);
    std::vector<std::string> names;
    for (const auto& row : operations)
        if (row.kind != session_kind::plain)
            names.push_back("| " + quoted(row.name) + " | " +
                            quoted(operation_name(row.event, session_kind::plain)) + " |");
    EXPECT_EQ(rows_in_page("operations", 2), names);
    std::vector<std::string> codes;
    for (const auto& row : failures)
        codes.push_back("| " + quoted(row.code) + " | " + (row.preparing ? "yes" : "no") + " | " +
                        (row.starting ? "yes" : "no") + " | " + (row.running ? "yes" : "no") +
                        " |");
    EXPECT_EQ(rows_in_page("failures", 4), codes);
}

} // namespace
