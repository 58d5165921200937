"""Programs that try to change what is protected. Each is run bare, where it works, and inside, where
it gets an error; and its honest neighbour works inside."""
import json
import os
import subprocess

import inside

MAKE = r"""
git init -q -b main . && git config user.name a && git config user.email a@example.org
echo text >file && git add file && git commit -q -m first
mkdir -p .vscode sub/deep && echo '{}' >.vscode/settings.json && echo one >.bashrc
git init -q sub/deep
"""

# Prints "worked" or the name of the error.
TRY = r"""
import ctypes, errno, os, shutil, sys
libc = ctypes.CDLL(None, use_errno=True)
def put(path, flags=os.O_WRONLY):
    fd = os.open(path, flags, 0o755)
    os.write(fd, b"\n") and os.close(fd)
def again(path):
    fd = os.open(path, os.O_RDONLY)
    put(f"/proc/self/fd/{fd}")
def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2) != 0:
        e = ctypes.get_errno(); raise OSError(e, os.strerror(e))
def unmount(path):
    if libc.umount2(path.encode(), 2) != 0:
        e = ctypes.get_errno(); raise OSError(e, os.strerror(e))
def truncate_map(path):
    import mmap
    fd = os.open(path, os.O_RDWR)
    mmap.mmap(fd, 0)[0:1] = b"#"
try:
    exec(sys.argv[1])
    print("worked")
except OSError as problem:
    print(errno.errorcode[problem.errno])
"""

# (what, attack, the kernel's answer, what the attack needs)
ATTACKS = [
    ("write a hook", "put('.git/hooks/pre-commit', os.O_WRONLY | os.O_CREAT)", "EROFS"),
    ("change git's settings", "put('.git/config')", "EROFS"),
    ("through a descriptor", "again('.git/config')", "EROFS"),
    ("through a mapping", "truncate_map('.git/config')", "EROFS"),
    ("through another way to the root", "put('/proc/self/root' + os.getcwd() + '/.git/config')", "EROFS"),
    ("through the working directory", "os.chdir('.git'); put('/proc/self/cwd/config')", "EROFS"),
    ("unlink", "os.unlink('.git/config')", "EBUSY"),
    ("rename a new one over", "put('n', os.O_WRONLY | os.O_CREAT); os.rename('n', '.bashrc')", "EBUSY"),
    ("rename another one over", "os.rename('.git/description', '.git/config')", "EBUSY"),
    ("rename one over from elsewhere", "put('n', os.O_WRONLY | os.O_CREAT); os.rename('n', '.git/config')",
     "EXDEV"),
    ("exchange names", "put('n', os.O_WRONLY | os.O_CREAT); exchange('n', '.bashrc')", "EBUSY"),
    ("rename it away", "os.rename('.bashrc', 'b')", "EBUSY"),
    ("rename a directory away", "os.rename('.vscode', 'v')", "EBUSY"),
    ("rename the repository away", "os.rename('.git', '.git2')", "EBUSY"),
    ("rename what is above a nested one", "os.rename('sub', 'sub2')", "EBUSY"),
    ("rename a nested repository", "os.rename('sub/deep/.git', 'sub/deep/x')", "EBUSY"),
    ("a hook of a nested repository", "put('sub/deep/.git/hooks/x', os.O_WRONLY | os.O_CREAT)", "EROFS"),
    ("remove a directory", "shutil.rmtree('.vscode')", "EROFS"),
    ("change the mode", "os.chmod('.git/config', 0o666)", "EROFS"),
    ("change the time", "os.utime('.git/config')", "EROFS"),
    ("set an attribute", "os.setxattr('.git/config', 'user.x', b'x')", "EROFS"),
    ("truncate", "os.truncate('.bashrc', 0)", "EROFS"),
    ("another name for it", "os.link('.git/config', 'other')", "EXDEV"),
    ("another name for what is in it", "os.link('.vscode/settings.json', 'other')", "EXDEV"),
    ("link over it", "os.symlink('/tmp/evil', '.bashrc')", "EEXIST"),
]
# What has no bare twin without privileges.
MOUNTS = [("unmount the cover", "unmount('.git/config')"), ("unmount the way", "unmount('.git')")]
ALLOWED = [
    "put('.git/x', os.O_WRONLY | os.O_CREAT)", "put('.git/HEAD.lock', os.O_WRONLY | os.O_CREAT)",
    "put('sub/deep/y', os.O_WRONLY | os.O_CREAT)", "shutil.move('file', 'sub/file')",
    "os.link('file', 'file2')", "open('.git/config').read()", "os.mkdir('sub/other')",
    "os.rename('.git/description', '.git/description2')",
]


