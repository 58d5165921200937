"""What was not there: nothing is put on the host in its place, and its creation is found when the run
ends, or at the next start when glove was killed."""
import json
import os
import signal
import subprocess

import inside
from attacks_test import MAKE, identities


class Absent(inside.Case):
    def setUp(self):
        super().setUp()
        self.need("git")
        done = self.place.bare("bash", "-euc", MAKE)
        self.assertEqual(done.returncode, 0, done.stderr)

    def quarantine(self, *words, status=0):
        done = subprocess.run([inside.GLOVE, "quarantine", *words], env=self.place.environment,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout.decode()

    def kept(self, run):
        """Where each thing of the workspace is now: every one in a numbered directory of its own."""
        top, out = self.place.path("state", "glove", "quarantine", run), {}
        for number in os.listdir(top):
            root = os.path.join(top, number) + self.place.workspace
            for name in (".git/info/attributes", ".git/hooks", ".claude", ".envrc", ".vscode", ".git"):
                if os.path.lexists(os.path.join(root, name)):
                    out[name] = os.path.join(root, name)
                    break
            else:
                self.fail(f"{root} holds nothing that is known")
        return out

    def left(self):
        runs = self.place.path("state", "glove", "runs")
        return os.listdir(runs) if os.path.isdir(runs) else []

    def test_no_placeholder_before_during_or_after(self):
        status = lambda: self.place.bare("git", "--no-optional-locks", "status", "--porcelain", "--ignored").stdout
        before, said = identities(self.place.workspace), status()
        run = self.place.start("sh", "-c", "echo up; read x", stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
        self.addCleanup(inside.end, run)
        self.assertEqual(run.stdout.readline(), b"up\n")
        self.assertEqual(identities(self.place.workspace), before)
        self.assertEqual(status(), said)
        self.assertEqual(len(self.left()), 1)
        run.communicate(b"x\n")
        self.assertEqual(identities(self.place.workspace), before)
        self.assertEqual(self.left(), [])

    def test_no_placeholder_after_a_kill(self):
        before = identities(self.place.workspace)
        run = self.place.start("sh", "-c", "echo up; sleep 1000", stdout=subprocess.PIPE)
        self.addCleanup(inside.end, run)
        self.assertEqual(run.stdout.readline(), b"up\n")
        run.kill()
        run.wait()
        self.assertEqual(identities(self.place.workspace), before)
        self.assertEqual(self.place.run("true").stderr, b"")
        self.assertEqual(self.left(), [])

    def test_what_appeared_is_told_reported_and_moved(self):
        report = self.place.path("report.json")
        done = self.place.run("sh", "-c", "mkdir .claude .git/info/x; echo evil >.claude/s; ln -s /tmp .envrc;"
                              "echo x >.git/info/attributes; echo honest >new", flags=["--report", report])
        self.assertEqual(done.returncode, 0, done.stderr)
        expected = {".claude", ".envrc", ".git/info/attributes"}
        with open(report, encoding="utf-8") as file:
            changes = json.load(file)["protected_changes"]
        self.assertEqual({os.path.relpath(c["path"], self.place.workspace) for c in changes}, expected)
        self.assertEqual({c["kind"] for c in changes}, {"made"})
        for name in expected:
            self.assertIn(f"/{name} appeared".encode(), done.stderr)
        run = self.quarantine().splitlines()[0]
        self.assertIn(f"glove quarantine --run {run}".encode(), done.stderr)
        self.assertEqual(self.place.run("true").stderr, b"")  # told once
        self.quarantine("--run", run)
        for name in expected:
            self.assertFalse(os.path.lexists(os.path.join(self.place.workspace, name)))
        kept = self.kept(run)
        self.assertEqual(set(kept), expected)
        with open(kept[".claude"] + "/s", encoding="utf-8") as file:
            self.assertEqual(file.read(), "evil\n")
        self.assertEqual(os.readlink(kept[".envrc"]), "/tmp")
        self.assertTrue(os.path.exists(os.path.join(self.place.workspace, "new")))
        self.assertEqual(self.quarantine(), "")
        self.quarantine("--run", run, status=1)
        self.quarantine("--run", "../../etc", status=2)

    def test_after_a_kill_the_next_start_tells(self):
        run = self.place.start("sh", "-c", "mkdir .husky; echo up; sleep 1000", stdout=subprocess.PIPE)
        self.addCleanup(inside.end, run)
        self.assertEqual(run.stdout.readline(), b"up\n")
        # A run that goes on is none that was killed.
        self.assertEqual(self.place.run("true", workspace=False).stderr, b"")
        run.send_signal(signal.SIGKILL)
        run.wait()
        done = self.place.run("true", workspace=False)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"was killed", done.stderr)
        self.assertIn(b"/.husky appeared", done.stderr)
        self.assertEqual(self.place.run("true", workspace=False).stderr, b"")
        self.quarantine("--run", self.quarantine().splitlines()[0])
        self.assertFalse(os.path.exists(os.path.join(self.place.workspace, ".husky")))

    def test_a_run_without_a_writable_grant_leaves_no_manifest(self):
        self.inside("true", workspace=False)
        self.assertEqual(self.left(), [])

    def test_a_directory_that_its_owner_closed_is_moved_as_well(self):
        self.place.run("sh", "-c", "mkdir .codex; echo x >.codex/y; chmod 0 .codex")
        run = self.quarantine().splitlines()[0]
        self.quarantine("--run", run)
        self.assertFalse(os.path.exists(os.path.join(self.place.workspace, ".codex")))

    def test_a_link_on_the_way_is_found(self):
        done = self.place.run("sh", "-c", "mv .git/info .git/i; mkdir e; echo x >e/attributes;"
                              "ln -s ../e .git/info")
        self.assertIn(b"/.git/info appeared", done.stderr)

    def test_new_repositories_take_one_line(self):
        done = self.place.run("sh", "-c", "for i in a b c; do git init -q $i; done; git clone -q . d")
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertIn(b"new repositories", lines[0])
        self.assertEqual(self.quarantine(), "")

    def test_a_hook_of_a_new_repository_is_found_and_moved(self):
        done = self.place.run("sh", "-c", "git init -q new; echo evil >new/.git/hooks/post-checkout;"
                              "git init -q --bare plain; echo evil >plain/hooks/update")
        self.assertIn(b"/new/.git/hooks/post-checkout appeared", done.stderr)
        self.assertIn(b"/plain/hooks/update appeared", done.stderr)
        self.quarantine("--run", self.quarantine().splitlines()[0])
        self.assertTrue(os.path.exists(os.path.join(self.place.workspace, "new/.git/hooks")))
        self.assertEqual([n for n in os.listdir(os.path.join(self.place.workspace, "new/.git/hooks"))
                          if not n.endswith(".sample")], [])

    def test_a_file_that_the_host_replaces_is_told(self):
        run = self.place.start("sh", "-c", "echo up; read x", stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(inside.end, run)
        self.assertEqual(run.stdout.readline(), b"up\n")
        self.place.bare("git", "config", "a.b", "c")
        _, said = run.communicate(b"x\n")
        self.assertIn(b".git/config is another file than at the start, or gone", said)
        self.assertEqual(self.left(), [])

    def test_a_repository_of_its_own_in_an_empty_workspace(self):
        self.place.empty_workspace()
        done = self.place.run("sh", "-c", "git init -q . && git commit -q --allow-empty -m x || exit 0")
        self.assertEqual(len(done.stderr.decode().split("new repository")), 2, done.stderr)

    def test_no_link_that_was_moved_is_followed(self):
        victim = self.place.folder("victim")
        os.makedirs(os.path.join(victim, "hooks"))
        done = self.place.run("sh", "-c", "mkdir -p .claude/a; ln -s $0 .claude/a/.git", victim)
        self.assertEqual(done.returncode, 0, done.stderr)
        run = self.quarantine().splitlines()[0]
        record = self.place.path("state", "glove", "runs", run + ".found.json")
        with open(record, "rb") as file:
            saved = file.read()
        self.quarantine("--run", run)
        # The same names once more, now with a hook below what is a link in quarantine.
        hooks = os.path.dirname(self.place.put(".claude/a/.git/hooks/x", "evil"))
        with open(os.open(record, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(saved)
        self.quarantine("--run", run)
        self.assertEqual(os.listdir(os.path.join(victim, "hooks")), [])
        self.assertFalse(os.path.exists(hooks))
        numbers = sorted(os.listdir(self.place.path("state", "glove", "quarantine", run)))
        self.assertEqual(numbers, ["1", "2"])  # and what lay below the second moved with it

    def test_a_list_that_nobody_reads_holds_up_no_run(self):
        self.place.run("sh", "-c", "d=$(printf %0200d 0); mkdir -p $d/.git/hooks;"
                       "for i in $(seq 600); do : >$d/.git/hooks/$d$i; done")
        slow = subprocess.Popen([inside.GLOVE, "quarantine"], env=self.place.environment,
                                stdout=subprocess.PIPE)
        self.addCleanup(inside.end, slow)
        self.assertEqual(len(slow.stdout.read(32)), 32)  # it prints, and then its pipe is full
        self.assertEqual(self.place.run("true").stderr, b"")
        self.assertIsNone(slow.poll())
        self.assertIn("/hooks/", self.quarantine())
        slow.communicate()

    def test_what_is_away_is_not_forgotten(self):
        run = self.place.start("sh", "-c", "mkdir .husky; echo up; sleep 1000", stdout=subprocess.PIPE)
        self.addCleanup(inside.end, run)
        self.assertEqual(run.stdout.readline(), b"up\n")
        run.kill()
        run.wait()
        away = self.place.workspace + ".away"
        os.rename(self.place.workspace, away)
        done = self.place.run("true", workspace=False, cwd="/")
        self.assertIn(b"was killed", done.stderr)
        said = self.quarantine().splitlines()
        self.assertIn("could not be searched", said[1])
        self.quarantine("--run", said[0], status=1)
        os.rename(away, self.place.workspace)
        self.assertIn("/.husky", self.quarantine())
        self.quarantine("--run", said[0])
        self.assertFalse(os.path.exists(os.path.join(self.place.workspace, ".husky")))
        self.assertEqual(self.left(), [])

    def test_a_list_forgets_nothing(self):
        self.place.run("sh", "-c", "mkdir .husky")
        run = self.quarantine().splitlines()[0]
        os.rmdir(os.path.join(self.place.workspace, ".husky"))
        self.assertIn("nothing is left", self.quarantine())
        self.assertEqual(self.left(), [run + ".found.json"])
        self.quarantine("--run", run)
        self.assertEqual(self.left(), [])

    def test_past_the_bound_of_findings_the_rest_is_not_forgotten(self):
        done = self.place.run("sh", "-c", "mkdir -p n/.git/hooks; for i in $(seq 1100); do"
                              " : >n/.git/hooks/h$i; done")
        self.assertIn(b"there may be more", done.stderr)
        run = self.quarantine().splitlines()[0]
        self.quarantine("--run", run, status=1)
        self.quarantine("--run", run)
        self.assertEqual(os.listdir(os.path.join(self.place.workspace, "n/.git/hooks")), [])
        self.assertEqual(self.left(), [])

    def test_hooks_in_a_directory_that_was_closed_are_moved(self):
        self.place.run("sh", "-c", "git init -q new; echo evil >new/.git/hooks/update;"
                       "chmod 555 new/.git/hooks")
        self.quarantine("--run", self.quarantine().splitlines()[0])
        self.assertFalse(os.path.exists(os.path.join(self.place.workspace, "new/.git/hooks/update")))

    def test_a_damaged_manifest_is_told_and_stops_nothing(self):
        runs = self.place.folder("state", "glove", "runs")
        os.chmod(os.path.dirname(runs), 0o700)
        os.chmod(runs, 0o700)
        with open(runs + "/0123456789abcdef0123456789abcdef.json", "w", encoding="utf-8") as file:
            file.write('{"run":"x"')
        done = self.place.run("true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"manifest.read", done.stderr)
        self.quarantine(status=1)
