"""Memory, processes and processor time of a run are held by the kernel, beside a user's service manager and in a
group that was delegated. Each limit with programs that pass it by one, and twins that stay just below."""
import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

import inside
import units

CONSUME = os.path.realpath(os.path.join(os.path.dirname(inside.GLOVE), "../tests/consume"))
ROUNDS = 7 if inside.SOAK else 1
MIB = 1 << 20
LIMIT_KIB = 64 << 10
# One page more than there is, and what is surely left beside init and the page tables.
OVER, BELOW = str(LIMIT_KIB + 4), str(LIMIT_KIB - (6 << 10))
# Processor time that a run may have used before the next look is done with it.
OVERRUN_US = 250_000 * inside.SLOWNESS

HELD_BY_MANAGER, HELD_BY_DELEGATION = "user_manager", "delegation"
SERVICE = (*units.PIPED, "--same-dir", "--setenv=HOME", "--setenv=XDG_STATE_HOME", "--setenv=XDG_CONFIG_HOME",
           "--setenv=PATH")
DELEGATE = (*units.DELEGATE, "--property=DelegateSubgroup=main")
# Hides the service manager, as a machine without one would: in a user namespace in which nobody else is.
WITHOUT_MANAGER = ("unshare", "--user", "--map-current-user", "--keep-caps", "--mount", "sh", "-ec",
                   'mount -t tmpfs none /run/user; exec setpriv --inh-caps=-all --ambient-caps=-all "$@"', "sh")


def group_of(pid):
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
        return next(line[3:].strip() for line in file if line.startswith("0::"))


def groups_of_runs():
    """Every group of a run on this machine, by name."""
    found = []
    for folder, names, _ in os.walk("/sys/fs/cgroup"):
        found += [os.path.join(folder, name) for name in names if name.startswith("glove-")]
    return found


class Limited(inside.Case):
    keeper = HELD_BY_MANAGER
    before = ()

    def setUp(self):
        super().setUp()
        self.need("busctl", "systemd-run", "unshare")
        self.place.environment |= units.way_to_the_manager() # glove finds it by none of them
        # A unit goes a moment after its last process.
        self.addCleanup(lambda: self.assertTrue(inside.wait_until(lambda: not groups_of_runs()), groups_of_runs()))

    def limited(self, *command, flags, before=None, **options):
        """(status, standard output, report) of a contained run."""
        report = self.place.path("report.json")
        words = self.place.glove(*command, flags=["--read", CONSUME, *flags, "--report", report])
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL,
                   "env": self.place.environment, "cwd": self.place.workspace, "timeout": inside.PATIENCE, **options}
        done = subprocess.run([*(self.before if before is None else before), *words], check=False, **options)
        self.said = done.stderr.decode()
        with open(report, encoding="utf-8") as file:
            told = json.load(file)
        os.unlink(report)
        return done.returncode, (done.stdout or b"").decode(), told

    def ended_by(self, cause, *command, flags, status=137, **options):
        got, out, report = self.limited(*command, flags=flags, **options)
        self.assertEqual((got, report.get("exit", {}).get("cause"), report.get("limits_hit")), (status, cause, [cause]),
                         (out, self.said, report.get("control_group")))
        return out, report

    def ends_well(self, *command, flags, before=None):
        status, out, report = self.limited(*command, flags=flags, before=before)
        self.assertEqual((status, report.get("exit", {}).get("cause"), report.get("limits_hit")), (0, "exited", []),
                         (out, self.said, report.get("control_group")))
        return out, report


