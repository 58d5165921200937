"""The rows of `bench/session --instructions`, in a guest with one processor whose clock counts instructions.

Compared is all that this processor does from the first instruction of some work to its last: the work itself, the kernel,
the service with its looks at the meters, and whoever serves an image. To wait takes nothing. The same work is done from
here, in a unit of the service manager that keeps the service, with the same limits and nothing of Glove, and in a session.
"""
import contextlib
import os
import select
import shutil
import statistics
import subprocess
import tempfile
import time

import inside
import session_guest
import units
from managed import RETAIN, USUAL
from report import row, table

TURNS = 10
LIMITS = (f"--property=MemoryMax={USUAL['memory_bytes']}", "--property=MemorySwapMax=0",
          f"--property=TasksMax={USUAL['pids']}")
QUIET = 0.3  # seconds, in which is done what a start has left to do
# Its place is given to it, or is that of a session.
SCRIPT = """set -- "${{1:-{place}}}"
{prepare}
sync
until [ -p {told} ]; do sleep 0.1; done
exec 8>{told} 9<{back}
echo >&8; read -r go <&9
{work}
echo >&8
rm -rf $1/from
"""
LOOP = "i=0; while [ $i -lt 120000 ]; do i=$((i + 1)); done"
LARGE = """for turn in 1 2 3 4 5 6 7 8; do
    dd if=/dev/zero of=$1/big bs=64k count=400 2>/dev/null; cat $1/big >$1/again; rm $1/big $1/again
done"""
MANY = """mkdir $1/from; i=0
while [ $i -lt 300 ]; do head -c 2000 /dev/zero >$1/from/$i; i=$((i + 1)); done"""
SMALL = """for turn in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do cp -r $1/from $1/to; cat $1/to/* >/dev/null; rm -r $1/to; done"""
SYNCED = """for turn in 1 2 3; do
    dd if=/dev/zero of=$1/big bs=64k count=300 conv=fsync 2>/dev/null; cat $1/big >/dev/null; rm $1/big; sync
done"""


def instructions():
    """What the processor has done so far for processes and for threads of the kernel: a nanosecond each."""
    with open("/proc/schedstat", encoding="ascii") as file:
        return next(int(line.split()[7]) for line in file if line.startswith("cpu0 "))


def millions(values):
    values = list(values)
    return f"{statistics.median(values) / 1e6:.1f} ({min(values) / 1e6:.1f} to {max(values) / 1e6:.1f})"


class Work(session_guest.Case):
    @classmethod
    def setUpClass(cls):
        if os.cpu_count() != 1:
            raise RuntimeError("what the others do would not be counted: scripts/test-vm --counted")
        # What /tmp of the guest holds is in memory, and an image is compared with a file system that is on a disk.
        tempfile.tempdir = "/var/tmp"
        print(f"\nAs {'root' if os.geteuid() == 0 else 'an ordinary user'}, in millions of instructions:\n")
        table("work", "without", "in a unit", "in a session", "of without", "of the unit", "of it the service", "s")

    def setUp(self):
        super().setUp()
        self.told, self.back = (os.path.join(self.service.tools, name) for name in ("told", "back"))
        self.account = os.path.join(self.service.group(), "glove-host/cpu.stat")
        self.alone = tempfile.mkdtemp(dir="/dev/shm")
        self.addCleanup(shutil.rmtree, self.alone)

    def put(self, work, place, prepare="", folder=None):
        text = SCRIPT.format(work=work, place=place, prepare=prepare, told=self.told, back=self.back)
        self.service.put_script(text, folder)

    def of_the_service(self):
        with open(self.account, encoding="ascii") as file:
            return 1000 * int(file.readline().split()[1])

    @contextlib.contextmanager
    def fifos(self):
        """Those that are there when a session begins it does not see."""
        ends = []
        try:
            for path in (self.back, self.told):
                os.mkfifo(path, 0o600)
                ends.append(os.open(path, os.O_RDWR))
            yield ends
        finally:
            for path, end in zip((self.back, self.told), ends):
                os.unlink(path)
                os.close(end)

    def await_word(self, told):
        if not select.select([told], [], [], inside.PATIENCE / 20)[0]:
            raise TimeoutError("the work does not go on: " + self.service.said())
        os.read(told, 1)

    def counted(self):
        """(instructions in all, of the service, seconds) of work that is about to begin."""
        with self.fifos() as (back, told):
            self.await_word(told)
            time.sleep(QUIET)
            service, began, first = self.of_the_service(), time.monotonic(), instructions()
            os.write(back, b"\n")
            self.await_word(told)
            last = instructions()
            return last - first, self.of_the_service() - service, time.monotonic() - began

    def beside(self, words):
        with subprocess.Popen(words, env=units.environment()) as process:
            out = self.counted()
            self.assertEqual(process.wait(inside.PATIENCE), 0)
        return out

    def within(self, plan):
        name = self.start(plan)
        out = self.counted()
        self.assertEqual(self.over(name)[1], b"")
        return out

    def compare(self, what, script, place, plan_of):
        plain, unit, session = [], [], []
        words = ["/bin/sh", script, place]
        scope = ["systemd-run", *self.service.manager(), "--scope", "--quiet", "--collect", *LIMITS, "--", *words]
        for _ in range(TURNS):
            plain.append(self.beside(words))
            unit.append(self.beside(scope))
            session.append(self.within(plan_of()))
        middles = [statistics.median(each[0] for each in of) for of in (plain, unit, session)]
        row(what, *(millions(each[0] for each in of) for of in (plain, unit, session)),
            f"{middles[2] / middles[0]:.4f}", f"{middles[2] / middles[1]:.4f}", millions(each[1] for each in session),
            f"{statistics.median(each[2] for each in session):.1f}")

    def in_memory(self, what, work, prepare=""):
        self.put(work, "/tmp", prepare)
        self.compare(what, os.path.join(self.service.work, "script"), self.alone, self.service.plan)

    def test_1_a_loop(self):
        self.in_memory("a loop of a shell", LOOP)

    def test_2_large_files(self):
        self.in_memory("files of 25 MiB in memory", LARGE)

    def test_3_small_files(self):
        self.in_memory("files of 2 KiB in memory", SMALL, MANY)

    def test_4_an_image(self):
        self.put(SYNCED, "/workspace/exposures/demo", folder=self.service.project)
        exposure = self.service.expose()
        alone = self.service.folder("alone")
        self.compare("synced files of 19 MiB in an image, against the disk", os.path.join(self.service.project, "script"),
                     alone, lambda: self.service.exposed_plan(exposure, RETAIN))


if __name__ == "__main__":
    inside.main()
