#!/usr/bin/env python3
"""The rules about the tree itself. CONTRIBUTING.md says them in words.

    tidy.py [--root FOLDER]

Reads the files that Git tracks or would track. Prints a line per finding, `path:line: rule: words`,
and ends with 1 when there is one. Sizes are a feeling, not a law: they are printed as warnings and
change nothing. tidy_test.py breaks every rule once and sees it fire.
"""
import argparse
import functools
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import definitions  # noqa: E402

LAYERS = [
    {"base"}, {"sys"}, {"wire"}, {"journal", "reflect"}, {"policy", "audit", "mcp", "net", "ssh"},
    {"container", "supervisor", "adapters"}, {"kernel", "control"}, {"run", "host"},
    {"cli", "daemon"},
]
RANK = {component: rank for rank, layer in enumerate(LAYERS) for component in layer}

DESCRIPTORS = "include/glove/sys/fd.hpp"
RAW_CALLS_IN = ("src/sys/", "src/container/linux/")
HEAD_FROM_LINES = 40
CPP_LINES, HEADER_LINES, FUNCTION_LINES = 400, 200, 60

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<([^>\n]+)>|"([^"\n]+)")', re.M)
QUALIFIED_CLOSE = re.compile(r"(?<![\w:>])::\s*close\s*\(")
BARE_CLOSE = re.compile(r"(?:^|[;{}()=!,])\s*close\s*\(\s*[^)\s]", re.M)
RAW_CALL = re.compile(r"(?<![\w.>])(?:::\s*)?\bsyscall\s*\(")
KEPT_OUT_OF_HEADERS = re.compile(r"^(linux/|boost/json|CLI/|CLI11|openssl/)")
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b")
OWN_MACHINE = re.compile(
    r"(?<![\w.$}~/-])/(?:(?:home|Users)/(?!(?:agents?|user|you|NAME)\b)[\w.-]+|tmp/wt)/"
    r"|(?<![\w.$}~/-])/(?:work|src|checkout)/(?:main|shared)\b|/root/\.\w")
REGISTRY = re.compile(
    r"\b(?:registry|deb|archive|security|files|static|index|proxy)\.(?!example\b)[a-z-]+\.(?:org|com|io)\b"
    r"|\b(?:pypi|npmjs|crates)\.(?:org|com|io)\b")
CODE_PIECE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'", re.S)
NO_FUNCTION = re.compile(
    r"^\s*(?:if|for|while|switch|catch|do|else|try|namespace|class|struct|union|enum|extern)\b|=\s*$")


class Tree:
    """The files of a checkout, read once."""

    def __init__(self, root):
        self.root = os.path.realpath(root)
        self.paths = [path for path in self._list() if os.path.isfile(self.full(path))]

    def _list(self):
        listed = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", self.root, "ls-files", "-z", "--cached",
             "--others", "--exclude-standard"], capture_output=True, text=True, check=False)
        if listed.returncode == 0:
            return sorted(set(filter(None, listed.stdout.split("\0"))))
        found = []
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name not in ("build", ".git", ".cache")]
            found += [os.path.relpath(os.path.join(folder, name), self.root) for name in names]
        return sorted(found)

    def full(self, path):
        return os.path.join(self.root, path)

    @functools.cache
    def text(self, path):
        """The file's text, or nothing for a binary file."""
        with open(self.full(path), "rb") as file:
            data = file.read()
        return "" if b"\0" in data else data.decode("utf-8", "replace")

    @functools.cache
    def code(self, path):
        """The text with comments and literals blanked, line for line."""
        return CODE_PIECE.sub(lambda piece: re.sub(r"[^\n]", " ", piece[0]), self.text(path))

    def cpp(self, *folders):
        return [path for path in self.paths
                if path.endswith((".cpp", ".hpp")) and path.startswith(folders)]

    def product(self):
        return self.cpp("src/", "include/")


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def includes(tree, path):
    """(line, name, quoted) for each #include of the file; what a comment shows does not count."""
    text, code = tree.text(path), tree.code(path)
    for match in INCLUDE.finditer(text):
        if "#" in code[match.start():match.end()]:
            yield line_of(text, match.start(match.lastindex)), match[1] or match[2], bool(match[2])


