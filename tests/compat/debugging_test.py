"""Debuggers and process viewers work on what the agent itself started."""
import inside

PROGRAM = r"""
#include <stdio.h>
__attribute__((noinline)) int inner(int x) { printf("inner %d\n", x); return x + 1; }
__attribute__((noinline)) int outer(int x) { return inner(x * 2) + 1; }
int main(void) { printf("%d\n", outer(21)); return 5; }
"""


class Debugging(inside.Case):
    def test_strace_follows_children(self):
        self.need("strace")
        self.same_script(r"""
            strace -f -e trace=execve,write -o trace sh -c 'env echo hi; exit 4' || echo "status $?"
            grep -c 'write(1, "hi' trace
            grep -c '+++ exited with' trace
            """, tells=["hi", "status 4", "1", "2"])

    def test_strace_attaches_to_a_process(self):
        # A process may be attached to when it permits it, whatever the host's ptrace scope is.
        self.same("python3", "program.py", files={"program.py": r"""
import ctypes, os, signal, subprocess, time
go, started = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER
    os.write(started[1], b"x")
    os.read(go[0], 1)
    os.write(1, b"attached\n")
    os._exit(6)
os.read(started[0], 1)
tracer = subprocess.Popen(["strace", "-o", "trace", "-e", "trace=write,exit_group", "-p", str(child)],
                          stderr=subprocess.PIPE)
tracer.stderr.readline()
os.write(go[1], b"x")
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
tracer.wait()
print("exit_group(6)" in open("trace").read())
"""}, tells=["attached", "6", "True"])

    def test_gdb_breakpoint_and_backtrace(self):
        self.need("gdb", "gcc")
        self.same_script(r"""
            gcc -g -O0 -o program program.c
            gdb -nx -batch -ex 'break inner' -ex run -ex backtrace -ex 'print x * 2' -ex finish \
                -ex continue ./program 2>/dev/null | sed 's/0x[0-9a-f]*/ADDRESS/; s/process [0-9]*/process/g' |
                grep -E '^#|^\$|inner 42|exited'
            """, files={"program.c": PROGRAM}, timeout=2 * inside.PATIENCE,
                         tells=["#0  inner (x=42) at program.c:3", "$1 = 84", "inner 42"])

    def test_process_viewers_show_the_agent_s_own_processes_only(self):
        self.need("ps", "top")
        shown = self.inside("ps", "-e", "-o", "pid=,args=")
        commands = [line.split(None, 1)[1].strip() for line in shown.splitlines()]
        self.assertEqual(commands, ["glove-init", "ps -e -o pid=,args="])
        self.assertGreater(self.place.bare("ps", "-e", "-o", "pid=").stdout.count(b"\n"), 2)
        top = self.inside("top", "-b", "-n", "1")
        self.assertRegex(top, r"Tasks: +2 total")
        self.assertRegex(top, r"(?m)^ +1 .* glove-i")

    def test_pgrep_and_kill(self):
        self.same_script(r"""
            sleep 4321 & for i in 1 2 3; do sleep 4321.$$ & done
            until [ "$(pgrep -c -f "sleep 4321\.$$")" = 3 ]; do sleep 0.05; done
            pgrep -c -f "sleep 4321\.$$"; pkill -f "sleep 4321\.$$"; kill %1; wait; echo over
            """, tells=["3", "over"])
