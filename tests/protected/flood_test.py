"""What an earlier run has made so that a later one does not see, or cannot cover, what is to be
protected. Each is refused, told before the run, or covered all the same."""
import os

import inside

HOOK = "echo x >.git/hooks/pre-commit"


class Flood(inside.Case):
    def setUp(self):
        super().setUp()
        self.need("git", "python3")
        self.bare("git init -q .; chmod -x .git/hooks/*")

    def bare(self, script):
        done = self.place.bare("bash", "-euc", script)
        self.assertEqual(done.returncode, 0, done.stderr)

    def hook_stays(self, **options):
        done = self.place.run("sh", "-c", HOOK, **options)
        self.assertNotEqual(done.returncode, 0, done.stderr)
        self.assertFalse(os.path.lexists(os.path.join(self.place.workspace, ".git/hooks/pre-commit")))
        return done.stderr

    def refused(self, *words, **options):
        done = self.place.run("touch", "ran", **options)
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertFalse(os.path.lexists(os.path.join(self.place.workspace, "ran")))
        for word in words:
            self.assertIn(word, done.stderr)

    def test_many_repositories_leave_none_uncovered(self):
        self.bare("""for i in $(seq 150); do mkdir -p '!'/$i/.git/hooks '!'/$i/.git/info
            echo >'!'/$i/.git/config; echo >'!'/$i/.git/info/attributes; done""")
        self.assertNotIn(b"not every directory", self.hook_stays())
        done = self.place.run("sh", "-c", "echo x >'!/99/.git/hooks/y'")
        self.assertNotEqual(done.returncode, 0)

    def test_more_than_can_be_covered_is_refused_and_released(self):
        self.bare("""for i in $(seq 700); do mkdir -p '!'/$i/.git/hooks; echo >'!'/$i/.git/config; done""")
        self.refused(b"source.protect", b"--unprotect", b"/!")
        self.hook_stays(flags=["--unprotect", "!"])

    def test_many_entries_do_not_hide_the_repository_at_the_top(self):
        self.bare("python3 -c 'for i in range(9000): open(f\"z{i}\", \"w\")'")
        said = self.hook_stays()
        self.assertIn(b"not every directory was searched", said)
        self.assertIn(b"was not searched in full", said)

    def test_what_its_owner_closed_is_refused_and_named(self):
        for make, undo in (("chmod 0 .git", "chmod 755 .git"),
                           ("git init -q up/sub; chmod 311 up", "chmod 755 up")):
            with self.subTest(make):
                self.bare(make)
                if os.geteuid() == 0:  # modes close nothing to root, who sees and covers what is there
                    self.hook_stays()
                else:
                    self.refused(b"source.protect", b"chmod u+rwx")
                self.bare(undo)
        self.inside("touch", "ran")

    def test_what_is_closed_and_released_is_no_reason(self):
        self.bare("mkdir shut; chmod 0 shut")
        if os.geteuid() != 0:
            self.refused(b"/shut", b"--unprotect")
            self.hook_stays(flags=["--unprotect", "shut"])
        self.bare("chmod 755 shut; mkdir .vscode; chmod 0 .vscode")
        self.inside("true")

    def test_a_link_to_hooks_that_are_links(self):
        self.bare("rm -r .git/hooks; mkdir h s; ln -s ../h .git/hooks; ln -s ../s/x h/pre-commit; echo >s/x;"
                  "ln -s ../s/later h/post-commit; ln s/x second")
        done = self.place.run("sh", "-c", "echo evil >s/x")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"/s/x is one of several names", done.stderr)
        self.assertIn(b"/s/later appeared", self.place.run("sh", "-c", "echo >s/later; echo >s/y").stderr)

    def test_a_submodule_that_appears_is_found_with_its_hooks(self):
        self.bare("git init -q --bare .git/modules/old; rm .git/modules/old/HEAD")
        done = self.place.run("sh", "-c", "echo x >.git/modules/old/hooks/post-checkout")
        self.assertNotEqual(done.returncode, 0)
        done = self.place.run("sh", "-c", "for m in new a/b; do git init -q --bare .git/modules/$m;"
                              "echo x >.git/modules/$m/hooks/update; done; mkdir -p .git/modules/a/none")
        self.assertIn(b"/.git/modules/new/hooks/update appeared", done.stderr)
        self.assertIn(b"/.git/modules/a/b/hooks/update appeared", done.stderr)
        self.assertNotIn(b"old", done.stderr)

    def test_many_hooks_in_one_grant_hide_nothing_of_another(self):
        other = self.place.folder("z")
        done = self.place.run("bash", "-c", "mkdir -p n/.git/hooks; for i in {1..1100}; do"
                              " echo >n/.git/hooks/h$i; done; mkdir ../z/.vscode", flags=["--write", other])
        self.assertIn(b"/z/.vscode appeared", done.stderr)
        self.assertIn(b"not searched in full", done.stderr)

    def test_too_deep_a_directory_refuses_nothing_and_is_told(self):
        self.bare("""python3 -c 'import os
for i in range(30): os.mkdir("d" * 200); os.chdir("d" * 200)
os.mkfifo("f"); os.mkdir(".git")'""")
        self.assertIn(b"not every directory was searched", self.hook_stays())
        self.inside("true")

    def test_too_many_names_are_refused_with_a_reason(self):
        self.bare("mkdir .git/worktrees; python3 -c 'for i in range(4200):"
                  " open(f\".git/worktrees/{i}\", \"w\")'")
        self.refused(b"source.protect", b"holds more names")
