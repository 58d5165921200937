#!/usr/bin/env python3
"""Holds the documentation against the program and its source.

    docs.py [--root FOLDER]        the program under test is GLOVE_BIN

Prints a line per finding and ends with 1 when there is one. docs_test.py breaks every rule once and
sees it fire. What a document declares:

  ```console run      lines that start with "$ " are run, in order, one shell for each document, in a home
                      of their own that the text calls /home/you. Lines below one are its output, where
                      "..." stands for anything; without such lines it must succeed.
  ```console guest    the same, in the guest (tests/vm/guide_test.py): it takes a service manager.
  ```json file=NAME   is put into that home first, as the file NAME of its owner alone.
  <!-- table: NAME --> / <!-- list: NAME -->
                      what follows repeats the program, and must be equal to it.
"""
import argparse
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile

HOME_IN_TEXT = "/home/you"
SHELL_SECONDS = 100
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
SPAN = re.compile(r"`([^`\n]+)`")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


class Project:
    """The documents, the source and the program. Tests put other texts in their place."""

    def __init__(self, root, glove):
        self.root, self.glove = os.path.realpath(root), glove
        names = ["README.md", "CONTRIBUTING.md"] + sorted(
            "docs/" + name for name in os.listdir(os.path.join(self.root, "docs")) if name.endswith(".md"))
        names += ["docs/man/" + name for name in sorted(os.listdir(os.path.join(self.root, "docs/man")))]
        self.texts = {name: self.read(name) for name in names}

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()

    def pages(self):
        return {name: text for name, text in self.texts.items() if name.endswith(".md")}

    def run(self, *words, more_environment=(), **more):
        with tempfile.TemporaryDirectory(prefix="glove-docs.") as home:
            done = subprocess.run([self.glove, *words], env=environment(home) | dict(more_environment), text=True,
                                  capture_output=True, check=False, timeout=SHELL_SECONDS,
                                  **({"stdin": subprocess.DEVNULL} | more))
        return done

    def plan(self, *options):
        return json.loads(self.run("exec", *options, "--explain", "--json", "--", "true").stdout)


def environment(home, program=None):
    path = "/usr/bin:/bin:/usr/sbin:/sbin"
    return {"HOME": home, "PATH": f"{program}:{path}" if program else path, "LANG": "C.UTF-8", "TMPDIR": "/tmp"}


# -- links ------------------------------------------------------------------------------------------

def anchors(text):
    """The names that a heading is reached by."""
    bare = FENCE.sub("", text)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
            for title in re.findall(r"^#+ (.*)$", bare, re.M)}


def links(project):
    for name, text in project.pages().items():
        for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            found = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if not os.path.exists(os.path.join(project.root, found)):
                yield name, f"leads to {target}, which does not exist"
            elif anchor and found in project.texts and anchor not in anchors(project.texts[found]):
                yield name, f"leads to {target}, and {found} has no such heading"


# -- options ----------------------------------------------------------------------------------------

# Each has a page docs/VERB.md with a table of its options, and a manual page.
VERBS = ("exec", "run", "mcp", "doctor", "log", "profile", "home", "quarantine", "daemon", "session", "exposure", "journal")
PAGES = {"daemon": "docs/operations.md", "profile": "docs/profiles.md", "home": "docs/homes.md", "journal": "docs/journal-format.md"}  # that are not called like the verb


def real_options(project, verb="exec"):
    listed = project.run(verb, "--help").stdout.split("Options:")[1].split("Examples:")[0]
    return set(re.findall(r"^ +(?:-\w,)?(--[a-z-]+)", listed, re.M))


def mentioned_options(text, verb="exec"):
    """Options of a verb that a page names in its commands, before "--"."""
    command = f"glove {verb}"
    pieces = [line for _, body in FENCE.findall(text) for line in body.splitlines() if command in line]
    pieces += [span for span in SPAN.findall(FENCE.sub("", text)) if command in span]
    found = set()
    for piece in pieces:
        for part in piece.split(command)[1:]:
            found.update(OPTION.findall(re.split(r"(?:^|\s)--(?:\s|$)|[|;]", part)[0]))
    return found


