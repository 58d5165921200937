"""Memory, processes and processor time of a run are held by the kernel, beside a user's service manager and in a
group that was delegated. Each limit with a program that passes it, and one that stays below."""
import json
import os
import signal
import subprocess
import time

import inside

CONSUME = os.path.realpath(os.path.join(os.path.dirname(inside.GLOVE), "../tests/consume"))
MIB = 1 << 20
# Processor time that a run may have used before the next look is done with it.
OVERRUN_US = 250_000 * inside.SLOWNESS


def own_group():
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        return next(line[3:].strip() for line in file if line.startswith("0::"))


def groups_of_runs():
    """Every group of a run on this machine, by name."""
    found = []
    for folder, names, _ in os.walk("/sys/fs/cgroup"):
        found += [os.path.join(folder, name) for name in names if name.startswith("glove-")]
    return found


class Limited(inside.Case):
    def setUp(self):
        super().setUp()
        self.need("busctl", "systemd-run", "unshare")
        # A unit goes a moment after its last process.
        self.addCleanup(lambda: self.assertTrue(inside.wait_until(lambda: not groups_of_runs()), groups_of_runs()))

    def limited(self, *command, flags, before=()):
        """(status, standard output, report) of a contained run."""
        report = self.place.path("report.json")
        words = self.place.glove(*command, flags=["--read", CONSUME, *flags, "--report", report])
        done = subprocess.run([*before, *words], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              env=self.place.environment, cwd=self.place.workspace, timeout=inside.PATIENCE)
        self.said = done.stderr.decode()
        with open(report, encoding="utf-8") as file:
            told = json.load(file)
        return done.returncode, done.stdout.decode(), told

    def ended_by(self, cause, *command, flags):
        status, out, report = self.limited(*command, flags=flags)
        self.assertEqual((status, report["exit"]["cause"], report["limits_hit"]), (137, cause, [cause]),
                         (out, self.said, report))
        return out, report

    def ends_well(self, *command, flags, before=()):
        status, out, report = self.limited(*command, flags=flags, before=before)
        self.assertEqual((status, report.get("exit", {}).get("cause"), report.get("limits_hit")), (0, "exited", []),
                         (out, self.said, report))
        return out, report


class Memory(Limited):
    def test_holds_for_every_kind_and_for_all_processes_together(self):
        for kind, extra in (("memory", ()), ("shared", ()), ("file", ("/tmp/file",)), ("child", ())):
            with self.subTest(kind=kind):
                _, report = self.ended_by("memory", CONSUME, kind, "80", *extra, flags=["--memory", "64M"])
                self.assertIn("memory limit", self.said)
                self.assertGreaterEqual(report["control_group"]["out_of_memory"], 1)
        for kind, extra in (("memory", ()), ("child", ())):
            with self.subTest(twin=kind):
                out, report = self.ends_well(CONSUME, kind, "40", *extra, flags=["--memory", "64M"])
                self.assertIn("had it", out)
                self.assertEqual(report["control_group"]["out_of_memory"], 0)
                self.assertGreater(report["control_group"]["memory_peak_bytes"], 40 * MIB)

    def test_is_read_back_and_there_is_no_swap(self):
        _, report = self.ends_well("true", flags=["--memory", "64M"])
        held = report["control_group"]
        self.assertEqual((held["keeper"], held["memory_max"], held["memory_swap_max"], held["memory_oom_group"]),
                         ("user_manager", str(64 * MIB), "0", "1"))
        self.assertEqual(report["limits"]["memory_bytes"], 64 * MIB)

    def test_of_files_of_yours_goes_back_to_the_kernel(self):
        out, _ = self.ends_well(CONSUME, "file", "96", self.place.workspace + "/file", flags=["--memory", "64M"])
        self.assertEqual(out, "had it\n")

    def test_a_kill_is_no_want_of_memory(self):
        status, _, report = self.limited("sh", "-c", "kill -9 $$", flags=["--memory", "64M"])
        self.assertEqual((status, report["exit"]["cause"], report["limits_hit"]), (137, "signaled", []))


class Processes(Limited):
    def test_are_counted_with_their_threads(self):
        for kind in ("processes", "threads"):
            with self.subTest(kind=kind):
                out, report = self.ends_well(CONSUME, kind, "7", flags=["--pids", "8"])
                self.assertEqual((out, report["control_group"]["processes_refused"]), ("7\n", 0))
                out, report = self.ends_well(CONSUME, kind, "8", flags=["--pids", "8"])
                self.assertEqual(out, "7 and no more\n")
                self.assertGreaterEqual(report["control_group"]["processes_refused"], 1)
                # One more is Glove's own init.
                self.assertEqual(report["control_group"]["pids_max"], "9")


