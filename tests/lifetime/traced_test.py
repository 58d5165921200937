"""A process that asks to be traced by its parent gets no tracer that would hold it: inside, the
parent may be Glove's init, which lets it go on, and its end stays its own."""
import signal
import subprocess
import time

import inside

# Asks, then gets signals as any process does: one that is ignored by default, one with a handler.
ASK = """
import ctypes, os, signal, sys
heard = []
signal.signal(signal.SIGUSR1, lambda *_: heard.append("handled"))
if ctypes.CDLL(None, use_errno=True).ptrace(0, 0, None, None) != 0:
    sys.exit(99)
os.kill(os.getpid(), signal.SIGWINCH)
os.kill(os.getpid(), signal.SIGUSR1)
"""
# The child of a parent that is gone.
ORPHAN = """
import os, sys, time
if os.fork() == 0:
    first = os.getppid()
    if os.fork() == 0:
        while os.getppid() != 1:
            time.sleep(0.01)
        exec(open("ask.py").read())
        os.kill(os.getpid(), signal.SIGWINCH)
        with open("mark.new", "w") as file:
            file.write(" ".join(heard))
        os.rename("mark.new", "mark")
    os._exit(0)
os.wait()
for _ in range(1000):
    if os.path.exists("mark"):
        print(open("mark").read())
        sys.exit(7)
    time.sleep(0.02)
sys.exit(98)
"""


class Traced(inside.Case):
    def setUp(self):
        super().setUp()
        self.place.put("ask.py", ASK)
        self.place.put("agent.py", ASK + "print(*heard)\nsys.exit(7)\n")
        self.place.put("orphan.py", ORPHAN)

    def test_the_agent_goes_on(self):
        self.assertEqual(self.place.run("python3", "agent.py").stdout, b"handled\n")
        self.inside("python3", "agent.py", status=7)

    def test_an_orphan_goes_on(self):
        self.assertEqual(self.inside("python3", "orphan.py", status=7), "handled\n")

    def test_the_end_is_its_own(self):
        for number in (signal.SIGUSR2, signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV):
            self.place.put("dies.py", ASK + f"os.kill(os.getpid(), {int(number)})\nsys.exit(7)\n")
            self.inside("python3", "dies.py", status=128 + number)

    def test_a_program_that_it_starts_goes_on(self):
        self.place.put("starts.py", ASK + "os.execvp('sh', ['sh', '-c', 'echo started; exit 5'])\n")
        self.assertEqual(self.inside("python3", "starts.py", status=5), "started\n")

    def test_bare_it_stops_because_its_parent_traces_it(self):
        process = subprocess.Popen(["python3", "agent.py"], cwd=self.place.workspace,
                                   env=self.place.environment, stdout=subprocess.PIPE)
        self.addCleanup(inside.end, process)
        self.assertTrue(inside.wait_until(lambda: inside.facts(process.pid)[1] in "tT"))
        time.sleep(0.2)
        self.assertIn(inside.facts(process.pid)[1], "tT")

    def test_an_agent_that_does_not_ask(self):
        plain = ASK.replace(".ptrace(0, 0, None, None)", ".getpid() * 0")
        self.same("python3", "plain.py", status=7, tells=["handled"],
                  files={"plain.py": plain + "print(*heard)\nsys.exit(7)\n"})
