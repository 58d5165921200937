"""The rows of bench/session, in the guest, as root: a system service with a delegated group."""
import os
import pty
import statistics
import sys
import time
import unittest

import inside

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tests/vm"), os.path.join(ROOT, "bench")]
import managed  # noqa: E402
from managed import COPY, MIB  # noqa: E402
from report import row, table  # noqa: E402

# Each prints how many nanoseconds its work took.
CLOCK = "b=$(date +%s%N); {work}; e=$(date +%s%N); echo $((e - b))\n"
PROCESSOR = CLOCK.format(work="i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done")
FILES = CLOCK.format(work="dd if=/dev/zero of=$1/big bs=64k count=600 2>/dev/null; cat $1/big >$1/again; rm $1/big $1/again")
ROUNDS, MANY = 9, 16
TURNS = 25  # of work that is compared


def middle(values, unit=1e-3):
    return f"{statistics.median(values) / unit:.1f} ({min(values) / unit:.1f} to {max(values) / unit:.1f})"


def bare(script, *words):
    """(seconds to the first byte, the output) of the script on a terminal of its own, without Glove."""
    begin = time.monotonic()
    pid, master = pty.fork()
    if pid == 0:
        os.execv("/bin/sh", ["/bin/sh", script, *words])
    out, first = b"", None
    try:
        while piece := os.read(master, 4096):
            first = first or time.monotonic() - begin
            out += piece
    except OSError:
        pass
    os.close(master)
    os.waitpid(pid, 0)
    return first, out


class Case(unittest.TestCase):
    """With a service, and what the lives of sessions are made of."""

    def setUp(self):
        self.service = managed.Managed()
        self.addCleanup(self.service.__exit__)
        self.service.start()
        self.service.reconcile()
        self.count = 0

    def create(self, plan):
        self.count += 1
        name = f"bench-{self.count}"
        self.service.create(name, plan)
        return name

    def start(self, plan):
        name = self.create(plan)
        self.service.start_session(name, plan)
        return name

    def begin(self, plan):
        """(name, seconds to its first byte)"""
        name = self.create(plan)
        begin = time.monotonic()
        self.service.start_session(name, plan)
        while not self.service.page(name)["bytes"]:
            pass
        return name, time.monotonic() - begin

    def over(self, name):
        begin = time.monotonic()
        self.service.await_end(name)
        took = time.monotonic() - begin
        shown = self.service.read(name)
        self.service.ask("cleanup_session", {"session_id": name}, key=f"clean-{name}")
        return took, shown


class Bench(Case):
    def starts(self, plan_of):
        out = []
        for _ in range(ROUNDS):
            name, took = self.begin(plan_of())
            self.service.type(name, b"x\n")
            self.over(name)
            out.append(took)
        return out

    def test_rows(self):
        self.start_and_its_parts()
        self.rates()
        self.memory()
        self.overhead()

    def start_and_its_parts(self):
        service, script = self.service, "echo up; read -r x\n"
        service.put_script(script)
        print("\nFrom the request to start to the first byte of output, ms:\n")
        table("start", "median (least to most)")
        row("the shell alone, on a terminal", middle(self.bare_starts()))
        plain = self.starts(service.plan)
        row("a session that reads a folder", middle(plain))
        small = self.starts(lambda: service.plan(mode=COPY))
        row("with a copy of the folder, almost empty", middle(small))
        with open(os.path.join(service.work, "data"), "wb") as file:
            file.write(os.urandom(16 * MIB))
        large = self.starts(lambda: service.plan(mode=COPY))
        os.unlink(os.path.join(service.work, "data"))
        row("with a copy of 16 MiB more", middle(large))
        service.put_script(script, service.project)
        exposure = service.expose()
        image = self.starts(lambda: service.exposed_plan(exposure))
        row("with an image of 32 MiB that stays", middle(image))
        each = (statistics.median(large) - statistics.median(small)) / 16
        print(f"\nA MiB of a copy takes {each * 1e3:.1f} ms; an image of 32 MiB "
              f"{(statistics.median(image) - statistics.median(plain)) * 1e3:.0f} ms.")

    def bare_starts(self):
        self.service.put_script("echo up\n", self.service.tools)
        return [bare(os.path.join(self.service.tools, "script"))[0] for _ in range(ROUNDS)]

    def rates(self):
        service = self.service
        service.put_script("echo up; read -r x\n")
        print("\nSessions a minute, from their plan to their receipt:\n")
        table("at once", "a minute")
        begin, took = time.monotonic(), []
        for _ in range(ROUNDS):
            name, _ = self.begin(service.plan())
            service.type(name, b"x\n")
            took.append(self.over(name)[0])
        row(1, f"{ROUNDS * 60 / (time.monotonic() - begin):.0f}")
        begin = time.monotonic()
        names = [self.begin(service.plan())[0] for _ in range(MANY)]
        for name in names:
            service.type(name, b"x\n")
        for name in names:
            self.over(name)
        row(MANY, f"{MANY * 60 / (time.monotonic() - begin):.0f}")
        print(f"\nFrom the last word to the receipt on record: {middle(took)} ms.")

    def memory(self):
        service = self.service
        service.put_script("echo up; read -r x\n")
        pid = service.main_pid()
        before, descriptors = self.weigh(pid), len(os.listdir(f"/proc/{pid}/fd"))
        names = [self.begin(service.plan())[0] for _ in range(MANY)]
        after, more = self.weigh(pid), len(os.listdir(f"/proc/{pid}/fd"))
        print("\nA live session, on average of 16:\n")
        table("", "")
        row("memory of the service and of the session's keeper, KiB", f"{(after - before) / MANY:.0f}")
        row("descriptors of the service", f"{(more - descriptors) / MANY:.1f}")
        for name in names:
            service.type(name, b"x\n")
            self.over(name)

    def weigh(self, pid):
        """What this process and those of its own outside of sessions take for themselves, in KiB."""
        total = 0
        for each in [pid, *inside.descendants(pid)]:
            try:
                with open(f"/proc/{each}/cgroup", encoding="ascii") as file:
                    if "glove-session-" in file.read():
                        continue
                with open(f"/proc/{each}/smaps_rollup", encoding="ascii") as file:
                    total += next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
            except OSError:
                continue
        return total

    def overhead(self):
        service = self.service
        print("\nWork in a session and without it, in turns, ms:\n")
        table("work", "without", "in a session", "of the medians")
        for what, script, place in (("a loop of a shell", PROCESSOR, ""),
                                    ("files in memory, 75 MiB written", FILES, "/dev/shm")):
            service.put_script(f"set -- {place or '/tmp'}\n" + script)
            alone, inner = [], []
            for _ in range(TURNS):
                alone.append(int(bare(os.path.join(service.work, "script"))[1]) / 1e9)
                name = self.start(service.plan())
                time.sleep(2 * alone[-1])  # who asks for news all the time takes the processors from it
                inner.append(int(self.over(name)[1]) / 1e9)
            row(what, middle(alone), middle(inner), f"{statistics.median(inner) / statistics.median(alone):.3f}")


if __name__ == "__main__":
    inside.main()
