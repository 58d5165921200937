#!/usr/bin/env python3
"""Fails every system call of a launch, each occurrence in turn, and judges what came of it.

    faults.py INJECTOR [unittest arguments]

A clean run says which calls the supervisor, init and the agent make. Up to the order that lets the
agent start, a failing call must end the run: the command never ran, the status is Glove's own, one
error names the step and the errno, and no process, mount or file is left. Calls whose failure is
borne are in the table TOLERATED with the reason; such a run must then be whole, or be refused like
the others. Anything between the two, and anything that hangs, is a defect. A whole run is known by
what the command printed of its perimeter.

The looks at what became of protected files, of a run that was killed before and of this one, never
end a run; what they could not see must be said. The manifest that they go by stays only after a
kill, or where its removal failed, and then the next run must settle it.

The short form kills at a sample of the calls; GLOVE_SOAK=1 kills at every one.
"""
import collections
import concurrent.futures
import errno
import json
import os
import queue
import re
import shutil
import sys
import tempfile
import unittest

import stand

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SOAK = os.environ.get("GLOVE_SOAK") == "1"
JOBS = int(os.environ.get("GLOVE_FAULT_JOBS", (os.cpu_count() or 1) + 1))
# The host's table of sockets decides how many paths are looked at, and it changes while the tests run:
# how often these are made is nobody's promise, nor how often the watch of a run wakes up and hands output
# on. Of the others, few may be missed.
UNSTEADY = {"newfstatat", "readlink", "brk", "read"}
UNREACHED = 0.01

# What a run with destinations does in another place than one without.
FOR_EGRESS = {"clone", "clone3", "socketpair", "recvfrom", "sendto", "poll", "memfd_create", "vfork"}

# What a run with an ssh agent does in another place than one without.
FOR_SSH = {"bind", "listen", "sendmsg", "connect", "socket", "fchdir", "epoll_create1", "epoll_ctl", "timerfd_create",
           "recvmsg", "recvfrom", "sendto", "poll", "vfork", "clone", "open_tree", "mount_setattr", "move_mount"}

# Of what these do, only one part is in no other.
PARTS = {"home": "home", "after": "review"}
LATE = {"watch", "look", "end"}  # the agent may have started
LOOKS = {"review", "look"}
# What a look need not tell of.
SILENT = {("close", "-"), ("munmap", "-"), ("futex", "-"), ("newfstatat", "")}
UNSEARCHED = "was not searched in full"

# Calls that are left alone, and why.
NOT_INJECTED = {
    "brk": "tells a failure by an unchanged break, which no errno can imitate",
    "exit_group": "does not return", "geteuid": "cannot fail", "getegid": "cannot fail",
    "getuid": "cannot fail", "getgid": "cannot fail",
    "umask": "cannot fail",
}
# role, call, path or occurrence or None for any: why its failure need not end the run.
TOLERATED = [
    ("*", "munmap", None, "memory of a process that is about to end or does not need it"),
    ("*", "futex", None, "a wake-up that nobody waits for"),
    ("*", "close", None, "Linux closes the descriptor whatever it returns"),
    ("supervisor", "mmap", None, "room for the ssh agent's requests, which malloc then has elsewhere"),
    ("supervisor", "fcntl", None, "a stream that cannot be asked is taken for closed"),
    ("supervisor", "newfstatat", "", "glibc's own look at a directory it has opened"),
    ("supervisor", "openat", "/proc/net/unix", "the walk still finds what is listed; reported"),
    ("supervisor", "read", None, "the walk still finds what is listed; reported"),
    ("supervisor", "flock", None, "unlocking: the lock ends with the descriptor"),
    ("supervisor", "fstatfs", None, "the lines of several runs are then kept apart by a lock"),
    ("supervisor", "rt_sigprocmask", "#3", "restoring a mask that was just read cannot fail"),
    ("supervisor", "rt_sigprocmask", "#5", "the same, around the start of glove-egress"),
    ("supervisor", "linkat", None, "the name is then given by another way"),
    ("supervisor", "openat", ".", "of a file without a name, which is then made under another one"),
    ("supervisor", "poll", None, "what glove-egress says is asked for again until the deadline"),
    ("supervisor", "recvfrom", None, "glove-egress is taken for ended, and that is told"),
    ("bridge", "sendto", None, "init sees the bridge end without a word"),
    ("supervisor", "ioctl", None, "asks whether a stream is a terminal"),
    ("agent", "rt_sigaction", "#1", "asks whether SIGHUP is ignored; it is reset then"),
    ("agent", "rt_sigaction", "#3", "asks whether SIGINT is ignored; it is reset then"),
    ("agent", "rt_sigaction", "#5", "asks whether SIGQUIT is ignored; it is reset then"),
    ("init", "close_range", "one", "of a scratch descriptor: the last one closes all that are left"),
]
# The same, and the perimeter may then look another way that is no weaker.
OTHERWISE = [
    ("supervisor", "faccessat2", "/bin/bash", "the shell is then /bin/sh"),
    ("supervisor", "sysinfo", None, "the private file system then has the smallest bounds"),
]

