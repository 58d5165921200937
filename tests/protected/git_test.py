"""Everyday work with git goes on; what must change a protected file fails without leaving anything
behind, and works where that file is released."""
import os

import inside

SETTINGS = r"""
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=c
export GIT_COMMITTER_EMAIL=c@example.org GIT_ALLOW_PROTOCOL=file
"""
MAKE = SETTINGS + r"""
git init -q -b main . && echo one >file && git add . && git commit -q -m first
git branch side && echo two >>file && git commit -q -am second
"""


class Git(inside.Case):
    def setUp(self):
        super().setUp()
        self.need("git")

    def make(self, script=""):
        self.place.empty_workspace()
        done = self.place.bare("bash", "-euc", MAKE + script)
        self.assertEqual(done.returncode, 0, done.stderr)

    def git(self, script, status=0, flags=(), **options):
        done = self.place.run("bash", "-euc", SETTINGS + script, flags=flags, **options)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertNotIn(b"glove:", done.stderr)
        return (done.stdout + done.stderr).decode()

    def settings(self):
        with open(os.path.join(self.place.workspace, ".git/config"), encoding="utf-8") as file:
            return file.read()

    def locks(self):
        return [name for _, _, names in os.walk(self.place.workspace) for name in names
                if name.endswith(".lock")]

    def test_work_goes_on_in_an_existing_repository(self):
        self.make()
        self.git("""echo three >>file; git stash -q; git stash pop -q; git commit -q -am third
            git switch -q side; git commit -q --allow-empty -m aside; git rebase -q main
            git switch -q -c other; git merge -q --no-edit side; git tag t; git gc -q --prune=now
            git worktree add -q wt; git -C wt commit -q --allow-empty -m linked
            git worktree remove wt; git branch -q -D wt; git fsck --strict; git log --oneline""")

    def test_settings_cannot_be_changed_and_no_lock_stays(self):
        self.make()
        for work in ("git config a.b c", "git remote add o ../x", "git switch -c new --track side",
                     "git branch --set-upstream-to=side main"):
            with self.subTest(work):
                before = self.settings()
                # Some of them report the failure and end with 0 all the same.
                self.assertIn(".git/config", self.git(work + " || exit 0"))
                self.assertEqual(self.locks(), [])
                self.assertEqual(self.settings(), before)
                self.make()
                self.git(work, flags=["--unprotect", ".git/config"])
                self.assertNotEqual(self.settings(), before)
                self.make()

    def test_pushing_with_an_upstream(self):
        self.make("git init -q --bare ../far; git remote add far ../far")
        far = ["--write", self.place.path("far")]
        self.git("git push -q far main", flags=far)
        before = self.settings()
        self.assertIn(".git/config", self.git("git push -q -u far side || exit 0", flags=far))
        self.assertEqual(self.settings(), before)
        self.git("git push -q -u far side", flags=[*far, "--unprotect", ".git/config"])

    def test_submodules(self):
        self.make("git init -q ../part && git -C ../part commit -q --allow-empty -m p;"
                  "git submodule --quiet add ../part part; git commit -q -m sub; git clone -q . ../copy;"
                  "git -C part config x.y z")
        self.git("git -C part commit -q --allow-empty -m inside; git commit -q -am moved")
        for path in (".git/modules/part/config", "part/.git", ".gitmodules"):
            with self.subTest(path):
                self.git(f"echo >>{path} && exit 9 || exit 0")
        self.git("mv .git/modules/part .git/modules/p2 && exit 9 || exit 0")
        self.place.workspace = self.place.path("copy")
        read = ["--read", self.place.path("part"), "--read", self.place.path("workspace")]
        self.git("git submodule --quiet init && exit 9 || exit 0", flags=read)
        self.assertEqual(self.locks(), [])
        self.git("git submodule --quiet init", flags=[*read, "--unprotect", ".git/config"])

    def test_tracked_files_of_an_editor(self):
        self.make("git switch -q -c editor side; mkdir .vscode; echo 1 >.vscode/s; git add .vscode;"
                  "git commit -q -m e; echo 2 >.vscode/s; git commit -q -am e2")
        self.git("git checkout -q HEAD~1 -- .vscode && exit 9 || exit 0")
        self.assertEqual(self.locks(), [])
        self.git("git checkout -q HEAD~1 -- .vscode && cat .vscode/s", flags=["--unprotect", ".vscode"])

    def test_a_linked_worktree_whose_repository_is_another_grant(self):
        self.make("git worktree add -q ../linked; git config extensions.worktreeConfig true;"
                  "git -C ../linked config --worktree a.b c")
        repository = os.path.join(self.place.workspace, ".git")
        self.place.workspace = self.place.path("linked")
        flags = ["--write", repository]
        self.git("git commit -q --allow-empty -m linked; git stash list; git switch -q -c more", flags=flags)
        for path in (".git", repository + "/config", repository + "/hooks/x",
                     repository + "/worktrees/linked/config.worktree",
                     repository + "/worktrees/linked/commondir"):
            with self.subTest(path):
                self.git(f"echo >>{path} && exit 9 || exit 0", flags=flags)
        self.git(f"echo >>{repository}/worktrees/linked/HEAD.lock", flags=flags)

    def test_a_linked_worktree_alone(self):
        self.make("git worktree add -q ../linked")
        self.place.workspace = self.place.path("linked")
        self.git("echo x >new; cat file; git status && exit 9 || exit 0")
        self.git("echo >>.git && exit 9 || exit 0")
        self.git("mv .git x && exit 9 || exit 0")
