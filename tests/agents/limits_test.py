"""A limit is held, or the run is refused by the option's name: never less. And the bound on disk space, in every
place that can be written."""
import json
import os

import inside

CONSUME = os.path.realpath(os.path.join(os.path.dirname(inside.GLOVE), "../tests/consume"))
# option, value, what the report says of it in `control_group` where it is held
BY_GROUP = (("--memory", "64M", "memory_max", "67108864"), ("--pids", "64", "pids_max", "65"),
            ("--cpus", "0.5", "cpu_max", "50000 100000"), ("--cpu-time", "90s", "cpu_overrun_us", 0))


class ByGroup(inside.Case):
    def test_is_held_as_the_kernel_says_or_refused_by_name_with_the_mend(self):
        for verb in ("exec", "run"):
            self.place.verb = verb
            more = [] if verb == "exec" else ["--upstream", "none=/usr/bin/false"] # which is no server
            for flag, value, name, held in BY_GROUP:
                with self.subTest(verb=verb, flag=flag):
                    report = self.place.path("report.json")
                    done = self.place.run("echo", "ran", flags=[flag, value, "--report", report, *more])
                    with open(report, encoding="utf-8") as file:
                        told = json.load(file)
                    os.unlink(report)
                    if done.returncode == 125 and told["error"]["step"].startswith("limits."):
                        self.assertEqual(done.stdout, b"")
                        self.assertIn(f"{flag}: ".encode(), done.stderr)
                        self.assertNotIn("control_group", told)
                        self.assertTrue(told["error"]["remedy"])
                    elif verb == "run":
                        self.assertEqual(told["error"]["step"], "mediation.start", done.stderr)
                    else:
                        self.assertEqual((done.returncode, done.stdout), (0, b"ran\n"), done.stderr)
                        self.assertEqual(told["control_group"][name], held)

    def test_explain_says_who_would_hold_them_or_that_nobody_can(self):
        for flag, value, *_ in BY_GROUP:
            words = self.inside("true", flags=[flag, value, "--explain"])
            self.assertTrue("the limits would be held in" in words or f"would be refused here: {flag}: " in words, words)
        self.assertNotIn("would be", self.inside("true", flags=["--wall-time", "9s", "--explain"]))


class Disk(inside.Case):
    LIMIT_KIB = 4096
    # Glove's own files take a little of it.
    OVER, BELOW = str(LIMIT_KIB + 4), str(LIMIT_KIB - 512)
    FULL = "No space left on device\n"

    def limited(self, *command):
        report = self.place.path("report.json")
        done = self.place.run(*command, workspace=False,
                              flags=["--read", CONSUME, "--disk", f"{self.LIMIT_KIB}K", "--report", report])
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(report, encoding="utf-8") as file:
            limits = json.load(file)["limits"]
        self.assertEqual((limits["disk_bytes"], limits["scratch_bytes"]), (self.LIMIT_KIB << 10, self.LIMIT_KIB << 10))
        return done.stdout.decode()

    def test_holds_in_every_place_that_can_be_written(self):
        for place in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/home/agent"):
            for kind in ("file", "unlinked"):
                with self.subTest(place=place, kind=kind):
                    self.assertEqual(self.limited(CONSUME, kind, self.OVER, place + "/it"), self.FULL)
                    self.assertEqual(self.limited(CONSUME, kind, self.BELOW, place + "/it"), "had it\n")

    def test_holds_for_all_of_them_together_whatever_they_are_called(self):
        half = str(self.LIMIT_KIB // 2 + 4)
        for between in ("true", "ln /tmp/a /tmp/b && rm /tmp/a", "mv /tmp/a /dev/shm/b",
                        "exec 3</tmp/a && rm /tmp/a"):
            with self.subTest(between=between):
                script = f"{CONSUME} file {half} /tmp/a && {between}; {CONSUME} file {half} /var/tmp/c"
                self.assertEqual(self.limited("sh", "-c", script), "had it\n" + self.FULL)
        script = f"{CONSUME} file {half} /tmp/a && rm /tmp/a && {CONSUME} file {half} /var/tmp/c"
        self.assertEqual(self.limited("sh", "-c", script), "had it\nhad it\n")

    def test_counts_what_is_there_and_not_what_a_file_says(self):
        script = f"{CONSUME} sparse {64 * self.LIMIT_KIB} /tmp/a && {CONSUME} file {self.BELOW} /tmp/b; " \
                 f"{CONSUME} file {self.BELOW} /tmp/a"
        self.assertEqual(self.limited("sh", "-c", script), "had it\nhad it\n" + self.FULL)

    def test_is_refused_where_files_of_yours_may_be_changed(self):
        other = self.place.folder("other")
        home = ["--home", "kept"]
        for flags, workspace in (([], True), (["--write", other], False), (home, False)):
            with self.subTest(flags=flags, workspace=workspace):
                done = self.place.run("echo", "ran", flags=["--disk", "4M", *flags], workspace=workspace)
                self.assertEqual((done.returncode, done.stdout), (2, b""), done.stderr)
                self.assertIn(b"--disk: ", done.stderr)
                self.assertIn(b"--read", done.stderr)
        done = self.place.run("echo", "ran", flags=["--disk", "4M", "--read", other], workspace=False)
        self.assertEqual((done.returncode, done.stdout), (0, b"ran\n"), done.stderr)

    def test_is_the_smaller_of_two_bounds(self):
        for flags, held in ((["--disk", "4M", "--scratch-bytes", "8M"], 4 << 20),
                            (["--disk", "8M", "--scratch-bytes", "4M"], 4 << 20),
                            (["--disk", str((4 << 20) + 1)], 4 << 20), (["--disk", "1M"], 1 << 20)):
            told = json.loads(self.inside("true", flags=[*flags, "--explain", "--json"], workspace=False))
            self.assertEqual(told["limits"]["scratch_bytes"], held, flags)
        done = self.place.run("true", flags=["--disk", str((1 << 20) - 1)], workspace=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"less than 1 MiB", done.stderr)
