"""One place to run Glove in, and what a run left there.

A stand has a workspace, a granted directory with every kind of thing that a tree entry is made for
(a socket, a FIFO, a hidden file, a hidden directory), a home and a folder for records. The command
that runs inside first leaves a mark in the workspace and then prints all it can see of its
perimeter, so that a perimeter with a part missing prints something else than a whole one.

The manifest of a run that is over is no part of what may lie there: it is listed for itself, and
where there is one the next run must settle it.
"""
import contextlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import threading

LIMIT = 20  # seconds; a run that needs longer hangs

PROBE = r"""
: > ran
stat -c '%n %f %u %g' /* /dev/* /etc/* /run /var/tmp "$1"/read/*
sed 's/^[0-9]* [0-9]* [0-9:]* //' /proc/self/mountinfo
grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp|Sig[PBIC])' /proc/self/status
cat /proc/self/cgroup /proc/sys/kernel/hostname /proc/sys/user/max_user_namespaces /proc/1/cmdline
cat /proc/net/dev /etc/passwd /etc/hosts "$1/read/plain" "$1/read/hidden" "$1/read/closed/inner"
ls /proc/self/fd
ulimit -c; ulimit -n; umask; pwd
env | sort
"""

SCENARIOS = {
    "full": ["--net", "local", "--output-bytes", "10MB", "--wall-time", "1m", "--audit-sync"],
    "plain": [],
    "ssh": ["--ssh-agent"],
    "egress": ["--egress-allow", "api.example.com", "--egress-allow", ".example.org"],
    "home": ["--home", "faults"],
    "after": [],
}
STATE = "home/.local/state/glove"
MANIFEST = re.compile(r"[0-9a-f]{32}\.json$")


class Result:
    """What one run did, as seen from outside."""

    def __init__(self, stand, scenario, log, stdout, stderr):
        self.calls, self.status, self.hit, self.left, self.executed = [], None, False, 0, False
        for line in log.splitlines():
            word = line.split(" ")
            if word[0] == "call":
                self.calls.append((word[1], word[2], int(word[3]), tuple(word[4:7]), word[7]))
            elif word[0] == "end":
                wait_status = int(word[1])
                self.status = os.waitstatus_to_exitcode(wait_status) if wait_status >= 0 else None
                self.hit, self.left, self.executed = word[2] == "1", int(word[3]), word[4] == "1"
        self.stdout = stdout.replace(stand.base, "STAND")
        self.stderr = stderr.replace(stand.base, "STAND")
        self.ran = os.path.exists(os.path.join(stand.workspace, "ran"))
        self.strays = stand.strays()
        self.audit = stand.audit_actions()
        self.report = os.path.exists(stand.report)
        self.manifests, self.killed = stand.manifests(), stand.killed and stand.killed[0]
        again = "home" if scenario == "home" else "plain"
        self.unsettled = stand.settle(again) if self.manifests or again == "home" else None

    def error(self):
        """(step, whole line) of the one error it told, or None."""
        found = re.search(r"error\[[a-z_]+\]: ([a-z_]+\.[a-z_]+)\b.*$", self.stderr, re.M)
        return (found[1], found[0]) if found else None


class SshAgent:
    """An ssh agent with one key that answers every request with its list."""

    def __init__(self, path):
        self.path, key = path, b"\0\0\0\x07ssh-any"
        body = b"\x0c\0\0\0\x01" + struct.pack(">I", len(key)) + key + struct.pack(">I", 3) + b"own"
        self.answer = struct.pack(">I", len(body)) + body
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            with peer, contextlib.suppress(OSError):
                if peer.recv(5):
                    peer.sendall(self.answer)