def component(path):
    """The component of a file under src/ or include/glove/, or None for one beside them."""
    parts = path.split("/")
    parts = parts[1:] if parts[0] == "src" else parts[2:]
    return parts[0] if len(parts) > 1 else None


def layers(tree):
    for path in tree.product():
        own = component(path)
        if own not in RANK:
            yield path, 1, "is in no component that has a layer"
            continue
        for line, name, quoted in includes(tree, path):
            if not quoted and not name.startswith("glove/"):
                continue
            if ".." in name.split("/"):
                yield path, line, f"includes {name} by a relative path"
                continue
            other = name.removeprefix("glove/").split("/")[0]
            if other == own or other not in RANK or "/" not in name:
                continue
            if RANK[other] >= RANK[own]:
                yield path, line, f"{own} includes {other}, which is not below it"


def one_close(tree):
    seen = 0
    for path in tree.product():
        code = tree.code(path)
        for match in [*QUALIFIED_CLOSE.finditer(code), *BARE_CLOSE.finditer(code)]:
            seen += path == DESCRIPTORS
            if path != DESCRIPTORS or seen > 1:
                yield path, line_of(code, match.end() - 1), "closes a descriptor: let unique_fd do it"


def raw_calls(tree):
    for path in tree.product():
        if path.startswith(RAW_CALLS_IN):
            continue
        for match in RAW_CALL.finditer(tree.code(path)):
            yield path, line_of(tree.code(path), match.start()), "makes a raw system call"


def public_headers(tree):
    for path in tree.cpp("include/"):
        for line, name, _ in includes(tree, path):
            if KEPT_OUT_OF_HEADERS.match(name):
                yield path, line, f"a public header includes {name}"


def heads(tree):
    for path in tree.product():
        text = tree.text(path)
        if text.count("\n") > HEAD_FROM_LINES and not text.startswith(("//", "/*")):
            yield path, 1, "does not begin with a comment that says what it guarantees"


def every_line(tree, pattern, words, but=()):
    for path in tree.paths:
        if path in but:
            continue
        for match in pattern.finditer(tree.text(path)):
            yield path, line_of(tree.text(path), match.start()), f"{words}: {match[0]}"


def one_definition(tree):
    """Two headers that mean different things by one name link without a word, and one of them wins."""
    first = {}
    for path in tree.product():
        for space, name, offset in definitions.definitions(tree.code(path)):
            other = first.setdefault((space, name), path)
            if other != path:
                yield path, line_of(tree.code(path), offset), f"{space}::{name} is defined in {other} as well"


def fuzz_seeds(tree):
    path = "fuzz/CMakeLists.txt"
    text = tree.text(path) if path in tree.paths else ""
    for found in re.finditer(r"^glove_fuzz\((\w+)_fuzz\b", text, re.M):
        if not any(each.startswith(f"fuzz/seeds/{found[1]}/") for each in tree.paths):
            yield path, line_of(text, found.start()), f"{found[1]} has no seeds"


def unfinished(tree):
    yield from every_line(tree, UNFINISHED, "unfinished work")


def machine_names(tree):
    yield from every_line(tree, OWN_MACHINE, "a path of somebody's machine")
    yield from every_line(tree, REGISTRY, "a registry's host")
    if tree.root.count("/") > 1:
        own = re.compile(re.escape(tree.root) + r"\b")
        yield from every_line(tree, own, "the path of this checkout")


def is_shell(tree, path):
    first = tree.text(path).split("\n", 1)[0]
    return path.endswith((".sh", ".bash")) or bool(re.match(r"#!.*\b(ba|da)?sh\b", first))