class EachLimit:
    """The limits themselves, wherever the group is: each at least three times."""

    repeats = 3 * ROUNDS
    memory_kinds = (("memory",), ("shared",), ("shm",), ("file", "/tmp/file"), ("unlinked", "/tmp/file"),
                    ("file", "/dev/shm/file"), ("child",), ("children", "4"))
    process_kinds = ("processes", "threads", "bomb")
    # What uses too much, and what does not. Init and the start of the program use some as well, a busy host more.
    processor_kinds = (("spin", "0", "1000"), ("forks", "0", "1000"), ("spin", "4001", "500"))

    def test_memory_holds_for_every_kind_and_for_all_processes_together(self):
        for kind, *more in ROUNDS * self.memory_kinds:
            with self.subTest(kind=kind, more=more):
                _, report = self.ended_by("memory", CONSUME, kind, OVER, *more, flags=["--memory", "64M"])
                self.assertIn("memory limit", self.said)
                self.assertGreaterEqual(report["control_group"]["out_of_memory"], 1)
                out, report = self.ends_well(CONSUME, kind, BELOW, *more, flags=["--memory", "64M"])
                self.assertIn("had it", out)
                self.assertEqual(report["control_group"]["out_of_memory"], 0)
                self.assertGreater(report["control_group"]["memory_peak_bytes"], int(BELOW) << 10)

    def test_memory_is_read_back_and_there_is_no_swap(self):
        _, report = self.ends_well("true", flags=["--memory", "64M"])
        held = report["control_group"]
        self.assertEqual((held["keeper"], held["memory_max"], held["memory_swap_max"], held["memory_oom_group"]),
                         (self.keeper, str(64 * MIB), "0", "1"))
        self.assertEqual(report["limits"]["memory_bytes"], 64 * MIB)

    def test_cached_pages_of_files_of_yours_go_back_to_the_kernel(self):
        folder = tempfile.mkdtemp(prefix="glove-test-", dir="/var/tmp") # the place may be in memory itself
        self.addCleanup(shutil.rmtree, folder)
        for _ in range(self.repeats):
            out, _ = self.ends_well(CONSUME, "file", str(96 << 10), folder + "/file",
                                    flags=["--memory", "64M", "--write", folder])
            self.assertEqual(out, "had it\n")

    def test_processes_are_counted_with_their_threads(self):
        for kind in ROUNDS * self.process_kinds:
            with self.subTest(kind=kind):
                out, report = self.ends_well(CONSUME, kind, "7", flags=["--pids", "8"])
                self.assertEqual((out, report["control_group"]["processes_refused"]), ("7\n", 0))
                out, report = self.ends_well(CONSUME, kind, "8", flags=["--pids", "8"])
                self.assertEqual(out, "7 and no more\n")
                self.assertGreaterEqual(report["control_group"]["processes_refused"], 1)
                # One more is Glove's own init.
                self.assertEqual(report["control_group"]["pids_max"], "9")

    def test_half_of_a_processor_is_half_of_the_time(self):
        for _ in range(self.repeats):
            began = time.monotonic()
            _, report = self.ends_well(CONSUME, "busy", "2000", "2", flags=["--cpus", "0.5"])
            took = time.monotonic() - began
            self.assertEqual(report["control_group"]["cpu_max"], "50000 100000")
            self.assertLess(report["control_group"]["cpu_us"], took * 1e6 * 0.5 + 100_000)
        _, free = self.ends_well(CONSUME, "busy", "2000", "2", flags=["--cpus", "2"])
        self.assertGreater(free["control_group"]["cpu_us"], 1.5 * report["control_group"]["cpu_us"])

    def test_processor_time_of_threads_and_of_children_that_follow_one_another(self):
        for kind, over, below in ROUNDS * self.processor_kinds:
            with self.subTest(kind=kind, over=over):
                _, report = self.ended_by("cpu_time", CONSUME, kind, over, "2", flags=["--cpu-time", "4s"])
                used = report["control_group"]
                self.assertGreaterEqual(used["cpu_us"], 4_000_000)
                self.assertEqual(used["cpu_overrun_us"], used["cpu_us"] - 4_000_000)
                self.assertLess(used["cpu_overrun_us"], OVERRUN_US)
                self.assertIn("cpu-time limit", self.said)
                _, report = self.ends_well(CONSUME, kind, below, "2", flags=["--cpu-time", "4s"])
                self.assertGreaterEqual(report["control_group"]["cpu_us"], int(below) * 1000)
                self.assertEqual(report["control_group"]["cpu_overrun_us"], 0)

    def test_time_that_is_slept_is_not_used(self):
        _, report = self.ends_well("sleep", "2", flags=["--cpu-time", "1500ms"])
        self.assertEqual(report["control_group"]["cpu_overrun_us"], 0)


class BesideTheManager(EachLimit, Limited):
    """An ordinary user, with a service manager of his own."""


