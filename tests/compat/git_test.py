"""Git works inside as outside, linked worktrees included."""
import os

import inside

# Fixed names and dates, so that object names can be compared.
SETTINGS = r"""
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=c
export GIT_COMMITTER_EMAIL=c@example.org GIT_AUTHOR_DATE='1700000000 +0000'
export GIT_COMMITTER_DATE='1700000000 +0000'
"""
MAKE = SETTINGS + r"""
git init -q -b main repo
cd repo
for i in $(seq 40); do seq "$i" 200 >"file-$i"; done
git add .
git commit -q -m first
"""


class Git(inside.Case):
    def setUp(self):
        super().setUp()
        self.need("git")

    def test_daily_work(self):
        self.same_script(MAKE + r"""
            echo change >>file-1; rm file-2; touch new
            git status --short
            git stash -q -u && git stash pop -q
            printf '#!/bin/sh\necho hook ran\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit
            git add -A; git commit -m second 2>&1 | head -2
            git switch -q -c side HEAD~1; git commit -q --allow-empty -m aside --no-verify
            git rebase -q main; git log --format='%H %s'
            git diff --stat main~1 main
            git clone -q . ../clone; git -C ../clone log --oneline | wc -l
            """, tells=["hook ran", " D file-2", "3"])

    def test_linked_worktree_and_gc(self):
        self.same_script(MAKE + r"""
            git worktree add -q -b side ../linked
            cd ../linked
            echo more >more; git add more; git commit -q -m 'in the linked one'
            git gc --quiet --prune=now; git fsck --strict 2>&1; git count-objects
            git worktree list | wc -l
            git rev-parse HEAD; git -C ../repo log --format=%s side
            """, tells=["in the linked one", "0 objects, 0 kilobytes", "2"])

    def test_a_worktree_whose_repository_is_another_grant(self):
        place = self.place
        place.put("make", MAKE + "git worktree add -q -b side ../linked\n")
        done = place.bare("bash", "-eu", "make")
        self.assertEqual(done.returncode, 0, done.stderr)
        repository = os.path.join(place.workspace, "repo")
        place.workspace = os.path.join(place.workspace, "linked")
        work = SETTINGS + "echo more >more; git add more; git commit -q -m linked; git log --format=%s"
        out = self.inside("bash", "-euc", work, flags=["--write", repository])
        self.assertEqual(out, "linked\nfirst\n")
        # The twin: the same repository read-only shows its history and takes no commit.
        out = self.inside("git", "log", "--format=%s", flags=["--read", repository])
        self.assertEqual(out, "linked\nfirst\n")
        self.inside("bash", "-euc", SETTINGS + "git commit -q --allow-empty -m no", status=128,
                    flags=["--read", repository])
