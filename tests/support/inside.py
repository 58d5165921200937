"""What the tests that drive the program share: a place to work in, bare and contained runs of the
same command, and a look at the host's processes and mounts. Also runs them:

    inside.py FILE_test.py [UNITTEST ARGUMENTS...]

Nothing here touches the caller's home: every run keeps its audit record in the place's own folder.
"""
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

GLOVE = os.environ.get("GLOVE_BIN", "")
NODE = os.environ.get("GLOVE_NODE", "")
SOAK = os.environ.get("GLOVE_SOAK") == "1"
SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
# How many times longer than on an ordinary machine everything takes here: under emulation, ten.
SLOWNESS = int(os.environ.get("GLOVE_SLOWNESS", "1"))
# Long enough for a loaded machine; a run that needs it has failed.
PATIENCE = 120 * SLOWNESS


class Place:
    """A fresh folder with a workspace, a home for bare runs and Glove's own state."""

    def __init__(self):
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="glove-test-"))
        self.workspace = self.folder("workspace")
        self.home = self.folder("home")
        self.state = self.folder("state")
        self.verb = "exec"
        self.environment = {
            "PATH": SEARCH_PATH, "HOME": self.home, "TMPDIR": self.folder("tmp"),
            "LANG": "C.UTF-8", "TERM": "xterm", "XDG_STATE_HOME": self.state,
            "XDG_CONFIG_HOME": self.path("configuration"),
        }

    def path(self, *names):
        return os.path.join(self.root, *names)

    def folder(self, *names):
        os.makedirs(self.path(*names), exist_ok=True)
        return self.path(*names)

    def put(self, name, text, mode=0o644):
        """A file of the workspace."""
        full = os.path.join(self.workspace, name)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(full, mode)
        return full

    def empty_workspace(self):
        shutil.rmtree(self.workspace)
        os.mkdir(self.workspace)

    def remove(self):
        subprocess.run(["rm", "-rf", "--", self.root], check=True)

    def glove(self, *command, flags=(), workspace=True):
        """The command line of a contained run."""
        here = ["--workspace", self.workspace] if workspace else []
        return [GLOVE, self.verb, *here, *flags, "--", *command]

    def start(self, *command, flags=(), workspace=True, **options):
        options.setdefault("env", self.environment)
        options.setdefault("cwd", self.workspace)
        return subprocess.Popen(self.glove(*command, flags=flags, workspace=workspace), **options)

    def run(self, *command, flags=(), workspace=True, **options):
        options.setdefault("timeout", PATIENCE)
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("env", self.environment)
        options.setdefault("cwd", self.workspace)
        return subprocess.run(self.glove(*command, flags=flags, workspace=workspace),
                              capture_output=True, check=False, **options)

    def bare(self, *command, **options):
        options.setdefault("timeout", PATIENCE)
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("env", self.environment)
        return subprocess.run(command, cwd=self.workspace, capture_output=True, check=False,
                              **options)


class Case(unittest.TestCase):
    """A test with a place, which is gone afterwards."""

    maxDiff = 4000

    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)

    def need(self, *programs):
        """A missing program is an error, never a skip: scripts/install-deps test installs it."""
        for name in programs:
            self.assertIsNotNone(shutil.which(name, path=SEARCH_PATH), f"{name} is not installed")

    def same(self, *command, files=None, flags=(), status=0, tells=(), timeout=PATIENCE):
        """Runs the command bare and contained, each in a fresh workspace of the same name, and
        requires the same output and status. `tells` are lines that must be among the output, so that
        two equal failures are no success."""
        outcomes = []
        for run in (self.place.bare, lambda *c, **o: self.place.run(*c, flags=flags, **o)):
            self.place.empty_workspace()
            for name, text in (files or {}).items():
                self.place.put(name, text, 0o755 if text.startswith("#!") else 0o644)
            done = run(*command, timeout=timeout)
            outcomes.append((done.returncode, done.stdout.decode(errors="backslashreplace"),
                             done.stderr.decode(errors="backslashreplace")))
        (bare_status, bare_out, bare_err), (status_inside, out, err) = outcomes
        self.assertEqual(bare_status, status, f"bare: {bare_out}\n{bare_err}")
        self.assertEqual(status_inside, status, f"inside: {out}\n{err}")
        self.assertEqual(out, bare_out, f"inside: {err}")
        for line in tells:
            self.assertIn(line, out.splitlines(), err)
        return out

    def same_script(self, script, shell=("bash", "-eu"), **options):
        files = dict(options.pop("files", {}), **{"the.script": script})
        return self.same(*shell, "the.script", files=files, **options)

    def inside(self, *command, status=0, **options):
        """A contained run that must end with the status; returns its output as text."""
        done = self.place.run(*command, **options)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout.decode(errors="backslashreplace")


# -- the host, as the tests see it ----------------------------------------------------------------

def wait_until(true, seconds=PATIENCE):
    """Polls; whether the condition came true in time."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def facts(pid):
    """(parent, state, start time) of a process, or None when there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[1]), fields[0].decode(), int(fields[19])


def numbers():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def marked(marker):
    """Numbers of the processes that carry the marker in an argument."""
    found = []
    for pid in numbers():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            if marker.encode() in file.read():
                found.append(pid)
    return found


def descendants(pid):
    """{number: start time} of everything below a process."""
    table = {n: f for n in numbers() if (f := facts(n))}
    found, edge = {}, {pid}
    while edge:
        edge = {n for n, f in table.items() if f[0] in edge and n not in found}
        found.update({n: table[n][2] for n in edge})
    return found


def alive(processes):
    """Those of {number: start time} that have not ended. One that only waits for its parent, which
    may be the host's own init, has."""
    return [pid for pid, start in processes.items()
            if (now := facts(pid)) and now[2] == start and now[1] not in "ZX"]


def children(pid=None):
    """Numbers of the children of a process, of this one by default; zombies count."""
    pid = pid or os.getpid()
    return sorted(n for n in numbers() if (f := facts(n)) and f[0] == pid)


def child_of(pid):
    """The one child of a supervisor or of init."""
    found = children(pid)
    return found[0] if found else None


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        return sorted(file)


def listing(folder):
    """Every name below a folder with what it is."""
    found = []
    for at, folders, names in os.walk(folder):
        for name in folders + names:
            full = os.path.join(at, name)
            found.append((os.path.relpath(full, folder), os.lstat(full).st_mode))
    return sorted(found)


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))


def end(process):
    """Ends a run that a failed test left behind."""
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()


def main():
    if not os.access(GLOVE, os.X_OK):
        sys.exit("GLOVE_BIN names no program: run this test through ctest")
    file = os.path.abspath(sys.argv[1])
    sys.path.insert(1, os.path.dirname(file))
    name = os.path.basename(file).removesuffix(".py")
    unittest.main(module=name, argv=[name, *sys.argv[2:]], verbosity=2)


if __name__ == "__main__":
    main()