ERRNOS = {  # beside EIO
    "open_tree": [errno.ENOMEM, errno.EMFILE, errno.ENOSYS, errno.EPERM],
    "openat2": [errno.EMFILE], "openat": [errno.EMFILE],
    "clone3": [errno.EPERM, errno.ENOSYS, errno.ENOSPC, errno.EAGAIN],
    "unshare": [errno.EPERM, errno.ENOSPC], "mkdirat": [errno.ENOSPC],
    "symlinkat": [errno.ENOSPC], "fsconfig": [errno.EINVAL, errno.EPERM],
    "fsopen": [errno.ENODEV, errno.EPERM], "fsmount": [errno.EPERM],
    "mount_setattr": [errno.ENOSYS, errno.EPERM, errno.EINVAL],
    "move_mount": [errno.EPERM], "pivot_root": [errno.EINVAL, errno.EPERM],
    "keyctl": [errno.EDQUOT, errno.ENOSYS], "seccomp": [errno.EINVAL, errno.ENOSYS],
    "write": [errno.ENOSPC, errno.EINTR], "fsync": [errno.ENOSPC], "flock": [errno.EINTR],
    "read": [errno.EINTR], "recvfrom": [errno.EINTR], "ppoll": [errno.EINTR],
    "poll": [errno.EINTR], "waitid": [errno.EINTR], "wait4": [errno.EINTR],
    "getrandom": [errno.EINTR], "execve": [errno.ENOENT, errno.EACCES],
}
# Every occurrence of these is one loop over the tree: the extra errnos meet a sample.
SAMPLE_EVERY = 1 if SOAK else 7


def known_steps():
    """Every step that the sources can name."""
    found = set()
    for top in ("src", "include"):
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            for name in names:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found.update(re.findall(r'"([a-z]+\.[a-z_]+)"', file.read()))
    return found


class Case:
    """One call to fail or to be killed at."""

    def __init__(self, scenario, call, phase, error):
        self.scenario, self.phase, self.error = scenario, phase, error
        self.role, self.name, self.occurrence, (first, last, _), self.path = call
        if self.name == "close_range":
            self.path = "one" if first == last else "many"

    def injection(self):
        what = f"{self.name}:{self.occurrence}"
        action = ["--fail", f"{what}:{self.error}"] if self.error else ["--kill", what]
        return ["--role", self.role, *action]

    def unsteady(self):
        return self.name in UNSTEADY or self.phase in LATE

    def is_the_one(self, result):
        """Whether the call that was failed is the one that was meant, as far as a path tells."""
        if self.name not in UNSTEADY or not result.calls:
            return True
        return os.path.basename(result.calls[-1][4]) == os.path.basename(self.path)

    def __str__(self):
        how = errno.errorcode[self.error] if self.error else "SIGKILL"
        return (f"{self.scenario}: {self.role} {self.name} #{self.occurrence} {self.path} {how}"
                f" ({self.phase})")