def bare_options(text):
    """Options that a page names in spans of their own."""
    return {option for span in SPAN.findall(FENCE.sub("", text)) if span.startswith("--")
            for option in OPTION.findall(re.split(r"\s--(?:\s|$)", span)[0])}


def manual_options(text):
    return set(OPTION.findall(text.replace("\\-", "-"))) - {"--version"}


def manual_described(text):
    """The options that have a paragraph of their own in a manual page."""
    return set(re.findall(r"^\.TP\n\.B[IR]? .*?(--[a-z-]+)", text.replace("\\-", "-"), re.M))


def help_of(program):
    try:
        return subprocess.run([program, "--help"], text=True, capture_output=True, check=False).stdout
    except OSError:
        return ""


def service_options(project):
    text = help_of(os.path.join(os.path.dirname(project.glove), "gloved"))
    return set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text.partition("Options:")[2], re.M))


def options_of_the_service(project):
    page, sheet, real = "docs/gloved.md", "docs/man/gloved.8", service_options(project)
    if len(real) < 10:
        yield "gloved --help", "could not be read"
    table = set(OPTION.findall(" ".join(row[0] for row in table_rows(project.texts[page], "gloved-options"))))
    for name, described in ((page, table), (sheet, manual_described(project.texts[sheet]))):
        for word in sorted(real - described):
            yield name, f"does not describe {word}"
        for word in sorted(described - real):
            yield name, f"describes {word}, which gloved does not have"
    for word in sorted(manual_options(project.texts[sheet]) - real):
        yield sheet, f"names {word}, which gloved does not have"


def options(project):
    real = {verb: real_options(project, verb) for verb in VERBS}
    every = set().union(*real.values()) | {"--version"} | service_options(project)
    yield from options_of_the_service(project)
    if len(real["exec"]) < 10:
        yield "glove exec --help", "could not be read"
    for name, text in project.pages().items():
        if name == "CONTRIBUTING.md":
            continue
        for verb in VERBS:
            for word in sorted(mentioned_options(text, verb) - real[verb]):
                yield name, f"names {word}, which glove {verb} does not have"
        for word in sorted(bare_options(text) - every):
            yield name, f"names {word}, which no verb has"
    for verb in VERBS:
        page, sheet = PAGES.get(verb, f"docs/{verb}.md"), f"docs/man/glove-{verb}.1"
        table = {cell.split()[0] for cell in first_cells(project.texts[page], "options")}
        manual = project.texts[sheet]
        for name, described in ((page, table), (sheet, manual_described(manual))):
            for word in sorted(real[verb] - described):
                yield name, f"does not describe {word}"
            for word in sorted(described - real[verb]):
                yield name, f"describes {word}, which glove {verb} does not have"
        for word in sorted(manual_options(manual) - (real[verb] if verb == "exec" else every)):
            yield sheet, f"names {word}, which glove {verb} does not have"
    for word in sorted(manual_options(project.texts["docs/man/glove.1"]) - every):
        yield "docs/man/glove.1", f"names {word}, which does not exist"


# -- manual pages -----------------------------------------------------------------------------------

def lint(text):
    """What mandoc finds in a manual page."""
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], input=text, text=True, capture_output=True,
                          check=False)
    return done.stdout.splitlines()


def verbs(project):
    """The verbs that the program lists."""
    return re.findall(r"^  (\w+)", project.run("--help").stdout.split("Verbs:\n")[1].split("\n\n")[0], re.M)


def manuals(project):
    story = project.texts["docs/man/glove.1"].split(".SH VERBS")[1].split(".SH")[0]
    listed = re.findall(r"^\.TP\n\.B (\w+)$", story, re.M)
    if listed != verbs(project):
        yield "docs/man/glove.1", f"the verbs are {verbs(project)}"
    for name, text in project.texts.items():
        if name.startswith("docs/man/"):
            for words in lint(text):
                yield name, words
    for verb in VERBS:
        if f".BR glove\\-{verb} (1)" not in story:
            yield "docs/man/glove.1", f"does not lead to glove-{verb}(1)"


