"""The tools of these tests are the ones that were pinned."""
import json
import os

import inside
import mediation_case

PINS = os.path.join(mediation_case.HERE, "npm")


class Pins(inside.Case):
    def packages(self):
        with open(os.path.join(PINS, "package-lock.json"), encoding="utf-8") as file:
            return {place: package for place, package in json.load(file)["packages"].items() if place}

    def test_every_package_has_a_digest_and_no_address(self):
        packages = self.packages()
        self.assertGreater(len(packages), 100)
        for place, package in packages.items():
            self.assertRegex(package.get("integrity", ""), r"^sha512-[A-Za-z0-9+/]{86}==$", place)
            self.assertNotIn("resolved", package, place)

    def test_what_is_installed_is_what_was_pinned(self):
        packages = self.packages()
        with open(os.path.join(PINS, "package.json"), encoding="utf-8") as file:
            wanted = json.load(file)["dependencies"]
        for name, version in wanted.items():
            there = os.path.join(mediation_case.TOOLS, "node_modules", name, "package.json")
            with open(there, encoding="utf-8") as file:
                self.assertEqual(json.load(file)["version"], version)
            self.assertEqual(packages[f"node_modules/{name}"]["version"], version)


if __name__ == "__main__":
    inside.main()