class Processor(Limited):
    def test_half_of_one_is_half_of_the_time(self):
        began = time.monotonic()
        _, report = self.ends_well(CONSUME, "spin", "3000", "2", flags=["--cpus", "0.5"])
        took = time.monotonic() - began
        self.assertEqual(report["control_group"]["cpu_max"], "50000 100000")
        self.assertLess(report["control_group"]["cpu_us"], took * 1e6 * 0.5 + 100_000)
        _, free = self.ends_well(CONSUME, "spin", "3000", "2", flags=["--cpus", "2"])
        self.assertGreater(free["control_group"]["cpu_us"], 1.5 * report["control_group"]["cpu_us"])

    def test_time_ends_threads_and_children_that_follow_one_another(self):
        for command in (("spin", "0", "2"), ("forks", "0")):
            with self.subTest(command=command):
                _, report = self.ended_by("cpu_time", CONSUME, *command, flags=["--cpu-time", "2s"])
                used = report["control_group"]
                self.assertGreaterEqual(used["cpu_us"], 2_000_000)
                self.assertEqual(used["cpu_overrun_us"], used["cpu_us"] - 2_000_000)
                self.assertLess(used["cpu_overrun_us"], OVERRUN_US)
                self.assertIn("cpu-time limit", self.said)

    def test_time_that_is_slept_is_not_used(self):
        _, report = self.ends_well("sh", "-c", "sleep 3", flags=["--cpu-time", "2s"])
        self.assertEqual(report["control_group"]["cpu_overrun_us"], 0)


# Hides the service manager, as a machine without one would: in a user namespace in which nobody else is.
WITHOUT_MANAGER = ("unshare", "--user", "--map-current-user", "--keep-caps", "--mount", "sh", "-ec",
                   'mount -t tmpfs none /run/user; exec setpriv --inh-caps=-all --ambient-caps=-all "$@"', "sh")
DELEGATED = ("systemd-run", "--user", "--pipe", "--wait", "--collect", "--quiet", "--expand-environment=no",
             "--property=Delegate=cpu memory pids", "--property=DelegateSubgroup=main", "--same-dir",
             "--setenv=HOME", "--setenv=XDG_STATE_HOME", "--setenv=XDG_CONFIG_HOME", "--setenv=PATH")


class Places(Limited):
    def setUp(self):
        super().setUp()
        # systemd-run finds its manager by these.
        self.place.environment["XDG_RUNTIME_DIR"] = f"/run/user/{os.getuid()}"
        self.place.environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path=/run/user/{os.getuid()}/bus"

    def test_without_any_the_run_is_refused_by_name(self):
        for flag, value in (("--memory", "64M"), ("--pids", "8"), ("--cpus", "1"), ("--cpu-time", "9s")):
            with self.subTest(flag=flag):
                status, out, report = self.limited("echo", "ran", flags=[flag, value], before=WITHOUT_MANAGER)
                self.assertEqual((status, out, report["error"]["step"]), (125, "", "limits.place"), self.said)
        status, out, _ = self.limited("echo", "ran", flags=[], before=WITHOUT_MANAGER)
        self.assertEqual((status, out), (0, "ran\n"), self.said)

    def test_a_group_that_was_delegated_serves(self):
        before = (*DELEGATED, *WITHOUT_MANAGER)
        out, report = self.ends_well(CONSUME, "processes", "8", flags=["--pids", "8", "--memory", "64M"], before=before)
        self.assertEqual((out, report["control_group"]["keeper"]), ("7 and no more\n", "delegation"))
        status, _, report = self.limited(CONSUME, "memory", "80", flags=["--memory", "64M"], before=before)
        self.assertEqual((status, report["exit"]["cause"]), (137, "memory"))

    def test_beside_a_manager_that_has_no_limit_to_give(self):
        """In a service without delegation, the manager still makes a scope."""
        before = ("systemd-run", "--user", "--pipe", "--wait", "--collect", "--quiet", "--same-dir", "--setenv=HOME",
                  "--setenv=XDG_STATE_HOME", "--setenv=XDG_CONFIG_HOME", "--setenv=PATH")
        _, report = self.ends_well("true", flags=["--pids", "8"], before=before)
        self.assertEqual(report["control_group"]["keeper"], "user_manager")


class Group(Limited):
    def test_is_out_of_reach_from_inside(self):
        script = ("cat /proc/self/cgroup; ls /sys/fs/cgroup; echo 0 > /sys/fs/cgroup/cgroup.procs; "
                  "mount -t cgroup2 none /tmp && echo mounted; echo end")
        out, _ = self.ends_well("sh", "-c", script, flags=["--pids", "32"])
        self.assertEqual(out, "0::/\nend\n", self.said)
        # The twin: whoever is outside of the sandbox can take a limit of his own group away.
        twin = subprocess.run(["systemd-run", "--user", "--pipe", "--wait", "--collect", "--quiet", "--expand-environment=no",
                               "--property=Delegate=yes", "--property=TasksMax=99", "sh", "-c",
                               "cd /sys/fs/cgroup$(cut -c4- /proc/self/cgroup); cat pids.max; echo max > pids.max; cat pids.max"],
                              capture_output=True, check=False, timeout=inside.PATIENCE)
        self.assertEqual(twin.stdout, b"99\nmax\n", twin.stderr)

    def test_does_not_hold_the_caller(self):
        before = own_group()
        process = self.place.start("sh", "-c", "echo up; exec sleep 1000", flags=["--pids", "8"], stdout=subprocess.PIPE)
        self.addCleanup(inside.end, process)
        self.assertEqual(process.stdout.readline(), b"up\n")
        with open(f"/proc/{process.pid}/cgroup", encoding="utf-8") as file:
            self.assertEqual(file.read().strip(), "0::" + before)
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

