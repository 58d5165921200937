// `glove journal`. Looking never writes; a repair says what it will do and does it when it is told
// to.
#include "cli/control_process/output.hpp"
#include "cli/control_words.hpp"
#include "cli/options.hpp"
#include <algorithm>
#include <chrono>
#include <glove/base/text.hpp>
#include <glove/control/journals.hpp>
#include <glove/journal/file_storage.hpp>
#include <glove/journal/inspect.hpp>
#include <glove/sys/files.hpp>
#include <glove/wire/json_writer.hpp>
#include <thread>

namespace glove::cli {

namespace {

using control::seen_record;
namespace json = wire::json;

struct looked_at {
    control::journal_kind kind{};
    journal::inspection found;
};

[[nodiscard]] auto key_of(const journal_words& words) -> result<std::optional<control::audit_key>> {
    if (words.key.empty()) return std::nullopt;
    GLOVE_TRY(auto key, control::audit_key::load(words.key));
    return std::optional{std::move(key)};
}

[[nodiscard]] auto opened(const std::string& file, journal::access how)
    -> result<journal::file_storage> {
    GLOVE_TRY(const auto path, sys::absolute(file));
    const auto slash = path.rfind('/');
    auto store = journal::file_storage::open(path.substr(0, std::max<std::size_t>(slash, 1)),
                                             path.substr(slash + 1), how);
    if (!store && store.error().step == "journal.locked" && store.error().remedy.empty())
        store.error().remedy = "stop gloved first";
    return store;
}

[[nodiscard]] auto in_file(const std::string& file, error why) -> std::unexpected<error> {
    why.detail = file + (why.detail.empty() ? "" : ": ") + why.detail;
    return std::unexpected(std::move(why));
}

[[nodiscard]] auto look(journal::storage& store, const control::audit_key* key,
                        const control::record_viewer& show) -> result<looked_at> {
    looked_at out;
    GLOVE_TRY(out.kind, control::kind_of(store));
    GLOVE_TRY(const auto view, control::view_journal(out.kind, key, show));
    GLOVE_TRY(out.found, journal::inspect(store, view.how, *view.reader));
    return out;
}

// A service that is writing leaves half a record for a moment.
[[nodiscard]] auto look_calmly(const std::string& file, const control::audit_key* key)
    -> result<looked_at> {
    constexpr int tries = 5;
    for (int i = 1;; ++i) {
        GLOVE_TRY(auto store, opened(file, journal::access::read));
        GLOVE_TRY(auto out, look(store, key, {}));
        if (out.found.cut_bytes == 0 || i == tries) return out;
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
}

// --- words for what was found ---

[[nodiscard]] auto word_of(journal::witnessed of) -> std::string_view {
    switch (of) {
    case journal::witnessed::unknown: return "unknown";
    case journal::witnessed::whole: return "whole";
    case journal::witnessed::lost: return "lost";
    case journal::witnessed::other: return "other";
    case journal::witnessed::unreadable: return "unreadable";
    }
    return "unknown";
}

[[nodiscard]] auto tail_text(const journal::inspection& found) -> std::string {
    const auto bytes =
        std::to_string(found.cut_bytes) + (found.cut_bytes == 1 ? " byte" : " bytes");
    return bytes + " behind record " + std::to_string(found.found.head.sequence) + ", from byte " +
           std::to_string(found.found.bytes) + " on, " +
           (found.zeros ? "were never written" : "are the beginning of one") +
           ", and nobody was told of them";
}
[[nodiscard]] auto witness_text(const journal::inspection& found) -> std::string {
    const auto last = std::to_string(found.found.head.sequence);
    const auto told = std::to_string(found.acknowledged.sequence);
    switch (found.witness) {
    case journal::witnessed::lost:
        return "record " + told + " was acknowledged, and the last that is there is " + last;
    case journal::witnessed::other:
        return "record " + told + " is not the one that was acknowledged";
    case journal::witnessed::unreadable:
        return "the witness cannot be read, so records that were acknowledged may be gone";
    default: return {};
    }
}
[[nodiscard]] auto complaints(const journal::inspection& found) -> std::vector<std::string> {
    std::vector<std::string> out;
    if (found.defect) out.push_back(std::string{found.defect->step} + ": " + found.defect->detail);
    if (found.cut_bytes > 0) out.push_back(tail_text(found));
    if (!found.defect && found.witness > journal::witnessed::whole)
        out.push_back(witness_text(found));
    return out;
}

[[nodiscard]] auto text_of(const std::string& file, const looked_at& what) -> std::string {
    const auto& found = what.found;
    std::string out = printable(file) + ": " + std::string{to_string(what.kind)} + ", generation " +
                      std::to_string(found.found.generation) + ", " +
                      std::to_string(found.found.records.size()) + " records, " +
                      std::to_string(found.file_bytes) + " bytes, " +
                      (found.sound() ? "sound" : "NOT SOUND") + "\n";
    for (const auto& each : complaints(found)) out += "  " + printable(each) + "\n";
    if (found.sound())
        out += "  the last record is " + std::to_string(found.found.head.sequence) + ", " +
               found.found.head.digest + "\n";
    return out;
}

void write_mark(json::writer& w, std::string_view name, const journal::mark& of) {
    w.begin_object(name);
    w.member("sequence", of.sequence);
    w.member("digest", of.digest);
    w.end_object();
}

[[nodiscard]] auto json_of(const std::string& file, const looked_at& what) -> std::string {
    const auto& found = what.found;
    std::string out;
    {
        json::writer w{out};
        w.begin_object();
        w.member("schema_version", 1);
        w.member("file", file);
        w.member("kind", to_string(what.kind));
        w.member("sound", found.sound());
        w.member("generation", found.found.generation);
        w.member("records", found.found.records.size());
        w.member("bytes", found.file_bytes);
        write_mark(w, "base", found.found.base);
        write_mark(w, "head", found.found.head);
        w.member("witness", word_of(found.witness));
        w.member("cut_bytes", found.cut_bytes);
        w.begin_array("complaints");
        for (const auto& each : complaints(found)) w.element(each);
        w.end_array();
        w.end_object();
    }
    return out + "\n";
}

// --- actions ---

auto verify(const journal_words& words) -> result<int> {
    GLOVE_TRY(const auto key, key_of(words));
    bool all = true;
    for (const auto& file : words.words) {
        auto what = look_calmly(file, key ? &*key : nullptr);
        if (!what) return in_file(file, std::move(what).error());
        all = all && what->found.sound();
        GLOVE_CHECK(print(words.json ? json_of(file, *what) : text_of(file, *what)));
    }
    return all ? done : answer_is_no;
}

auto show(const journal_words& words) -> result<int> {
    GLOVE_TRY(const auto key, key_of(words));
    bool all = true;
    for (const auto& file : words.words) {
        GLOVE_TRY(auto store, opened(file, journal::access::read));
        result<> printed;
        const auto what = look(store, key ? &*key : nullptr, [&](const seen_record& one) {
            if (!printed) return;
            printed = print(words.json ? std::string{one.payload} + "\n"
                                       : std::to_string(one.sequence) + "  " +
                                             printable(one.summary) + "\n");
        });
        GLOVE_CHECK(printed);
        if (!what) return in_file(file, what.error());
        for (const auto& each : complaints(what->found)) note(file + ": " + each);
        all = all && what->found.sound();
    }
    return all ? done : answer_is_no;
}

// What stands in the way of a repair, or nothing.
[[nodiscard]] auto cannot(const journal_words& words, const looked_at& what) -> std::string {
    if (what.found.defect) return "no repair mends that; put a copy back that is whole";
    if (what.found.witness > journal::witnessed::whole && !words.accept_loss)
        return "a repair goes on without what is gone only with --cut --accept-loss";
    return {};
}

auto repair(const journal_words& words) -> result<int> {
    if (words.accept_loss && !words.cut)
        return wrong_usage("--accept-loss goes with --cut", journal_usage);
    GLOVE_TRY(const auto key, key_of(words));
    const auto& file = words.words.front();
    GLOVE_TRY(auto store, opened(file, journal::access::write));
    auto what = look(store, key ? &*key : nullptr, {});
    if (!what) return in_file(file, std::move(what).error());
    if (what->found.sound()) {
        GLOVE_CHECK(print(printable(file) + ": there is nothing to repair\n"));
        return done;
    }
    GLOVE_CHECK(print(text_of(file, *what)));
    if (const auto why = cannot(words, *what); !why.empty()) {
        note(why);
        return answer_is_no;
    }
    if (!words.cut) {
        note("nothing was changed; to cut off " + std::to_string(what->found.cut_bytes) +
             " bytes: glove journal repair --cut " + file);
        return answer_is_no;
    }
    GLOVE_TRY(const auto view, control::view_journal(what->kind, key ? &*key : nullptr, {}));
    GLOVE_TRY(const auto mended, journal::repair(store, view.how, *view.reader,
                                                 words.accept_loss ? journal::loss::accepted
                                                                   : journal::loss::refused));
    GLOVE_CHECK(print(printable(file) + ": cut off " + std::to_string(mended.cut_bytes) +
                      " bytes; the last record is " + std::to_string(mended.found.head.sequence) +
                      "\n"));
    return done;
}

} // namespace

auto run_journal(const invocation& call) -> int {
    journal_words words;
    CLI::App app;
    declare(app, words);
    if (const auto ended = parse_options(app, journal_usage, call)) return *ended;
    words.words.insert(words.words.end(), call.command.begin(), call.command.end());
    constexpr std::size_t any = 1000;
    const std::vector<action_row<journal_words>> rows{
        {"verify", verify, 1, any, "one file or more", {"--json"}},
        {"show", show, 1, any, "one file or more", {"--json"}},
        {"repair", repair, 1, 1, "one file", {"--cut", "--accept-loss"}},
    };
    return status_of(act(app, "journal", journal_usage, rows, words, {"--key"}));
}

} // namespace glove::cli
