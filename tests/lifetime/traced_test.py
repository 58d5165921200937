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
"""
# The first one finds the tracer still there.
SIGNALS = """
for number in {}:
    os.kill(os.getpid(), number)
"""
ORDERS = ("(signal.SIGWINCH, signal.SIGUSR1)", "(signal.SIGUSR1, signal.SIGWINCH)")
# The child of a parent that is gone.
ORPHAN = """
import os, sys, time
if os.fork() == 0:
    first = os.getppid()
    if os.fork() == 0:
        while os.getppid() != 1:
            time.sleep(0.01)
        exec(open("ask.py").read())
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
    def prepare(self, order):
        asks = ASK + SIGNALS.format(order)
        self.place.empty_workspace()
        self.place.put("ask.py", asks)
        self.place.put("agent.py", asks + "print(*heard)\nsys.exit(7)\n")
        self.place.put("orphan.py", ORPHAN)

    def test_the_agent_goes_on(self):
        for order in ORDERS:
            self.prepare(order)
            self.assertEqual(self.inside("python3", "agent.py", status=7), "handled\n")

    def test_an_orphan_goes_on(self):
        for order in ORDERS:
            self.prepare(order)
            self.assertEqual(self.inside("python3", "orphan.py", status=7), "handled\n")

    def test_the_end_is_its_own(self):
        for number in (signal.SIGUSR2, signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV):
            self.place.put("dies.py", ASK + f"os.kill(os.getpid(), {int(number)})\nsys.exit(7)\n")
            self.inside("python3", "dies.py", status=128 + number)

    def test_a_program_that_it_starts_goes_on(self):
        self.place.put("starts.py", ASK + "os.execvp('sh', ['sh', '-c', 'echo started; exit 5'])\n")
        self.assertEqual(self.inside("python3", "starts.py", status=5), "started\n")

    def test_bare_it_stops_because_its_parent_traces_it(self):
        for order in ORDERS:
            self.prepare(order)
            process = subprocess.Popen(["python3", "agent.py"], cwd=self.place.workspace,
                                       env=self.place.environment, stdout=subprocess.PIPE)
            self.addCleanup(inside.end, process)
            self.assertTrue(inside.wait_until(lambda pid=process.pid: inside.facts(pid)[1] in "tT"))
            time.sleep(0.2)
            self.assertIn(inside.facts(process.pid)[1], "tT")

    def test_an_agent_that_does_not_ask(self):
        plain = ASK.replace(".ptrace(0, 0, None, None)", ".getpid() * 0") + SIGNALS.format(ORDERS[0])
        self.same("python3", "plain.py", status=7, tells=["handled"],
                  files={"plain.py": plain + "print(*heard)\nsys.exit(7)\n"})
