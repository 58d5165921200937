"""Nothing outlives a run with tools: neither the mediator nor a server nor what a server started."""
import os
import signal
import subprocess
import sys
import time
import uuid

import inside

SERVER = os.path.join(os.path.dirname(inside.__file__), "tool_server.py")
# More than the mediator gives its servers, and less than anything that has no bound.
END = 40


class Mediated(inside.Case):
    def setUp(self):
        super().setUp()
        self.marker = f"marker-{uuid.uuid4().hex}"

    def start(self, *command, servers=("family",), flags=()):
        upstreams = [word for i, how in enumerate(servers) for word in (
            "--upstream", ",".join([f"s{i}={sys.executable}", SERVER, self.marker, *how.split()]))]
        run = subprocess.Popen(
            [inside.GLOVE, "run", *upstreams, "--allow", "s0.echo", *flags, "--", *command],
            cwd=self.place.workspace, env=self.place.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(run.communicate)
        self.addCleanup(run.kill)
        return run

    def is_up(self, run, count):
        """Waits until so many processes carry the marker, the run itself among them."""
        self.assertTrue(inside.wait_until(lambda: len(inside.marked(self.marker)) >= count, 60), run.poll())

    def started(self, run):
        """Waits for the first line of the command; every process below the run."""
        self.assertEqual(run.stdout.readline(), b"up\n")
        return inside.descendants(run.pid)

    def nothing_is_left(self, below=()):
        gone = inside.wait_until(lambda: not inside.marked(self.marker) and not inside.alive(dict(below)), END)
        self.assertTrue(gone, (inside.marked(self.marker), inside.alive(dict(below))))

    def mediators(self, run):
        """The two processes of the mediator, the outer one first."""
        def named(pid):
            with open(f"/proc/{pid}/comm", encoding="ascii") as file:
                return file.read() == "glove-mediator\n"
        outer = next(pid for pid in inside.children(run.pid) if named(pid))
        return outer, next(pid for pid in inside.children(outer) if named(pid))

    UP = ("sh", "-c", "echo up; exec sleep 600")

    def test_an_ordinary_end_leaves_nothing(self):
        run = self.start("sh", "-c", "echo up; sleep 1; exit 5")
        below = self.started(run)
        self.assertEqual(run.wait(END), 5)
        self.nothing_is_left(below)

    def test_a_killed_glove_leaves_nothing(self):
        run = self.start(*self.UP, servers=("family", "family deaf"))
        below = self.started(run)
        self.assertGreaterEqual(len(inside.marked(self.marker)), 5)
        run.kill()
        run.wait()
        self.nothing_is_left(below)

    def test_a_killed_mediator_ends_the_run(self):
        for which in (0, 1):
            with self.subTest(which=which):
                run = self.start(*self.UP, servers=("family", "family deaf"))
                below = self.started(run)
                os.kill(self.mediators(run)[which], signal.SIGKILL)
                self.assertEqual(run.wait(END), 125)
                self.assertIn(b"the mediation of tools ended", run.stderr.read())
                self.nothing_is_left(below)

    def test_a_request_to_end_while_a_server_starts_is_heard(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number=number):
                run = self.start(*self.UP, servers=("slow family",))
                self.is_up(run, 3)
                begun = time.monotonic()
                run.send_signal(number)
                self.assertEqual(run.wait(END), 128 + number)
                self.assertLess(time.monotonic() - begun, 20)
                self.assertEqual(run.stdout.read(), b"")
                self.nothing_is_left()

    def test_a_killed_glove_leaves_nothing_while_a_server_starts(self):
        run = self.start(*self.UP, servers=("slow family",))
        self.is_up(run, 3)
        run.kill()
        run.wait()
        self.nothing_is_left()

    def test_a_server_that_does_not_end_holds_up_the_end_for_a_bounded_time(self):
        run = self.start("sh", "-c", "echo up", servers=("deaf",))
        below = self.started(run)
        self.assertEqual(run.wait(END), 0)
        self.nothing_is_left(below)

    def test_a_server_that_is_never_ready_ends_the_attempt(self):
        run = self.start(*self.UP, servers=("slow family",), flags=("--start-timeout", "1s"))
        self.assertEqual(run.wait(END), 125)
        self.assertEqual(run.stdout.read(), b"")
        self.assertIn(b"mediation.start", run.stderr.read())
        self.nothing_is_left()

    def test_a_terminal_key_is_not_for_the_servers(self):
        run = self.start(*self.UP)
        self.started(run)
        outer, inner = self.mediators(run)
        for pid in (outer, inner):
            self.assertEqual(os.getsid(pid), outer)
        self.assertNotEqual(os.getsid(run.pid), outer)
        run.terminate()
        self.assertEqual(run.wait(END), 143)
        self.nothing_is_left()


if __name__ == "__main__":
    inside.main()
