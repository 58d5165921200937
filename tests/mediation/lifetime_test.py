"""Whoever is killed at whatever moment, nothing of the servers stays: not a child, not a grandchild in a
session of its own."""
import itertools
import os
import random
import signal
import subprocess
import time

import inside
import mediation_case
import session

SOON = 5  # seconds in which everything of a killed mediation must be gone
ROUNDS = 60 if inside.SOAK else 8
serial = itertools.count()


class Killed(mediation_case.Case):
    def begin(self):
        """(client, what every process of the servers carries in its arguments)."""
        mark = f"killed-{os.getpid()}-{next(serial)}"
        client = self.act(actor=["--marker", mark])
        self.assert_words(client.call("act", do="fork", marker=mark), "forked")
        self.assertGreaterEqual(len(inside.marked(mark)), 2)  # the server and its grandchild
        return client, mark

    def mediators(self, client):
        """The processes of Glove, the outermost first."""
        below = inside.descendants(client.process.pid)
        found = [client.process.pid, *sorted(below)]
        return [pid for pid in found if mediation_case.name_of(pid) in mediation_case.MEDIATORS]

    def assert_gone(self, mark):
        self.assertTrue(inside.wait_until(lambda: not inside.marked(mark), SOON), inside.marked(mark))

    def kill(self, client, which):
        pids = self.mediators(client)
        self.assertGreaterEqual(len(pids), 3, "the mediation is one process and two that watch it")
        # Stopped first: none sees the end of another and goes by itself before its turn.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for at in which:
                os.kill(pids[at], number)

    def test_one_of_them(self):
        for at in range(3):
            with self.subTest(at):
                client, mark = self.begin()
                self.kill(client, [at])
                self.assert_gone(mark)
                client.process.wait(SOON)
                self.assertNotEqual(client.process.returncode, 0)

    def test_any_two_at_once(self):
        """One is left, and has all that the others leave."""
        for order in itertools.permutations(range(3), 2):
            with self.subTest(order):
                client, mark = self.begin()
                self.kill(client, order)
                self.assert_gone(mark)

    def test_all_at_once(self):
        """Nobody is left to look for grandchildren in sessions of their own; the server dies by itself."""
        for order in ([0, 1, 2], [2, 1, 0]):
            with self.subTest(order):
                mark = f"killed-{os.getpid()}-{next(serial)}"
                client = self.act(actor=["--marker", mark])
                self.assert_words(client.call("act", words="x"), "x")
                self.kill(client, order)
                self.assert_gone(mark)

    def test_at_any_moment(self):
        chance = random.Random(5)
        for number in range(ROUNDS):
            with self.subTest(number):
                mark = f"killed-{os.getpid()}-{next(serial)}"
                client = self.act(actor=["--marker", mark], initialize=False)
                client.send("initialize", {"protocolVersion": session.REVISION, "capabilities": {},
                                           "clientInfo": {"name": "t", "version": "1"}}, 1)
                client.send("tools/call", {"name": "act", "arguments": {"do": "fork", "marker": mark}}, 2)
                time.sleep(chance.random() * 0.4)
                pids = self.mediators(client)
                if pids:
                    os.kill(chance.choice(pids), signal.SIGKILL)
                self.assert_gone(mark)
                client.close()

    def test_the_client_leaves_without_a_word(self):
        client, mark = self.begin()
        client.start_call("act", do="silent")
        began = time.monotonic()
        client.process.stdout.close()
        client.process.stdin.close()
        client.process.wait(20)
        self.assertLess(time.monotonic() - began, 15)
        self.assert_gone(mark)

    def test_a_client_that_does_not_read_is_left_in_time(self):
        """32 MiB wait for it; then nothing more is read for it, and after half a minute it is left."""
        client = self.act()
        for _ in range(6):
            client.start_call("act", do="large", bytes=9 << 20)
        time.sleep(3)
        used = max(inside.resident_kib(pid) for pid in self.mediators(client))
        self.assertLess(used, 200 * 1024)
        began = time.monotonic()
        client.process.wait(60)
        self.assertLess(time.monotonic() - began, 50)


class OfRuns(mediation_case.Case):
    """The same with the agent in its sandbox."""

    def begin(self):
        mark = f"killed-{os.getpid()}-{next(serial)}"
        self.place.put("agent.py", "import sys\nprint('up', flush=True)\nsys.stdin.readline()\n")
        process = self.run_glove(self.upstream("a", *self.actor("--marker", mark)), ["--allow", "a.*"],
                                 ["/usr/bin/python3", "-B", "agent.py"])
        self.assertEqual(process.stdout.readline(), b"up\n", self.stderr())
        self.assertTrue(inside.wait_until(lambda: len(self.servers(mark)) == 1))
        return process, mark

    def run_glove(self, *parts):
        words = [word for part in parts[:-1] for word in part]
        with open(self.stderr_file, "ab") as errors:
            self.place.verb = "run"
            process = self.place.start(*parts[-1], flags=["--audit-log", self.log, *words], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=errors)
        self.addCleanup(inside.end, process)
        return process

    @staticmethod
    def servers(mark):
        return [pid for pid in inside.marked(mark) if mediation_case.name_of(pid).startswith("python")]

    def named(self, process, name):
        return [pid for pid in sorted(inside.descendants(process.pid)) if mediation_case.name_of(pid) == name]

    def test_the_run_ends(self):
        process, mark = self.begin()
        began = time.monotonic()
        process.communicate(b"\n", timeout=30)
        self.assertEqual(process.returncode, 0, self.stderr())
        self.assertLess(time.monotonic() - began, 10)
        self.assertTrue(inside.wait_until(lambda: not inside.marked(mark), 1))

    def test_the_supervisor_is_killed(self):
        process, mark = self.begin()
        process.kill()
        self.assertTrue(inside.wait_until(lambda: not inside.marked(mark), SOON), inside.marked(mark))

    def test_the_mediation_is_killed(self):
        """The agent keeps nothing it could mistake for a tool, and the run tells."""
        for at in range(3):
            with self.subTest(at):
                process, mark = self.begin()
                os.kill(self.named(process, "glove-mediator")[at], signal.SIGKILL)
                self.assertTrue(inside.wait_until(lambda m=mark: not self.servers(m), SOON))
                process.communicate(b"\n", timeout=30)
                self.assertNotEqual(process.returncode, 0)

    def test_any_of_them_at_any_moment(self):
        chance = random.Random(6)
        self.place.put("agent.py", "import time\ntime.sleep(4000)\n")
        for number in range(ROUNDS):
            with self.subTest(number):
                mark = f"killed-{os.getpid()}-{next(serial)}"
                process = self.run_glove(self.upstream("a", *self.actor("--marker", mark)), ["--allow", "a.*"],
                                         [*mediation_case.PYTHON, "agent.py", mark])
                time.sleep(chance.random() * 0.5)
                everybody = {process.pid: inside.facts(process.pid)[2], **inside.descendants(process.pid)}
                mediators = [pid for pid in everybody if mediation_case.name_of(pid) in mediation_case.MEDIATORS]
                os.kill(chance.choice(mediators), signal.SIGKILL)
                self.assertTrue(inside.wait_until(lambda m=mark: not inside.marked(m), 2 * SOON), inside.marked(mark))
                self.assertTrue(inside.wait_until(lambda e=everybody: not inside.alive(e), SOON))
                inside.end(process)


if __name__ == "__main__":
    inside.main()