def part(phase, call):
    """The supervisor's phase from this call on."""
    name, path = call[1], call[4]
    if phase in ("setup", "sockets") and path.endswith("/glove/homes") and name == "mkdir" and call[2] == 1:
        return "home"
    if phase in ("setup", "sockets") and path.endswith("/glove/runs") and name == "faccessat2":
        return "review"
    if (phase, name) in (("home", "prlimit64"), ("review", "getrandom")):
        return "setup"
    if (phase, name) == ("watch", "openat2"):
        return "look"
    return "end" if (phase, name) == ("look", "write") else phase  # the outcome's line of the record


def phases(calls):
    """(call, phase) for each call.

    The loader's; the set-up's; within it the look at sockets all over the host, most of which are
    no concern of the run; and what follows the start. Apart: the part that opens a home, the look at
    what was killed before, and the look at this run's own changes, which ends with its manifest.
    """
    phase = {"supervisor": "load", "init": "setup", "agent": "setup", "bridge": "setup"}
    sent = 0
    for call in calls:
        role, name = call[:2]
        if phase[role] == "load" and name == "fcntl":
            phase[role] = "setup"
        if phase[role] == "sockets" and name == "openat":
            phase[role] = "setup"
        if phase[role] == "setup" and call[4] == "/proc/net/unix":
            phase[role] = "sockets"
        if role == "supervisor":
            phase[role] = part(phase[role], call)
        yield call, phase[role]
        # An order of that size: what the ssh agent is asked has another.
        sent += role == "supervisor" and name == "sendto" and call[3][2] == "8"
        if role == "supervisor" and name == "sendto" and sent == 2:
            phase[role] = "watch"  # the second order is the one that starts the agent
        if role == "init" and name in ("clone", "vfork"):
            phase[role] = "watch"
        if role == "bridge" and name == "sendto":
            phase[role] = "watch"  # it told init that it has started


def listed(table, case):
    """Whether the case's call is in the table."""
    return any(role in ("*", case.role) and call == case.name and
               path in (None, case.path, f"#{case.occurrence}")
               for role, call, path, _ in table)


def is_json(text):
    try:
        return bool(json.loads(text))
    except ValueError:
        return False


