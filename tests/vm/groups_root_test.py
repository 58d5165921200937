"""The same for root and for a user whom the system's service manager serves."""
import unittest

import groups_test
import limits_root_test
import units


class OfTheSystem(groups_test.Unit):
    manager = units.SYSTEM

    def test_a_service_of_the_system(self):
        self.opens()
        self.refused("groups.parent", properties=units.DELEGATE)
        self.passes()

    def test_beside_huge_pages_that_count_to_no_group_it_is_refused(self):
        with limits_root_test.huge_pages(4):
            self.refused("groups.huge_pages", mend="vm.nr_hugepages", unchanged=True)
        self.opens()

    def test_a_service_of_the_system_for_a_user(self):
        as_user = ("--property=User=agent",)
        self.opens(properties=(*units.SUBGROUP, *as_user))
        self.opens(*units.MAPPED_ROOT, properties=(*units.SUBGROUP, *as_user))
        # Root's groups, which a user can look at.
        self.refused("groups.own", properties=as_user, says="is not yours alone")


if __name__ == "__main__":
    unittest.main()
