// Plans to sessions: what a plan is judged to be, and putting a session on record.
#include "cli/control_process/session_actions.hpp"
#include "cli/control_process/session_shown.hpp"
#include <glove/supervisor/plan.hpp>
#include <glove/sys/files.hpp>
#include <glove/wire/crypto.hpp>
#include <glove/wire/json.hpp>
#include <glove/wire/json_writer.hpp>

namespace glove::cli {

namespace json = wire::json;

namespace {

[[nodiscard]] auto plan_text(const std::string& file) -> result<std::string> {
    const auto limit = control::most_frame_bytes;
    auto text = file == "-" ? sys::read_all(sys::fd_ref::standard_input(), limit)
                            : sys::read_file(file, limit);
    if (!text) {
        text.error().detail = "the plan " + file + ": " + text.error().detail;
        return text;
    }
    if (const auto read = json::read(*text); !read)
        return fail(errc::invalid_input, "plan.json",
                    "the plan " + file + " is not JSON: " + read.error().detail);
    return text;
}

[[nodiscard]] auto own_digest(const std::string& file, const std::string& text)
    -> result<std::string> {
    const auto plan = supervisor::decode_plan(text);
    if (!plan)
        return fail(plan.error().code, "plan.form",
                    "the plan " + file + ": " + plan.error().detail);
    GLOVE_TRY(const auto canonical, supervisor::canonical_text(*plan));
    GLOVE_TRY(const auto digest, wire::sha256(canonical));
    return wire::to_hex(digest);
}

} // namespace

auto validate_plan(const session_words& words) -> result<int> {
    GLOVE_TRY(auto text, plan_text(words.words[0]));
    GLOVE_TRY(const auto digest, own_digest(words.words[0], text));
    GLOVE_TRY(const auto asks, service::of(words.service));
    GLOVE_TRY(const auto answer, asks->ask("validate_plan", std::move(text)));
    if (!answer) return told(answer.error());
    const auto tree = json::read(*answer);
    const auto* const revision = tree ? tree->find("policy_revision") : nullptr;
    if (revision == nullptr || !revision->as_unsigned())
        return strange_answer("it has no policy_revision");
    GLOVE_CHECK(print(words.service.json ? *answer + "\n"
                                         : "the plan is allowed by revision " +
                                               std::to_string(*revision->as_unsigned()) +
                                               " of the policy; its digest is " + digest + "\n"));
    return done;
}

auto create_session(const session_words& words) -> result<int> {
    GLOVE_TRY(const auto text, plan_text(words.words[1]));
    auto digest = words.digest;
    if (digest.empty()) {
        GLOVE_TRY(digest, own_digest(words.words[1], text));
    }
    std::string payload;
    {
        json::writer w{payload};
        w.begin_object();
        w.member("session_id", words.words[0]);
        w.member("controller_plan_digest", digest);
        w.key("plan");
        w.raw(text);
        w.end_object();
    }
    GLOVE_TRY(const auto asks, service::of(words.service));
    return show_session(asks->change("create_session", std::move(payload), words.request_key),
                        "create_session", words.service.json);
}

} // namespace glove::cli
