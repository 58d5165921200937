"""The same for a service of the system that is root's."""
import unittest

import linux_host_test


class OfTheSystem(linux_host_test.Host):
    def test_all_of_it_as_root(self):
        self.passes("unshare", "--mount", "--propagation", "private", "--", manager=("systemd-run",))


if __name__ == "__main__":
    unittest.main()