def tool(name):
    """The program, None when it is missing; where nothing may be skipped, that is a finding."""
    found = shutil.which(name)
    if not found:
        print(f"tidy: {name} is not installed: its rule did not run", file=sys.stderr)
    return found


def missing_tool(name):
    if os.environ.get("CI") == "true":
        yield ".", 1, f"{name} is not installed"


def shell(tree):
    scripts = [path for path in tree.paths if is_shell(tree, path)]
    if not scripts:
        return
    program = tool("shellcheck")
    if not program:
        yield from missing_tool("shellcheck")
        return
    done = subprocess.run([program, "-x", "-P", "SCRIPTDIR", "-f", "gcc", *scripts], cwd=tree.root,
                          capture_output=True, text=True, check=False)
    for line in (done.stdout + done.stderr).splitlines():
        where = re.match(r"([^:]+):(\d+):\d+: (.*)", line)
        yield (where[1], int(where[2]), where[3]) if where else (".", 1, line)


def layout(tree):
    files = tree.cpp("src/", "include/", "tests/", "bench/", "fuzz/")
    if not files:
        return
    program = tool("clang-format-19")
    if not program:
        yield from missing_tool("clang-format-19")
        return
    done = subprocess.run([program, "--dry-run", "-Werror", "--style=file", *files], cwd=tree.root,
                          capture_output=True, text=True, check=False)
    spoken = set()
    for where in re.finditer(r"^([^:\n]+):(\d+):\d+: error", done.stderr, re.M):
        if where[1] not in spoken:
            spoken.add(where[1])
            yield where[1], int(where[2]), "is not laid out by scripts/format"
    if done.returncode != 0 and not spoken:
        yield ".", 1, done.stderr.strip()


def functions(code):
    """(first line, number of lines) of each function body. A guess from braces, for a warning."""
    stack, since = [], 0
    for match in re.finditer(r"[{};]", code):
        offset = match.start()
        if match[0] == "{":
            before = code[since:offset]
            inside = any(kind for kind, _ in stack)
            is_function = not inside and ")" in before and not NO_FUNCTION.search(before)
            stack.append((is_function, line_of(code, offset)))
        elif match[0] == "}" and stack:
            is_function, first = stack.pop()
            if is_function:
                yield first, line_of(code, offset) - first + 1
        since = offset + 1


def sizes(tree):
    for path in tree.product():
        lines = tree.text(path).count("\n")
        limit = CPP_LINES if path.endswith(".cpp") else HEADER_LINES
        if lines > limit:
            yield path, 1, f"has {lines} lines, more than {limit}"
        for first, length in functions(tree.code(path)):
            if length > FUNCTION_LINES:
                yield path, first, f"a function of {length} lines, more than {FUNCTION_LINES}"


RULES = {
    "layers": layers, "one-close": one_close, "raw-calls": raw_calls,
    "public-headers": public_headers, "heads": heads, "one-definition": one_definition,
    "fuzz-seeds": fuzz_seeds, "unfinished": unfinished,
    "machine-names": machine_names, "shell": shell, "layout": layout,
}
WARNINGS = {"sizes": sizes}


def findings(tree, rules):
    return [(rule, *found) for rule, check in rules.items() for found in check(tree)]


def main():
    options = argparse.ArgumentParser(description="Checks the rules about the tree itself.")
    options.add_argument("--root", default=os.path.join(os.path.dirname(__file__), "../.."))
    tree = Tree(options.parse_args().root)
    for rule, path, line, words in findings(tree, WARNINGS):
        print(f"{path}:{line}: warning: {rule}: {words}")
    broken = findings(tree, RULES)
    for rule, path, line, words in broken:
        print(f"{path}:{line}: {rule}: {words}")
    print(f"tidy: {len(tree.paths)} files, {len(RULES)} rules, {len(broken)} findings")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
