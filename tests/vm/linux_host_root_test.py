"""The same for a service of the system that is root's."""
import unittest

import linux_host_test
import units


class OfTheSystem(linux_host_test.Host):
    def test_all_of_it_as_root(self):
        self.passes(*units.OWN_MOUNTS, manager=units.SYSTEM)


if __name__ == "__main__":
    unittest.main()
