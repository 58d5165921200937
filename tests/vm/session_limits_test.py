"""The six limits of managed sessions: hostile programs that pass each of them, and twins that stay just below. The
receipt names the right cause, what it says was used is what was used, and nothing is left on the machine."""
import os

import inside
from managed import CONSUME, COPY, MIB, PROFILES, READ, Case

ROUNDS = 20 if inside.SOAK else 3
# One page more than there is; and what is surely left beside init, the shell and the page tables.
OVER_KIB, BELOW_KIB = (64 << 10) + 4, (64 << 10) - (8 << 10)
# Processor time that may be used before the next look is done with it, in milliseconds.
OVERRUN_MS = 250 * inside.SLOWNESS


class Limits(Case):
    count = 0

    def session(self, script, profile, mode=READ, cause="exited", code=0):
        """(receipt, what it showed) of a session of that script."""
        Limits.count += 1
        self.service.put_script(script)
        receipt, shown = self.ended(f"limit-{Limits.count}", self.service.plan(profile, mode), cause, code)
        for limit, used in (("memory_bytes", "peak_memory_bytes"), ("pids", "peak_pids")):
            self.assertLessEqual(receipt["observed"][used], receipt["configured_limits"][limit], used)
        self.assertEqual(self.service.groups(), [])
        return receipt, shown

    def consume(self, *words):
        return f"exec {self.service.tools}/{os.path.basename(CONSUME)} {' '.join(map(str, words))}\n"

    def rounds_of(self, kinds):
        """As many together as are asked for; in the long form each kind at least once."""
        kinds = list(kinds)
        return [kinds[number % len(kinds)] for number in range(max(ROUNDS, len(kinds)) if inside.SOAK else ROUNDS)]

    def test_memory(self):
        kinds = (("memory",), ("shared",), ("shm",), ("file", "/tmp/file"), ("unlinked", "/dev/shm/file"),
                 ("child",), ("children", 4))
        for kind, *more in self.rounds_of(kinds):
            with self.subTest(kind=kind):
                self.session(self.consume(kind, OVER_KIB, *more), "memory", cause="memory_limit")
                receipt, shown = self.session(self.consume(kind, BELOW_KIB, *more), "memory")
                self.assertIn(b"had it", shown)
                self.assertGreater(receipt["observed"]["peak_memory_bytes"], BELOW_KIB << 10)

    def test_processes(self):
        # Init is one of them.
        most = PROFILES["pids"]["pids"] - 1
        for kind in self.rounds_of(("processes", "threads", "bomb")):
            with self.subTest(kind=kind):
                _, shown = self.session(self.consume(kind, most - 1), "pids")
                self.assertEqual(shown, b"%d\r\n" % (most - 1))
                self.session(self.consume(kind, most) + "sleep 1000\n", "pids", cause="pid_limit")

    def test_processor_time(self):
        limit = PROFILES["cpu"]["cpu_time_ms"]
        for kind, over, below in self.rounds_of((("spin", 0, 1000), ("forks", 0, 1000))):
            with self.subTest(kind=kind):
                receipt, _ = self.session(self.consume(kind, over, 2), "cpu", cause="cpu_time_limit")
                used = receipt["observed"]["cpu_time_ms"]
                self.assertTrue(limit < used < limit + 2 * OVERRUN_MS, used)
                receipt, _ = self.session(self.consume(kind, below, 2), "cpu")
                self.assertLess(receipt["observed"]["cpu_time_ms"], limit)

    def test_wall_time(self):
        limit = PROFILES["wall"]["wall_time_ms"]
        for _ in range(ROUNDS):
            receipt, _ = self.session("trap '' TERM HUP INT; setsid sleep 1000 & sleep 1000\n", "wall",
                                      cause="wall_time_limit")
            self.assertTrue(limit < receipt["observed"]["wall_time_ms"] < limit + 500 * inside.SLOWNESS)
            receipt, _ = self.session("exit 3\n", "wall", code=3)
            self.assertLess(receipt["observed"]["wall_time_ms"], limit)

    def test_disk(self):
        places = ("/tmp", "/var/tmp", "/home/agent", "/dev/shm")
        for place in self.rounds_of(places):
            with self.subTest(place=place):
                receipt, _ = self.session(f"dd if=/dev/zero of={place}/big bs=64k\nsleep 1000\n", "disk",
                                          cause="disk_limit")
                # What Glove made in it before the session began is not the session's, and takes room.
                self.assertGreater(receipt["observed"]["disk_bytes"], PROFILES["disk"]["disk_bytes"] - MIB // 8)
                receipt, _ = self.session(f"dd if=/dev/zero of={place}/big bs=1M count=40 && rm {place}/big\n", "disk")
                self.assertGreaterEqual(receipt["observed"]["disk_bytes"], 40 * MIB if inside.SLOWNESS == 1 else 0)
        for count in range(ROUNDS):
            # A copy has its own part of it, and the rest of the session the other.
            self.session("dd if=/dev/zero of=/workspace/big bs=64k\nsleep 1000\n", "disk", COPY, cause="disk_limit")
            self.session(f"dd if=/dev/zero of=/workspace/big bs=1M count={30 - count}\n", "disk", COPY)
            # Holes and further names take no room.
            self.session("truncate -s 8G /tmp/holes; echo x > /tmp/one; for n in 1 2 3 4 5 6 7 8; do ln /tmp/one /tmp/$n;"
                         " done\n", "disk")

    def test_output(self):
        limit = PROFILES["output"]["terminal_output_bytes"]
        for _ in range(ROUNDS):
            receipt, shown = self.session(f"head -c {limit} /dev/zero | tr '\\0' x\n", "output")
            self.assertEqual((len(shown), receipt["observed"]["terminal_output_bytes"]), (limit, limit))
            receipt, shown = self.session(f"head -c {limit + 1} /dev/zero | tr '\\0' x; sleep 1000\n", "output",
                                          cause="terminal_output_limit")
            self.assertEqual(receipt["observed"]["terminal_output_bytes"], limit + 1)
            receipt, _ = self.session("yes\n", "output", cause="terminal_output_limit")
            self.assertEqual(receipt["observed"]["terminal_output_bytes"], limit + 1)


if __name__ == "__main__":
    inside.main()
