"""`glove exec --home` and `glove home`, as an operator uses them."""
import json
import os
import signal
import subprocess

import inside


class Home(inside.Case):
    def home(self, *words):
        return subprocess.run([inside.GLOVE, "home", *words], env=self.place.environment, text=True,
                              cwd=self.place.workspace, stdin=subprocess.DEVNULL,
                              capture_output=True, check=False, timeout=inside.PATIENCE)

    def sh(self, script, *flags):
        done = self.place.run("sh", "-c", script, flags=flags)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def listed(self):
        return {each["name"]: each for each in json.loads(self.home("list", "--json").stdout)["homes"]}

    def waiting(self, *flags):
        """A run that goes on until its input ends."""
        process = self.place.start("sh", "-c", "echo up; cat", flags=flags, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(inside.end, process)
        self.assertEqual(process.stdout.readline(), b"up\n")
        return process

    def test_a_named_home_is_kept_and_the_others_are_not(self):
        self.assertEqual(self.sh("echo kept > ~/f", "--home", "work")[0], 0)
        self.assertEqual(self.sh("cat ~/f", "--home", "work"), (0, "kept\n", ""))
        self.assertEqual(self.sh("ls -A ~", "--home", "play"), (0, "", ""))
        self.assertEqual(self.sh("echo gone > ~/f", "--home", "none")[0], 0)
        self.assertEqual(self.sh("ls -A ~"), (0, "", ""))
        self.assertEqual(set(self.listed()), {"work", "play"})

    def test_a_wrong_name_is_usage_and_makes_nothing(self):
        for name in ("Work", "../x", "a/b", "-x", ".x", "x" * 65, "claude+000000000000000000000000"):
            status, _, words = self.sh("true", "--home", name)
            self.assertEqual((name, status), (name, 2))
            self.assertIn("usage", words)
        self.assertFalse(os.path.exists(self.place.path("state", "glove", "homes")))

    def test_a_run_that_cannot_be_planned_makes_no_home(self):
        for path in (self.place.state, os.path.join(self.place.home, "nothing")):
            self.assertEqual(self.sh("true", "--home", "work", "--read", path)[0], 2)
        self.assertEqual(self.listed(), {})

    def test_explaining_shows_the_home_and_makes_nothing(self):
        text = self.place.run("true", flags=["--home", "work", "--explain"]).stdout.decode()
        self.assertIn("Private and writable, kept\n  /home/agent: the home work\n", text)
        plan = json.loads(self.place.run("true", flags=["--home", "work", "--explain", "--json"]).stdout)
        self.assertEqual(plan["home"], "work")
        self.assertFalse(os.path.exists(self.place.path("state", "glove", "homes")))

    def test_the_report_names_the_home(self):
        report = self.place.path("report.json")
        self.assertEqual(self.sh("true", "--home", "work", "--report", report)[0], 0)
        with open(report, encoding="utf-8") as file:
            told = json.load(file)
        self.assertEqual(told["home"], "work")
        entry = [each for each in told["tree"] if each["path"] == "/home/agent"][0]
        self.assertEqual((entry["kind"], entry["origin"], entry["access"]), ("bind", "managed", "write"))
        self.assertEqual(entry["source"], self.listed()["work"]["path"])

    def test_equal_grants_share_and_others_are_refused(self):
        first = self.waiting("--home", "work")
        self.assertEqual(self.sh("echo in", "--home", "work"), (0, "in\n", ""))
        status, _, words = self.sh("true", "--home", "work", "--net", "local")
        self.assertEqual(status, 125)
        self.assertIn("home.in_use", words)
        self.assertIn("--net offline", words)
        self.assertIn("--net local", words)
        self.assertIn("--home OTHER", words)
        self.assertTrue(self.listed()["work"]["in_use"])
        first.communicate(timeout=inside.PATIENCE)
        self.assertEqual(self.sh("echo in", "--home", "work", "--net", "local"), (0, "in\n", ""))

    def test_a_killed_glove_leaves_the_home_free(self):
        first = self.waiting("--home", "work")
        self.assertEqual(self.home("remove", "work").returncode, 125)
        first.send_signal(signal.SIGKILL)
        first.communicate(timeout=inside.PATIENCE)
        self.assertEqual(self.sh("true", "--home", "work", "--net", "local")[0], 0)
        self.assertEqual(self.home("remove", "work").returncode, 0)
        self.assertEqual(self.listed(), {})

    def test_a_home_that_forbids_everything_is_not_lost(self):
        forbid = "echo kept > ~/f; chmod 000 ~"
        self.assertEqual(self.sh(forbid, "--home", "work")[0], 0)
        self.assertEqual(self.sh("cat ~/f", "--home", "work"), (0, "kept\n", ""))
        self.assertEqual(self.sh(forbid, "--home", "work")[0], 0)
        self.assertEqual(list(self.listed()), ["work"])
        self.assertEqual(self.sh(forbid, "--home", "work")[0], 0)
        self.assertEqual(self.home("remove", "work").returncode, 0)

    def test_the_status_is_the_commands_own(self):
        self.assertEqual(self.sh("exit 7", "--home", "work")[0], 7)
        self.assertEqual(self.place.run("no-such-program", flags=["--home", "work"]).returncode, 127)

    def test_a_home_can_be_granted_to_nobody(self):
        self.sh("echo kept > ~/f", "--home", "work")
        source = self.listed()["work"]["path"]
        for path in (source, os.path.join(source, "f"), self.place.path("state", "glove", "homes"),
                     self.place.path("state", "glove", "credentials"), self.place.path("state")):
            done = self.place.run("true", flags=["--read", path])
            self.assertEqual((path, done.returncode), (path, 2))

    def test_the_list_is_a_table(self):
        self.sh("true", "--home", "work")
        lines = self.home("list").stdout.splitlines()
        self.assertEqual(lines[0].split(), ["NAME", "PROFILE", "PROJECT", "LAST", "USED", "SIZE", "IN", "USE"])
        self.assertEqual(lines[1].split()[:3], ["work", "-", os.path.realpath(self.place.workspace)])
        shown = self.home("show", "work").stdout
        self.assertIn("name         work\n", shown)
        self.assertEqual(json.loads(self.home("show", "work", "--json").stdout)["name"], "work")

    def test_an_imported_file_is_there(self):
        with open(os.path.join(self.place.home, ".toolrc"), "w", encoding="utf-8") as file:
            file.write("mine\n")
        done = self.home("import", "--home", "work", os.path.join(self.place.home, ".toolrc"))
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("was copied to .toolrc of home work", done.stderr)
        self.assertEqual(self.sh("cat ~/.toolrc", "--home", "work"), (0, "mine\n", ""))
        outside = self.home("import", "--home", "work", "/etc/hostname")
        self.assertEqual(outside.returncode, 2)
        self.assertIn("/etc/hostname:TARGET", outside.stderr)
        self.assertEqual(self.home("import", "--home", "work", "/etc/hostname:name").returncode, 0)

    def test_a_store_takes_the_logins_of_its_profile_alone(self):
        os.mkdir(os.path.join(self.place.home, ".claude"))
        login, other = (os.path.join(self.place.home, name) for name in (".claude/.credentials.json", ".toolrc"))
        for path in (login, other):
            with open(path, "w", encoding="utf-8") as file:
                file.write("{}")
        refused = self.home("import", "--profile", "claude", other)
        self.assertEqual(refused.returncode, 2)
        self.assertIn(".toolrc is not a credential of profile claude", refused.stderr)
        unknown = self.home("import", "--profile", "nobody", login)
        self.assertEqual(unknown.returncode, 125)
        self.assertIn("there is no profile", unknown.stderr)
        store = self.place.path("state", "glove", "credentials")
        self.assertFalse(os.path.exists(store))
        done = self.home("import", "--profile", "claude", login)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertTrue(os.path.exists(os.path.join(store, "claude", ".claude", ".credentials.json")))

    def test_words_that_would_do_nothing_are_refused(self):
        for words in ([], ["look"], ["list", "work"], ["show"], ["show", "a", "b"], ["remove"],
                      ["import"], ["import", "x"], ["import", "--home", "work"], ["remove", "x", "--json"],
                      ["import", "--home", "work", "--profile", "x", "y"], ["list", "--home", "work"]):
            self.assertEqual((words, self.home(*words).returncode), (words, 2))
        self.assertEqual(self.home("show", "nothing").returncode, 125)
        self.assertEqual(self.home("remove", "nothing").returncode, 125)
