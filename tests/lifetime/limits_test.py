"""Limits on time and output hold to the byte, and whatever the reader does."""
import json
import signal
import subprocess
import time

import inside

GRACE = 5
SLACK = 20  # a loaded machine; without the limit these runs would take for ever


class Limits(inside.Case):
    def limited(self, script, *flags):
        """(status, stdout, stderr, report, seconds)"""
        report = self.place.path("report.json")
        began = time.monotonic()
        done = self.place.run("bash", "-c", script, flags=[*flags, "--report", report])
        seconds = time.monotonic() - began
        with open(report, encoding="utf-8") as file:
            return done.returncode, done.stdout, done.stderr, json.load(file), seconds

    def silent_reader(self, script, *flags):
        """A run whose output nobody reads, once its pipe is full."""
        process = self.place.start("bash", "-c", "echo up >&2; " + script, flags=flags,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(inside.end, process)
        process.stderr.readline()
        return process

    def test_output_to_the_byte(self):
        for limit in (1, 4095, 4096, 65536, 100000, 300001):
            for size in (limit, limit + 1, limit + 500000):
                with self.subTest(limit=limit, size=size):
                    # Whether the agent is still there when the last byte is counted must not matter.
                    lingers = "[ $RANDOM -gt 16000 ] && sleep 1000; exit 0" if size > limit else "exit 0"
                    status, out, _, report, _ = self.limited(f"head -c {size} /dev/zero; {lingers}",
                                                             "--output-bytes", str(limit))
                    over = size > limit
                    self.assertEqual(len(out), limit)
                    self.assertEqual(status, 137 if over else 0)
                    self.assertEqual(report["exit"]["cause"], "output_bytes" if over else "exited")
                    self.assertEqual(report["exit"]["output_bytes"], limit)
                    self.assertEqual(report["limits_hit"], ["output_bytes"] if over else [])

    def test_output_of_an_agent_that_is_gone_before_it_is_counted(self):
        for size, status, cause in ((20000, 0, "exited"), (20001, 137, "output_bytes")):
            report = self.place.path("report.json")
            process = self.place.start("head", "-c", str(size), "/dev/zero", stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL,
                                       flags=["--output-bytes", "20000", "--report", report])
            self.assertEqual(len(process.communicate(timeout=inside.PATIENCE)[0]), 20000)
            with open(report, encoding="utf-8") as file:
                self.assertEqual((process.returncode, json.load(file)["exit"]["cause"]), (status, cause))

    def test_both_outputs_count(self):
        status, out, err, report, _ = self.limited(
            "head -c 600 /dev/zero; sleep 0.2; head -c 600 /dev/zero >&2; sleep 1000", "--output-bytes", "1000")
        self.assertEqual((status, len(out), err.count(b"\0")), (137, 600, 400))
        self.assertEqual(report["exit"]["cause"], "output_bytes")

    def test_wall_time(self):
        status, out, _, report, seconds = self.limited("echo said; sleep 1000", "--wall-time", "1s")
        self.assertEqual((status, out), (143, b"said\n"))
        self.assertEqual((report["exit"]["cause"], report["limits_hit"]), ("wall_time", ["wall_time"]))
        self.assertGreater(seconds, 0.9)
        self.assertLess(seconds, SLACK)
        # The twin ends by itself.
        status, out, _, report, seconds = self.limited("echo said; exit 3", "--wall-time", "1000s")
        self.assertEqual((status, out, report["exit"]["cause"]), (3, b"said\n", "exited"))
        self.assertLess(seconds, SLACK)

    def test_wall_time_of_an_agent_that_does_not_want_to_end(self):
        status, _, _, report, seconds = self.limited("trap '' TERM; while :; do sleep 1000; done",
                                                     "--wall-time", "500ms")
        self.assertEqual((status, report["exit"]["cause"]), (137, "wall_time"))
        self.assertLess(seconds, GRACE + SLACK)

    def test_wall_time_of_an_agent_that_ends_well(self):
        status, out, _, report, _ = self.limited(
            "trap 'echo saved; exit 6' TERM; while :; do sleep 0.05; done", "--wall-time", "500ms")
        self.assertEqual((status, out, report["exit"]["cause"]), (6, b"saved\n", "wall_time"))

    def test_wall_time_of_a_run_whose_glove_is_stopped(self):
        report = self.place.path("report.json")
        process = self.place.start("sleep", "1000", flags=["--wall-time", "1s", "--report", report],
                                   stdin=subprocess.DEVNULL)
        self.addCleanup(inside.end, process)
        self.assertTrue(inside.wait_until(lambda: len(inside.descendants(process.pid)) == 2))
        agent = inside.descendants(process.pid)
        process.send_signal(signal.SIGSTOP)
        self.assertTrue(inside.wait_until(lambda: not inside.alive(agent)), "the agent goes on")
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(inside.PATIENCE), 137)
        with open(report, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["exit"]["cause"], "wall_time")

    def test_wall_time_ends_a_run_that_nobody_reads(self):
        for flags in ([], ["--output-bytes", "100MB"]):
            with self.subTest(flags=flags):
                process = self.silent_reader("exec yes", "--wall-time", "1s", *flags)
                self.assertEqual(process.wait(GRACE + SLACK), 143)

    def test_wall_time_ends_a_run_whose_agent_left_output_that_nobody_reads(self):
        process = self.silent_reader("head -c 100000 /dev/zero", "--wall-time", "1s",
                                     "--output-bytes", "100MB")
        self.assertEqual(process.wait(GRACE + SLACK), 143)  # not 0: the output is not all there

    def test_a_signal_ends_a_run_that_nobody_reads(self):
        for flags in ([], ["--output-bytes", "100MB"]):
            for script in ("exec yes", "head -c 100000 /dev/zero"):
                for number in (signal.SIGTERM, signal.SIGINT):
                    with self.subTest(flags=flags, script=script, number=number):
                        process = self.silent_reader(script, *flags)
                        time.sleep(0.3)  # the pipe is full, or the signal comes earlier: both must do
                        process.send_signal(number)
                        self.assertEqual(process.wait(GRACE + SLACK), 128 + number)
