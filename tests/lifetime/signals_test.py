"""Signals reach the agent, and an agent that was asked to end does."""
import json
import os
import signal
import subprocess
import time

import inside

GRACE = 5


def ignoring(number):
    return lambda: signal.signal(number, signal.SIG_IGN)


class Signals(inside.Case):
    def up(self, script, flags=(), **options):
        process = self.place.start("bash", "-c", script, flags=flags, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        self.addCleanup(inside.end, process)
        self.assertEqual(process.stdout.readline(), b"up\n")
        return process

    def status(self, process, typed=None):
        out, err = process.communicate(typed, timeout=inside.PATIENCE)
        return process.returncode, out, err

    def test_an_agent_without_a_handler(self):
        for number, status in ((signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130),
                               (signal.SIGQUIT, 131)):
            report = self.place.path(f"report-{number}")
            # Not bash itself, which ignores SIGQUIT.
            process = self.up("exec dash -c 'echo up; exec sleep 1000'", flags=["--report", report])
            process.send_signal(number)
            self.assertEqual(self.status(process)[:2], (status, b""))
            with open(report, encoding="utf-8") as file:
                self.assertEqual(json.load(file)["exit"],
                                 {"cause": "terminated", "signal": int(number)})

    def test_an_agent_with_a_handler(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            process = self.up(f"trap 'echo handled; exit 33' {int(number)}; echo up; "
                              "while :; do sleep 0.05; done")
            process.send_signal(number)
            self.assertEqual(self.status(process)[:2], (33, b"handled\n"))

    def test_signals_that_mean_something_else(self):
        process = self.up("trap 'echo one' USR1; trap 'echo two' USR2; echo up; "
                          "until read -r -t 0.05 word; do :; done; exit 4")
        for number, word in ((signal.SIGUSR1, b"one\n"), (signal.SIGUSR2, b"two\n")):
            process.send_signal(number)
            self.assertEqual(process.stdout.readline(), word)
        self.assertEqual(self.status(process, b"go\n")[:2], (4, b""))

    def test_an_agent_that_ignores_the_request(self):
        process = self.up("trap '' TERM; echo up; while :; do sleep 1000; done")
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.status(process)[:2], (137, b""))
        self.assertGreater(time.monotonic() - began, GRACE - 0.5)
        self.assertLess(time.monotonic() - began, 4 * GRACE)

    def test_an_agent_that_takes_its_time(self):
        process = self.up("trap 'sleep 1; echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.status(process)[:2], (0, b"saved\n"))

    def test_what_the_caller_ignores(self):
        # As with nohup, and as in the background of a script: Glove ignores it, and the agent, in a group
        # of its own, is not told.
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            process = self.up("echo up; read -r word; echo $word", preexec_fn=ignoring(number),
                              start_new_session=True)
            process.send_signal(number)
            os.killpg(process.pid, number)
            self.assertEqual(self.status(process, b"still here\n")[:2], (0, b"still here\n"))

    def test_nohup(self):
        self.need("nohup")
        process = subprocess.Popen(
            ["nohup", *self.place.glove("sh", "-c", "echo up; read -r word; echo $word")],
            env=self.place.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True)
        self.addCleanup(inside.end, process)
        self.assertEqual(process.stdout.readline(), b"up\n")
        os.killpg(process.pid, signal.SIGHUP)
        self.assertEqual(self.status(process, b"still here\n")[:2], (0, b"still here\n"))

    def test_a_hangup_of_the_group(self):
        process = self.up("echo up; read -r word; echo $word", start_new_session=True)
        os.killpg(process.pid, signal.SIGHUP)
        process.wait(4 * GRACE) # before its input ends
        self.assertEqual(self.status(process)[:2], (129, b""))

    def test_other_ignored_signals_do_not_reach_the_agent(self):
        # Ignored SIGPIPE and SIGCHLD break programs that do not expect it.
        def ignore_both():
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD])
        out = self.inside("grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status", preexec_fn=ignore_both,
                          restore_signals=False)
        self.assertEqual(out.split(), ["SigBlk:", "0" * 16, "SigIgn:", "0" * 16])

    def test_the_caller_ignores_its_children(self):
        process = self.up("echo up; read -r word; exit 7", preexec_fn=ignoring(signal.SIGCHLD))
        self.assertEqual(self.status(process, b"go\n")[0], 7)