def identities(folder):
    """Every name below a folder with its inode, links, mode and size."""
    found = {}
    for at, folders, names in os.walk(folder):
        for name in folders + names:
            full = os.path.join(at, name)
            now = os.lstat(full)
            found[os.path.relpath(full, folder)] = (now.st_ino, now.st_mode, now.st_size,
                                                   0 if name in folders else now.st_nlink)
    return found


class Scene(inside.Case):
    def setUp(self):
        super().setUp()
        self.need("git", "python3")
        self.fresh()

    def fresh(self, script=MAKE):
        self.place.empty_workspace()
        done = self.place.bare("bash", "-euc", script)
        self.assertEqual(done.returncode, 0, done.stderr)

    def attempt(self, attack, flags=(), bare=False):
        run = self.place.bare if bare else lambda *c: self.place.run(*c, flags=flags)
        done = run("python3", "-c", TRY, attack)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode().strip()


class Protected(Scene):
    def test_every_attack_is_refused_and_changes_nothing(self):
        before = identities(self.place.workspace)
        for what, attack, answer in ATTACKS:
            with self.subTest(what):
                self.assertEqual(self.attempt(attack), answer)
                left = {name: row for name, row in identities(self.place.workspace).items()
                        if name != "n"}
                self.assertEqual(left, before)
        for what, attack in MOUNTS:
            with self.subTest(what):
                self.assertEqual(self.attempt(attack), "EPERM")

    def test_every_attack_works_bare(self):
        for what, attack, answer in ATTACKS:
            with self.subTest(what):
                self.fresh()
                self.assertEqual(self.attempt(attack, bare=True),
                                 answer if answer == "EEXIST" else "worked")

    def test_honest_neighbours_work(self):
        for attack in ALLOWED:
            with self.subTest(attack):
                self.fresh()
                self.assertEqual(self.attempt(attack), "worked")

    def test_a_directory_on_the_way_is_a_mount_of_its_own(self):
        self.assertEqual(self.attempt("os.rename('file', 'sub/file')"), "EXDEV")
        self.assertEqual(self.attempt("os.mkdir('sub/a'); os.rename('sub/a', 'sub/b')"), "worked")

    def test_what_is_released_can_be_changed_and_nothing_else(self):
        hook = "put('.git/hooks/pre-commit', os.O_WRONLY | os.O_CREAT)"
        self.assertEqual(self.attempt(hook, flags=["--unprotect", ".git/hooks"]), "worked")
        self.assertEqual(self.attempt("put('.git/config')", flags=["--unprotect", ".git/hooks"]), "EROFS")
        self.assertEqual(self.attempt("put('.git/config')", flags=["--unprotect", ".git"]), "worked")
        self.assertEqual(self.attempt("put('.bashrc')", flags=["--unprotect", ".git"]), "EROFS")
        self.assertEqual(self.attempt("put('.bashrc')", flags=["--unprotect", "."]), "worked")
        self.assertEqual(self.attempt("os.rename('sub', 'sub2')", flags=["--unprotect", "sub"]), "worked")

    def test_a_word_that_releases_nothing_is_an_error_that_names_what_is_protected(self):
        self.assertEqual(self.place.run("true", flags=["--unprotect", ""]).returncode, 2)
        for word in ("file", "sub/none", "/etc", "/", ".."):
            with self.subTest(word):
                done = self.place.run("true", flags=["--unprotect", word])
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(b"--unprotect", done.stderr)
                self.assertIn(b".git/config", done.stderr)

    def test_the_explanation_and_the_report_name_it(self):
        text = self.place.run("true", flags=["--explain"]).stdout.decode()
        there, absent = text.split("Stays as it is")[1].split("Can be read (system)")[0].split(
            "Cannot be kept")
        self.assertIn("/.git/config\n", there)
        self.assertIn(" .envrc", absent)
        explained = json.loads(self.place.run("true", flags=["--explain", "--json"]).stdout)
        report = self.place.path("report.json")
        self.inside("true", flags=["--report", report])
        with open(report, encoding="utf-8") as file:
            reported = json.load(file)
        self.assertEqual(explained["protected"], reported["protected"])
        self.assertTrue(reported["protected_search_complete"])
        self.assertEqual(reported["protected_changes"], [])
        rows = {os.path.relpath(row["path"], self.place.workspace): row["present"]
                for row in reported["protected"]}
        self.assertTrue(rows[".git/hooks"] and rows["sub/deep/.git/config"])
        self.assertFalse(rows[".git/info/attributes"] or rows[".envrc"])

    def test_an_exact_grant_may_be_changed(self):
        mine = os.path.join(self.place.workspace, ".vscode")
        run = subprocess.run([inside.GLOVE, "exec", "--write", mine, "--", "touch", mine + "/new"],
                             env=self.place.environment, capture_output=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(os.path.exists(mine + "/new"))


class OtherNames(Scene):
    """Links and hard links that were there before."""

    def test_a_second_name_of_a_protected_file_is_told(self):
        os.link(os.path.join(self.place.workspace, ".git/config"),
                os.path.join(self.place.workspace, "other"))
        done = self.place.run("true")
        self.assertIn(b".git/config is one of several names", done.stderr)
        os.unlink(os.path.join(self.place.workspace, "other"))
        self.assertNotIn(b"several names", self.place.run("true").stderr)

    def test_git_is_a_link_to_a_place_inside(self):
        self.fresh(MAKE + "mv .git real; ln -s real .git")
        for attack, answer in (("put('.git/config')", "EROFS"), ("put('real/config')", "EROFS"),
                               ("os.unlink('.git')", "EBUSY"), ("os.rename('real', 'r2')", "EBUSY"),
                               ("os.rename('.git', 'g2')", "EBUSY")):
            with self.subTest(attack):
                self.assertEqual(self.attempt(attack), answer)
        self.assertEqual(self.attempt("put('real/x', os.O_WRONLY | os.O_CREAT)"), "worked")
        self.inside("git", "commit", "-q", "--allow-empty", "-m", "second")
        self.assertEqual(self.attempt("put('.git/config')", flags=["--unprotect", ".git"]), "worked")

    def test_git_is_a_link_to_a_place_outside(self):
        self.fresh(MAKE + "mv .git ../real; ln -s ../real .git")
        self.assertEqual(self.attempt("os.unlink('.git')"), "EBUSY")
        self.assertEqual(self.attempt("put('.git/config')"), "ENOENT")
        outside = self.place.path("real")
        self.assertEqual(self.attempt("put('.git/config')", flags=["--write", outside]), "EROFS")
        self.inside("git", "commit", "-q", "--allow-empty", "-m", "x", flags=["--write", outside])

    def test_an_editors_directory_is_a_link(self):
        self.fresh(MAKE + "mv .vscode shared; ln -s shared .vscode; ln -s nowhere .idea")
        self.assertEqual(self.attempt("put('shared/settings.json')"), "EROFS")
        self.assertEqual(self.attempt("os.unlink('.vscode')"), "EBUSY")
        self.assertEqual(self.attempt("os.unlink('.idea')"), "EBUSY")
        done = self.place.run("mkdir", "nowhere")
        self.assertIn(b"/nowhere appeared", done.stderr)

    def test_a_hook_that_is_a_link_to_a_script(self):
        self.fresh(MAKE + "echo true >check; ln -s ../../check .git/hooks/pre-commit")
        self.assertEqual(self.attempt("put('check')"), "EROFS")
        self.assertEqual(self.attempt("put('file')"), "worked")

    def test_hidden_places_and_guards_inside_stay_covered(self):
        self.fresh(MAKE + "mkfifo .vscode/fifo")
        self.assertEqual(self.attempt("open('.vscode/settings.json').read()",
                                      flags=["--hide", ".vscode/settings.json"]), "EACCES")
        self.assertEqual(self.attempt("open('.git/config').read()", flags=["--hide", ".git"]), "EACCES")
        self.assertEqual(self.attempt("os.open('.vscode/fifo', os.O_RDONLY | os.O_NONBLOCK)"), "EACCES")

    def test_a_name_with_any_bytes(self):
        name = b"sub/\xff \n%x"
        folder = os.path.join(os.fsencode(self.place.workspace), name)
        subprocess.run(["git", "init", "-q", folder], check=True)
        self.assertEqual(self.attempt("put(b'sub/\\xff \\n%x/.git/config')"), "EROFS")
        self.inside("true")
        self.assertEqual(os.listdir(self.place.path("state", "glove", "runs")), [])


# Names are bytes here: another case or another form of a letter is another file, which git on the
# same file system does not take for its own.
class Variants(Scene):
    def test_other_cases_are_other_files(self):
        self.assertEqual(self.attempt("os.mkdir('.GIT'); put('.GIT/config', os.O_WRONLY | os.O_CREAT)"),
                         "worked")
        self.assertEqual(self.place.bare("git", "-C", ".GIT", "rev-parse", "--show-toplevel").stdout
                         .decode().strip(), self.place.workspace)
