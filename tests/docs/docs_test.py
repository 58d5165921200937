"""Every rule of docs.py fires on a page that breaks it, and on nothing before.

Each case changes one thing in the real pages, or in the program that they are held against.
"""
import functools
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
import docs  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
GLOVE = os.environ.get("GLOVE_BIN") or os.path.join(ROOT, "build/release/bin/glove")
EXEC, MODEL, STORY = "docs/exec.md", "docs/threat-model.md", "docs/architecture.md"
PAGE, README = "docs/man/glove-exec.1", "README.md"

# The pages change here, the programs do not.
docs.Project.run = functools.cache(docs.Project.run)
docs.help_of = functools.cache(docs.help_of)


class Rules(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.project = docs.Project(ROOT, GLOVE)

    def setUp(self):
        self.project.texts = dict(docs.Project(ROOT, GLOVE).texts)
        self.project.glove = GLOVE

    def found(self, rule):
        return [f"{page}: {words}" for page, words in docs.RULES[rule](self.project)]

    def fires(self, rule, page, old, new, words):
        """The rule says these words once `old` is `new`. A space of `old` may be a line's end."""
        before = self.project.texts[page]
        pattern = re.sub(r"(?:\\ )+", lambda _: r"\s+", re.escape(old))
        self.assertTrue(re.search(pattern, before), f"{page} does not say {old!r} any more: mend this case")
        self.project.texts[page] = re.sub(pattern, lambda _: new, before, count=1)
        said = "\n".join(self.found(rule))
        self.project.texts[page] = before
        self.assertIn(words, said)

    def test_the_pages_as_they_are(self):
        for rule in docs.RULES:
            self.assertEqual(self.found(rule), [], rule)

    def test_links(self):
        self.fires("links", README, "(docs/exec.md)", "(docs/exex.md)", "docs/exex.md")
        self.fires("links", README, "#apparmor-ubuntu-2404", "#ubuntu", "no such heading")
        self.fires("links", EXEC, "(#network)", "(#net)", "no such heading")
        self.fires("links", EXEC, "## Containers", "## Docker", "no such heading")

    def test_options_that_do_not_exist(self):
        self.fires("options", README, "--hide .env --explain", "--conceal .env --explain", "--conceal")
        self.fires("options", MODEL, "`--hide`", "`--cover`", "--cover")
        self.fires("options", EXEC, "| `--read PATH`", "| `--reed PATH`", "describes --reed")
        self.fires("options", PAGE, "\\-\\-audit\\-sync", "\\-\\-audit\\-sink", "describes --audit-sink")
        self.fires("options", PAGE, "\\-\\-hide .env", "\\-\\-cover .env", "names --cover")
        self.fires("options", "docs/man/glove.1", "\\-\\-explain", "\\-\\-tell", "names --tell")

    def test_options_of_the_other_verbs(self):
        self.fires("options", "docs/doctor.md", "| `--json` |", "| `--jason` |", "does not describe --json")
        self.fires("options", "docs/doctor.md", "$ glove doctor --json", "$ glove doctor --read x", "names --read")
        self.fires("options", "docs/log.md", "| `--follow` |", "| `--tail` |", "describes --tail")
        self.fires("options", "docs/man/glove-log.1", "\\-\\-since 2h", "\\-\\-begin 2h", "names --begin")
        self.fires("options", "docs/man/glove-doctor.1", ".B \\-\\-json\nPrint", ".B \\-\\-jason\nPrint", "describes --jason")
        self.fires("options", "docs/man/glove.1", "\\-\\-explain", "\\-\\-tell", "names --tell")

    def test_options_of_the_service(self):
        page, sheet = "docs/gloved.md", "docs/man/gloved.8"
        self.fires("options", page, "| `--journal FILE`", "| `--jurnal FILE`", "describes --jurnal")
        self.fires("options", page, "| `-V`, `--version`", "| `-V`", "does not describe --version")
        self.fires("options", sheet, ".BI \\-\\-journal", ".BI \\-\\-jurnal", "does not describe --journal")
        self.fires("options", sheet, "Needs a session policy.", "Needs \\-\\-policy.", "names --policy")
        self.fires("tables", page, "| `audit_key` |", "| `audit_keys` |", "config-members")
        self.project.glove = "/bin/false"
        self.assertIn("gloved --help: could not be read",
                      [f"{name}: {words}" for name, words in docs.options_of_the_service(self.project)])

    def test_options_that_are_not_described(self):
        for option in docs.real_options(self.project) - {"--help"}:
            self.fires("options", EXEC, f"| `{option}", "| `--other", f"does not describe {option}")
            written = option.replace("-", "\\-")
            paragraph = re.search(rf"^\.TP\n\.B[IR]? (\S.* )?{re.escape(written)}( .*)?\n", self.project.texts[PAGE], re.M)[0]
            self.fires("options", PAGE, paragraph, ".PP\n", f"does not describe {option}")

    def test_manual_pages(self):
        self.fires("manuals", PAGE, ".SH OPTIONS", ".SH OPTIONS\n.XY", "unknown macro")
        self.fires("manuals", PAGE, ".TH GLOVE\\-EXEC 1 2026", ".TH GLOVE\\-EXEC 1 \"\" 2026", "date")
        self.fires("manuals", "docs/man/glove.1", ".TP\n.B log\n", ".TP\n.B logs\n", "the verbs are")
        self.fires("manuals", "docs/man/glove.1", "See\n.BR glove\\-log (1).", "", "glove-log(1)")

    def test_what_follows_the_command_belongs_to_it(self):
        self.assertEqual(docs.mentioned_options("`glove exec --read A -- tar --bogus`, `git --version`"), {"--read"})
        self.assertEqual(docs.mentioned_options("```console\n$ cmake --preset x\n$ glove exec --net local -- x --y\n```"),
                         {"--net"})

    def test_every_row_of_every_table(self):
        for page, name, wanted in docs.expected_tables(self.project):
            for row in docs.table_rows(self.project.texts[page], name):
                self.assertGreater(len(wanted), 1)
                line = "| " + " | ".join(row)
                self.fires("tables", page, line, "| other |" + line, f"table {name}")

    def test_the_words_in_a_table(self):
        self.fires("tables", EXEC, "TCP and UDP on", "TCP on", "table network-tiers")
        self.fires("tables", EXEC, "by `--egress-allow` |", "yes |", "table network-tiers")
        self.fires("tables", EXEC, "| SIGUSR2 | is passed on |", "| SIGUSR2 | ends the run |", "table signals")
        self.fires("tables", EXEC, "| SIGTSTP | stops the run |", "| SIGTSTP | is passed on |", "table signals")
        self.fires("tables", "docs/doctor.md", "| records of runs are refused,", "| records are kept,", "table checks")
        self.fires("tables", STORY, "| init | `started` |", "| supervisor | `started` |", "table messages")
        self.fires("tables", STORY, "| new session keyring |", "| keyring |", "table steps")
        self.fires("layers", STORY, "| new session keyring |", "| keyring |", "lists the layers")
        self.fires("layers", STORY, "once: user, pid,", "once: pid, user,", "supervisor's layers")

    def test_actions_of_sessions(self):
        page = "docs/session.md"
        self.fires("actions", page, "| `attach NAME` |", "| `join NAME` |", "table session-actions")
        self.fires("actions", page, "| `ack` |", "| `ack` |\n| `acknowledge` |", "table session-actions")

    def test_every_item_of_every_list(self):
        for page, name, wanted in list(docs.expected_lists(self.project)):
            mark = f"<!-- list: {name} -->"
            listed = self.project.texts[page].split(mark)[1]
            for item in wanted:
                changed = listed.replace(f"`{item}`", "`other`", 1)
                self.fires("lists", page, mark + listed, mark + changed, f"list {name}")

    def test_lists_of_proc_are_apart(self):
        """A row that holds for root only may not stand among those that hold for everybody."""
        self.fires("lists", MODEL, "`kpageflags`", "", "list proc-masked-for-root: differs in ['kpageflags']")
        self.fires("lists", MODEL, "`kcore`", "`kcore` `kpageflags`", "list proc-masked: differs in ['kpageflags']")
        self.fires("lists", MODEL, "`pressure`", "", "list proc-read-only: differs in ['pressure']")

    def test_a_table_of_the_source_that_cannot_be_read(self):
        read = self.project.read
        self.project.read = lambda path: read(path).replace("against::host_root}", "against::host_root, 1}")
        try:
            self.assertRaises(ValueError, self.found, "lists")
        finally:
            self.project.read = read

    def test_members_of_records(self):
        self.fires("members", EXEC, "| `limits_hit` |", "| `limit` |", "table report-members")
        self.fires("members", EXEC, "| `guard_search_complete` |", "| `more` | |\n| `guard_search_complete` |", "too many")
        self.fires("members", EXEC, "| `notes` |", "| `remarks` |", "table report-members")
        self.fires("members", EXEC, "| `latency_ns` |", "| `delay_ns` |", "table audit-members")

    def test_numbers(self):
        self.fires("constants", MODEL, "first 1024 directory", "first 1000 directory", "1024")
        self.fires("constants", EXEC, "1.5 KiB", "2 KiB", "1.5 KiB")
        self.fires("constants", PAGE, ".TP\n.B 126", ".TP\n.B 124", "the statuses are")
        self.fires("constants", PAGE, "5 seconds later", "9 seconds later", "5 seconds later")

    def test_keys_of_the_configuration(self):
        sheet = "docs/man/glove.toml.5"
        self.fires("constants", sheet, ".B wall\\-time", ".B wall\\-clock", "the keys are")
        self.fires("constants", sheet, ".TP\n.B home\n", ".PP\n.B home\n", "the keys are")

    def test_commands(self):
        self.fires("runs", README, "buy milk\n$", "buy bread\n$", "printed")
        self.fires("runs", README, "$ mkdir -p ~/demo ~/notes && cd ~/demo", "$ false", "ended with 1")
        self.fires("runs", README, "$ echo $?\n2", "$ echo $?\n0", "printed")
        self.fires("runs", README, "$ echo $?\n2", "$ exit 0\n2", "did not come to an end")
        self.project.texts = {README: "```console\n$ false\n```\n"}
        self.assertEqual(self.found("runs"), ["README.md: has no command to run"])

    def test_a_program_that_differs(self):
        self.project.glove = "/bin/true"
        self.assertNotEqual(self.found("runs"), [])

    def test_output_as_shown(self):
        for wanted, got, same in (
                (["a", "...", "z"], "a\nz\n", True), (["a", "...", "z"], "a\nb\nc\nz\n", True),
                (["a", "...", "z"], "a\nb\n", False), (["a"], "a\nb\n", False), (["x...y"], "x1y\n", True),
                (["x...y"], "x1\n2y\n", False), (["a.c"], "abc\n", False), (["a"], "", False), (["a"], "a", True)):
            self.assertEqual(docs.matches(wanted, got), same, (wanted, got))


if __name__ == "__main__":
    unittest.main()