class Judge:
    """What a run has to be, given the clean run of its scenario."""

    def __init__(self, clean):
        self.clean, self.steps = clean, known_steps()

    def defects(self, case, result):
        found = []
        if result.status is None:
            return [f"hangs for {stand.LIMIT} s"]
        if result.left:
            found.append(f"{result.left} processes are left")
        if result.strays:
            found.append(f"files are left or gone: {result.strays}")
        found += self.manifests(case, result)
        if not result.hit:
            return found
        if result.ran and result.audit[:1] != ["agent_launch"]:
            found.append(f"the command ran without its line on record: {result.audit}")
        found += self.killed(case, result) if not case.error else self.failed(case, result)
        return found

    def manifests(self, case, result):
        killed = result.hit and not case.error and case.role == "supervisor"
        # Of these the count moves, and then they meet the time after the removal.
        held = case.phase in ("watch", "look") and case.name not in ("read", "write", "ppoll", "close")
        told = result.hit and case.phase in LOOKS and self.tells(case, result)
        names = [name for name, _ in result.manifests]
        # A run that was killed and could not be searched in full is told, and kept as that.
        old = [name for name in names if name.replace(".found.json", ".json") == result.killed]
        own = len(names) - len(old)
        found = [f"a manifest is torn: {name}" for name, text in result.manifests if not is_json(text)]
        if old and not (killed or told):
            found.append("the manifest of the run before is left")
        if own > (killed or (told and case.name == "unlinkat")):
            found.append(f"manifests are left: {names}")
        if killed and held and not own:
            found.append("no manifest says what the command could change")
        return found + ([result.unsettled] if result.unsettled else [])

    @staticmethod
    def tells(case, result):
        return UNSEARCHED in result.stderr or (case.error and os.strerror(case.error) in result.stderr)

    def looked(self, case, result):
        """A look that failed in part: the run goes on, and says so."""
        if not self.whole(result):
            return self.refused(case, result, tell_errno=True)
        silent = (case.name, case.path) in SILENT or case.error == errno.EINTR
        return [] if silent or self.tells(case, result) else ["a look failed, and it is not told"]

    def killed(self, case, result):
        if case.phase not in LATE and result.ran:
            return ["the command ran"]
        # Without its bridge a run goes on, and reaches nothing.
        alone = case.role == "bridge" and case.phase in LATE
        if case.role == "supervisor" or result.status not in (0, -9) or alone:
            return []
        return [f"ends with status {result.status}"]

    def failed(self, case, result):
        if case.phase in LOOKS:
            return self.looked(case, result)
        borne = case.phase in LATE or case.phase == "sockets" or listed(TOLERATED, case) or case.error == errno.EINTR
        if self.whole(result):
            return [] if borne or case.phase == "load" else ["the failure was ignored"]
        if listed(OTHERWISE, case):
            return [] if result.status == 0 and result.ran else ["did not go on"]
        if case.phase == "load":
            return ["the command ran"] if result.ran or result.status == 0 else []
        return self.refused(case, result, tell_errno=not borne)

    def whole(self, result):
        clean = self.clean[result.scenario]
        return result.status == 0 and result.stdout == clean.stdout and result.report and \
            result.audit == clean.audit

    def refused(self, case, result, tell_errno):
        found = []
        if case.phase not in LATE | LOOKS and result.ran:
            found.append("the command ran")
        error = result.error()
        if not error:
            return found + [f"no error is told (status {result.status}): {result.stderr.strip()!r}"
                            f"{self.difference(result)}"]
        step, line = error
        if step not in self.steps:
            found.append(f"the step is unknown: {line}")
        # A home's places are Glove's own: what is wrong with them is no mistake in the words given.
        if case.phase == "home" and step.startswith("grant."):
            found.append(f"the step is one of the words given: {line}")
        if result.status not in self.statuses(step):
            found.append(f"ends with status {result.status}: {line}")
        if tell_errno and case.name != "execve" and os.strerror(case.error) not in line:
            found.append(f"the errno is not told: {line}")
        return found

    @staticmethod
    def statuses(step):
        if step == "agent.exec":
            return (126, 127)
        return (2,) if step.startswith(("grant.", "environment.")) else (125,)

    def difference(self, result):
        here, there = result.stdout.splitlines(), self.clean[result.scenario].stdout.splitlines()
        changed = [f"+{x}" for x in here if x not in there] + \
            [f"-{x}" for x in there if x not in here]
        return f"; the command saw {changed[:4]}" if result.ran else ""


