"""The same limits for root, in a group that the system's manager delegated."""
import contextlib
import os
import subprocess

import inside
import limits_test

DELEGATED = ("systemd-run", *limits_test.SERVICE, *limits_test.DELEGATE)
HUGE_PAGES = "/proc/sys/vm/nr_hugepages"


@contextlib.contextmanager
def huge_pages(count):
    def put(text):
        with open(HUGE_PAGES, "w", encoding="utf-8") as file:
            file.write(text)
    put(str(count))
    try:
        yield
    finally:
        put("0")


@contextlib.contextmanager
def core_files_to(program):
    path = "/proc/sys/kernel/core_pattern"
    with open(path, encoding="ascii") as file:
        before = file.read()
    def put(text):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    put(f"|{program} %P")
    try:
        yield
    finally:
        put(before)


class CoreFiles(inside.Case):
    """The kernel starts the machine's program for core files outside, as root, where no limit of the run's holds."""

    CRASH = "import os, resource; {}; os.kill(os.getpid(), 11)"
    LOWER = "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))"

    def crashes(self, *before, what="0"):
        """Whether that program was started for it."""
        told = self.place.path("told")
        done = subprocess.run([*before, "python3", "-c", self.CRASH.format(what)], check=False, capture_output=True,
                              env=self.place.environment, cwd=self.place.workspace, timeout=inside.PATIENCE)
        self.assertIn(done.returncode, (-11, 139), done.stderr)
        started = inside.wait_until(lambda: os.path.exists(told), 2 * inside.SLOWNESS)
        if started:
            os.unlink(told)
        return bool(started)

    def test_no_crash_has_the_host_start_a_program(self):
        program = self.place.path("program")
        with open(program, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\ncat > /dev/null\ntouch {self.place.path('told')}\n")
        os.chmod(program, 0o755)
        with core_files_to(program):
            self.assertTrue(self.crashes())
            self.assertTrue(self.crashes(what=self.LOWER))
            for what in ("0", self.LOWER):
                self.assertFalse(self.crashes(*self.place.glove(), what=what), what)


class Delegated(limits_test.EachLimit, limits_test.OutOfReach, limits_test.Limited):
    keeper = limits_test.HELD_BY_DELEGATION
    before = DELEGATED
    # The kernel is the same as beside the manager: what differs is the place of the group.
    repeats = limits_test.ROUNDS
    memory_kinds = (("memory",), ("file", "/tmp/file"), ("children", "4"))
    process_kinds = ("bomb",)
    processor_kinds = (("forks", "0", "1000"),)

    def test_a_group_that_a_killed_glove_left_is_removed_by_the_next(self):
        words = " ".join(self.place.glove(flags=["--pids", "8"]))
        up = self.place.path("up")
        script = f"""
            cd /sys/fs/cgroup$(cut -c4- /proc/self/cgroup)/..
            {words} sh -c 'echo up; exec sleep 1000' > {up} & pid=$!
            until grep -qs up {up}; do sleep 0.2; done
            kill -9 $pid
            while grep -qs 'populated 1' glove-run-*/cgroup.events; do sleep 0.2; done
            ls -d glove-run-* | wc -l
            {words} sh -c 'echo next'
            ls -d glove-run-* 2>&- | wc -l
        """
        done = subprocess.run([*DELEGATED, "sh", "-c", script], capture_output=True, check=False,
                              env=self.place.environment, cwd=self.place.workspace, timeout=inside.PATIENCE)
        self.assertEqual(done.stdout, b"1\nnext\n0\n", done.stderr)

    def test_beside_huge_pages_that_count_to_no_limit_it_is_refused(self):
        with huge_pages(4):
            status, out, report = self.limited("echo", "ran", flags=["--memory", "64M"])
            self.assertEqual((status, out, report["error"]["step"]), (125, "", "limits.huge_pages"), self.said)
            # They are there for whoever asks: what the refusal is for.
            out, _ = self.ends_well(limits_test.CONSUME, "huge", "4096", flags=["--pids", "8"])
            self.assertEqual(out, "had it\n")
        out, _ = self.ends_well("echo", "ran", flags=["--memory", "64M"])
        self.assertEqual(out, "ran\n")

    def test_a_caller_that_the_kernel_would_never_kill(self):
        before = ("systemd-run", "--property=OOMScoreAdjust=-1000", *DELEGATED[1:])
        for _ in range(3):
            self.ended_by("memory", limits_test.CONSUME, "memory", limits_test.OVER, flags=["--memory", "64M"],
                          before=before)

    def test_a_login_without_a_manager_and_without_delegation_is_refused(self):
        status, out, report = self.limited("echo", "ran", flags=["--cpus", "1"], before=())
        self.assertEqual((status, out, report["error"]["step"]), (125, "", "limits.place"), self.said)
        self.assertIn("--cpus: ", self.said)
