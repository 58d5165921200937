"""Reaches for the processes that it did not start, and prints {PID: {WHAT: OUTCOME}}.

    meddle.py look          tries to read and to trace them
    meddle.py STOP|KILL     sends the signal to each, but to those above itself
"""
import ctypes
import json
import os
import signal
import sys

libc = ctypes.CDLL(None, use_errno=True)


def ours():
    """This process and those above it but the first: the test's own."""
    found, pid = set(), os.getpid()
    while pid > 1:
        found.add(pid)
        with open(f"/proc/{pid}/stat", "rb") as file:
            pid = int(file.read().rpartition(b")")[2].split()[1])
    return found


def others():
    return sorted({int(name) for name in os.listdir("/proc") if name.isdigit()} - ours())


def call(*arguments):
    if libc.syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "gained"


def read_remotely(pid):
    class Piece(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
    room = ctypes.create_string_buffer(8)
    here, there = Piece(ctypes.addressof(room), 8), Piece(0x400000, 8)
    if libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "gained"


def take_descriptor(pid, number):
    handle = os.pidfd_open(pid)
    try:
        return call(438, handle, number, 0)
    finally:
        os.close(handle)


def trace(pid):
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(16, pid, None, None) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    libc.ptrace(17, pid, None, None)
    return "gained"


def looked(pid):
    outcome = {}
    tries = {"exe": lambda: os.readlink(f"/proc/{pid}/exe"),
             "mem": lambda: open(f"/proc/{pid}/mem", "rb").close() or "gained",
             "environ": lambda: open(f"/proc/{pid}/environ", "rb").read() or None,
             "root": lambda: os.listdir(f"/proc/{pid}/root/"), "vm": lambda: read_remotely(pid),
             "trace": lambda: trace(pid)}
    # Real root may list the numbers; what they lead to is what counts.
    tries.update({f"link {n}": lambda n=n: os.readlink(f"/proc/{pid}/fd/{n}") for n in range(16)})
    tries.update({f"take {n}": lambda n=n: take_descriptor(pid, n) for n in range(16)})
    for what, action in tries.items():
        try:
            gained = action()
            outcome[what] = f"gained {gained!r}" if gained else "refused: nothing"
        except OSError as error:
            outcome[what] = f"refused: {error.strerror}"
    return outcome


if os.environ.get("GLOVE_SANDBOXED") != "1":
    sys.exit("this would end every process of a machine: it runs in a sandbox only")
if sys.argv[1] == "look":
    json.dump({pid: looked(pid) for pid in others()}, sys.stdout)
else:
    told = {}
    for each in others():
        try:
            os.kill(each, getattr(signal, "SIG" + sys.argv[1]))
            told[each] = "sent"
        except OSError as error:
            told[each] = f"refused: {error.strerror}"
    json.dump(told, sys.stdout)