class Causes(Limited):
    """The first cause is the one that is told."""

    def test_a_kill_is_no_want_of_memory(self):
        for script in ("kill -9 $$", "sh -c 'kill -9 $PPID'; sleep 9"):
            status, _, report = self.limited("sh", "-c", script, flags=["--memory", "64M"])
            self.assertEqual((status, report["exit"]["cause"], report["limits_hit"]), (137, "signaled", []))

    def test_want_of_memory_of_others_is_not_this_limit(self):
        """The group above this one has a limit of its own, which is met first."""
        above = ("systemctl", "--user", "set-property", "--runtime", "app.slice")
        self.addCleanup(subprocess.run, [*above, "MemoryMax=infinity"], check=True)
        subprocess.run([*above, "MemoryMax=160M"], check=True)
        status, out, report = self.limited(CONSUME, "memory", str(192 << 10), flags=["--memory", "256M"])
        self.assertEqual((status, report["exit"]["cause"], report["limits_hit"]), (137, "signaled", []), out)
        self.assertGreaterEqual(report["control_group"]["out_of_memory"], 1)

    def test_memory_that_is_taken_after_the_time_was_up(self):
        self.ended_by("wall_time", CONSUME, "late", OVER, flags=["--memory", "64M", "--wall-time", "3s"])
        self.ended_by("wall_time", CONSUME, "late", BELOW, flags=["--memory", "64M", "--wall-time", "3s"], status=143)

    def test_time_that_is_up_while_nobody_reads_what_was_written_before(self):
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETFL, os.O_NONBLOCK)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b"x" * 4096)
        fcntl.fcntl(writer, fcntl.F_SETFL, 0)
        try:
            script = f"echo some; exec {CONSUME} memory {OVER}"
            self.ended_by("memory", "sh", "-c", script, stdout=writer,
                          flags=["--memory", "64M", "--output-bytes", "1M", "--wall-time", "40s"])
        finally:
            os.close(reader)
            os.close(writer)


class Places(Limited):
    def test_without_any_the_run_is_refused_by_name(self):
        for flag, value in (("--memory", "64M"), ("--pids", "8"), ("--cpus", "1"), ("--cpu-time", "9s")):
            with self.subTest(flag=flag):
                status, out, report = self.limited("echo", "ran", flags=[flag, value], before=WITHOUT_MANAGER)
                self.assertEqual((status, out, report["error"]["step"]), (125, "", "limits.place"), self.said)
                self.assertIn(flag + ": ", self.said)
        status, out, _ = self.limited("echo", "ran", flags=[], before=WITHOUT_MANAGER)
        self.assertEqual((status, out), (0, "ran\n"), self.said)

    def test_a_group_that_was_delegated_serves(self):
        before = ("systemd-run", "--user", *SERVICE, *DELEGATE, *WITHOUT_MANAGER)
        out, report = self.ends_well(CONSUME, "processes", "8", flags=["--pids", "8", "--memory", "64M"], before=before)
        self.assertEqual((out, report["control_group"]["keeper"]), ("7 and no more\n", HELD_BY_DELEGATION))
        self.ended_by("memory", CONSUME, "memory", OVER, flags=["--memory", "64M"], before=before)

    def test_a_group_that_holds_glove_itself_does_not(self):
        """Delegated, but without a subgroup: what is beside glove there belongs to the manager."""
        before = ("systemd-run", "--user", *SERVICE, *units.DELEGATE, *WITHOUT_MANAGER)
        status, out, report = self.limited("echo", "ran", flags=["--pids", "8"], before=before)
        self.assertEqual((status, out, report["error"]["step"]), (125, "", "limits.place"), self.said)
        self.assertIn("DelegateSubgroup", self.said)

    def test_in_a_service_without_delegation_the_manager_makes_a_scope(self):
        _, report = self.ends_well("true", flags=["--pids", "8"], before=("systemd-run", "--user", *SERVICE))
        self.assertEqual(report["control_group"]["keeper"], HELD_BY_MANAGER)

    def test_the_bridge_does_not_count_as_the_command_s(self):
        out, report = self.ends_well(CONSUME, "processes", "8", flags=["--pids", "8", "--egress-allow", "a.example"])
        self.assertEqual((out, report["control_group"]["pids_max"]), ("7 and no more\n", "10"))

    def test_a_run_with_tools_has_the_same_and_its_servers_are_not_in_it(self):
        self.place.verb = "run"
        server = os.path.join(os.path.dirname(inside.__file__), "tool_server.py")
        tools = ["--upstream", f"s=/usr/bin/python3,{server},mark,family"]
        out, report = self.ends_well(CONSUME, "processes", "8", flags=["--pids", "8", *tools])
        self.assertEqual((out, report["control_group"]["pids_max"]), ("7 and no more\n", "9"))
        self.ended_by("memory", CONSUME, "memory", OVER, flags=["--memory", "64M", *tools])

    def test_explain_tells_the_place_and_makes_none(self):
        told = self.place.run("true", flags=["--pids", "8", "--explain"])
        self.assertIn(b"a scope of your service manager", told.stdout)
        words = [*WITHOUT_MANAGER, *self.place.glove("true", flags=["--pids", "8", "--explain"])]
        told = subprocess.run(words, capture_output=True, check=False, env=self.place.environment,
                              cwd=self.place.workspace, timeout=inside.PATIENCE)
        self.assertIn(b"refused here: --pids: ", told.stdout, told.stderr)