# -- tables and lists that repeat the program -------------------------------------------------------

def table_rows(text, name):
    found = re.search(rf"<!-- table: {name} -->\n((?:\|.*\n?)+)", text)
    if not found:
        return []
    lines = found[1].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def list_items(text, name):
    found = re.search(rf"<!-- list: {name} -->\n((?:.+\n?)+)", text)
    return SPAN.findall(found[1]) if found else []


def first_cells(text, name):
    return [row[0].strip("`") for row in table_rows(text, name)]


def array(project, path, name):
    """The string literals of a C++ array, in order."""
    body = re.search(rf"\b{name}\b[^;=]*?(?:=|\{{)(.*?)\n?\s*\}}?\)?;\n", project.read(path), re.S)
    return re.findall(r'"([^"]*)"', body[1]) if body else []


def setup_steps(project):
    return re.findall(r'^\s+\{"([\w.]+)", \w+, "([^"]*)"(?:, true)?\},', project.read("src/container/linux/init.cpp"), re.M)


def proc_guards(project, how, whom="everybody"):
    """The names of /proc that are guarded in this way, against everybody or against the host's root."""
    body = re.search(r"\bproc_guards\[\] = \{\n(.*?)\n\};", project.read("src/container/linux/proc.cpp"), re.S)[1]
    rows = re.findall(r'\{"([\w-]+)", guard::(\w+)(?:, against::(\w+))?\},', body)
    if len(rows) != body.count("{"):
        raise ValueError("a row of proc_guards cannot be read")
    return [name for name, what, who in rows if (what, who or "everybody") == (how, whom)]


# A destination at which nobody answers.
EGRESS = ("--egress-allow", "localhost:9")


def tiers(project):
    rows = re.findall(r'\{network_tier::\w+, "(\w+)", "([^"]*)"\}',
                      project.read("include/glove/container/network_tier.hpp"))
    for name, meaning in rows:
        offered = project.run("exec", "--net", name, "--explain", "--", "true").returncode == 0
        chosen = project.plan(*EGRESS)["network"] == name
        yield [f"`{name}`", meaning, "yes" if offered else "by `--egress-allow`" if chosen else "not there yet"]


def statuses(project):
    """What each kind of failure ends with, tried for real."""
    directory = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    tries = [project.run("exec", "--no-such-option", "--", "true"),
             project.run("exec", "--", "true", stdin=directory),
             project.run("exec", "--", "/etc/passwd"), project.run("exec", "--", "no-such-program")]
    os.close(directory)
    return [str(done.returncode) for done in tries]


def declared_statuses(project):
    return re.findall(r"= (\d+)", re.search(r"enum class exit_status[^{]*\{(.*?)\}",
                                            project.read("include/glove/run/exec.hpp"))[1])


@contextlib.contextmanager
def ssh_agent(folder):
    """A real one with one key; what names it in an environment."""
    named = {"SSH_AUTH_SOCK": folder + "/agent"}
    with subprocess.Popen(["ssh-agent", "-D", "-a", named["SSH_AUTH_SOCK"]], stdout=subprocess.PIPE) as agent:
        try:
            agent.stdout.readline()  # it says where it listens
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder + "/key"], check=True)
            subprocess.run(["ssh-add", "-q", folder + "/key"], check=True, env=os.environ | named)
            yield named
        finally:
            agent.terminate()


