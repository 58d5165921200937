#include "run/description.hpp"
#include <algorithm>
#include <csignal>
#include <glove/wire/json.hpp>
#include <gmock/gmock.h>

namespace {

using namespace glove;
using container::access;
using container::entry_kind;
using container::origin;
using container::tree_entry;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using wire::json::value;

auto sample() -> container::plan {
    container::plan out;
    out.argv = {"agent", "--flag", "a \"b\"\n"};
    out.environment = {"PATH=/bin", "SECRET=hunter2", "EMPTY="};
    out.work_directory = "/desk";
    out.user = {.uid = 1000, .gid = 1001};
    out.network = container::network_tier::local;
    out.limits.wall_time = std::chrono::milliseconds{90'500};
    out.limits.output_bytes = 4096;
    out.scratch = {.bytes = 300UL << 20U, .inodes = 77};
    out.guard_search_complete = false;
    const auto add = [&](const char* path, entry_kind kind, origin from, access mode,
                         const char* text = "") {
        tree_entry entry{.path = path, .kind = kind, .origin = from, .mode = mode, .text = text};
        entry.identity = {.device = 5, .inode = 6, .type = 7};
        out.tree.push_back(std::move(entry));
    };
    add("/bin", entry_kind::link, origin::system, access::read, "usr/bin");
    add("/dev/null", entry_kind::device, origin::managed, access::read, "/dev/null");
    add("/etc/passwd", entry_kind::file, origin::managed, access::read, "content of passwd");
    add("/lookup", entry_kind::bind, origin::asked, access::read, "/lookup");
    add("/tmp", entry_kind::scratch, origin::managed, access::write);
    add("/usr", entry_kind::bind, origin::system, access::read, "/usr");
    add("/desk", entry_kind::bind, origin::asked, access::write, "/desk");
    add("/desk/.env", entry_kind::mask, origin::hidden, access::read);
    add("/desk/socket", entry_kind::mask, origin::guarded, access::read);
    add("/empty", entry_kind::directory, origin::managed, access::read);
    return out;
}

auto parsed(const std::string& text) -> value {
    EXPECT_TRUE(text.ends_with('\n'));
    auto out = wire::json::read(text);
    EXPECT_TRUE(out.has_value()) << text;
    return *std::move(out);
}

auto text_at(const value& object, std::string_view name) -> std::string {
    const auto* const found = object.find(name);
    return found == nullptr || found->as_string() == nullptr ? "(none)" : *found->as_string();
}

auto strings(const value& array) -> std::vector<std::string> {
    std::vector<std::string> out;
    for (const auto& element : *array.as_array()) out.push_back(*element.as_string());
    return out;
}

auto layer_names(const value& document) -> std::vector<std::string> {
    std::vector<std::string> out;
    for (const auto& layer : *document.find("layers")->as_array()) {
        out.push_back(text_at(layer, "name"));
        EXPECT_EQ(layer.find("requested")->as_bool(), true);
    }
    return out;
}

auto all_layers() -> std::vector<std::string> {
    std::vector<std::string> out;
    for (const auto& layer : container::requested_layers(container::plan{}))
        out.emplace_back(layer.name);
    return out;
}

TEST(ExplainJson, ItIsStrictJsonAndHoldsEveryLayer) {
    const auto document = parsed(run::explain_json(sample()));
    EXPECT_EQ(document.find("schema_version")->as_unsigned(), 1U);
    EXPECT_EQ(layer_names(document), all_layers());
    for (const auto& layer : *document.find("layers")->as_array())
        EXPECT_EQ(layer.find("armed"), nullptr); // nothing ran
}

TEST(ExplainJson, TheWholePlanIsInIt) {
    const auto document = parsed(run::explain_json(sample()));
    EXPECT_THAT(strings(*document.find("command")), ElementsAre("agent", "--flag", "a \"b\"\n"));
    EXPECT_EQ(text_at(document, "work_directory"), "/desk");
    EXPECT_EQ(document.find("uid")->as_unsigned(), 1000U);
    EXPECT_EQ(document.find("gid")->as_unsigned(), 1001U);
    EXPECT_EQ(text_at(document, "network"), "local");
    const auto& limits = *document.find("limits");
    EXPECT_EQ(limits.find("wall_time_ms")->as_unsigned(), 90'500U);
    EXPECT_EQ(limits.find("output_bytes")->as_unsigned(), 4096U);
    EXPECT_EQ(limits.find("scratch_bytes")->as_unsigned(), 300UL << 20U);
    EXPECT_EQ(limits.find("scratch_inodes")->as_unsigned(), 77U);
    EXPECT_EQ(document.find("guard_search_complete")->as_bool(), false);
    EXPECT_EQ(document.find("tree")->as_array()->size(), sample().tree.size());
}

TEST(ExplainJson, ValuesOfVariablesAndContentsOfFilesAreNotInIt) {
    const auto text = run::explain_json(sample());
    EXPECT_THAT(strings(*parsed(text).find("environment")), ElementsAre("PATH", "SECRET", "EMPTY"));
    EXPECT_THAT(text, Not(HasSubstr("hunter2")));
    EXPECT_THAT(text, Not(HasSubstr("content of passwd")));
    EXPECT_THAT(run::explain_text(sample()), Not(HasSubstr("hunter2")));
}

TEST(ExplainJson, AnEntryTellsWhatItIsAndWhereItComesFrom) {
    const auto document = parsed(run::explain_json(sample()));
    const auto& tree = *document.find("tree")->as_array();
    const auto entry = [&](std::string_view path) -> const value& {
        return *std::ranges::find_if(tree,
                                     [&](const auto& e) { return text_at(e, "path") == path; });
    };
    EXPECT_EQ(text_at(entry("/bin"), "kind"), "link");
    EXPECT_EQ(text_at(entry("/bin"), "target"), "usr/bin");
    EXPECT_EQ(entry("/bin").find("source"), nullptr);
    EXPECT_EQ(text_at(entry("/desk"), "kind"), "bind");
    EXPECT_EQ(text_at(entry("/desk"), "origin"), "asked");
    EXPECT_EQ(text_at(entry("/desk"), "access"), "write");
    EXPECT_EQ(text_at(entry("/desk"), "source"), "/desk");
    EXPECT_EQ(entry("/desk").find("device")->as_unsigned(), 5U);
    EXPECT_EQ(entry("/desk").find("inode")->as_unsigned(), 6U);
    EXPECT_EQ(text_at(entry("/lookup"), "access"), "read");
    EXPECT_EQ(text_at(entry("/usr"), "origin"), "system");
    EXPECT_EQ(text_at(entry("/desk/.env"), "kind"), "mask");
    EXPECT_EQ(text_at(entry("/desk/.env"), "origin"), "hidden");
    EXPECT_EQ(text_at(entry("/desk/socket"), "origin"), "guarded");
    EXPECT_EQ(text_at(entry("/dev/null"), "kind"), "device");
    EXPECT_EQ(text_at(entry("/tmp"), "kind"), "scratch");
    EXPECT_EQ(text_at(entry("/etc/passwd"), "kind"), "file");
    EXPECT_EQ(entry("/etc/passwd").find("source"), nullptr);
    EXPECT_EQ(text_at(entry("/empty"), "kind"), "directory");
}

TEST(ExplainJson, ALimitThatIsNotSetIsLeftOut) {
    auto plan = sample();
    plan.limits = {};
    const auto document = parsed(run::explain_json(plan));
    EXPECT_EQ(document.find("limits")->find("wall_time_ms"), nullptr);
    EXPECT_EQ(document.find("limits")->find("output_bytes"), nullptr);
}

// The lines below a title, up to the next empty line.
auto section(const std::string& text, const std::string& title) -> std::string {
    const auto at = text.find(title + "\n");
    if (at == std::string::npos) return "(no section)";
    const auto begin = at + title.size() + 1;
    return text.substr(begin, text.find("\n\n", begin) + 1 - begin);
}

TEST(ExplainText, EachListHoldsWhatItsTitleSays) {
    const auto text = run::explain_text(sample());
    EXPECT_EQ(section(text, "Can be changed (your files)"), "  /desk\n");
    EXPECT_EQ(section(text, "Can be read (your files)"), "  /lookup\n");
    EXPECT_EQ(section(text, "Hidden or masked"), "  /desk/.env\n  /desk/socket\n");
    EXPECT_EQ(section(text, "Can be read (system)"), "  /usr\n");
    EXPECT_EQ(section(text, "Private and writable, gone afterwards"), "  /tmp\n");
    EXPECT_EQ(section(text, "Devices"), "  /dev/null\n");
    EXPECT_EQ(section(text, "Environment"), "  PATH\n  SECRET\n  EMPTY\n");
    EXPECT_THAT(section(text, "Network"), HasSubstr("  local: "));
    EXPECT_THAT(section(text, "Limits"), HasSubstr("90500 ms"));
    EXPECT_THAT(section(text, "Limits"), HasSubstr("4096 bytes"));
    EXPECT_THAT(section(text, "Limits"), HasSubstr("300 MiB, 77 inodes"));
    std::string layers;
    for (const auto& name : all_layers()) layers += "  " + name + "\n";
    EXPECT_EQ(section(text, "Layers"), layers);
    EXPECT_TRUE(text.ends_with("Starts agent in /desk. Nothing was run.\n"));
}

TEST(ExplainText, AListThatIsEmptyHasNoTitle) {
    auto plan = sample();
    plan.tree.clear();
    const auto text = run::explain_text(plan);
    EXPECT_THAT(text, Not(HasSubstr("Can be")));
    EXPECT_THAT(text, Not(HasSubstr("Hidden")));
    EXPECT_THAT(text, HasSubstr("Environment\n"));
}

// --- the report

auto record_of(const container::plan& plan) -> run::run_record {
    run::run_record out;
    out.run = "abc";
    out.audit_log = "/state/abc.jsonl";
    out.plan = &plan;
    out.facts.layers = container::requested_layers(plan);
    for (auto& layer : out.facts.layers) layer.armed = true;
    out.started_ns = 10;
    out.ended_ns = 20;
    return out;
}

TEST(ReportJson, ARunThatEndedTellsHow) {
    const auto plan = sample();
    auto record = record_of(plan);
    record.ended =
        run::outcome{.cause = run::exit_cause::exited, .wait_status = 3 << 8, .output_bytes = {}};
    record.facts.layers.back().armed = false;
    const auto document = parsed(run::report_json(record));
    EXPECT_EQ(text_at(document, "run"), "abc");
    EXPECT_EQ(text_at(document, "audit_log"), "/state/abc.jsonl");
    EXPECT_EQ(document.find("started_ns")->as_signed(), 10);
    EXPECT_EQ(document.find("ended_ns")->as_signed(), 20);
    const auto& exit = *document.find("exit");
    EXPECT_EQ(text_at(exit, "cause"), "exited");
    EXPECT_EQ(exit.find("code")->as_unsigned(), 3U);
    EXPECT_EQ(exit.find("signal"), nullptr);
    EXPECT_EQ(exit.find("output_bytes"), nullptr);
    EXPECT_TRUE(document.find("limits_hit")->as_array()->empty());
    EXPECT_EQ(document.find("error"), nullptr);
    EXPECT_EQ(layer_names(document), all_layers());
    const auto& layers = *document.find("layers")->as_array();
    EXPECT_EQ(layers.front().find("armed")->as_bool(), true);
    EXPECT_EQ(layers.back().find("armed")->as_bool(), false);
    EXPECT_EQ(text_at(document, "work_directory"), "/desk"); // the plan is in it, too
}

TEST(ReportJson, ALimitThatEndedTheRunIsNamed) {
    const auto plan = sample();
    auto record = record_of(plan);
    for (const auto cause : {run::exit_cause::wall_time, run::exit_cause::output_bytes,
                             run::exit_cause::memory, run::exit_cause::cpu_time}) {
        record.ended = run::outcome{.cause = cause, .wait_status = SIGKILL, .output_bytes = 12};
        const auto document = parsed(run::report_json(record));
        EXPECT_THAT(strings(*document.find("limits_hit")),
                    ElementsAre(std::string{to_string(cause)}));
        EXPECT_EQ(document.find("exit")->find("signal")->as_unsigned(), 9U);
        EXPECT_EQ(document.find("exit")->find("code"), nullptr);
        EXPECT_EQ(document.find("exit")->find("output_bytes")->as_unsigned(), 12U);
    }
    record.ended->cause = run::exit_cause::terminated;
    EXPECT_TRUE(parsed(run::report_json(record)).find("limits_hit")->as_array()->empty());
}

TEST(ReportJson, AControlGroupIsToldAsTheKernelSaidAndWasUsed) {
    auto plan = sample();
    plan.limits.memory_bytes = 1U << 20U;
    plan.limits.processes = 8;
    plan.limits.cpu_hundredths = 50;
    plan.limits.cpu_time = std::chrono::milliseconds{1500};
    auto record = record_of(plan);
    EXPECT_EQ(parsed(run::report_json(record)).find("control_group"), nullptr);
    record.facts.enforced =
        container::enforced_limits{.keeper = container::group_keeper::delegation,
                                   .memory_max = "1048576",
                                   .memory_swap_max = "0",
                                   .memory_oom_group = "1",
                                   .pids_max = "9",
                                   .cpu_max = "50000 100000"};
    record.ended = run::outcome{
        .cause = run::exit_cause::cpu_time,
        .wait_status = SIGKILL,
        .output_bytes = {},
        .usage = container::group_usage{
            .cpu_us = 1'600'000, .memory_peak = 4096, .out_of_memory = 0, .processes_refused = 3}};
    const auto document = parsed(run::report_json(record));
    const auto& group = *document.find("control_group");
    EXPECT_EQ(text_at(group, "keeper"), "delegation");
    EXPECT_EQ(text_at(group, "memory_max"), "1048576");
    EXPECT_EQ(text_at(group, "cpu_max"), "50000 100000");
    for (const auto& [name, value] : {std::pair{"cpu_us", 1'600'000U},
                                      {"cpu_overrun_us", 100'000U},
                                      {"memory_peak_bytes", 4096U},
                                      {"out_of_memory", 0U},
                                      {"processes_refused", 3U}})
        EXPECT_EQ(group.find(name)->as_unsigned(), value) << name;
    EXPECT_EQ(document.find("limits")->find("cpu_hundredths")->as_unsigned(), 50U);
    record.ended->usage->cpu_us = 1'499'999;
    EXPECT_EQ(parsed(run::report_json(record))
                  .find("control_group")
                  ->find("cpu_overrun_us")
                  ->as_unsigned(),
              0U);
}

TEST(ReportJson, ARefusedRunTellsTheStep) {
    const auto plan = sample();
    auto record = record_of(plan);
    record.problem =
        error{.code = errc::not_permitted, .step = "mount.tree", .os = 1, .detail = "d"};
    const auto document = parsed(run::report_json(record));
    EXPECT_EQ(document.find("exit"), nullptr);
    const auto& problem = *document.find("error");
    EXPECT_EQ(text_at(problem, "code"), "not_permitted");
    EXPECT_EQ(text_at(problem, "step"), "mount.tree");
    EXPECT_EQ(problem.find("errno")->as_unsigned(), 1U);
    EXPECT_EQ(text_at(problem, "detail"), "d");
    EXPECT_EQ(problem.find("remedy"), nullptr);
    record.problem->remedy = "mend";
    EXPECT_EQ(text_at(*parsed(run::report_json(record)).find("error"), "remedy"), "mend");
}

TEST(CommandJson, ItHoldsTheArgumentsAndNothingElse) {
    EXPECT_EQ(run::command_json(sample()), R"({"argv":["agent","--flag","a \"b\"\n"]})");
}

TEST(CommandJson, OfAServerWhatMayBeASecretIsLeftOut) {
    auto plan = sample();
    plan.argv = {"server", "--token", "secret", "KEY=secret", "plain"};
    EXPECT_EQ(run::command_json(plan, true),
              R"({"argv":["server","--token","...","KEY=...","plain"]})");
    EXPECT_EQ(run::command_json(plan),
              R"({"argv":["server","--token","secret","KEY=secret","plain"]})");
}

} // namespace