# Every group that can be seen, and every way to it; says what worked.
MOVE = r"""
for group in $(find /sys/fs/cgroup -type d); do
    echo 0 2>/dev/null > $group/cgroup.procs && echo "moved to $group"
    echo max 2>/dev/null > $group/pids.max && echo "lifted $group"
    mkdir $group/mine 2>/dev/null && echo "made $group/mine"
done
mount -t cgroup2 none /tmp 2>/dev/null && echo mounted
mount -o remount,rw,bind /sys/fs/cgroup 2>/dev/null && echo "mounted again"
unshare --cgroup true 2>/dev/null && echo "other namespace"
cut -d: -f3 /proc/self/cgroup
"""


class OutOfReach:
    def test_from_inside_without_and_with_a_view_of_the_groups(self):
        for grant in ((), ("--read", "/sys/fs/cgroup")):
            with self.subTest(grant=grant):
                out, report = self.ends_well("sh", "-c", MOVE, flags=["--pids", "32", *grant])
                self.assertEqual(out, "/\n", self.said)
                self.assertEqual(report["control_group"]["pids_max"], "33")
        done = self.place.run("true", flags=["--pids", "32", "--write", "/sys/fs/cgroup"])
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"can only be read", done.stderr)


class Group(OutOfReach, Limited):
    def test_is_within_reach_of_whoever_is_outside(self):
        """The twin: a process of the same user, in a group of his."""
        script = ("cd /sys/fs/cgroup$(cut -c4- /proc/self/cgroup); cat pids.max; echo max > pids.max; cat pids.max; "
                  "mkdir mine; echo 0 > mine/cgroup.procs; basename $(cut -c4- /proc/self/cgroup)")
        twin = subprocess.run(["systemd-run", "--user", *SERVICE, "--property=Delegate=yes", "--property=TasksMax=99",
                               "sh", "-c", script], capture_output=True, check=False, timeout=inside.PATIENCE,
                              env=self.place.environment, cwd=self.place.workspace)
        self.assertEqual(twin.stdout, b"99\nmax\nmine\n", twin.stderr)

    def test_that_lost_a_limit_is_no_success(self):
        process = self.place.start("sh", "-c", "echo up; read line", flags=["--pids", "8"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(inside.end, process)
        self.assertEqual(process.stdout.readline(), b"up\n")
        group = next(one for one in groups_of_runs() if one.endswith(".scope"))
        with open(group + "/run/pids.max", "w", encoding="utf-8") as file:
            file.write("max")
        _, said = process.communicate(b"go\n", timeout=inside.PATIENCE)
        self.assertEqual(process.returncode, 125)
        self.assertIn(b"limits.read_back: --pids: the kernel holds pids.max at max, not at 9", said)

    def test_does_not_hold_the_caller(self):
        before = group_of("self")
        process = self.place.start("sh", "-c", "echo up; exec sleep 1000", flags=["--pids", "8"], stdout=subprocess.PIPE)
        self.addCleanup(inside.end, process)
        self.assertEqual(process.stdout.readline(), b"up\n")
        self.assertEqual(group_of(process.pid), before)
        self.assertEqual(len([one for one in groups_of_runs() if one.endswith(".scope")]), 1)

    def test_is_gone_when_glove_is_killed(self):
        process = self.place.start("sh", "-c", "echo up; exec sleep 1000", flags=["--pids", "8"], stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"up\n")
        below = inside.descendants(process.pid)
        self.assertGreaterEqual(len(below), 3) # the keeper, init, the command
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertTrue(inside.wait_until(lambda: not inside.alive(below)), below)
        process.stdout.close()
