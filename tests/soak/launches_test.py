"""After many runs the host is as it was: no process, mount, key, descriptor or file more."""
import json
import os
import random
import statistics
import subprocess
import time

import inside

LAUNCHES = 20000 if inside.SOAK else 200
KILLED = 2000 if inside.SOAK else 60
CROWDS = 200 if inside.SOAK else 4


def keys():
    """How many keys the kernel counts for this user. It frees those of ended runs after a while."""
    with open("/proc/key-users", encoding="utf-8") as file:
        for line in file:
            user, counts = line.split(":")
            if int(user) == os.getuid():
                return int(counts.split()[1].split("/")[0])
    return 0


class Launches(inside.Case):
    def setUp(self):
        super().setUp()
        self.before = self.traces()
        self.keys = keys()

    def traces(self):
        mine = [n for n in inside.numbers() if (f := inside.facts(n)) and f[0] == os.getpid()]
        return {"mounts": inside.mounts(), "children": mine,
                "descriptors": len(os.listdir("/proc/self/fd")),
                "workspace": inside.listing(self.place.workspace),
                "temporary": inside.listing(self.place.path("tmp"))}

    def assert_no_trace(self, runs):
        self.assertEqual(self.traces(), self.before)
        # Others may be running Glove as the same user; a leak would be one key a run, or more.
        self.assertTrue(inside.wait_until(lambda: keys() < self.keys + runs // 2),
                        f"{self.keys} keys before, {keys()} after")

    def records(self):
        folder = os.path.join(self.place.state, "glove", "audit")
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                yield [json.loads(line)["action"] for line in file]

    def launch(self):
        began = time.monotonic()
        done = self.place.run("sh", "-c", "(sleep 1000 &); echo done")
        self.assertEqual((done.returncode, done.stdout), (0, b"done\n"), done.stderr)
        return time.monotonic() - began

    def test_one_after_the_other(self):
        times = [self.launch() for _ in range(LAUNCHES)]
        tenth = LAUNCHES // 10
        first, last = (statistics.median(part) for part in (times[:tenth], times[-tenth:]))
        print(f"{LAUNCHES} launches, median {statistics.median(times) * 1000:.1f} ms, "
              f"first {first * 1000:.1f} ms, last {last * 1000:.1f} ms")
        self.assertLess(last, 5 * first)  # what piles up makes each launch slower
        self.assert_no_trace(LAUNCHES)
        records = list(self.records())
        self.assertEqual(len(records), LAUNCHES)
        self.assertTrue(all(record == ["agent_launch", "agent_exit"] for record in records))

    def test_killed_at_any_moment(self):
        dice = random.Random(1)
        everybody = {}
        for _ in range(KILLED):
            process = self.place.start("sleep", "1000", stdin=subprocess.DEVNULL)
            try:
                process.wait(dice.random() / 20)
            except subprocess.TimeoutExpired:
                pass
            everybody.update(inside.descendants(process.pid))
            process.kill()
            process.wait()
        self.assertGreater(len(everybody), KILLED // 2)
        self.assertTrue(inside.wait_until(lambda: not inside.alive(everybody)), inside.alive(everybody))
        self.assert_no_trace(KILLED)

    def test_sixteen_at_once_again_and_again(self):
        for _ in range(CROWDS):
            crowd = [self.place.start("sh", "-c", "read -r x; exit $x", stdin=subprocess.PIPE)
                     for _ in range(16)]
            for number, process in enumerate(crowd):
                self.addCleanup(inside.end, process)
                process.stdin.write(b"%d\n" % number)
                process.stdin.close()
            self.assertEqual([process.wait(inside.PATIENCE) for process in crowd], list(range(16)))
        self.assert_no_trace(16 * CROWDS)