def records(project):
    """The members of a real report and of a real audit record, and the declared order of the latter."""
    with tempfile.TemporaryDirectory(prefix="glove-docs.") as folder:
        report, audit = folder + "/report", folder + "/audit"
        project.run("exec", "--report", report, "--audit-log", audit, "--", "true")
        project.run("exec", "--report", report + "2", "--audit-log", audit, "--", "no-such-program")
        project.run("exec", "--report", report + "3", "--audit-log", audit, *EGRESS, "--home", "docs", "--",
                    "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/9; read -r answer <&3")
        with ssh_agent(folder) as agent:
            key = folder + "/key.pub"
            project.run("exec", "--report", report + "4", "--audit-log", audit, "--ssh-agent", "--read", key, "--",
                        "sh", "-c", f"echo x | ssh-keygen -Y sign -n file -f {key}", more_environment=tuple(agent.items()))
        reports = []
        for name in (report, report + "2", report + "3", report + "4"):
            with open(name, encoding="utf-8") as file:
                reports.append(list(json.load(file)))
        with open(audit, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
    if sum(line["action"] == "egress" for line in lines) < 2:
        raise ValueError("no connection was put on record")
    if sum(line["action"] == "ssh_sign" for line in lines) != 2:
        raise ValueError("no signature was put on record")
    return reports, [list(line) for line in lines]


EFFECTS = {"ends": "ends the run", "passes": "is passed on", "stops": "stops the run",
           "goes_on": "goes on with a job", "resizes": "sets the size of the command's terminal"}


def signals(project):
    rows = re.findall(r"noted_signal\{(SIG\w+), effect::(\w+)\}", project.read("src/run/supervise.cpp"))
    return [[name, EFFECTS[effect]] for name, effect in rows]


def messages(project):
    """What supervisor and init can say to each other, and who says it."""
    protocol = project.read("src/container/linux/protocol.hpp")
    for who, name in (("supervisor", "order"), ("init", "news")):
        body = re.search(rf"enum class {name} [^{{]*\{{(.*?)\n\}};", protocol, re.S)[1]
        for word in re.findall(r"^\s+(\w+),", body, re.M):
            yield [who, f"`{word}`"]


def doctor_checks(project):
    return [each["code"] for each in json.loads(project.run("doctor", "--json").stdout)["checks"]]


def doctor_effects(project):
    """(code, what does not work without it) as the source has them."""
    source = project.read("src/host/doctor.cpp")
    no_exec = re.search(r'no_exec = "([^"]*)"', source)[1]
    rows = re.findall(r'\{"(\w+)",\s+(?:"([^"]*)"|no_exec),\s+(?:true|false),', source)
    return [[f"`{code}`", None, effect or no_exec] for code, effect in rows]


def profile_keys(project):
    """The rows of a profile: key, what it takes, option, meaning."""
    source = project.read("src/host/settings.cpp")
    kinds = {name: "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', takes)).replace('\\"', '"') for name, takes in
             re.findall(r"constexpr setting_kind (\w+)\{[^\"]*((?:\"(?:[^\"\\]|\\.)*\"\s*)+)", source)}
    rows = re.findall(r'setting\{"([\w-]+)",\s*&(\w+),\s*"([\w-]*)",\s*"([^"]*)"\}', source)
    return [[f"`{key}`", kinds[kind], f"`{flag}`" if flag else "none", meaning] for key, kind, flag, meaning in rows]


def agent_files(project):
    names = re.search(r"constexpr std::array all\{([^}]*)\}", project.read("src/adapters/agents.cpp"))[1]
    return {name: project.read(f"src/adapters/{name}.cpp") for name in re.findall(r"&(\w+)", names)}


def agents(project):
    for name, text in agent_files(project).items():
        said = dict(re.findall(r'\.(name|title|install) = "([^"]*)"', text))
        yield [f"`{said['name']}`", said["title"], f"`{said['install']}`"]


def agent_destinations(project):
    for name, text in agent_files(project).items():
        for rule, reason in re.findall(r'destination\{"([^"]*)",\s*"([^"]*)"\}', text):
            yield [f"`{name}`", f"`{rule}`", reason]


def manual_keys(project):
    """The keys that the manual page of the configuration file describes."""
    keys = project.texts["docs/man/glove.toml.5"].split(".SH KEYS")[1].split(".SH")[0].replace("\\-", "-")
    return re.findall(r"^\.TP\n\.B ([a-z-]+)$", keys, re.M)


def places(project):
    return sorted(entry["path"] for entry in project.plan()["tree"] if entry["kind"] == "scratch")


def synthesised(project):
    return [entry["path"] for entry in project.plan()["tree"] if entry["kind"] == "file"]


def journal_formats(project):
    """The rows of include/glove/journal/format.hpp: magic, name, bounds, what is done about a torn tail."""
    tails = {"refused": "is refused", "cut_when_vouched": "is cut when vouched for"}
    for row in re.findall(r"^inline constexpr format \w+\{(.*?)^\};", project.read("include/glove/journal/format.hpp"),
                          re.M | re.S):
        magic = re.search(r'\.magic = (?:std::string_view\{)?"([^"]+)"', row)[1]
        bounds = re.search(r"record_bytes = ([^,]+), \.records = ([^,]+), \.file_bytes = ([^}]+)\}", row)
        shifted = [re.fullmatch(r"([\d']+)(?:UL)?(?: << (\d+))?", " ".join(n.split())) for n in bounds.groups()]
        numbers = [int(n[1].replace("'", "")) << int(n[2] or 0) for n in shifted]
        tail = re.search(r"torn_tail::(\w+)", row)
        yield [f"`{magic}`", re.search(r'\.name = "([^"]+)"', row)[1], *map(str, numbers),
               tails[tail[1] if tail else "refused"]]


def journal_steps(project):
    folder = "src/journal"
    texts = [project.read(f"{folder}/{name}") for name in os.listdir(os.path.join(project.root, folder))]
    return sorted({step for text in texts for step in re.findall(r'"(journal\.\w+)"', text)})


def control_methods(project):
    """The rows of src/control/methods.cpp."""
    source = project.read("src/control/methods.cpp")
    sizes = {name: int(digits) << int(shift or 0) for name, digits, shift in
             re.findall(r"constexpr std::size_t (\w+) = (\d+)(?:UL << (\d+))?;",
                        source + project.read("include/glove/control/protocol.hpp"))}
    parts = dict(re.findall(r'case (\w+): return "([^"]*)";', source))
    text = r'((?:"[^"]*"\s*)+)'
    rows = re.findall(rf'method\{{"(\w+)", (\w+), key_rule::(\w+), (\w+),\s*phase::(\w+),\s*{text},\s*{text},', source)
    if len(rows) != source.count("method{\""):
        raise ValueError("a row of the methods cannot be read")
    for name, part, key, size, when, *words in rows:
        yield [f"`{name}`", parts[part], key, str(sizes[size]), when,
               *("".join(re.findall(r'"([^"]*)"', word)) for word in words)]


def control_errors(project):
    """The rows of src/control/answer.cpp."""
    rows = re.findall(r'row\{\w+, "(\w+)",\s*"([^"]*)"\}', project.read("src/control/answer.cpp"))
    return [[f"`{code}`", message] for code, message in rows]


def session_actions(project):
    """The rows of `glove session`, and the statuses that attach ends with."""
    folder = "src/cli/control_process"
    actions = re.findall(r'\{"(\w+)",\s*\w+,\s*\d,', project.read(f"{folder}/session.cpp"))
    ends = re.findall(r"end_status\{control::termination_cause::(\w+), (\d+)\}", project.read(f"{folder}/session_end.hpp"))
    return actions, [[f"`{cause}`", status] for cause, status in ends]


def session_action_cells(project):
    """The table's first cells, whose words behind the action are the page's own."""
    return [cell.split()[0] for cell in first_cells(project.texts["docs/session.md"], "session-actions")]


def config_members(project):
    """The rows of the service's configuration."""
    return re.findall(r'&service_config::\w+,[^"]*"(\w+)"', project.read("src/control/service_config_fields.hpp"))


def expected_tables(project):
    """(page, table, what its rows begin with)."""
    exec_page, story = "docs/exec.md", "docs/architecture.md"
    yield exec_page, "network-tiers", list(tiers(project))
    yield exec_page, "signals", signals(project)
    for page in ("README.md", exec_page):
        yield page, "exit-statuses", [[status] for status in statuses(project)]
        yield page, "exit-statuses", [[status] for status in declared_statuses(project)]
    yield exec_page, "causes", [[f"`{name}`"] for name in array(project, "src/run/supervise.cpp", "cause_names")]
    yield exec_page, "protected-names", [
        [f"`{path}`", place, reason] for place, path, reason in re.findall(
            r'\{protected_in::(\w+),\s*"([^"]+)",\s*"([^"]+)"\}',
            project.read("include/glove/container/protected_names.hpp"))]
    yield story, "steps", [[f"`{name}`", None, layer] for name, layer in setup_steps(project)]
    names, log_page = "include/glove/audit/names.hpp", "docs/log.md"
    yield log_page, "actions", [[f"`{name}`"] for name in array(project, names, "action_names")]
    yield log_page, "statuses", [[f"`{name}`"] for name in ["open", "lost"] + array(project, names, "status_names")[1:]]
    yield "docs/doctor.md", "checks", [[f"`{code}`"] for code in doctor_checks(project)]
    yield "docs/doctor.md", "checks", doctor_effects(project)
    page = "docs/profiles.md"
    yield page, "profile-keys", profile_keys(project)
    yield page, "agents", list(agents(project))
    yield page, "destinations", list(agent_destinations(project))
    folders = re.search(r"foreach\(component ([\w ]+)\)", project.read("src/CMakeLists.txt"))[1].split()
    yield story, "messages", list(messages(project))
    journals = "docs/journal-format.md"
    yield journals, "journals", list(journal_formats(project))
    yield journals, "journal-steps", [[f"`{step}`"] for step in journal_steps(project)]
    yield "docs/protocol.md", "methods", list(control_methods(project))
    yield "docs/protocol.md", "error-codes", control_errors(project)
    yield "docs/managed-sessions.md", "runtime-steps", [[f"`{name}`"] for name in array(
        project, "include/glove/control/session_runtime.hpp", "runtime_steps")]
    yield "docs/gloved.md", "config-members", [[f"`{name}`"] for name in config_members(project)]
    yield "docs/session.md", "session-end-statuses", session_actions(project)[1]
    yield story, "components", [[f"`{name}`"] for name in folders]


def expected_lists(project):
    """(page, list, items in any order)."""
    exec_page, model = "docs/exec.md", "docs/threat-model.md"
    grants, view = "src/container/grants.cpp", "src/container/system_view.cpp"
    variables = "src/container/environment.cpp"
    home = re.search(r'home_directory = "([^"]+)"', project.read("include/glove/container/plan.hpp"))[1]
    yield exec_page, "closed-places", array(project, grants, "closed_places")
    yield exec_page, "shared-places", array(project, grants, "shared_places") + [home]
    yield exec_page, "scratch-places", places(project)
    yield exec_page, "system-places", array(project, view, "system_places")
    yield exec_page, "etc", (array(project, view, "public_configuration")
                             + array(project, view, "configuration_patterns"))
    yield exec_page, "synthesised", synthesised(project)
    yield exec_page, "managed-variables", array(project, variables, "managed_names")
    yield "docs/egress.md", "proxy-variables", array(project, variables, "proxy_names")
    yield exec_page, "inherited-variables", array(project, variables, "inherited_names")
    codes = re.search(r"enum class errc[^{]*\{(.*?)\}", project.read("include/glove/base/error.hpp"), re.S)[1]
    yield exec_page, "error-codes", re.findall(r"\w+", codes)
    yield model, "proc-masked", proc_guards(project, "masked")
    yield model, "proc-masked-for-root", proc_guards(project, "masked", "host_root")
    yield model, "proc-read-only", proc_guards(project, "read_only")
    kernel = array(project, "src/container/mount_table.cpp", "kernel_filesystems")
    yield exec_page, "kernel-filesystems", kernel
    yield "docs/managed-sessions.md", "termination-causes", re.findall(
        r'\{"(\w+)", termination_cause::', project.read("src/control/cause_words.hpp"))


def tables(project):
    for page, name, wanted in expected_tables(project):
        rows = table_rows(project.texts[page], name)
        # None stands for words of the page's own; so do the cells after the last that is given.
        said = [[want and cell for cell, want in zip(row, wanted[0])] for row in rows] if wanted else rows
        if not wanted or said != wanted:
            yield page, f"table {name}: the program has {wanted}, the page {said}"


def actions(project):
    if session_action_cells(project) != session_actions(project)[0]:
        yield "docs/session.md", f"table session-actions: the program has {session_actions(project)[0]}"


def lists(project):
    for page, name, wanted in expected_lists(project):
        said = list_items(project.texts[page], name)
        if not wanted or sorted(said) != sorted(wanted):
            yield page, f"list {name}: differs in {sorted(set(said) ^ set(wanted)) or 'repeated items'}"


def constants(project):
    """Numbers that the text repeats."""
    grace = re.search(r"termination_grace\{(\d+)\}", project.read("src/run/supervise.hpp"))[1]
    names = project.read("include/glove/container/tree_walk.hpp")
    writable = re.search(r"writable_walk_limit = (\d+);", names)[1]
    walk = re.search(r"guard_walk_limit = (\d+);", project.read("src/container/plan.cpp"))[1]
    inode = int(re.search(r"inode_bytes = (\d+);", project.read("src/container/plan.cpp"))[1]) / 1024
    path = re.search(r'search_path =\s+"([^"]+)"', project.read("include/glove/container/plan.hpp"))[1]
    for page, words in (("docs/exec.md", f"{grace} seconds later"), ("docs/man/glove-exec.1", f"{grace} seconds later"),
                        ("docs/exec.md", f"first {walk} directory entries"),
                        ("docs/threat-model.md", f"first {walk} directory entries"), ("docs/exec.md", f"`{path}`"),
                        ("docs/exec.md", f"first {writable} directory entries"),
                        ("docs/threat-model.md", f"first {writable} directory entries"),
                        ("docs/exec.md", f"{inode:g} KiB")):
        if words not in " ".join(project.texts[page].split()):
            yield page, f'does not say "{words}"'
    keys = ["extends"] + [row[0].strip("`") for row in profile_keys(project)]
    if manual_keys(project) != keys:
        yield "docs/man/glove.toml.5", f"the keys are {keys}"
    manual = project.texts["docs/man/glove-exec.1"].split(".SH EXIT STATUS")[1]
    if re.findall(r"^\.B (\d+)$", manual, re.M) != declared_statuses(project):
        yield "docs/man/glove-exec.1", f"the statuses are {declared_statuses(project)}"


def layers(project):
    """The layers that the program lists are those of the supervisor and of the table, in order."""
    listed = [layer["name"] for layer in project.plan(*EGRESS)["layers"]]
    story = project.texts["docs/architecture.md"]
    own = [row[2] for row in table_rows(story, "steps") if len(row) > 2 and row[2]]
    first = listed[:len(listed) - len(own)]
    if listed[len(first):] != own:
        yield "docs/architecture.md", f"table steps: the program lists the layers {listed}"
    together = re.search(r"layers at once: ([\w, ]+?)\s+namespace\.", " ".join(story.split()))
    said = re.split(r", | and ", together[1]) if together else []
    if [f"{word} namespace" for word in said] != first:
        yield "docs/architecture.md", f"the supervisor's layers are {first}"


def members(project):
    page = project.texts["docs/exec.md"]
    reports, lines = records(project)
    said = first_cells(page, "report-members")
    for real in reports:
        if real != [name for name in said if name in real]:
            yield "docs/exec.md", f"table report-members: the program writes {real}"
    if set(said) != set().union(*reports):
        yield "docs/exec.md", f"table report-members: too many, {sorted(set(said).difference(*reports))}"
    line = re.search(r"auto put_line\(.*?^}$", project.read("src/audit/jsonl.cpp"), re.S | re.M)[0]
    declared = re.findall(r'[{,]"(\w+)":', line)
    said = first_cells(page, "audit-members")
    if said != declared:
        yield "docs/exec.md", f"table audit-members: the program has {declared}"
    for real in lines:
        if real != [name for name in said if name in real]:
            yield "docs/exec.md", f"table audit-members: a record has {real}"


# -- commands ---------------------------------------------------------------------------------------

def commands(text, where="run"):
    """(command, output lines) of the blocks to be run."""
    for info, body in FENCE.findall(text):
        if info.split() != ["console", where]:
            continue
        shown = None
        for line in body.splitlines():
            if line.startswith("$ "):
                if shown:
                    yield shown
                shown = (line[2:], [])
            elif shown:
                shown[1].append(line)
        if shown:
            yield shown


def files_of(text):
    """(name, content) of the files that a page begins with."""
    for info, body in FENCE.findall(text):
        for word in info.split():
            if word.startswith("file="):
                yield word.removeprefix("file="), body


def matches(wanted, got):
    """Whether the output is as shown; a line "..." stands for any lines, "..." in a line for any words."""
    pattern = ""
    for line in wanted:
        pattern += r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n"
    return re.fullmatch(pattern, got if got.endswith("\n") or not got else got + "\n") is not None


def transcript(project, shown, folder, files=()):
    """(output, status) of each command that was reached, all in one shell and in a home of their own."""
    home, programs = folder + "/home", folder + "/bin"
    os.makedirs(home)
    os.makedirs(programs)
    for program in ("glove", "gloved"):
        os.symlink(os.path.join(os.path.dirname(project.glove), program), f"{programs}/{program}")
    return transcript_at(home, environment(home, programs), shown, files, SHELL_SECONDS)


def transcript_at(home, variables, shown, files, seconds):
    for name, body in files:
        with open(os.open(f"{home}/{name}", os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write(body.replace(HOME_IN_TEXT, home))
    mark = "docs-" + os.urandom(8).hex()
    script = ["cd", "kept=0"]
    for command, _ in shown:
        word = shlex.quote(command.replace(HOME_IN_TEXT, home))
        script += [f"(exit $kept); eval {word} </dev/null", "kept=$?", f"printf '%s %d\\n' {mark} $kept"]
    # A session of its own: what the commands do to their process group must not reach this test.
    with subprocess.Popen(["bash", "-c", "\n".join(script)], env=variables, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True) as shell:
        try:
            said = shell.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            said = shell.communicate()[0]
    parts = re.split(rf"{mark} (\d+)\n", said.replace(home, HOME_IN_TEXT))
    return list(zip(parts[0::2], map(int, parts[1::2])))


def differences(shown, results):
    """What was not as a page shows it."""
    if len(results) != len(shown):
        yield f"`{shown[len(results)][0]}` did not come to an end"
    for (command, wanted), (got, status) in zip(shown, results):
        if wanted and not matches(wanted, got):
            yield f"`{command}` printed:\n{got}"
        if not wanted and (status != 0 or got):
            yield f"`{command}` ended with {status} and printed:\n{got}"


def runs(project):
    count = 0
    for name, text in project.pages().items():
        shown = list(commands(text))
        if not shown:
            continue
        count += len(shown)
        with tempfile.TemporaryDirectory(prefix="glove-docs.") as folder:
            results = transcript(project, shown, folder, files_of(text))
        for difference in differences(shown, results):
            yield name, difference
    if count == 0:
        yield "README.md", "has no command to run"


RULES = {"links": links, "options": options, "manuals": manuals, "tables": tables, "actions": actions, "lists": lists,
         "constants": constants, "layers": layers, "members": members, "runs": runs}


def findings(project, rules=None):
    return [(rule, *found) for rule, check in (rules or RULES).items() for found in check(project)]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    words = argparse.ArgumentParser(description="Holds the documentation against the program.")
    words.add_argument("--root", default=os.path.join(here, "../.."))
    root = words.parse_args().root
    project = Project(root, os.environ.get("GLOVE_BIN") or os.path.join(root, "build/release/bin/glove"))
    found = findings(project)
    for rule, page, text in found:
        print(f"{page}: {rule}: {text}")
    print(f"docs: {len(project.texts)} pages, {len(RULES)} rules, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
