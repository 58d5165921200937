// Declares options and looks at nothing.
#include "cli/control_words.hpp"
#include "cli/values.hpp"
#include <CLI/CLI.hpp>

namespace glove::cli {

namespace {

constexpr const char* statuses =
    "\n\nExit status: 0 done, 1 the answer is no, 2 usage, 125 it could not be done.";

void declare_service(CLI::App& app, service_words& words) {
    app.add_option("--config", words.config, "The configuration of gloved")->type_name("FILE");
    app.add_option("--runtime-dir", words.runtime_directory,
                   "Where gloved listens, when not where the configuration says")
        ->type_name("DIR");
    app.add_option("--timeout", words.patience_ms, "How long an answer may take (default 10s)")
        ->type_name("TIME")
        ->transform(duration());
    app.add_flag("--json", words.json, "Print JSON");
}
void declare_request_key(CLI::App& app, std::string& into) {
    app.add_option("--request-key", into, "Of a change: the same key again is the same request")
        ->type_name("KEY");
}

} // namespace

void declare(CLI::App& app, daemon_words& words) {
    app.description("Run gloved as a service of your own, by your systemd.");
    app.add_option("ACTION", words.action, "install, start, stop, restart or status");
    app.add_option("--config", words.config,
                   "The configuration; with install, of the service (default\n"
                   "~/.config/glove/config.json)")
        ->type_name("FILE");
    app.add_option("--gloved", words.gloved,
                   "With install: the program (default the one beside glove)")
        ->type_name("FILE");
    app.add_flag("--json", words.json, "With status: print JSON");
    app.footer("install: writes ~/.config/systemd/user/sage-gloved.service, when it differs.\n"
               "start, restart: return when the service has answered.\n\n"
               "Examples:\n"
               "  gloved --init-state\n"
               "  glove daemon install\n"
               "  glove daemon start\n"
               "  glove daemon status --json\n\n"
               "Exit status: 0 done, or it runs; 1 it runs and does not answer, 2 usage, 3 it is\n"
               "stopped, 125 it could not be done.");
}

void declare(CLI::App& app, session_words& words) {
    app.description("Ask gloved for sessions, use their terminals, and fetch their receipts.");
    app.add_option("ACTION", words.action,
                   "validate, create, list, status, start, attach, send,\n"
                   "resize, signal, stop, cleanup, changes, receipts or ack");
    app.add_option("FILE", words.words,
                   "The session, and beside it: of create a PLAN, of send a TEXT,\n"
                   "of resize ROWSxCOLUMNS, of signal interrupt, terminate or\n"
                   "hangup, of changes the EXPOSURE; validate takes a PLAN alone");
    declare_service(app, words.service);
    app.add_option("--digest", words.digest, "With create: the controller's digest of the plan")
        ->type_name("HEX");
    declare_request_key(app, words.request_key);
    app.add_option("--authorization-id", words.authorization_id,
                   "With start: what the approval is called (default the key)")
        ->type_name("NAME");
    app.add_option("--expires", words.expires_ms,
                   "With start: how long the approval lasts (default 120s)")
        ->type_name("TIME")
        ->transform(duration());
    app.add_flag("--read-only", words.read_only, "With attach: only look");
    app.add_flag("--stdin", words.stdin_too, "With attach: pass on an input that is no terminal");
    app.add_option("--detach-key", words.detach_key,
                   "With attach: what leaves it (default ctrl-]; or ctrl-p,ctrl-q)")
        ->type_name("KEYS");
    app.add_option("--from", words.from, "With attach: the place to begin at")->type_name("CURSOR");
    app.add_flag("--from-end", words.from_end, "With attach: only what is new");
    app.add_flag("--enter", words.enter, "With send: press Enter behind it");
    app.add_option("--after", words.after, "With list: those behind this one")->type_name("NAME");
    app.add_option("--limit", words.limit, "With list and changes: at most N")
        ->type_name("N")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000}).description(""));
    app.add_option("--key", words.key, "With receipts and start: the audit key, to verify receipts")
        ->type_name("FILE");
    app.add_option("--anchor", words.anchor,
                   "With receipts, ack and start: how far receipts are verified")
        ->type_name("FILE");
    app.footer("Examples:\n"
               "  glove session create work-1 plan.json\n"
               "  glove session start work-1 && glove session attach work-1\n"
               "  glove session send work-1 'make test' --enter\n"
               "  glove session stop work-1 && glove session changes work-1 demo\n"
               "  glove session receipts --key ~/.local/state/glove/audit.key\n\n"
               "Exit status: 0 done, 1 the answer is no, 2 usage, 125 it could not be done;\n"
               "of attach the session's own.");
}

void declare(CLI::App& app, exposure_words& words) {
    app.description("Let sessions use a path of this machine for a while.");
    app.add_option("ACTION", words.action, "create, list or revoke");
    app.add_option("FILE", words.words, "The exposure's name; with create, the path as well");
    declare_service(app, words.service);
    app.add_option("--root", words.root,
                   "With create: the root of the policy that the path is below")
        ->type_name("NAME");
    app.add_option("--label", words.label, "With create: what people call it")->type_name("TEXT");
    repeatable(app, "--allow", words.modes, "MODE",
               "With create: read, copy=SIZE or retain=SIZE (default read)");
    repeatable(app, "--template", words.templates, "NAME",
               "With create: a runtime template that may use it");
    app.add_option("--ttl", words.ttl_ms, "With create: how long it lasts (default 1h)")
        ->type_name("TIME")
        ->transform(duration());
    app.add_option("--generation", words.generation, "With revoke: which (default the newest)")
        ->type_name("N")
        ->check(CLI::PositiveNumber.description(""));
    declare_request_key(app, words.request_key);
    app.footer(std::string{"copy: sessions write to a copy that is dropped; retain: to one that "
                           "is kept.\n\n"
                           "Examples:\n"
                           "  glove exposure create demo ~/src/demo --root projects "
                           "--template codex-safe\n"
                           "  glove exposure create demo ~/src/demo --root projects "
                           "--template codex-safe --allow copy=1G\n"
                           "  glove exposure list\n"
                           "  glove exposure revoke demo"} +
               statuses);
}

void declare(CLI::App& app, journal_words& words) {
    app.description("Look into the journals of gloved, and mend one that was cut short.");
    app.add_option("ACTION", words.action, "verify, show or repair");
    app.add_option("FILE", words.words, "The journals; repair takes one");
    app.add_option("--key", words.key, "The audit key, which a receipt journal needs")
        ->type_name("FILE");
    app.add_flag("--cut", words.cut, "With repair: cut off what it found behind the last record");
    app.add_flag("--accept-loss", words.accept_loss,
                 "With repair --cut: go on though acknowledged records are gone");
    app.add_flag("--json", words.json, "With verify and show: print JSON");
    app.footer(std::string{"repair only says what it would cut, unless --cut is given. gloved "
                           "must not run then.\n\n"
                           "Examples:\n"
                           "  glove journal verify ~/.local/state/glove/sessions.journal\n"
                           "  glove journal show --json ~/.local/state/glove/sessions.journal\n"
                           "  glove journal verify --key audit.key receipts.journal\n"
                           "  glove journal repair sessions.journal"} +
               statuses);
}

} // namespace glove::cli
