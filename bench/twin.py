"""The perimeter of `glove exec` as arguments of bwrap, so that the two can be timed against each other.

Taken from what Glove itself says (`--explain --json`) and shows (the mounts inside), not from a
list kept here: the same binds, links, private directories and files, the same /proc and /dev, and
every namespace. bwrap gets no system-call filter unless asked, and none of Glove's records.
"""
import json
import os
import re
import struct
import subprocess

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
GLOVE = os.environ.get("GLOVE_BIN") or os.path.join(ROOT, "build/release/bin/glove")
TOOLS = os.path.join(ROOT, "build/release/bench")
BWRAP = "/usr/bin/bwrap"

# bwrap covers these itself where the caller could write to them.
COVERED_BY_BWRAP = {"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"}


def output(*command):
    return subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True).stdout


def inside(*command):
    return output(GLOVE, "exec", "--", *command)


def mounts(text):
    """(root, mount point) of each line of a mountinfo."""
    return [tuple(line.split(" ")[3:5]) for line in text.splitlines()]


class Twin:
    """bwrap's arguments, and the files that it reads through descriptors."""

    def __init__(self, folder, options=(), every_proc_mount=True):
        self.folder, self.descriptors = folder, {}
        plan = json.loads(output(GLOVE, "exec", *options, "--explain", "--json", "--", "/bin/true"))
        self.words = [BWRAP, "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net",
                      "--unshare-uts", "--unshare-cgroup", "--hostname", "glove",
                      "--uid", str(plan["uid"]), "--gid", str(plan["gid"]), "--die-with-parent",
                      "--cap-drop", "ALL", "--clearenv"]
        for line in inside("/usr/bin/env", "-0").split("\0")[:-1]:
            self.words += ["--setenv", *line.split("=", 1)]
        for entry in plan["tree"]:
            self._add(entry)
        if every_proc_mount:
            self._add_proc_mounts()
        self.words += ["--remount-ro", "/", "--chdir", plan["work_directory"]]

    def _add(self, entry):
        path, kind = entry["path"], entry["kind"]
        if path == "/proc":
            self.words += ["--proc", path]
        elif path == "/dev":
            self.words += ["--dev", path]
        elif path.startswith("/dev/"):
            return  # of --dev
        elif kind == "directory":
            self.words += ["--dir", path]
        elif kind == "link":
            self.words += ["--symlink", entry["target"], path]
        elif kind == "bind":
            self.words += ["--bind" if entry["access"] == "write" else "--ro-bind",
                           entry["source"], path]
        elif kind == "scratch":
            self.words += ["--perms", inside("/usr/bin/stat", "-c%a", path).strip(), "--tmpfs", path]
        elif kind == "file":
            self.words += ["--perms", "444", "--file", str(self._descriptor(path)), path]
        else:
            raise ValueError(f"no twin for {kind} {path}")

    def _descriptor(self, path):
        number = 20 + len(self.descriptors)
        copy = os.path.join(self.folder, path.replace("/", "_"))
        with open(copy, "w", encoding="utf-8") as file:
            file.write(inside("/bin/cat", path))
        self.descriptors[number] = copy
        return number

    def _add_proc_mounts(self):
        for root, place in mounts(inside("/bin/cat", "/proc/self/mountinfo")):
            if not place.startswith("/proc/"):
                continue
            if "mask." in root:
                self.words += ["--tmpfs", place] if os.path.isdir(place) else \
                    ["--ro-bind", "/dev/null", place]
            elif place not in COVERED_BY_BWRAP or os.geteuid() != 0:
                self.words += ["--ro-bind", place, place]

    def command(self, *words):
        return [*self.words, "--", *words]

    @staticmethod
    def version():
        return output(BWRAP, "--version").strip()

    def run(self, *words):
        """Runs it once and returns what it printed."""
        for number, path in self.descriptors.items():
            source = os.open(path, os.O_RDONLY)
            os.dup2(source, number, inheritable=True)
            os.close(source)
        done = subprocess.run(self.command(*words), check=True, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, pass_fds=tuple(self.descriptors))
        for number in self.descriptors:
            os.close(number)
        return done.stdout

    def add_filter(self):
        """Glove's own filter of the default tier, as bwrap takes it."""
        with open(os.path.join(ROOT, f"build/release/generated/seccomp/seccomp_bpf_{machine()}.inc"),
                  encoding="utf-8") as file:
            program = re.search(r"offline\[\] = \{[^\n]*\n(.*?)\};", file.read(), re.S)[1]
        path = os.path.join(self.folder, "filter")
        with open(path, "wb") as file:
            for row in re.findall(r"\{(\d+),(\d+),(\d+),(\d+)\}", program):
                file.write(struct.pack("=HBBI", *map(int, row)))
        number = 20 + len(self.descriptors)
        self.descriptors[number] = path
        self.words += ["--seccomp", str(number)]


def machine():
    return {"x86_64": "x86_64", "aarch64": "arm64"}[os.uname().machine]


def time_commands(folder, commands, rounds, at_once=1):
    """{name: {p10, p50, p90, ratio}}; commands are (name, words, descriptors), the first is 1."""
    path = os.path.join(folder, "commands")
    with open(path, "w", encoding="utf-8") as file:
        for name, words, descriptors in commands:
            file.write(f"command {name}\n")
            file.writelines(f"arg {word}\n" for word in words)
            file.writelines(f"fd {number} {source}\n" for number, source in descriptors.items())
    return json.loads(output(os.path.join(TOOLS, "spawn_timer"), "--rounds", str(rounds),
                             "--at-once", str(at_once), path))


def as_user(arguments):
    """The command that runs this benchmark again as the user of the tests."""
    return [os.path.join(ROOT, "scripts/as-test-user"), "/usr/bin/python3", "-B", *arguments]
