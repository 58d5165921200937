#!/usr/bin/env python3
"""What is in the Debian package, without installing it: contents_test.py FOLDER-OF-THE-PACKAGE BUILD"""
import fnmatch
import glob
import gzip
import os
import re
import subprocess
import sys
import tempfile
import unittest

FOLDER, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PACKAGE, = glob.glob(FOLDER + "/*.deb")
PROGRAMS = ("/usr/bin/glove", "/usr/bin/gloved", *(f"/usr/libexec/glove/glove-{name}" for name in ("control", "egress", "image", "mcp", "mediator", "ssh-agent")))
SOURCE = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))


def said(*command, **more):
    return subprocess.run(command, check=True, text=True, capture_output=True, **more).stdout


def field(name):
    return said("dpkg-deb", "--field", PACKAGE, name).strip()


class Contents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.held = tempfile.TemporaryDirectory(prefix="glove-package.")
        cls.tree = cls.held.name
        subprocess.run(["dpkg-deb", "--extract", PACKAGE, cls.tree], check=True)
        cls.files = sorted("/" + os.path.relpath(os.path.join(folder, name), cls.tree)
                           for folder, _, names in os.walk(cls.tree) for name in names)

    @classmethod
    def tearDownClass(cls):
        cls.held.cleanup()

    def test_every_file_is_expected_and_no_other_is_there(self):
        pages = ["/usr/share/man/man" + page.rsplit(".", 1)[1] + "/" + page + ".gz"
                 for page in os.listdir(SOURCE + "/docs/man")]
        self.assertEqual(self.files, sorted([
            *PROGRAMS,
            "/usr/share/glove/apparmor/glove",
            "/usr/share/doc/glove/copyright", "/usr/share/doc/glove/changelog.gz",
            "/usr/share/lintian/overrides/glove", "/usr/share/bash-completion/completions/glove",
            "/usr/share/zsh/vendor-completions/_glove", "/usr/share/fish/vendor_completions.d/glove.fish", *pages]))

    def test_the_page_names_every_file(self):
        with open(SOURCE + "/docs/install.md", encoding="utf-8") as file:
            table = re.search(r"<!-- table: package -->\n((?:\|.*\n)+)", file.read())[1]
        named = [span for row in table.splitlines()[2:] for span in re.findall(r"`([^`]+)`", row.split("|")[1])]
        held = {span: [name for name in self.files
                       if fnmatch.fnmatch(name, span + "*" if span.endswith("/") else span)] for span in named}
        self.assertEqual([span for span in named if not held[span]], [])
        self.assertEqual(sorted(sum(held.values(), [])), self.files)

    def test_everything_is_roots_and_writable_by_root_alone(self):
        for line in said("dpkg-deb", "--contents", PACKAGE).splitlines():
            mode, owner, *_, name = line.split()
            program = name[1:] in PROGRAMS
            self.assertEqual(owner, "root/root", line)
            self.assertEqual(mode, "drwxr-xr-x" if name.endswith("/") else "-rwxr-xr-x" if program else "-rw-r--r--")

    def test_it_depends_on_no_package_and_its_programs_on_no_library(self):
        self.assertEqual((field("Depends"), field("Pre-Depends")), ("", ""))
        # Of the programs that it starts, and does without: retained file systems are made with them.
        self.assertEqual(field("Recommends"), "e2fsprogs, fuse2fs")
        for name in PROGRAMS:
            self.assertNotIn("NEEDED", said("readelf", "-d", self.tree + name))
            self.assertNotIn("INTERP", said("readelf", "-lW", self.tree + name))
            self.assertRegex(said("readelf", "-d", self.tree + name), r"FLAGS_1.*\bPIE\b")

    def test_the_versions_agree(self):
        program = said(self.tree + "/usr/bin/glove", "--version").split()[-1]
        with gzip.open(self.tree + "/usr/share/doc/glove/changelog.gz", "rt") as file:
            newest = re.match(r"glove \(([^)]+)\)", file.readline())[1]
        self.assertEqual((field("Version"), newest), (program, program))

    def test_no_file_holds_a_path_of_the_build(self):
        for name in self.files:
            with open(self.tree + name, "rb") as file:
                self.assertNotIn(SOURCE.encode(), file.read(), name)

    def test_the_same_build_packs_to_the_same_bytes(self):
        time = int(said("dpkg-parsechangelog", "-l", SOURCE + "/packaging/debian/changelog", "-S", "Timestamp"))
        with open(PACKAGE, "rb") as file:
            first = file.read()
        for epoch, same in ((time, True), (time + 1, False)):
            with tempfile.TemporaryDirectory(prefix="glove-package.") as other:
                said("cpack", "--config", BUILD + "/CPackConfig.cmake", "-B", other, cwd=other,
                     env=os.environ | {"SOURCE_DATE_EPOCH": str(epoch)}, umask=0o022)
                again, = glob.glob(other + "/*.deb")
                with open(again, "rb") as file:
                    self.assertEqual(file.read() == first, same, epoch)

    def test_lintian_finds_nothing(self):
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", PACKAGE], text=True,
                              capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
