"""Sessions of the Linux host, in units of the user's service manager: tests/vm/linux_host_guest.cpp does what is to be
shown, and runs in such a unit."""
import os
import unittest

import inside
import units

PROGRAM = os.path.realpath(os.path.join(os.path.dirname(inside.GLOVE), "../tests/linux_host_guest"))


class Host(unittest.TestCase):
    def passes(self, *before, **more):
        only = [f"--gtest_filter={os.environ['GTEST_FILTER']}"] if "GTEST_FILTER" in os.environ else []
        done = units.run(*before, PROGRAM, *only, patience=20 * inside.PATIENCE, **more)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\[  PASSED  \] [1-9]\d* tests?")


class OfAUser(Host):
    def test_all_of_it_as_mapped_root(self):
        self.passes(*units.MAPPED_ROOT)


if __name__ == "__main__":
    unittest.main()