class Stand:
    def __init__(self, base, glove, injector):
        self.base, self.glove, self.injector = base, glove, injector
        self.workspace, self.granted = os.path.join(base, "ws"), os.path.join(base, "read")
        self.home, self.records = os.path.join(base, "home"), os.path.join(base, "records")
        self.report = os.path.join(self.records, "report.json")
        for path in (self.workspace, self.granted, self.home, self.records,
                     os.path.join(base, "tmp"), os.path.join(self.granted, "closed")):
            os.makedirs(path)
        for name in ("plain", "hidden", "closed/inner"):
            with open(os.path.join(self.granted, name), "w", encoding="utf-8") as file:
                file.write(f"content of {name}\n")
        os.mkfifo(os.path.join(self.granted, "fifo"))
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(os.path.join(self.granted, "socket"))
        self.socket.listen()
        self.ssh_agent = SshAgent(os.path.join(base, "agent"))
        self.before = self.listing()
        self.killed = None
        self.killed = self.killed_manifest()

    def command(self, scenario):
        return [self.glove, "exec", "--workspace", self.workspace, "--read", self.granted,
                "--hide", os.path.join(self.granted, "hidden"),
                "--hide", os.path.join(self.granted, "closed"), "--env", "FAULT=1",
                "--report", self.report, *SCENARIOS[scenario], "--",
                "/bin/sh", "-c", PROBE, "probe", self.base]

    def start(self, command):
        return subprocess.run(
            command, cwd=self.workspace, stdin=subprocess.DEVNULL, capture_output=True, check=False,
            timeout=LIMIT * 3, encoding="utf-8", errors="replace",
            env={"HOME": self.home, "PATH": "/usr/bin:/bin", "TMPDIR": os.path.join(self.base, "tmp"),
                 "LANG": "C", "TERM": "dumb", "SSH_AUTH_SOCK": self.ssh_agent.path})

    def killed_manifest(self):
        """(name, content) of what a run that is killed leaves here."""
        result = self.run("plain", "--role", "supervisor", "--kill", "ppoll:1")
        if len(result.manifests) != 1:
            raise RuntimeError(f"a killed run left {result.manifests}")
        return result.manifests[0]

    def run(self, scenario, *injection):
        self.clean()
        if scenario == "after":  # another run, which was killed
            os.makedirs(os.path.join(self.base, STATE, "runs"), 0o700)
            path = os.path.join(self.base, STATE, "runs", self.killed[0])
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.killed[1])
        log = os.path.join(self.base, "log")
        done = self.start([self.injector, "--limit", str(LIMIT), *injection, "--out", log, "--",
                           *self.command(scenario)])
        if done.returncode != 0:
            raise RuntimeError(f"the injector failed: {done.stderr}")
        with open(log, encoding="utf-8") as file:
            return Result(self, scenario, file.read(), done.stdout, done.stderr)

    def listing(self):
        found = set()
        for folder, folders, names in os.walk(self.base):
            found.update(os.path.relpath(os.path.join(folder, name), self.base)
                         for name in folders + names)
        return found

    def strays(self):
        """What lies here now and neither did before nor is a record that was asked for."""
        expected = re.compile(r"log$|ws/ran$|records/report\.json$|home/\.local(/state(/glove(/audit"
                              r"(/[0-9a-f]{32}\.jsonl)?|/runs(/[0-9a-f]{32}(\.found)?\.json)?"
                              r"|/credentials|/homes(/\.gate|/faults(/lock|/home|/home\.json)?)?)?)?)?$")
        return sorted(path for path in self.listing() ^ self.before if not expected.match(path))

    def manifests(self):
        """(name, content) of every manifest of a run."""
        folder, found = os.path.join(self.base, STATE, "runs"), []
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found.append((name, file.read()))
        return found

    def settle(self, scenario):
        """What is wrong after the next run, which nothing hinders."""
        done = self.start(self.command(scenario))
        # What was told is kept for `glove quarantine`.
        left = [name for name, _ in self.manifests() if not name.endswith(".found.json")]
        if done.returncode != 0 or left or "manifest." in done.stderr:
            return f"the next run ends with {done.returncode}, leaves {left} and says {done.stderr!r}"
        return None

    def audit_actions(self):
        """The actions on record, in order; a line that is not whole counts as None."""
        found = []
        folder = os.path.join(self.home, ".local/state/glove/audit")
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                for line in file:
                    try:
                        found.append(json.loads(line)["action"])
                    except ValueError:
                        found.append(None)
        return found

    def clean(self):
        for name in self.listing() - self.before:
            path = os.path.join(self.base, name)
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            elif os.path.exists(path):
                os.unlink(path)
