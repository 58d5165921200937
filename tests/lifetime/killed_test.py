"""Whoever is killed, nothing of a run stays: no process, no mount, no file."""
import itertools
import json
import os
import signal
import subprocess
import threading

import inside

SOON = 2  # seconds in which a killed run must be gone
serial = itertools.count()

# An agent that clings to life: a child in a session of its own, an orphan, and all signals that can
# be ignored ignored. Says when it is up, then answers one line.
CLING = r"""
trap '' HUP INT TERM QUIT USR1 USR2
setsid sleep "$1" &
(sleep "$1" &)
sh -c 'while :; do sleep "$1"; done' sh "$1" &
echo up
read -r word
echo "got $word"
exit 3
"""


class Killed(inside.Case):
    def setUp(self):
        super().setUp()
        self.mounts = inside.mounts()

    def cling(self, wrap=(), **options):
        """Starts a clinging agent; returns (process, marker) once it is up."""
        marker = f"4000.{os.getpid()}{next(serial):04}"
        command = [*wrap, *self.place.glove("bash", "-c", CLING, "bash", marker)]
        process = subprocess.Popen(command, env=self.place.environment, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   cwd=self.place.workspace, **options)
        self.addCleanup(inside.end, process)
        self.assertEqual(process.stdout.readline(), b"up\n")
        self.assertTrue(inside.wait_until(lambda: len(inside.marked(marker)) >= 5))
        return process, marker

    def assert_gone(self, processes, marker):
        self.assertTrue(inside.wait_until(lambda: not inside.alive(processes), SOON),
                        inside.alive(processes))
        self.assertTrue(inside.wait_until(lambda: not inside.marked(marker), SOON))

    def answer(self, process, status=3):
        out, err = process.communicate(b"word\n", timeout=inside.PATIENCE)
        self.assertEqual(out, b"got word\n", err)
        self.assertEqual(process.returncode, status)

    def test_the_supervisor(self):
        process, marker = self.cling()
        everybody = inside.descendants(process.pid)
        self.assertGreaterEqual(len(everybody), 5)
        process.kill()
        self.assert_gone(everybody, marker)

    def test_one_of_two_side_by_side(self):
        first, first_marker = self.cling()
        second, second_marker = self.cling()
        third, third_marker = self.cling()
        everybody = {p: inside.descendants(p.pid) for p in (first, second, third)}
        second.kill()
        self.assert_gone(everybody[second], second_marker)
        for process in (first, third):
            self.assertEqual(sorted(inside.alive(everybody[process])), sorted(everybody[process]))
        first.kill()
        self.assert_gone(everybody[first], first_marker)
        self.assertEqual(sorted(inside.alive(everybody[third])), sorted(everybody[third]))
        self.answer(third)
        self.assert_gone(everybody[third], third_marker)
        self.assertFalse(inside.marked(second_marker))

    def test_the_parent_shell(self):
        process, marker = self.cling(wrap=["bash", "-c", '"$@"; exit $?', "shell"])
        everybody = inside.descendants(process.pid)
        process.kill()
        # The run is not the shell's to end: the agent answers, and its output is whole.
        out, err = process.communicate(b"word\n", timeout=inside.PATIENCE)
        self.assertEqual(out, b"got word\n", err)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        self.assert_gone(everybody, marker)

    def test_the_parent_shell_and_then_a_hangup_of_its_group(self):
        process, marker = self.cling(wrap=["bash", "-c", '"$@"; exit $?', "shell"],
                                     start_new_session=True)
        everybody = inside.descendants(process.pid)
        process.kill()
        process.wait()
        self.assertTrue(inside.alive(everybody))
        os.killpg(process.pid, signal.SIGHUP)
        # The agent ignores the hangup, so the grace passes first.
        self.assertTrue(inside.wait_until(lambda: not inside.alive(everybody)))
        self.assert_gone(everybody, marker)

    def test_init(self):
        process, marker = self.cling()
        everybody = inside.descendants(process.pid)
        os.kill(inside.child_of(process.pid), signal.SIGKILL)
        out, err = process.communicate(timeout=inside.PATIENCE)
        self.assertEqual((process.returncode, out), (125, b""), err)
        self.assertIn(b"init", err)
        self.assert_gone(everybody, marker)

    def test_the_agent(self):
        process, marker = self.cling()
        everybody = inside.descendants(process.pid)
        os.kill(inside.child_of(inside.child_of(process.pid)), signal.SIGKILL)
        out, err = process.communicate(timeout=inside.PATIENCE)
        self.assertEqual((process.returncode, out), (137, b""), err)
        self.assert_gone(everybody, marker)

    def test_everybody_at_once_leaves_nothing_behind(self):
        before = inside.listing(self.place.workspace), inside.listing(self.place.path("tmp"))
        process, marker = self.cling()
        everybody = inside.descendants(process.pid)
        for pid in [process.pid, *everybody]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        process.wait()
        self.assert_gone(everybody, marker)
        self.assertEqual((inside.listing(self.place.workspace),
                          inside.listing(self.place.path("tmp"))), before)
        self.assertEqual(inside.mounts(), self.mounts)

    def test_an_ordinary_end_leaves_nothing_behind(self):
        self.place.put("kept/file", "x")
        before = inside.listing(self.place.workspace)
        places = sorted(os.listdir(self.place.root)), sorted(os.listdir(self.place.home))
        process, marker = self.cling()
        everybody = inside.descendants(process.pid)
        self.answer(process)
        self.assert_gone(everybody, marker)
        self.assertEqual(inside.listing(self.place.workspace), before)
        self.assertEqual((sorted(os.listdir(self.place.root)), sorted(os.listdir(self.place.home))), places)
        self.assertEqual(inside.mounts(), self.mounts)
        # The twin: what the agent writes into its workspace does stay.
        self.inside("touch", "made")
        self.assertNotEqual(inside.listing(self.place.workspace), before)

    def test_no_folder_for_temporary_files_is_touched(self):
        # Empty ones of their own, so that nobody else's files are seen there.
        self.need("unshare", "mount")
        script = r"""
            mount -t tmpfs tmpfs /mnt; cp "$1" /mnt/glove; mkdir /mnt/workspace /mnt/state
            for folder in /tmp /var/tmp /dev/shm /run; do mount -t tmpfs tmpfs $folder; done
            export XDG_STATE_HOME=/mnt/state
            for number in 1 2; do
                /mnt/glove exec --workspace /mnt/workspace -- sh -c 'echo x >/tmp/x; kill -9 $$' || echo "status $?"
            done
            /mnt/glove exec --workspace /mnt/workspace -- sleep 1000 & sleep 0.3; kill -9 $!
            find /tmp /var/tmp /dev/shm /run /mnt/workspace -mindepth 1
            /mnt/glove exec --workspace /mnt/workspace -- touch made
            find /tmp /mnt/workspace -mindepth 1
            """
        done = self.place.bare("unshare", "--user", "--map-root-user", "--mount", "bash", "-euc", script,
                               "bash", inside.GLOVE)
        self.assertEqual(done.stdout, b"status 137\nstatus 137\n/mnt/workspace/made\n", done.stderr)

    def test_the_run_outlives_the_thread_that_started_it(self):
        started = []
        thread = threading.Thread(target=lambda: started.append(self.cling()))
        thread.start()
        number = thread.native_id
        thread.join()
        self.assertTrue(inside.wait_until(lambda: not os.path.exists(f"/proc/self/task/{number}")))
        process, marker = started[0]
        everybody = inside.descendants(process.pid)
        self.answer(process)
        self.assert_gone(everybody, marker)

    def test_killed_while_it_starts(self):
        for step in range(40):
            marker = f"4000.{os.getpid()}{next(serial):04}"
            process = self.place.start("sleep", marker, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(step / 2000)
            except subprocess.TimeoutExpired:
                pass
            everybody = inside.descendants(process.pid)
            if step % 2:
                process.kill()
            else:
                process.terminate()
            self.assertIn(process.wait(inside.PATIENCE), (143, -15, -9))
            self.assert_gone(everybody, marker)
        self.assertEqual(inside.mounts(), self.mounts)

    def test_no_zombie_is_left_to_the_caller(self):
        for _ in range(5):
            self.inside("bash", "-c", "for i in 1 2 3; do (sleep 1000 &) ; done")
        mine = [n for n in inside.numbers() if (f := inside.facts(n)) and f[0] == os.getpid()]
        self.assertEqual(mine, [])

    def test_sixteen_at_once(self):
        runs = [self.place.start("sh", "-c", "read -r x; echo $x; exit $x", stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE) for _ in range(16)]
        for number, process in enumerate(runs):
            self.addCleanup(inside.end, process)
            process.stdin.write(b"%d\n" % number)
            process.stdin.flush()
        for number, process in enumerate(runs):
            out, _ = process.communicate(timeout=inside.PATIENCE)
            self.assertEqual((process.returncode, out), (number, b"%d\n" % number))

    def test_a_waiting_supervisor_is_small(self):
        process, _ = self.cling()
        kib = inside.resident_kib(process.pid)
        init = inside.resident_kib(inside.child_of(process.pid))
        print(f"resident while waiting: supervisor {kib} KiB, init {init} KiB")
        self.assertLessEqual(kib, 3 * 1024)
        self.answer(process)

    def test_the_record_of_a_run(self):
        # One file a run, whose last line tells the end; a killed supervisor leaves the intent.
        self.inside("true")
        process, _ = self.cling()
        process.kill()
        process.wait()
        folder = os.path.join(self.place.state, "glove", "audit")
        records = []
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                records.append([json.loads(line)["action"] for line in file])
        self.assertEqual(sorted(records), [["agent_launch"], ["agent_launch", "agent_exit"]])
