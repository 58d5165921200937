#!/usr/bin/env python3
"""Installs the Debian package in fresh roots, uses it there, and takes it away again.

    roots_test.py FOLDER-OF-THE-PACKAGE FOLDER-FOR-ROOTS

A root is a minimal system of this machine's distribution with its AppArmor, and, on Debian 12, one of
Debian 13, whose AppArmor is newer. They come from the source that this machine's apt uses, and are kept as
archives. Needs root. Nothing of this machine is changed but the folder for roots.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE, = glob.glob(os.path.abspath(sys.argv[1]) + "/*.deb")
ROOTS = os.path.abspath(sys.argv[2])
PROFILE, SHIPPED = "/etc/apparmor.d/glove", "/usr/share/glove/apparmor/glove"
# What dpkg and apt write about themselves.
BOOKS = ("/var/lib/dpkg/", "/var/log/")
USER = "setpriv --reuid=1000 --regid=1000 --clear-groups --inh-caps=-all -- env HOME=/tmp/home "


def own_suite():
    with open("/etc/os-release", encoding="utf-8") as file:
        return re.search(r"^VERSION_CODENAME=(\w+)", file.read(), re.M)[1]


def mirror(suite):
    """The place from which apt gets the base system."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(CREATED_BY) $(RELEASE) $(COMPONENT) $(SITE)",
                             "Created-By: Packages", "Component: main"], text=True, capture_output=True, check=True)
    for line in listed.stdout.splitlines():
        _, release, component, site = line.split()
        if (release, component) == (suite, "main"):
            return site
    raise LookupError(f"apt has no source for {suite}")


def archive(suite):
    path = f"{ROOTS}/{suite}.tar"
    if not os.path.exists(path):
        os.makedirs(ROOTS, exist_ok=True)
        subprocess.run(["mmdebstrap", "--quiet", "--format=tar", "--variant=essential", "--include=apparmor", suite, path + ".new",
                        mirror(own_suite())], check=True, stdin=subprocess.DEVNULL)
        os.rename(path + ".new", path)
    return path


class Root:
    """A machine that nobody has used yet."""

    def __init__(self, suite):
        self.place = tempfile.mkdtemp(prefix="glove-root.")
        os.chmod(self.place, 0o755)
        subprocess.run(["tar", "-C", self.place, "--numeric-owner", "-xf", archive(suite)], check=True)
        shutil.copy(PACKAGE, self.place + "/var/glove.deb")

    def run(self, script):
        """What a shell of root says, there."""
        done = subprocess.run([sys.executable, "-B", HERE + "/in_root.py", self.place, "sh", "-ec", script],
                              text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False, timeout=120)
        if done.returncode != 0:
            raise AssertionError(f"{script}: status {done.returncode}:\n{done.stdout}")
        return done.stdout

    def listing(self):
        found = {}
        for folder, folders, names in os.walk(self.place):
            for name in folders + names:
                path = os.path.join(folder, name)
                at = os.lstat(path)
                shown = path[len(self.place):]
                if not (shown + "/").startswith(BOOKS):
                    found[shown] = (at.st_mode, at.st_uid, at.st_gid, os.readlink(path) if os.path.islink(path) else
                                    None if os.path.isdir(path) else (at.st_size, at.st_mtime_ns))
        return found

    def has_new_apparmor(self):
        return os.path.exists(self.place + "/etc/apparmor.d/abi/4.0")

    def remove(self):
        shutil.rmtree(self.place)


class Package(unittest.TestCase):
    def each(self):
        for suite in SUITES:
            with self.subTest(suite=suite):
                root = Root(suite)
                try:
                    root.run("dpkg --status glove && exit 1; ls -d /usr/bin/glove && exit 1; true")
                    yield root
                finally:
                    root.remove()

    def test_it_works_where_it_is_installed_and_leaves_nothing_behind(self):
        for root in self.each():
            before = root.listing()
            root.run("dpkg --install /var/glove.deb")
            self.assertNotEqual(root.listing(), before)
            self.assertRegex(root.run("glove --version"), r"^glove \d+\.\d+\.\d+\n$")
            for who in ("HOME=/tmp/home ", USER):
                begin = f"install -d -o 1000 -g 1000 /tmp/home; cd /tmp/home; {who} glove "
                begin = begin if who == USER else begin.replace("-o 1000 -g 1000 ", "")
                self.assertIn("glove exec works here", root.run(begin + "doctor"))
                self.assertEqual(root.run(begin + "exec -- cat /proc/1/comm").strip(), "glove")
                self.assertEqual(root.run(begin + "exec --egress-allow localhost:9 -- echo works").strip(), "works")
                self.assertIn("echo works", root.run(begin + "exec -- echo works; " + who + "glove log"))
            root.run("dpkg --remove glove")
            root.run("dpkg --purge glove")
            self.assertEqual(root.listing(), before)

    def test_it_leaves_nothing_behind_when_it_is_purged_at_once(self):
        for root in self.each():
            before = root.listing()
            root.run("dpkg --install /var/glove.deb; dpkg --install /var/glove.deb; dpkg --purge glove")
            self.assertEqual(root.listing(), before)

    def test_the_profile_is_in_place_exactly_where_apparmor_knows_its_words(self):
        for root in self.each():
            root.run("dpkg --install /var/glove.deb")
            knows = subprocess.run([sys.executable, "-B", HERE + "/in_root.py", root.place, "apparmor_parser", "-Q",
                                    "-K", SHIPPED], check=False, capture_output=True, text=True)
            self.assertEqual(knows.returncode == 0, root.has_new_apparmor(), knows.stderr)
            self.assertEqual(os.path.islink(root.place + PROFILE), root.has_new_apparmor())
            if root.has_new_apparmor():
                self.assertEqual(root.run(f"apparmor_parser -N {PROFILE}"), "glove\n")

    def test_a_newer_apparmor_that_comes_later_brings_the_profile(self):
        root = Root(own_suite())
        self.addCleanup(root.remove)
        root.run("rm -f /etc/apparmor.d/abi/4.0")
        before = root.listing()
        root.run("dpkg --install /var/glove.deb")
        self.assertFalse(os.path.lexists(root.place + PROFILE))
        root.run("touch /etc/apparmor.d/abi/4.0; dpkg-trigger --by-package=apparmor /etc/apparmor.d/abi/4.0; "
                 "dpkg --configure --pending; rm /etc/apparmor.d/abi/4.0")
        self.assertEqual(os.readlink(root.place + PROFILE), SHIPPED)
        root.run("dpkg --purge glove")
        after = root.listing()
        del before["/etc/apparmor.d/abi"], after["/etc/apparmor.d/abi"]
        self.assertEqual(after, before)

    def test_a_profile_of_the_administrator_stays(self):
        root = Root(SUITES[-1])
        self.addCleanup(root.remove)
        root.run(f"echo '# mine' > {PROFILE}; dpkg --install /var/glove.deb; dpkg --purge glove")
        self.assertEqual(root.run(f"cat {PROFILE}"), "# mine\n")


if __name__ == "__main__":
    if os.geteuid() != 0:
        os.execvp("sudo", ["sudo", "-n", "--", sys.executable, "-B", *sys.argv])
    SUITES = [own_suite()] + (["trixie"] if own_suite() == "bookworm" else [])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
