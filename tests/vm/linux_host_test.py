"""Sessions of the Linux host, in units of the user's service manager: tests/vm/linux_host_guest.cpp does what is to be
shown, and runs in such a unit."""
import os
import subprocess
import unittest

import inside

PROGRAM = os.path.realpath(os.path.join(os.path.dirname(inside.GLOVE), "../tests/linux_host_guest"))
UNIT = ("--pipe", "--wait", "--collect", "--quiet", "--expand-environment=no", "--property=Delegate=cpu memory pids",
        "--property=DelegateSubgroup=glove-host")
# As the service's own unit does.
MAPPED_ROOT = ("unshare", "--user", "--map-root-user", "--mount", "--propagation", "private", "--")


class Host(unittest.TestCase):
    def passes(self, *command, manager=("systemd-run", "--user")):
        me = os.getuid()
        environment = {"PATH": inside.SEARCH_PATH, "LANG": "C.UTF-8"}
        if me != 0:
            environment |= {"XDG_RUNTIME_DIR": f"/run/user/{me}",
                            "DBUS_SESSION_BUS_ADDRESS": f"unix:path=/run/user/{me}/bus"}
        only = [f"--gtest_filter={os.environ['GTEST_FILTER']}"] if "GTEST_FILTER" in os.environ else []
        done = subprocess.run([*manager, *UNIT, *command, PROGRAM, *only], env=environment, text=True,
                              capture_output=True, check=False, timeout=20 * inside.PATIENCE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\[  PASSED  \] [1-9]\d* tests?")


class OfAUser(Host):
    def test_all_of_it_as_mapped_root(self):
        self.passes(*MAPPED_ROOT)


if __name__ == "__main__":
    unittest.main()
