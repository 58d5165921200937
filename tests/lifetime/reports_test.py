"""The report tells what was so, and a place where it cannot be written is refused before anything
runs."""
import json
import os
import stat
import subprocess

import inside


class Reports(inside.Case):
    def report(self, name="report.json"):
        with open(self.place.path(name), encoding="utf-8") as file:
            return json.load(file)

    def unarmed(self, report):
        self.assertGreater(len(report["layers"]), 10)
        return [layer["name"] for layer in report["layers"] if not layer["armed"]]

    def test_every_layer_was_armed_however_the_run_ended(self):
        stubborn = "trap '' TERM; echo up; while :; do sleep 1000; done"
        for script, flags, status, cause in (
                (stubborn, ["--wall-time", "500ms"], 137, "wall_time"),
                ("exec sleep 1000", ["--wall-time", "500ms"], 143, "wall_time"),
                ("yes; exec sleep 1000", ["--output-bytes", "100kB"], 137, "output_bytes"),
                ("kill -9 $$", [], 137, "signaled"),
                ("exit 3", [], 3, "exited")):
            with self.subTest(script=script):
                done = self.place.run("bash", "-c", script,
                                      flags=[*flags, "--report", self.place.path("report.json")])
                self.assertEqual(done.returncode, status)
                report = self.report()
                self.assertEqual(report["exit"]["cause"], cause)
                self.assertEqual(self.unarmed(report), [])

    def test_a_run_that_did_not_start_tells_what_was_not_armed(self):
        done = self.place.run("no-such-program", flags=["--report", self.place.path("report.json")])
        self.assertEqual(done.returncode, 127)
        self.assertNotIn("exit", self.report())

    def test_a_run_that_a_limit_cut_short_never_looks_like_a_success(self):
        for script, flags in (("trap 'exit 0' TERM; while :; do sleep 0.05; done", ["--wall-time", "500ms"]),
                              ("trap '' PIPE; head -c 200000 /dev/zero; exit 0", ["--output-bytes", "1000"])):
            with self.subTest(flags=flags):
                done = self.place.run("bash", "-c", script,
                                      flags=[*flags, "--report", self.place.path("report.json")])
                self.assertIn(done.returncode, (143, 137))
                report = self.report()
                self.assertEqual(report["limits_hit"], [report["exit"]["cause"]])
                if "code" in report["exit"]:
                    self.assertEqual((report["exit"]["code"], done.returncode), (0, 143))
        # The twin comes to the same end by itself.
        self.assertEqual(self.place.run("bash", "-c", "exit 0", flags=["--wall-time", "1000s"]).returncode, 0)

    def test_a_place_that_takes_no_report_is_refused_before_anything_runs(self):
        marker = os.path.join(self.place.workspace, "ran")
        os.mkdir(self.place.path("full"))
        os.symlink(self.place.path("elsewhere"), self.place.path("link"))
        os.mkfifo(self.place.path("fifo"))
        places = ["", "/", self.place.path("full"), self.place.path("full/"),
                  self.place.path("fifo"), self.place.path("link"), "/proc/report.json",
                  "/sys/report.json", "/proc/self/none/report.json", "/dev/null/report.json"]
        if os.geteuid() == 0:  # on the day this fails, no device of the machine is replaced
            os.mknod(self.place.path("null"), 0o600 | stat.S_IFCHR, os.makedev(1, 3))
            places += [self.place.path("null")]
        else:
            os.mkdir(self.place.path("closed"), 0o555)
            places += [self.place.path("closed/report.json"), "/dev/null", "/report.json", "/etc/passwd"]
        for place in places:
            with self.subTest(place=place):
                done = self.place.run("touch", marker, flags=["--report", place])
                self.assertIn(done.returncode, (2, 125), done.stderr)
                self.assertTrue(done.stderr.startswith(b"error["), done.stderr)
                ran = os.path.exists(marker)
                if ran:
                    os.unlink(marker)
                self.assertFalse(ran)
        self.assertFalse(os.path.exists(self.place.path("elsewhere")))
        done = self.place.run("touch", marker, flags=["--report", self.place.path("new", "report.json")])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.exists(marker))
        self.assertEqual(self.report("new/report.json")["exit"]["code"], 0)

    def test_a_read_only_place_is_refused_too(self):
        marker = os.path.join(self.place.workspace, "ran")
        command = ["unshare", "-m" if os.geteuid() == 0 else "-Urm", "sh", "-ec",
                   'mount -t tmpfs -o ro none "$0"; exec "$@"', self.place.folder("sealed"),
                   *self.place.glove("touch", marker, flags=["--report", self.place.path("sealed/report.json")])]
        done = subprocess.run(command, env=self.place.environment, capture_output=True, check=False,
                              timeout=inside.PATIENCE)
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertFalse(os.path.exists(marker))
        command[4] = command[4].replace("-o ro ", "")
        done = subprocess.run(command, env=self.place.environment, capture_output=True, check=False,
                              timeout=inside.PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.exists(marker))
