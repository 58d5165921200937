"""The control groups of managed sessions, in units of the user's service manager: where there can be any, and that
the kernel holds them. What they do is told by tests/vm/session_groups_guest.cpp, which runs in such a unit."""
import os
import subprocess
import unittest

import inside
import units

PROGRAM = os.path.realpath(os.path.join(os.path.dirname(inside.GLOVE), "../tests/session_groups_guest"))


class Unit(unittest.TestCase):
    manager = units.OF_THE_USER

    def in_unit(self, *command, properties=units.SUBGROUP):
        return units.run(*command, manager=self.manager, properties=properties)

    def opens(self, *before, properties=units.SUBGROUP):
        done = self.in_unit(*before, PROGRAM, "open", properties=properties)
        self.assertEqual((done.returncode, done.stdout), (0, "opened\nbelow: cpu memory pids\n"), done.stderr)

    def refused(self, step, *before, says="", properties=units.SUBGROUP, unchanged=False,
                mend="glove daemon install"):
        done = self.in_unit(*before, PROGRAM, "open", properties=properties)
        self.assertEqual((done.returncode, done.stdout.partition("\n")[0]), (1, step), done.stdout + done.stderr)
        self.assertIn(says, done.stdout)
        self.assertIn(mend, done.stdout)
        if unchanged:
            self.assertIn("\nbelow: none\n", done.stdout)

    def passes(self, *before, properties=units.SUBGROUP):
        done = self.in_unit(*before, PROGRAM, properties=properties)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\[  PASSED  \] [1-9]\d* tests")


class OfAUser(Unit):
    def test_all_of_it_as_mapped_root_and_as_the_user(self):
        self.passes(*units.MAPPED_ROOT)
        if inside.SOAK:
            self.passes()

    def test_only_what_was_delegated_serves(self):
        self.opens()
        self.refused("groups.parent", properties=(), says="was not delegated")
        # In the group that was delegated, not below it: what is beside it is the manager's.
        self.refused("groups.parent", properties=units.DELEGATE, says="was not delegated")
        pids_alone = ("--property=Delegate=pids", "--property=DelegateSubgroup=glove-host")
        self.refused("groups.controllers", says="there is no controller ", properties=pids_alone, unchanged=True)

    def test_a_group_of_somebody_else_does_not(self):
        done = subprocess.run([PROGRAM, "open"], text=True, capture_output=True, check=False, timeout=inside.PATIENCE)
        self.assertEqual((done.returncode, done.stdout.partition("\n")[0]), (1, "groups.own"), done.stdout)
        self.assertIn("is not yours alone", done.stdout)

    def test_nor_does_the_first_group_of_a_namespace(self):
        self.refused("groups.own", *units.MAPPED_ROOT, "unshare", "--cgroup", "--", says="which has none around it")

    def test_somebody_in_the_parent(self):
        script = ('sleep 1000 </dev/null >/dev/null 2>&1 & cd /sys/fs/cgroup$(cut -c4- /proc/self/cgroup)/..; '
                  'echo $! >{}/cgroup.procs; exec "$@"')
        self.refused("groups.busy", "sh", "-c", script.format("."), "sh",
                     says="so that none below it can have limits", unchanged=True)
        self.opens("sh", "-c", script.format("glove-host"), "sh")

    def test_somebody_else_in_the_own_group(self):
        self.refused("groups.busy", "sh", "-c", '(sleep 1000 </dev/null >/dev/null 2>&1 &); exec "$@"', "sh",
                     says="is none of its own", unchanged=True)
        self.opens("sh", "-c", 'sleep 1000 </dev/null >/dev/null 2>&1 & exec "$@"', "sh")


if __name__ == "__main__":
    unittest.main()