class Bench:
    """Stands that threads take turns on."""

    def __init__(self, injector):
        # Not below a place that the agent gets anew, nor one that is closed to the tests.
        self.base = tempfile.mkdtemp(prefix="glove-faults-", dir=os.path.realpath("/var/tmp"))
        self.glove = os.environ.get("GLOVE_BIN") or os.path.join(ROOT, "build/release/bin/glove")
        # All of them before the first run: their sockets are in the table that each run reads.
        self.made = [stand.Stand(os.path.join(self.base, str(number)), self.glove, injector)
                     for number in range(JOBS)]
        self.free = queue.SimpleQueue()
        for each in self.made:
            self.free.put(each)

    def run(self, scenario, *injection):
        mine = self.free.get()
        try:
            result = mine.run(scenario, *injection)
        finally:
            self.free.put(mine)
        result.scenario = scenario
        return result

    def map(self, work, items):
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            return list(pool.map(work, items))

    def close(self):
        for each in self.made:
            each.socket.close()
        shutil.rmtree(self.base)


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        return {line for line in file if "glove-faults-" in line}


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bench = Bench(INJECTOR)
        cls.addClassCleanup(cls.bench.close)
        cls.clean, cls.cases = {}, []
        for scenario in stand.SCENARIOS:
            cls.clean[scenario] = cls.bench.run(scenario)
            again = cls.bench.run(scenario)
            if again.stdout != cls.clean[scenario].stdout or again.status != 0 or not again.ran:
                raise AssertionError(f"two clean runs differ: {again.stderr}")
        cls.judge = Judge(cls.clean)
        cls.calls = {name: list(phases(clean.calls)) for name, clean in cls.clean.items()}
        # The others add only what the full one does not do.
        counts = collections.Counter(call[:2] for call, _ in cls.calls["full"])
        apart = {"plain": set(), "egress": FOR_EGRESS, "ssh": FOR_SSH}
        for name, wanted in PARTS.items():
            cls.calls[name] = [(call, phase) for call, phase in cls.calls[name] if phase == wanted]
        for name, own in apart.items():
            cls.calls[name] = [(call, phase) for call, phase in cls.calls[name]
                               if call[2] > counts[call[:2]] or call[1] == "dup2" or call[1] in own]

    def every(self, chosen):
        for scenario, calls in self.calls.items():
            for number, (call, phase) in enumerate(calls):
                if call[1] in NOT_INJECTED:
                    continue
                for error in chosen(number, call, phase):
                    yield Case(scenario, call, phase, error)

    def run_cases(self, name, chosen):
        cases = list(self.every(chosen))
        before = mounts()

        def work(case):
            # The count moves, and then another call than the one that is judged is failed: look again.
            for _ in range(3 if case.unsteady() else 2):
                result = self.bench.run(case.scenario, *case.injection())
                if result.hit and case.is_the_one(result):
                    return case, result, self.judge.defects(case, result)
            found = self.judge.defects(case, result) if not case.unsteady() else []
            result.hit = False
            return case, result, found

        done = self.bench.map(work, cases)
        self.assertEqual(mounts(), before, "mounts are left on the host")
        defects = [f"{case}: {words}" for case, _, found in done for words in found]
        unreached = [case for case, result, _ in done if not result.hit]
        missed = [str(case) for case in unreached if not case.unsteady()]
        whole = sum(result.status == 0 for _, result, _ in done)
        roles = {role: sum(case.role == role for case in cases)
                 for role in ("supervisor", "init", "agent", "bridge")}
        print(f"{name}: {len(cases)} runs {roles}, {len({(c.role, c.name) for c in cases})} calls,"
              f" {len(cases) - whole} refused, {whole} whole, {len(unreached)} not reached,"
              f" {len(defects)} defects", flush=True)
        self.assertFalse(defects, "\n" + "\n".join(defects))
        self.assertLessEqual(len(missed), UNREACHED * len(cases), missed)

    def test_the_clean_run_makes_every_kind_of_entry(self):
        made = {(call[0], call[1]) for call, _ in self.calls["full"]}
        for wanted in ("symlinkat", "mkdirat", "openat", "write", "open_tree", "mount_setattr",
                       "move_mount", "fsopen", "pivot_root", "ioctl", "socket", "keyctl"):
            self.assertIn(("init", wanted), made)
        for path in ("socket", "fifo", "hidden", "closed"):
            self.assertIn(f"STAND/read/{path} ro,", self.clean["full"].stdout)
        self.assertIn(("agent", "seccomp"), made)
        self.assertIn(("supervisor", "fsync"), made)
        parts = {(phase, call[1]) for calls in self.calls.values() for call, phase in calls}
        for wanted in (("home", "flock"), ("review", "flock"), ("review", "unlinkat"), ("look", "openat2"),
                       ("look", "getdents64"), ("look", "unlinkat"), ("end", "linkat")):
            self.assertIn(wanted, parts)

    def test_every_failing_call(self):
        self.run_cases("every call fails once",
                       lambda number, call, phase: [errno.EIO])

    def test_other_errnos(self):
        def chosen(number, call, phase):
            if phase == "load" or (call[2] > 4 and number % SAMPLE_EVERY):
                return []
            return ERRNOS.get(call[1], [])
        self.run_cases("other errnos", chosen)

    def test_killed_at_a_call(self):
        self.run_cases("killed at a call", lambda number, call, phase:
                       [0] if call[2] <= 2 or number % SAMPLE_EVERY == 0 else [])


if __name__ == "__main__":
    INJECTOR = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
