#!/usr/bin/env python3
"""Runs a command as root of a machine whose file tree is the folder given: in_root.py ROOT COMMAND...

A chroot would not do: the kernel makes no user namespace in one. Here the folder becomes the root of a mount
namespace of its own, with fresh /proc, /dev, /run and /tmp, and its processes end with this one. There is no
network. Needs root; nothing of the host's mounts is changed.
"""
import ctypes
import os
import subprocess
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH, PIVOT_ROOT = 0x1000, 0x4000, 1 << 18, 2, {"x86_64": 155, "aarch64": 41}
NODES = ("null", "zero", "full", "random", "urandom", "tty")


def checked(answer):
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def mount(source, target, kind=None, flags=0, options=None):
    words = [word and os.fsencode(word) for word in (source, target, kind)]
    checked(LIBC.mount(*words, ctypes.c_ulong(flags), options and options.encode()))


def furnish(root):
    mount(root, root, flags=MS_BIND)
    mount("proc", root + "/proc", "proc")
    for place, mode in (("/dev", "755"), ("/run", "755"), ("/tmp", "1777")):
        mount("tmpfs", root + place, "tmpfs", options="mode=" + mode)
    for name in NODES:
        with open(root + "/dev/" + name, "xb"):
            mount("/dev/" + name, root + "/dev/" + name, flags=MS_BIND)
    for name in ("pts", "shm"):
        os.mkdir(root + "/dev/" + name)
    mount("devpts", root + "/dev/pts", "devpts", options="newinstance,ptmxmode=0666")
    mount("tmpfs", root + "/dev/shm", "tmpfs", options="mode=1777")
    os.symlink("pts/ptmx", root + "/dev/ptmx")
    os.symlink("/proc/self/fd", root + "/dev/fd")


def enter(root):
    furnish(root)
    for pair in os.environ.get("IN_ROOT_BINDS", "").split():
        os.makedirs(root + pair, exist_ok=True)
        mount(pair, root + pair, flags=MS_BIND | MS_REC)
    os.chdir(root)
    checked(LIBC.syscall(PIVOT_ROOT[os.uname().machine], b".", b"."))
    checked(LIBC.umount2(b".", MNT_DETACH))
    os.chdir("/")


def main():
    if sys.argv[1] != "--inside":
        apart = ["unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--propagation", "private"]
        if "IN_ROOT_NETWORK" not in os.environ:
            apart.append("--net")
        return subprocess.run([*apart, sys.executable, "-B", os.path.abspath(__file__), "--inside", *sys.argv[1:]],
                              check=False).returncode
    enter(os.path.realpath(sys.argv[2]))
    os.execvpe(sys.argv[3], sys.argv[3:], {
        "PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "LANG": "C.UTF-8",
        "DEBIAN_FRONTEND": "noninteractive", "TERM": "dumb"})


if __name__ == "__main__":
    sys.exit(main())
